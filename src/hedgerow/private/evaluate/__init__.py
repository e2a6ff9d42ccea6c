"""What compares with real rows: metrics, and misfits of a schema. Everything that comes from here is PRIVATE.

The metrics by name. Each stands in the file of this folder that defines it, which is all that `evaluate`, `compare`,
their help, their pages and their checks need.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.foreign import imported

if TYPE_CHECKING:
    from hedgerow.private.evaluate.evaluation import evaluate
    from hedgerow.private.evaluate.marginals import marginal_distances
    from hedgerow.private.evaluate.metric import Comparison, Figure, Metric

_MADE = re.compile(r'^([A-Z][A-Z0-9_]*) = (?:Metric|distance|columnwise|_\w+)\(\s*"(\w+)"', re.M)
"""How a file says that it holds a metric: NAME = Metric("name", …), or something of its own that makes one."""
_FIRST = (
    *("marginals", "ranges", "conjunctions", "correlations", "subsample", "propensity", "matches"),
    *("values", "spikes", "digits", "ranks", "profiles", "detector", "classifier"),
)
"""The files whose figures are shown first; those of others follow by name."""


def _scanned() -> dict[str, str]:
    """Where each metric is, by its name: read off the text of the files, so that --help need not import them."""
    files = {file.stem: file for file in sorted(Path(__file__).parent.glob("*.py"))}
    ordered = [*_FIRST, *(stem for stem in files if stem not in _FIRST)]
    texts = ((stem, files[stem].read_text(encoding="utf-8")) for stem in ordered)
    return {name: f"{stem}:{constant}" for stem, text in texts for constant, name in _MADE.findall(text)}


_METRICS = _scanned()
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
        optional = ("needs", "draws", "compared", "beside_samples")
        said = {key: getattr(made, key) for key in optional if hasattr(made, key)}
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
