"""How far made rows are from real ones, by what readers compute from values as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.raw.tables import Raw

if TYPE_CHECKING:
    import pandas as pd

DETECTED = 10_000
"""Rows of each table that the detector sees."""
HEAVY = 100
"""Kurtosis from which a column counts as heavy-tailed."""


def figures(raw: Raw, made: pd.DataFrame) -> dict[str, float]:
    """Every figure of docs/studies/raw.md; those of times only where the table has some."""
    names = raw.columns("integer", "number")
    pairs = [(raw.rows[name].to_numpy(float), made[name].to_numpy(float)) for name in names]
    errors = [abs(real.mean() - synthetic.mean()) / real.std() for real, synthetic in pairs]
    heavy = [_kurtosis(real) > HEAVY for real, _ in pairs]
    found = {
        "ks": float(np.mean([_kolmogorov(*pair) for pair in pairs])),
        "mean_error": max((error for error, far in zip(errors, heavy, strict=True) if not far), default=0.0),
        "common": max(_common(*pair) for pair in pairs),
        "beyond": max(_beyond(made[name], raw.declared[name].get("decimals", 0)) for name in names),
        "auc": _detected(raw.rows, made),
    }
    if any(heavy):
        found["mean_error_heavy"] = max(error for error, far in zip(errors, heavy, strict=True) if far)
    for per, kinds in (("hour", ("datetime",)), ("dayofweek", ("date", "datetime"))):
        if times := raw.columns(*kinds):
            found[per] = max(_profile(raw.rows[name], made[name], per) for name in times)
    return found


def _kolmogorov(real: Any, made: Any) -> float:
    grid = np.union1d(real, made)
    below = [np.searchsorted(np.sort(values), grid, side="right") / len(values) for values in (real, made)]
    return float(np.abs(below[0] - below[1]).max())


def _common(real: Any, made: Any) -> float:
    """Total variation over the five commonest values and the rest."""
    values, counts = np.unique(real, return_counts=True)
    top = np.argsort(counts)[-5:]
    shares = counts[top] / len(real), np.array([(made == value).mean() for value in values[top]])
    rest = [1 - share.sum() for share in shares]
    return float(np.abs(shares[0] - shares[1]).sum() + abs(rest[0] - rest[1])) / 2


def _beyond(made: pd.Series, decimals: int) -> float:
    """The share of values with more digits than are declared."""
    return float((made != made.astype(float).round(decimals)).mean())


def _kurtosis(values: Any) -> float:
    centred = values - values.mean()
    return float((centred**4).mean() / max((centred**2).mean() ** 2, 1e-300)) - 3


def _profile(real: pd.Series, made: pd.Series, per: str) -> float:
    counts = [getattr(moments.astype("datetime64[s]").dt, per).value_counts(normalize=True) for moments in (real, made)]
    return float(counts[0].subtract(counts[1], fill_value=0).abs().sum()) / 2


def _detected(rows: pd.DataFrame, made: pd.DataFrame) -> float:
    """How well a boosted classifier tells real rows from synthetic ones (area under the curve, three folds)."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    count = min(len(rows), len(made), DETECTED)
    both = pd.concat([rows.sample(count, random_state=0), made.sample(count, random_state=0)], ignore_index=True)
    for name in list(both):
        if rows[name].dtype.kind == "M":
            both[name] = both[name].astype("datetime64[s]")
            both[f"{name} day"], both[f"{name} hour"] = both[name].dt.dayofweek, both[name].dt.hour
            both[name] = both[name].astype("int64")
        elif not pd.api.types.is_numeric_dtype(both[name]):
            both[name] = both[name].astype("category").cat.codes
    label = np.repeat([0, 1], count)
    model = HistGradientBoostingClassifier(random_state=0)
    return float(roc_auc_score(label, cross_val_predict(model, both, label, cv=3, method="predict_proba")[:, 1]))
