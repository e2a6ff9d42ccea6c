"""Does the noise that is drawn have the law that is charged for?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.private.exact import Exact
from hedgerow.private.mechanisms import Randomizer

FALSE_ALARM = 1e-7
"""How often one test of sound noise may fail by chance."""
WRONG_SCALES = (0.67, 1.5)


def check_noise(mechanisms: Randomizer, noise: Noise, draws: int = 1_000_000) -> None:
    """Three-armed test: the drawn noise fits the stated scale, and the test could have told 0.67 and 1.5 times it.

    Raises AssertionError. The noise is that of empty cells, through the same door as every answer.
    """
    empty = np.zeros(draws, dtype=np.int64)
    drawn = mechanisms.noisy_counts(Exact(empty), draws, noise)
    fit = goodness_of_fit(drawn, noise)
    assert fit >= FALSE_ALARM, f"{noise} is charged for, but not drawn (p = {fit:.2g} on {draws} draws)."
    for factor in WRONG_SCALES:
        other = replace(noise, scale=factor * noise.scale)
        assert goodness_of_fit(drawn, other) < FALSE_ALARM, f"{draws} draws cannot tell {noise} from {other}."


def goodness_of_fit(values: IntArray, noise: Noise) -> float:
    """The p-value of Pearson's χ² test that the integers were drawn from this noise, over some 64 bins and the tails.

    Bins end at rounded quantiles, so that wide and narrow noise are tested alike; each expects at least 50 draws.
    """
    from scipy.special import chdtrc

    count = len(values)
    tails = [10.0**-power for power in range(2, 12)]
    levels = np.array([*tails, *(np.arange(1, 64) / 64), *(1 - np.array(tails))])
    ends = np.unique(np.rint(_quantiles(noise, levels)))
    ends = ends[np.minimum(cumulative(noise, ends), 1 - cumulative(noise, ends)) * count >= 50]
    if not len(ends):
        return float((values == 0).all())
    expected = np.diff(cumulative(noise, ends), prepend=0.0, append=1.0) * count
    observed = np.bincount(np.searchsorted(ends, values), minlength=len(expected))
    return float(chdtrc(len(ends), ((observed - expected) ** 2 / expected).sum()))


def _quantiles(noise: Noise, levels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Quantiles of the continuous law that the noise rounds or resembles."""
    from scipy.special import ndtri

    if noise.kind == "gaussian":
        return np.asarray(noise.scale * ndtri(levels))
    return np.asarray(noise.scale * np.sign(levels - 0.5) * -np.log(2 * np.minimum(levels, 1 - levels)))


def cumulative(noise: Noise, ends: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """P(noise ≤ end) for integer ends."""
    from scipy.special import ndtr

    if noise.kind == "gaussian":
        return np.asarray(ndtr((ends + 0.5) / noise.scale))
    ratio = np.exp(-1 / noise.scale)
    upper = ratio ** (np.abs(ends + 0.5) + 0.5) / (1 + ratio)  # P(> end) for end ≥ 0, and P(≤ end) for end < 0
    return np.asarray(np.where(ends >= 0, 1 - upper, upper))
