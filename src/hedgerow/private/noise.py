"""Integer noise and random choices whose distributions are exact.

Each draw is the inverse of a distribution function at one uniform number. Floating point decides where it certainly
can; a draw that falls too close to a boundary is decided by integer arithmetic, which takes more bits of the same
uniform number from the stream until there is no doubt. So, given perfect random bits, the distribution is exactly
the stated one, and the sampler adds nothing to ε or δ. The bits are those of AES-256 in counter mode under a fresh
key from the operating system: the guarantee is computational in that sense.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import secrets
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import IntArray
from hedgerow.errors import HedgerowError
from hedgerow.private.enclosures import Enclosure, exponential, laplace_tail, normal_tail

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

BLOCK = 1 << 15
"""Draws at a time: the arrays of one block stay in the cache."""
MARGIN = 2.0**-42
"""How close a quantile in units of the scale may come to an integer before floating point has no say.

The float error is below 2⁻⁴⁴: up to 2⁻⁴⁵ from the 63 bits of a uniform number above TAIL, the rest from the quantile
function, whose error `_certified` checks against the exact thresholds."""
TAIL = 1 << 44
"""Uniform numbers below TAIL · 2⁻⁶³ are too coarse for floating point."""
MORE_BITS = 192
"""How many bits an undecided uniform number is extended by."""
LARGEST_SCALE = 2.0**48


# ---------------------------------------------------------------- random bits


class RandomBits(Protocol):
    """A source of independent, uniform bits."""

    @property
    def guaranteed(self) -> bool:
        """Whether noise drawn from this source protects anyone."""
        ...

    def words(self, count: int) -> Words: ...

    def bits(self, count: int) -> int: ...


class _Keystream:
    """The AES-256-CTR keystream of one key. The key itself is not kept."""

    _zeros = memoryview(bytes(8 * BLOCK))

    def __init__(self, key: bytes):
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()

    def words(self, count: int) -> Words:
        drawn = np.empty(count + 2, dtype=np.uint64)  # the cipher asks for a block of room beyond its output
        room = drawn.view(np.uint8).data
        with self._lock:
            for start in range(0, 8 * count, len(self._zeros)):
                size = min(8 * count - start, len(self._zeros))
                self._encryptor.update_into(self._zeros[:size], room[start:])
        return drawn[:count]

    def bits(self, count: int) -> int:
        words = -(-count // 64)
        return int.from_bytes(self.words(words).tobytes(), "little") >> (64 * words - count)


_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


class Stream:
    """The private randomness. It cannot be seeded, copied, pickled or shown; a forked process gets a fresh key."""

    guaranteed = True

    def __init__(self) -> None:
        self._rekey()

    def words(self, count: int) -> Words:
        return self._keystream().words(count)

    def bits(self, count: int) -> int:
        return self._keystream().bits(count)

    def _rekey(self) -> None:
        # one assignment, so that threads see either the old state or the new one; a new lock comes with it
        self._state = (os.getpid(), _forks, _Keystream(secrets.token_bytes(32)))

    def _keystream(self) -> _Keystream:
        if self._state[:2] != (os.getpid(), _forks):
            self._rekey()
        return self._state[2]

    def __repr__(self) -> str:
        return "Stream(sealed)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a noise stream cannot be copied or pickled: the same noise twice would reveal the data.")


class UnsafeSeededStream:
    """The same bits for the same seed, for tests and public benchmarks. Whoever knows the seed can undo the noise."""

    guaranteed = False

    def __init__(self, seed: int):
        self._keystream = _Keystream(hashlib.sha256(f"hedgerow unsafe noise seed {seed}".encode()).digest())

    def words(self, count: int) -> Words:
        return self._keystream.words(count)

    def bits(self, count: int) -> int:
        return self._keystream.bits(count)


class _Uniform:
    """A uniform number in [0, 1) of which the first bits are known; more are drawn when they are needed."""

    def __init__(self, stream: RandomBits, value: int, bits: int):
        self._stream = stream
        self.value = value
        self.bits = bits

    def extend(self) -> None:
        self.value = self.value << MORE_BITS | self._stream.bits(MORE_BITS)
        self.bits += MORE_BITS

    def below(self, probability: Callable[[int], Enclosure]) -> bool:
        """Whether the number lies below a probability that is known as enclosures to any number of bits."""
        while True:
            low, high = probability(self.bits)
            if self.value < low:
                return True
            if self.value >= high:
                return False
            self.extend()


# ---------------------------------------------------------------- integer noise


def gaussian(stream: RandomBits, sigma: float, count: int) -> IntArray:
    """`count` draws of round(σ·Z), exactly distributed.

    Added to an integer count this is the rounded continuous Gaussian mechanism, so it costs (Δ/σ)² of μ².
    """
    return _signed(stream, _RoundedNormal(sigma), count)


def laplace(stream: RandomBits, scale: float, count: int) -> IntArray:
    """`count` draws of the discrete Laplace P(k) ∝ e^(−|k|/scale), exactly distributed: ΔL1/scale of pure ε."""
    return _signed(stream, _DiscreteLaplace(scale), count)


class _Magnitude(Protocol):
    """The law of a non-negative integer |K| that is given a random sign."""

    @property
    def scale(self) -> float: ...

    def quantile(self, uniforms: Floats) -> Floats:
        """x with ⌊x⌋ = |K|, where the uniform number is the probability of a larger one; off by float error."""
        ...

    def tail(self, step: int, bits: int) -> Enclosure:
        """P(|K| ≥ step): the uniform numbers below it give at least `step`."""
        ...


@dataclass(frozen=True)
class _RoundedNormal:
    """|round(σ·Z)| = ⌊σ·|Z| + ½⌋, so its thresholds are (step − ½)/σ."""

    scale: float

    def quantile(self, uniforms: Floats) -> Floats:
        from scipy.special import ndtri

        halves: Floats = ndtri(uniforms * 0.5)
        halves *= -self.scale
        halves += 0.5
        return halves

    def tail(self, step: int, bits: int) -> Enclosure:
        return normal_tail(Fraction(2 * step - 1, 2) / Fraction(self.scale), bits)


@dataclass(frozen=True)
class _DiscreteLaplace:
    """P(|K| ≥ step) = 2·r^step/(1+r) with r = e^(−1/scale), so |K| = ⌊−scale·ln(u·(1+r)/2)⌋."""

    scale: float

    @cached_property
    def _offset(self) -> float:
        """−ln((1+r)/2)."""
        return -math.log1p(math.expm1(-1 / self.scale) / 2)

    def quantile(self, uniforms: Floats) -> Floats:
        logarithms: Floats = np.log(uniforms)
        logarithms -= self._offset
        logarithms *= -self.scale
        return logarithms

    def tail(self, step: int, bits: int) -> Enclosure:
        return laplace_tail(step, 1 / Fraction(self.scale), bits)


def _signed(stream: RandomBits, law: _Magnitude, count: int) -> IntArray:
    """One word per draw: the highest bit is the sign, the others begin the uniform number."""
    if not 0 < law.scale <= LARGEST_SCALE:
        raise HedgerowError(
            "bad-noise-scale", f"noise needs a scale above 0 and at most 2^48, got {law.scale}. Nothing was drawn."
        )
    _certified(type(law))
    drawn = np.empty(count, dtype=np.int64)
    for start in range(0, count, BLOCK):
        block = drawn[start : start + BLOCK]
        words = stream.words(len(block)).view(np.int64)
        block[:] = _magnitudes(stream, law, words & np.int64(2**63 - 1))
        signs = words >> np.int64(63)
        block ^= signs
        block -= signs
    return drawn


def _magnitudes(stream: RandomBits, law: _Magnitude, heads: IntArray) -> IntArray:
    """|K| for the uniform numbers that begin with these 63 bits."""
    uniforms = heads.astype(np.float64)
    uniforms += 0.5
    uniforms *= 2.0**-63
    quantiles = law.quantile(uniforms)
    steps = np.floor(quantiles)
    distances = np.abs(quantiles - np.rint(quantiles))
    doubtful = (distances < MARGIN * (1 + law.scale)) | (heads < TAIL)
    magnitudes = steps.astype(np.int64)
    for index in np.flatnonzero(doubtful):
        uniform = _Uniform(stream, int(heads[index]), 63)
        magnitudes[index] = _decided(uniform, law, max(0, int(magnitudes[index])))
    return magnitudes


def _decided(uniform: _Uniform, law: _Magnitude, guess: int) -> int:
    """The number of steps whose tail probability exceeds the uniform number, for certain; a near guess is quick."""

    def reaches(step: int) -> bool:
        return uniform.below(lambda bits: law.tail(step, bits))

    low, high, stride = guess, guess + 1, 1
    while reaches(high):
        low, high, stride = high, high + stride, 2 * stride
    while low > 0 and not reaches(low):
        low, high, stride = max(0, low - stride), low, 2 * stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


@cache
def _certified(law_of: Callable[[float], _Magnitude]) -> None:
    """Refuse to draw if the installed quantile function is not as exact as MARGIN supposes.

    At scale 16 the thresholds are spread over everything above TAIL; at each the quantile must hit the integer.
    """
    law = law_of(16.0)
    exact = (sum(law.tail(step, 128)) / 2.0**129 for step in itertools.count(1))
    thresholds = np.array(list(itertools.takewhile(lambda tail: tail >= TAIL * 2.0**-63, exact)))
    error = np.abs(law.quantile(thresholds) - np.arange(1, len(thresholds) + 1)).max()
    if not error < MARGIN / 16 * law.scale:
        raise HedgerowError(
            "coarse-quantiles", "this build of numpy or scipy computes quantiles too coarsely for exact noise."
        )


# ---------------------------------------------------------------- random choice


def choose(stream: RandomBits, scores: Sequence[int] | IntArray, rate: Fraction) -> int:
    """The index of one score, drawn with probability exactly ∝ e^(rate·score): the exponential mechanism.

    The float decision stands only if the target is clear of both ends of its interval. A weight is off by less than
    6·2⁻⁵² (its own relative error, and that of an exponent x, of which x·e^(−x) ≤ 0.37 counts), and each sum by half
    a unit per term: together below half the margin.
    """
    ranks = np.asarray(scores)
    if not len(ranks) or not np.issubdtype(ranks.dtype, np.integer) or rate < 0:
        raise HedgerowError(
            "bad-scores", "a choice needs integer scores, at least one of them, and a rate of at least 0."
        )
    best = int(ranks.max())
    if best - int(ranks.min()) >= 1 << 63:
        raise HedgerowError("scores-too-far-apart", "the scores of a choice lie too far apart for 64-bit integers.")
    gaps = best - ranks.astype(np.int64)
    cumulative = np.cumsum(np.exp(gaps * -float(rate)))
    total = float(cumulative[-1])
    margin = (len(gaps) + 64) * 2.0**-47 * total
    uniform = _Uniform(stream, stream.bits(64), 64)
    target = (uniform.value + 0.5) * 2.0**-64 * total
    index = min(int(np.searchsorted(cumulative, target, side="right")), len(gaps) - 1)
    clear_below = index == 0 or target - cumulative[index - 1] > margin
    clear_above = index == len(gaps) - 1 or cumulative[index] - target > margin
    return index if clear_below and clear_above else _chosen_exactly(uniform, gaps, rate)


def _chosen_exactly(uniform: _Uniform, gaps: IntArray, rate: Fraction) -> int:
    """The same choice from weights enclosed to at least 256 bits, with as many bits of the uniform number."""
    distinct, which = np.unique(gaps, return_inverse=True)
    while True:
        uniform.extend()
        weights = [exponential(rate * int(gap), uniform.bits) for gap in distinct]
        lows = list(itertools.accumulate(weights[index][0] for index in which))
        highs = list(itertools.accumulate(weights[index][1] for index in which))
        # the first interval that certainly ends above u·total; the last one ends there by definition
        ceiling = -(-(uniform.value + 1) * highs[-1] >> uniform.bits)
        index = min(bisect_left(lows, ceiling), len(gaps) - 1)
        if index == 0 or highs[index - 1] << uniform.bits <= uniform.value * lows[-1]:
            return index
