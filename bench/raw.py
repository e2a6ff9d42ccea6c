"""Raw tables, declared by types and generous bounds alone: the figures of docs/studies/raw.md.

    python -m bench.raw --tables bank,creditcard --epsilons 1 --runs 3

Every table is released twice: cut privately, as anybody would, and given cuts that only who knows the rows can choose
(real quantiles and tail cuts, single values of 1.5 % of the rows and more). What is compared are values, not codes. The
tables are looked for in $HEDGEROW_DATA; the trips are made up here. Results are kept in bench/raw.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.process import ROOT, in_a_process
from bench.tables import DATA, at_hand

if TYPE_CHECKING:
    import pandas as pd

    import hedgerow as hr

RESULTS = ROOT / "bench" / "raw.json"
PAGE = ROOT / "docs" / "studies" / "raw.md"
DELTA = 1e-6
QUANTILES = 50
SPIKE = 0.015
DETECTED = 10_000
"""Rows of each table that the detector sees."""

NUMBERS: dict[str, tuple[str, dict[str, tuple[int, int]]]] = {
    "bank": (
        "data.csv",
        {
            "age": (0, 120), "balance": (-100_000, 1_000_000), "day": (1, 31), "duration": (0, 100_000),
            "campaign": (0, 1_000), "pdays": (-1, 10_000), "previous": (0, 1_000),
        },
    ),
    "creditcard": (
        "data.csv",
        {
            "limit_bal": (0, 10**7), "age": (0, 120), **{f"pay_{month}": (-10, 20) for month in (0, 2, 3, 4, 5, 6)},
            **{f"bill_amt{month}": (-(10**7), 10**7) for month in range(1, 7)},
            **{f"pay_amt{month}": (0, 10**7) for month in range(1, 7)},
        },
    ),
    "adult-raw": (
        "adult.csv",
        {
            "age": (0, 120), "fnlwgt": (0, 10**7), "education-num": (0, 50), "capital-gain": (0, 10**6),
            "capital-loss": (0, 10**6), "hours-per-week": (0, 168),
        },
    ),
}  # fmt: skip
"""Bounds as a steward would write them who has not seen the rows."""
TRIPS = "trips (made up)"


def declared(table: str, rows: pd.DataFrame) -> hr.Schema:
    """The raw schema: numbers by their bounds, categories by the values that the public table holds."""
    import hedgerow as hr

    if table == TRIPS:
        moment = {"type": "datetime", "min": "2015-01-01", "max": "2024-12-31", "step": "minute"}
        fare = {"type": "number", "min": 0, "max": 10_000, "decimals": 2}
        return hr.Schema(columns={"pickup": moment, "fare": fare})
    bounds = NUMBERS[table][1]
    columns: dict[str, Any] = {}
    for name in rows.columns:
        if name in bounds:
            columns[name] = {"type": "integer", "min": bounds[name][0], "max": bounds[name][1]}
        else:
            columns[name] = {"type": "category", "values": sorted(rows[name].unique())}
    return hr.Schema(columns=columns)


def rows_of(table: str) -> pd.DataFrame:
    import pandas as pd

    if table != TRIPS:
        rows = pd.read_csv(DATA / table / NUMBERS[table][0], keep_default_na=False)
        return rows.astype({name: str for name in rows if name not in NUMBERS[table][1]})
    rng = np.random.default_rng(0)
    count = 30_000
    days = np.datetime64("2019-01-01") + (rng.beta(2, 3, count) * 365).astype(int)
    weekend = (days.astype("datetime64[D]").view("i8") + 3) % 7 > 4
    keep = ~weekend | (rng.random(count) < 0.4)
    days, weekend = days[keep], weekend[keep]
    rush = np.where(rng.random(len(days)) < 0.5, rng.normal(8.3, 0.8, len(days)), rng.normal(17.8, 1.5, len(days)))
    hour = np.clip(np.where(weekend, rng.normal(14, 4, len(days)), rush), 0, 23.99)
    minute = np.where(rng.random(len(days)) < 0.25, np.rint(hour * 4) * 15, np.floor(hour * 60)).astype(int)
    pickup = (days.astype("datetime64[m]") + np.minimum(minute, 1439)).astype("datetime64[s]")
    fare = np.round(np.where(rng.random(len(days)) < 0.05, 52.0, 2.5 + rng.gamma(2, 6, len(days))), 2)
    return pd.DataFrame({"pickup": pickup, "fare": fare})


def with_oracle_cuts(schema: hr.Schema, rows: pd.DataFrame) -> hr.Schema:
    """The schema with the cells of somebody who has seen the rows."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.schema.leaves import Leaf
    from hedgerow.schema.numeric import ENDING

    for name, _ in schema.discoveries:
        places = schema.waiting(name).places(pa.array(rows[name]))
        lines = {line: values.astype(np.int64) for line, values in places.lines.items() if line != ENDING}
        cells = {line: [[Leaf(*leaf)] for leaf in _oracle(values)] for line, values in lines.items()}
        schema = schema.with_cuts(name, cells)
    data = schema.to_dict()
    for column in data["columns"].values():
        column.pop("discovered", None)
    return hr.Schema.from_dict(data)


def _oracle(values: Any) -> list[tuple[int, int, int]]:
    distinct, counts = np.unique(values, return_counts=True)
    spikes = distinct[counts >= SPIKE * len(values)].tolist()
    rest = values[~np.isin(values, spikes)]
    levels = [*np.linspace(0, 1, QUANTILES + 1), 0.0001, 0.001, 0.005, 0.99, 0.995, 0.999, 0.9999]
    edges = np.quantile(rest, levels, method="lower").tolist() if len(rest) else []
    starts = sorted({int(distinct[0]), *map(int, edges), *spikes, *(spike + 1 for spike in spikes)})
    ends = [*(start - 1 for start in starts[1:]), int(distinct[-1])]
    held = [int(((values >= start) & (values <= end)).sum()) for start, end in zip(starts, ends, strict=True)]
    return [each for each in zip(starts, ends, held, strict=True) if each[2]]


def measure(table: str, cuts: str, epsilon: float) -> dict[str, float]:
    """One run in this process: distances of raw values, and what it took."""
    import hedgerow as hr

    rows = rows_of(table)
    schema = declared(table, rows)
    if cuts == "oracle":
        schema = with_oracle_cuts(schema, rows)
    begin = time.process_time()
    release = hr.synthesize(rows, schema, hr.Budget(epsilon, DELTA))
    made = release.sample().to_pandas()
    seconds = time.process_time() - begin
    numbers = [name for name, column in schema.columns.items() if column.type in ("integer", "number")]  # type: ignore[attr-defined]
    pairs = [(rows[name].to_numpy(float), made[name].to_numpy(float)) for name in numbers]
    heavy = [_kurtosis(real) > 100 for real, _ in pairs]
    errors = [abs(real.mean() - synthetic.mean()) / real.std() for real, synthetic in pairs]
    figures = {
        "ks": float(np.mean([_kolmogorov(*pair) for pair in pairs])),
        "mean_error": max((error for error, far in zip(errors, heavy, strict=True) if not far), default=0.0),
        "mean_error_heavy": max((error for error, far in zip(errors, heavy, strict=True) if far), default=0.0),
        "common": max(_common(*pair) for pair in pairs),
        "auc": _detected(rows, made),
        "cpu_s": seconds,
    }
    if "pickup" in rows:
        for per in ("hour", "dayofweek"):
            figures[per] = _profile(rows["pickup"], made["pickup"], per)
    return figures


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


def _kurtosis(values: Any) -> float:
    centred = values - values.mean()
    return float((centred**4).mean() / max((centred**2).mean() ** 2, 1e-300)) - 3


def _profile(real: Any, made: Any, per: str) -> float:
    counts = [getattr(moments.dt, per).value_counts(normalize=True) for moments in (real, made)]
    return float(counts[0].subtract(counts[1], fill_value=0).abs().sum()) / 2


def _detected(rows: pd.DataFrame, made: pd.DataFrame) -> float:
    """How well a boosted classifier tells real rows from synthetic ones (area under the curve, three folds)."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    count = min(len(rows), len(made), DETECTED)
    both = pd.concat([rows.sample(count, random_state=0), made.sample(count, random_state=0)], ignore_index=True)
    for name in both:
        if both[name].dtype.kind == "M":
            both[f"{name} day"], both[f"{name} hour"] = both[name].dt.dayofweek, both[name].dt.hour
            both[name] = both[name].astype("int64")
        elif not pd.api.types.is_numeric_dtype(both[name]):
            both[name] = both[name].astype("category").cat.codes
    label = np.repeat([0, 1], count)
    model = HistGradientBoostingClassifier(random_state=0)
    return float(roc_auc_score(label, cross_val_predict(model, both, label, cv=3, method="predict_proba")[:, 1]))


def run() -> list[dict[str, Any]]:
    """Fill in the grid and write the page; rows of this call's cells."""
    parser = argparse.ArgumentParser(prog="python -m bench.raw")
    parser.add_argument("--tables", default=",".join([*NUMBERS, TRIPS]))
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    results: dict[str, list[dict[str, Any]]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    asked = arguments.tables.split(",")
    tables = [*at_hand(*(name for name in asked if name != TRIPS)), *[TRIPS] * (TRIPS in asked)]
    rows = []
    for table in tables:
        for epsilon in map(float, arguments.epsilons.split(",")):
            for cuts in ("private", "oracle"):
                key = f"{table}|{cuts}|{epsilon:g}"
                done = [] if arguments.again else results.get(key, [])
                while len(done) < arguments.runs:
                    done.append(in_a_process("bench.raw", "measure", table, cuts, epsilon))
                    results[key] = done
                    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
                rows.append({"table": table, "cuts": cuts, "epsilon": epsilon, **summary(done)})
                print(rows[-1], file=sys.stderr, flush=True)
    PAGE.write_text(page(results))
    return rows


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of the runs that ended."""
    ended = [run for run in runs if "failed" not in run]
    if not ended:
        return {"failed": runs[0]["failed"]}
    return {key: round(statistics.median(run[key] for run in ended), 4) for key in ended[0]} | {"runs": len(ended)}


def page(results: dict[str, list[dict[str, Any]]]) -> str:
    """docs/studies/raw.md."""
    lines = [
        "# Raw tables",
        "",
        "Tables as people have them, declared by types and generous bounds, without a look at the rows",
        "(how: `bench/raw.py`); `hedge`, δ = 1e-6, medians of the runs given. *Cut privately* is what anybody gets;",
        "*given cuts* is the same run with cells that only somebody who knows the rows can choose: 50 real quantiles",
        "and tail cuts, and values that 1.5 % of the rows hold. Written by `python -m bench.raw`.",
        "",
        "KS: mean Kolmogorov distance of numeric columns. Mean error: of the worst column, in standard deviations of",
        "it, apart for columns whose kurtosis is above 100. Common values: total variation over the five commonest",
        "values and the rest, of the worst column. Hours, weekdays: total variation of the profile. AUC: a boosted",
        f"classifier that tells real rows from synthetic ones ({DETECTED:,} of each, three folds); .5 is a guess.",
        "",
        "bank, creditcard and adult-raw were looked at while the constants of the cuts were chosen.",
        "",
        "| table | ε | cells | KS | mean error | heavy tails | common values | hours | weekdays | AUC | CPU s | runs |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key in sorted(results):
        table, cuts, epsilon = key.split("|")
        found = summary(results[key])
        named = {"private": "cut privately", "oracle": "given cuts"}[cuts]
        if "failed" in found:
            lines.append(f"| {table} | {epsilon} | {named} | failed |" + " |" * 8)
            continue
        figures = [
            f"{found[name]:.{digits}f}" if name in found else "–"
            for name, digits in (
                *(("ks", 4), ("mean_error", 3), ("mean_error_heavy", 3), ("common", 3), ("hour", 3), ("dayofweek", 3)),
                *(("auc", 3), ("cpu_s", 1), ("runs", 0)),
            )
        ]
        lines.append(f"| {table} | {epsilon} | {named} | " + " | ".join(figures) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    run()
