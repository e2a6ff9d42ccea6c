"""What compares with real rows: metrics, and misfits of a schema. Everything that comes from here is PRIVATE.

The metrics by name. Each stands in the file that defines it; a line here makes it known to `evaluate`, `compare`, their
help, their pages and their checks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.foreign import imported

if TYPE_CHECKING:
    from hedgerow.private.evaluate.evaluation import evaluate
    from hedgerow.private.evaluate.marginals import marginal_distances
    from hedgerow.private.evaluate.metric import Comparison, Figure, Metric

_METRICS = {
    "tvd1": "marginals:TVD1",
    "tvd2": "marginals:TVD2",
    "tvd3": "marginals:TVD3",
    "worst": "marginals:WORST",
    "k_marginal": "marginals:K_MARGINAL",
    "range3": "ranges:RANGE3",
    "range5": "ranges:RANGE5",
    "conjunctions": "conjunctions:CONJUNCTION_ERROR",
    "pearson": "correlations:PEARSON",
    "kendall": "correlations:KENDALL",
    "cramers_v": "correlations:CRAMERS_V",
    "subsample": "subsample:SUBSAMPLE",
    "pmse": "propensity:PMSE",
    "unique_matches": "matches:UNIQUE_MATCHES",
    "apparent_matches": "matches:APPARENT_MATCHES",
    "means": "values:MEANS",
    "deviations": "values:DEVIATIONS",
    "sums": "values:SUMS",
    "quantiles": "values:QUANTILES",
    "ks": "values:KS",
    "wasserstein": "values:WASSERSTEIN",
    "spikes": "spikes:SPIKES",
    "digits": "digits:DIGITS",
    "spearman": "ranks:SPEARMAN",
    "hours": "profiles:HOURS",
    "weekdays": "profiles:WEEKDAY",
    "detector": "detector:DETECTOR",
    "svm": "classifier:SVM",
    "boosting": "classifier:BOOSTING",
}
METRICS = tuple(_METRICS)
"""The metrics that come with Hedgerow."""


def find(name: str) -> Metric:
    """A metric by its name here, or as `package.module:Name` for one made elsewhere: a Metric, or a class like one."""
    from hedgerow.private.evaluate.metric import Metric

    if name not in _METRICS and ":" not in name:
        raise OptionError(
            "unknown-metric",
            f'unknown metric "{name}"; metrics: {listing(METRICS, 20)}.{suggestion(name, METRICS)}',
        )
    found = imported(f"{__name__}.{_METRICS[name]}" if name in _METRICS else name, "metric")
    try:
        made = found() if isinstance(found, type) else found
        if isinstance(made, Metric):
            return made
        said = {key: getattr(made, key) for key in ("needs", "draws", "beside_samples") if hasattr(made, key)}
        return Metric(made.name, made.compute, made.figures, **said)
    except (AttributeError, TypeError):
        raise OptionError(
            "not-a-metric", f'"{name}" is not a metric: it has `name`, `compute` and `figures`.'
        ) from None


__all__ = ["METRICS", "Comparison", "Figure", "Metric", "evaluate", "find", "marginal_distances"]

_PLACES = {
    "Comparison": "metric",
    "Figure": "metric",
    "Metric": "metric",
    "evaluate": "evaluation",
    "marginal_distances": "marginals",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: the names of metrics are asked for by --help."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
