"""Values as they stand, made ready for the PRIVATE page: pictures and texts, real beside synthetic."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np

from hedgerow.pages.distributions import Distribution
from hedgerow.pages.values import NumberView
from hedgerow.private.evaluate.metric import Comparison
from hedgerow.private.evaluate.profiles import DAY, HOUR, WEEKDAYS, hours, profile, weekdays
from hedgerow.private.evaluate.raw import Kind, RawColumn
from hedgerow.private.evaluate.spikes import commonest, shares_of, spike_error
from hedgerow.private.evaluate.values import (
    IN_ORDER,
    deviation,
    in_deviations,
    kolmogorov,
    mean,
    quantiles,
    total,
)
from hedgerow.schema.arrays import FloatArray

BARS = 40
CUTS = tuple(np.arange(21) / 20)
ENDS = (0.005, 0.995)
"""Between these quantiles of the real values bars are drawn; what lies beyond has a bar at either end."""
WIDEST_BAR = 0.5
"""Where one bar would hold more of the rows, bars of like height are drawn instead of bars of like width."""
_EPOCH = datetime.datetime(1970, 1, 1)
Pair = tuple[RawColumn, RawColumn]


def pairs(comparison: Comparison, kinds: tuple[Kind, ...] = IN_ORDER) -> dict[str, Pair]:
    """The columns of some kinds that hold values in both tables, real and synthetic, in the schema's order."""
    real, synthetic = comparison.values
    both = {name: (column, synthetic.columns[name]) for name, column in real.columns.items() if column.kind in kinds}
    return {name: pair for name, pair in both.items() if all(len(column.present) for column in pair)}


def spelled(kind: Kind, value: float) -> str:
    """A value as people write it."""
    if kind == "number":
        if abs(value) >= 1e15:
            return f"{value:.4g}"
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    moment = _EPOCH + datetime.timedelta(seconds=float(np.clip(value, -6e10, 2.5e11)))
    return moment.strftime("%Y-%m-%d") if kind == "day" else moment.strftime("%Y-%m-%d %H:%M")


def stretch(kind: Kind, value: float) -> str:
    """A difference of values as people write it."""
    if kind == "number":
        return spelled(kind, value)
    return f"{value / DAY:.4g} days" if value >= 2 * DAY or kind == "day" else f"{value / HOUR:.3g} h"


def number_view(name: str, pair: Pair) -> NumberView:
    """What readers compute from a column, in both tables."""
    kind = pair[0].kind
    values = [column.present for column in pair]
    means, deviations = [mean(each) for each in values], [deviation(each) for each in values]
    at = [quantiles(each) for each in values]

    def both(texts: list[str]) -> tuple[str, str]:
        return texts[0], texts[1]

    return NumberView(
        name=name,
        mean=both([spelled(kind, each) for each in means]),
        deviation=both([stretch(kind, each) for each in deviations]),
        quantiles=[both([spelled(kind, each[level]) for each in at]) for level in range(len(at[0]))],
        total=both([spelled(kind, total(column) * len(pair[0].values)) for column in pair])
        if kind == "number"
        else None,
        off=in_deviations(abs(means[1] - means[0]), values[0]),
        kolmogorov=kolmogorov(values[0], values[1]),
    )


def histogram(name: str, pair: Pair) -> tuple[Distribution, float]:
    """The shares of the rows in bars over the real values, and what is missing; and the distance between the two."""
    kind, real = pair[0].kind, pair[0].present
    distinct = np.union1d(real, pair[1].present)
    if len(distinct) <= BARS:
        labels = [spelled(kind, value) for value in distinct]
        edges = np.append(distinct, np.inf)
    else:
        edges = _edges(kind, real)
        labels = _labels(kind, edges, _unit(kind, real))
    counted = [np.diff(np.searchsorted(column.present, edges)) for column in pair]
    below = [int(np.searchsorted(column.present, edges[0])) for column in pair]
    above = [len(column.present) - int(np.searchsorted(column.present, edges[-1])) for column in pair]
    if any(below):
        labels = [f"below {spelled(kind, edges[0])}", *labels]
        counted = [np.insert(each, 0, count) for each, count in zip(counted, below, strict=True)]
    if any(above):
        labels = [*labels, f"from {spelled(kind, edges[-1])}"]
        counted = [np.append(each, count) for each, count in zip(counted, above, strict=True)]
    ordered = len(labels)
    nothing = [len(column.values) - len(column.present) for column in pair]
    if any(nothing):
        labels = [*labels, "no value"]
        counted = [np.append(each, count) for each, count in zip(counted, nothing, strict=True)]
    shares = [each / len(column.values) for each, column in zip(counted, pair, strict=True)]
    series = list(zip(("real", "synthetic"), shares, strict=True))
    return Distribution(name, labels, series, ordered), float(np.abs(shares[1] - shares[0]).sum()) / 2


def _edges(kind: Kind, real: FloatArray) -> FloatArray:
    """Bars of like width between the ends or, where one bar would hold most, of like height."""
    edges: FloatArray
    low, high = quantiles(real, ENDS)
    unit = _unit(kind, real)
    if low < high:
        if unit and high - low < 2.0**52 * unit:
            width = np.ceil(((high - low) / unit + 1) / BARS) * unit
            edges = low + width * np.arange(np.ceil((high - low + unit) / width) + 1)
        else:
            edges = np.append(np.linspace(low, high, BARS), np.nextafter(high, np.inf))
        if np.diff(np.searchsorted(real, edges)).max() <= WIDEST_BAR * len(real):
            return edges
    cuts = quantiles(real, CUTS)
    alone = cuts[1:][np.diff(cuts) == 0]  # values that many rows share have a bar of their own
    ends = np.append(alone, cuts[-1])
    edges = np.unique(np.concatenate([cuts[:-1], ends + unit if unit else np.nextafter(ends, np.inf)]))
    return edges


def _unit(kind: Kind, real: FloatArray) -> float:
    """What values are whole multiples of: days, seconds, ones; 0 for nothing."""
    return {"day": float(DAY), "moment": 1.0}.get(kind, 1.0 if (real == np.floor(real)).all() else 0.0)


def _labels(kind: Kind, edges: FloatArray, unit: float) -> list[str]:
    """From the first to the last value that a bar can hold."""
    labels = []
    before = None
    for start, stop in pairwise(edges.tolist()):
        first, last = spelled(kind, start), spelled(kind, stop - unit)
        if before is not None and start == np.nextafter(before, np.inf):
            first = f">{spelled(kind, before)}"
        single = stop == np.nextafter(start, np.inf) or first == last
        labels.append(first if single else f"{first} – {last}")
        before = start
    return labels


def spike_view(name: str, pair: Pair) -> tuple[Distribution, float]:
    """The commonest real values and the rest."""
    five = commonest(pair[0].present)
    shares = [np.append(found := shares_of(column.present, five), 1 - found.sum()) for column in pair]
    labels = [*(spelled_whole(pair[0].kind, value) for value in five), "all others"]
    series = list(zip(("real", "synthetic"), shares, strict=True))
    return Distribution(name, labels, series), spike_error(*pair) or 0.0


def spelled_whole(kind: Kind, value: float) -> str:
    """One value with all its digits."""
    if kind != "number":
        return spelled(kind, value)
    return f"{value:,.15g}" if abs(value) >= 10_000 else f"{value:.15g}"  # a year has no comma


def profile_views(name: str, pair: Pair) -> list[tuple[Distribution, float]]:
    """Days of the week and, where there are times, hours of the day."""
    wanted = [("weekday", weekdays, list(WEEKDAYS))]
    if pair[0].kind == "moment":
        wanted.append(("hour", hours, [f"{hour:02} h" for hour in range(24)]))
    found = []
    for what, part, labels in wanted:
        shares = [profile(column, part, len(labels)) for column in pair]
        series = list(zip(("real", "synthetic"), shares, strict=True))
        distance = float(np.abs(shares[1] - shares[0]).sum()) / 2
        found.append((Distribution(f"{name}, {what}", labels, series, len(labels)), distance))
    return found


def has_spikes(pair: Pair) -> bool:
    """Whether a real value is common enough to be worth a picture: one row in fifty."""
    return bool(50 * shares_of(pair[0].present, commonest(pair[0].present, 1))[0] >= 1)
