"""Noisy histograms made smooth: single columns whose cells hold little more than noise.

Neighbouring codes of an ordered attribute hold alike counts, so a cell may borrow from its neighbours; the cells of an
unordered one can only be drawn towards their common mean. How much is decided by Stein's unbiased risk estimate (Stein
1981), which needs the noisy counts and their noise alone: this is post-processing. As the estimate is noisy too, the
best option by it is not taken alone: all are averaged, with weights that fall with their risk (Leung, Barron 2006).

Cells that stand out from what surrounds them (heaped ages, the zero of a capital gain) keep their noisy counts. Where
somebody said that codes stand in their order, nothing is left at the ends of the line that noise may have put there:
bounds are declared generously, and a few made-up rows far out would move the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Attribute, Counts
from hedgerow.coded.measurement import Measurement
from hedgerow.models.graphical.terms import LEAST_STD
from hedgerow.models.histograms import project_to_simplex

WIDTHS = (0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 20.0)
"""Standard deviations of the Gaussian kernels that are tried, in cells; wider ones where there are many cells."""
WIDER = 3.0
STANDS_OUT = 3.0
"""A cell so many standard deviations from the mean around it is a spike."""
REACH = 5
"""So many cells on either side are what surrounds a cell."""

PATIENCE = 8.0
"""An option weighs exp(−risk / (PATIENCE · σ²)); from 4 on, averaging is known not to raise the risk."""

DIRECT = 1 << 22
"""Longer convolutions go through Fourier transforms."""
FEWEST = 4
"""Fewer cells have no mean worth being drawn to, and so few show no order."""

CLEAR = 4.0
"""So many standard deviations put a cell beyond doubt …"""
STEEP = 2.0
"""… and so many more, whenever a distance doubles, those beyond the ends of the line: from half its width on, about."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Column:
    """What is known of one attribute: counts that add up to the total, each wrong by about `std`."""

    counts: Counts
    std: float


class Smoothed(NamedTuple):
    """Estimated counts of some cells, and how much of each is its own noisy count."""

    counts: Counts
    own: Counts


def denoised(measurement: Measurement, attribute: Attribute, total: float) -> Column:
    """The best guess at an attribute's own counts from one noisy measurement of all its cells."""
    values, std = measurement.dense(), max(LEAST_STD, measurement.std)
    ordered = attribute.ordered
    beyond = np.zeros(attribute.size, dtype=bool)
    if ordered is None:  # nobody said: the risk decides
        ordered = attribute.size if attribute.size > FEWEST else 0
    else:
        beyond[:ordered] = _beyond_the_ends(values[:ordered], std)
    values, ordered = values[~beyond], ordered - int(beyond.sum())
    options = [
        _risked(values, Smoothed(*map(np.concatenate, zip(first, rest, strict=True))), std, total)
        for first in (*_together(values[:ordered], std), *_by_kernels(values[:ordered], std))
        for rest in _together(values[ordered:], std)
    ]
    found = _averaged(options, std)
    counts: Counts = np.zeros(attribute.size)
    counts[~beyond] = found.counts
    return Column(counts, found.std)


def _beyond_the_ends(values: Counts, std: float) -> Mask:
    """The cells at either end of a line that may well hold nothing.

    From what is beyond doubt outwards, cells are taken together as far as they are clearest; the farther away their
    middle lies, in widths of what is held by then, the clearer they have to be.
    """
    beyond = np.zeros(len(values), dtype=bool)
    sure = np.flatnonzero(values > CLEAR * std)
    if len(sure) == 0:
        return beyond
    first, last = int(sure[0]), int(sure[-1])
    more = less = 1
    while more or less:
        width = last - first + 1
        more = _as_clear_as_they_get(values[last + 1 :], width, std)
        less = _as_clear_as_they_get(values[:first][::-1], width, std)
        first, last = first - less, last + more
    beyond[:first] = beyond[last + 1 :] = True
    return beyond


def _as_clear_as_they_get(values: Counts, width: int, std: float) -> int:
    """How many cells, beginning beside a run of this width, hold together what noise alone would not."""
    count = np.arange(1, len(values) + 1)
    needed = np.minimum(CLEAR, STEEP * np.log2(1 + count / width))
    clear = np.cumsum(values) / (std * np.sqrt(count)) - needed
    return int(clear.argmax()) + 1 if len(clear) and clear.max() > 0 else 0


class Risked(NamedTuple):
    """Counts that are possible, Stein's estimate of their squared error, and the least that it can be taken for."""

    counts: Counts
    risk: float
    least: float


def _risked(values: Counts, smoothed: Smoothed, std: float, total: float) -> Risked:
    """The counts made non-negative with the right sum, and their error by Stein's estimate.

    The estimate is ‖values − counts‖² + (2·degrees of freedom − cells)·σ²; a cell that ends at 0 is not free. The
    degrees of freedom alone bring the least.
    """
    counts = project_to_simplex(smoothed.counts, total)
    free = max(1.0, float(smoothed.own[counts > 0].sum()))
    risk = float(((values - counts) ** 2).sum()) + (2 * free - len(values)) * std**2
    return Risked(counts, risk, std**2 * free * free / len(values))


def _averaged(options: Sequence[Risked], std: float) -> Column:
    """The options' mean, and its error: their mean risk, less what averaging takes off (Leung, Barron 2006)."""
    risks = np.array([option.risk for option in options])
    weights = np.exp((risks.min() - risks) / (PATIENCE * std**2))
    weights /= weights.sum()
    counts: Counts = sum(weight * option.counts for weight, option in zip(weights, options, strict=True))
    spread = [float(((option.counts - counts) ** 2).sum()) for option in options]
    risk = float(weights @ (risks - (1 - 4 / PATIENCE) * np.array(spread)))
    least = float(weights @ np.array([option.least for option in options]))
    return Column(counts, max(LEAST_STD, math.sqrt(max(risk, least) / len(counts))))


def _together(values: Counts, std: float) -> Iterator[Smoothed]:
    """Cells in no order: as they are, and all that do not stand out drawn towards their mean (James, Stein 1961)."""
    yield Smoothed(values, np.ones(len(values)))
    inside = ~_spikes(values, std)
    rest = int(inside.sum())
    if rest >= FEWEST:
        mean = float(values[inside].mean())
        spread = float(((values[inside] - mean) ** 2).sum())
        keep = max(0.0, 1 - (rest - 1) * std**2 / spread) if spread else 0.0
        own = np.where(inside, keep + (1 - keep) / rest, 1.0)
        yield Smoothed(np.where(inside, mean + keep * (values - mean), values), own)


def _by_kernels(values: Counts, std: float) -> Iterator[Smoothed]:
    """Cells in their order: each the mean of those around it, near ones weighing more; spikes stay as they are."""
    spikes = _spikes_in_line(values, std)
    inside = (~spikes).astype(np.float64)
    cells, counted = _Sums(inside), _Sums(values * inside)
    for kernel in _kernels(len(values)):
        mass = cells.around(kernel)
        mass = np.where(mass > 0, mass, 1.0)
        counts = np.where(spikes, values, counted.around(kernel) / mass)
        yield Smoothed(counts, np.where(spikes, 1.0, 1 / mass))  # a kernel weighs its own cell 1


def _kernels(cells: int) -> Iterator[Counts]:
    width, widths = WIDTHS[-1], list(WIDTHS)
    while (width := width * WIDER) < cells / 4:
        widths.append(width)
    for width in widths:
        if width < cells / 2:
            reach = np.arange(-math.ceil(4 * width), math.ceil(4 * width) + 1)
            yield np.exp(-0.5 * (reach / width) ** 2)


def _spikes_in_line(values: Counts, std: float) -> Mask:
    """Cells far from the mean of their neighbours; found twice, as the first ones hide their neighbours."""
    kernel = np.ones(2 * REACH + 1)
    kernel[REACH] = 0.0
    spikes = np.zeros(len(values), dtype=bool)
    if len(values) <= REACH:
        return spikes
    for _ in range(2):
        inside = (~spikes).astype(np.float64)
        number = _Sums(inside).around(kernel)
        mean = _Sums(values * inside).around(kernel) / np.maximum(number, 1.0)
        away = np.abs(values - mean) / np.sqrt(1 + 1 / np.maximum(number, 1.0))
        spikes = (away > STANDS_OUT * std) | (number < 0.5)
    return spikes


def _spikes(values: Counts, std: float) -> Mask:
    """Cells far from the median of those that are not."""
    spikes = np.zeros(len(values), dtype=bool)
    while not spikes.all():
        more = np.abs(values - np.median(values[~spikes])) > STANDS_OUT * std
        if not (more & ~spikes).any():
            break
        spikes |= more
    return spikes


class _Sums:
    """Weighted sums around every cell, for one kernel after another; beyond the ends is nothing."""

    def __init__(self, values: Counts):
        self._values = values
        self._spectra: dict[int, npt.NDArray[np.complex128]] = {}

    def around(self, kernel: Counts) -> Counts:
        """The kernel's sum at each cell."""
        cells, half = len(self._values), len(kernel) // 2
        if len(kernel) * cells <= DIRECT:
            return np.convolve(self._values, kernel)[half : half + cells]
        length = 1 << (cells + len(kernel) - 2).bit_length()  # other lengths can take far longer
        if length not in self._spectra:
            self._spectra = {length: np.fft.rfft(self._values, length)}  # kernels widen: the last is enough
        spectrum = np.fft.rfft(kernel, length)
        sums: Counts = np.fft.irfft(np.multiply(self._spectra[length], spectrum, out=spectrum), length)
        return sums[half : half + cells]
