"""The noise has exactly the law that is stated, whichever way a draw is decided."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.audit.noise import check_noise, goodness_of_fit
from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.private import noise as noise_module
from hedgerow.private.enclosures import Enclosure, exponential, laplace_tail, normal_tail
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.noise import (
    RandomBits,
    Stream,
    UnsafeSeededStream,
    Words,
    _chosen_exactly,
    _DiscreteLaplace,
    _RoundedNormal,
    _Uniform,
    choose,
    gaussian,
    laplace,
)
from refusals import refused

SCALES = (1e-3, 0.3, 1.0, 10.0, 1e4, 1e9)
DRAWS: tuple[Callable[[RandomBits, float, int], IntArray], ...] = (gaussian, laplace)


class ScriptedBits:
    """Words that a test dictates, and extensions that all begin with 32 bits of `rest` (0 or 1) and turn then.

    (A number that sits on a threshold for ever would never be decided, and has probability 0.)
    """

    guaranteed = False

    def __init__(self, words: list[int], rest: int):
        self.script = list(words)
        self.rest = rest
        self.extensions = 0

    def words(self, count: int) -> Words:
        taken, self.script = self.script[:count], self.script[count:]
        return np.array(taken, dtype=np.uint64)

    def bits(self, count: int) -> int:
        if self.script:
            return self.script.pop(0)
        self.extensions += 1
        turned = (1 << (count - 32)) - 1
        return ((1 << count) - 1) ^ turned if self.rest else turned


# ---------------------------------------------------------------- streams


def test_a_stream_cannot_be_seeded_copied_pickled_or_shown() -> None:
    assert not inspect.signature(Stream).parameters
    stream = Stream()
    assert repr(stream) == "Stream(sealed)"
    for escape in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            escape(stream)
    assert stream.guaranteed
    assert not UnsafeSeededStream(1).guaranteed


def test_streams_differ_and_seeded_streams_repeat() -> None:
    assert (Stream().words(64) != Stream().words(64)).all()
    assert (UnsafeSeededStream(3).words(64) == UnsafeSeededStream(3).words(64)).all()
    assert (UnsafeSeededStream(3).words(64) != UnsafeSeededStream(4).words(64)).all()


def test_words_do_not_depend_on_how_they_are_asked_for() -> None:
    whole = UnsafeSeededStream(5).words(100_000)
    pieces = UnsafeSeededStream(5)
    assert (np.concatenate([pieces.words(size) for size in (1, 2, 40_000, 59_997)]) == whole).all()
    assert len(np.unique(whole)) == len(whole)


@given(count=st.integers(1, 300))
def test_bits_are_below_their_power_of_two(count: int) -> None:
    assert 0 <= UnsafeSeededStream(count).bits(count) < 1 << count


def test_bits_are_balanced() -> None:
    ones = (
        np.unpackbits(UnsafeSeededStream(6).words(1 << 17).view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=np.int64)
    )
    assert (np.abs(ones - (1 << 16)) < 6 * math.sqrt(1 << 15)).all()


def words_of_a_fork(stream: Stream) -> bytes:
    """The first words that a forked child draws from the stream that it inherited."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, stream.words(4).tobytes())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        words = pipe.read()
    os.waitpid(child, 0)
    return words


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_children_and_parent_draw_different_words() -> None:
    stream = Stream()
    stream.words(1)
    drawn = [words_of_a_fork(stream), words_of_a_fork(stream), stream.words(4).tobytes()]
    assert all(len(words) == 32 for words in drawn)
    assert len(set(drawn)) == 3


def test_threads_never_share_a_word() -> None:
    stream = Stream()
    with ThreadPoolExecutor(4) as pool:
        drawn = np.concatenate(list(pool.map(stream.words, [5_000] * 40)))
    assert len(np.unique(drawn)) == len(drawn)


# ---------------------------------------------------------------- enclosures


def middle(enclosure: Enclosure, bits: int) -> float:
    return float(Fraction(sum(enclosure), 2 ** (bits + 1)))


def test_enclosures_agree_with_floating_point() -> None:
    from scipy.special import erfc

    for hundredths in range(0, 900, 7):
        threshold = Fraction(hundredths, 100)
        tail = middle(normal_tail(threshold, 128), 128)
        assert tail == pytest.approx(erfc(float(threshold) / math.sqrt(2)), rel=1e-14)
        assert middle(exponential(threshold, 128), 128) == pytest.approx(math.exp(-float(threshold)), rel=1e-14)


@settings(max_examples=60)
@given(threshold=st.fractions(0, 30), bits=st.sampled_from([63, 255, 447]))
def test_enclosures_hold_the_true_value(threshold: Fraction, bits: int) -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(2200):
        exact = mpmath.mpf(threshold.numerator) / threshold.denominator
        truths = {
            normal_tail(threshold, bits): mpmath.erfc(exact / mpmath.sqrt(2)),
            exponential(threshold, bits): mpmath.exp(-exact),
            laplace_tail(3, threshold, bits): 2 * mpmath.exp(-3 * exact) / (1 + mpmath.exp(-exact)),
        }
        for (low, high), truth in truths.items():
            assert low <= mpmath.ldexp(truth, bits) <= high
            assert high - low <= 4


def continued_fraction_tail(threshold: Fraction, bits: int) -> Fraction:
    """P(|Z| ≥ t) = √(2/π)·e^(−t²/2)/(t + 1/(t + 2/(t + …))), another way to the same number."""
    fraction = threshold
    for term in range(900, 0, -1):
        fraction = threshold + Fraction(term) / fraction
        fraction = Fraction(math.floor(fraction * 2**bits), 2**bits)
    pi = Fraction(314159265358979323846264338327950288419716939937510582097494459230781640628620899, 10**80)
    root = Fraction(math.isqrt(math.floor(2 / pi * 4**bits)), 2**bits)
    return root * Fraction(sum(exponential(threshold**2 / 2, bits)), 2 ** (bits + 1)) / fraction


def test_identities_hold_to_sixty_digits() -> None:
    for threshold in (Fraction(5), Fraction(13, 2), Fraction(8)):
        tail = Fraction(sum(normal_tail(threshold, 300)), 2**301)
        assert abs(tail - continued_fraction_tail(threshold, 300)) < Fraction(1, 10**60)
    for one, other in itertools.product((Fraction(1, 7), Fraction(22, 3), Fraction(30)), repeat=2):
        product = exponential(one, 300)[0] * exponential(other, 300)[0] >> 300
        assert abs(product - exponential(one + other, 300)[0]) < 2**300 // 10**60


@given(step=st.integers(1, 60), scale=st.floats(0.05, 50))
def test_the_laplace_tail_falls_by_the_ratio(step: int, scale: float) -> None:
    rate = 1 / Fraction(scale)
    (low, high), (next_low, next_high) = laplace_tail(step, rate, 200), laplace_tail(step + 1, rate, 200)
    ratio_low, ratio_high = exponential(rate, 200)
    assert low * ratio_low >> 200 <= next_high
    assert next_low <= (high * ratio_high >> 200) + 1


# ---------------------------------------------------------------- integer noise


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 10.0, 1e4])
def test_noise_is_accepted_at_its_scale_and_rejected_at_others(kind: str, scale: float) -> None:
    check_noise(Mechanisms(UnsafeSeededStream(11)), Noise(kind, scale))  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [0.5, 0.67, 1.5])
def test_a_wrong_scale_is_caught(factor: float) -> None:
    class Mutant(Mechanisms):
        def _draw(self, noise: Noise, count: int) -> IntArray:
            return super()._draw(Noise(noise.kind, factor * noise.scale), count)

    for noise in (Noise("gaussian", 4.0), Noise("laplace", 4.0)):
        with pytest.raises(AssertionError, match="charged for, but not drawn"):
            check_noise(Mutant(UnsafeSeededStream(12)), noise, 100_000)


def test_continuous_laplace_rounded_is_not_discrete_laplace() -> None:
    rounded = np.rint(np.random.default_rng(1).laplace(0, 1.0, 1_000_000)).astype(np.int64)
    assert goodness_of_fit(rounded, Noise("laplace", 1.0)) < 1e-6


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_variance_is_the_one_that_is_stored(draw: Callable[..., IntArray], scale: float) -> None:
    values = draw(UnsafeSeededStream(13), scale, 400_000).astype(np.float64)
    variance = Noise(draw.__name__, scale).variance  # type: ignore[arg-type]
    spread = values.var() * 3 + variance  # a generous bound on the fourth moment's root
    assert abs((values**2).mean() - variance) <= 6 * spread / math.sqrt(len(values))


@pytest.mark.parametrize("scale", [0.05, 0.2, 0.5, 0.8, 1.5, 2.0, 3.0])
def test_variance_by_brute_force(scale: float) -> None:
    def gaussian_mass(k: int) -> float:
        return math.erfc((abs(k) - 0.5) / (scale * math.sqrt(2))) - math.erfc((abs(k) + 0.5) / (scale * math.sqrt(2)))

    brute = sum(k**2 * gaussian_mass(k) for k in range(1, 60))
    assert Noise("gaussian", scale).variance == pytest.approx(brute, rel=1e-9)
    masses = np.exp(-np.abs(np.arange(-400, 401)) / scale)
    brute = float((np.arange(-400, 401) ** 2 * masses).sum() / masses.sum())
    assert Noise("laplace", scale).variance == pytest.approx(brute, rel=1e-9)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 37.5, 1e6, 1e9])
def test_slow_and_fast_decisions_agree(
    draw: Callable[..., IntArray], scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = draw(UnsafeSeededStream(14), scale, 1_000)
    monkeypatch.setattr(noise_module, "MARGIN", math.inf)
    monkeypatch.setattr(noise_module, "_certified", lambda law: None)
    slow = draw(UnsafeSeededStream(14), scale, 1_000)
    assert (slow == fast).all()
    monkeypatch.setattr(noise_module, "_decided", lambda *_: 7)  # every draw was decided slowly
    assert (np.abs(draw(UnsafeSeededStream(14), scale, 1_000)) == 7).all()


@pytest.mark.parametrize("law", [_RoundedNormal(3.7), _DiscreteLaplace(3.7), _RoundedNormal(2.5e8)])
@pytest.mark.parametrize("step", [1, 2, 9])
def test_a_draw_on_the_threshold_takes_more_bits(law: _RoundedNormal | _DiscreteLaplace, step: int) -> None:
    """63 bits cannot decide the number that begins like the threshold; the bits after them do, either way."""
    head = law.tail(step, 63)[0]
    assert head == law.tail(step, 255)[0] >> 192
    draw = gaussian if isinstance(law, _RoundedNormal) else laplace
    low, high = ScriptedBits([head, head | 1 << 63], rest=0), ScriptedBits([head, head | 1 << 63], rest=1)
    assert draw(low, law.scale, 2).tolist() == [step, -step]
    assert draw(high, law.scale, 2).tolist() == [step - 1, 1 - step]
    assert low.extensions == high.extensions == 2


def test_the_far_tail_is_reached() -> None:
    """A uniform number of 63 zero bits, then ones, is 2⁻⁶³: its quantiles, to all digits of a wide scale."""
    from scipy.special import ndtri

    for scale in (1e6, 1e9):
        assert gaussian(ScriptedBits([0], rest=1), scale, 1)[0] == pytest.approx(-ndtri(2.0**-64) * scale, abs=2)
        assert laplace(ScriptedBits([0], rest=1), scale, 1)[0] == pytest.approx(63 * math.log(2) * scale, abs=2)


@given(guess=st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_decision_does_not_depend_on_the_guess(guess: int) -> None:
    law = _RoundedNormal(1e4)
    uniform = _Uniform(UnsafeSeededStream(guess), UnsafeSeededStream(guess).bits(63), 63)
    decided = noise_module._decided(uniform, law, guess)
    assert decided == noise_module._decided(uniform, law, decided)
    assert decided == math.floor(law.quantile(np.array([uniform.value * 0.5**uniform.bits]))[0])


@pytest.mark.parametrize("law_of", [_RoundedNormal, _DiscreteLaplace])
@pytest.mark.parametrize("scale", [5.0, 77.0])
def test_quantiles_are_far_more_exact_than_the_margin(
    law_of: type[_RoundedNormal | _DiscreteLaplace], scale: float
) -> None:
    law = law_of(scale)
    tails = [middle(law.tail(step, 128), 128) for step in range(1, int(4.7 * scale))]
    errors = np.abs(law.quantile(np.array(tails)) - np.arange(1, len(tails) + 1))
    assert errors.max() < noise_module.MARGIN * scale / 64


def test_a_coarse_quantile_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.special

    exact = scipy.special.ndtri
    monkeypatch.setattr(scipy.special, "ndtri", lambda p: exact(p.astype(np.float32)).astype(np.float64))
    noise_module._certified.cache_clear()
    try:
        with refused("coarse-quantiles"):
            gaussian(UnsafeSeededStream(1), 1.0, 1)
    finally:
        noise_module._certified.cache_clear()


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_are_integers_and_scales_are_checked(draw: Callable[..., IntArray]) -> None:
    stream = UnsafeSeededStream(15)
    assert draw(stream, 2.0, 0).tolist() == []
    assert draw(stream, 2.0, 70_000).dtype == np.int64
    assert not draw(stream, 1e-300, 100).any()
    for scale in (0.0, -1.0, math.nan, math.inf):
        with refused("bad-noise-scale"):
            draw(stream, scale, 1)


# ---------------------------------------------------------------- choice


def chi_square(observed: list[int], weights: list[float]) -> float:
    from scipy.special import chdtrc

    expected = np.array(weights) / sum(weights) * sum(observed)
    return float(chdtrc(len(weights) - 1, ((np.array(observed) - expected) ** 2 / expected).sum()))


@pytest.mark.parametrize(
    ("scores", "rate"),
    [([0, 0, 0], Fraction(1)), ([5, 3, 0, 4], Fraction(1, 2)), ([-7, -9], Fraction(2, 3)), ([2, 90, 14], Fraction(0))],
)
def test_choices_follow_their_weights(scores: list[int], rate: Fraction) -> None:
    stream = UnsafeSeededStream(16)
    chosen = [choose(stream, scores, rate) for _ in range(20_000)]
    observed = np.bincount(chosen, minlength=len(scores)).tolist()
    weights = [math.exp(rate * score) for score in scores]
    assert chi_square(observed, weights) > 1e-6
    if len(set(weights)) > 1:  # the test can tell the rate from half of it
        assert chi_square(observed, [math.sqrt(weight) for weight in weights]) < 1e-6


@settings(max_examples=60)
@given(
    scores=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8),
    rate=st.fractions(0, 3, max_denominator=10**6),
    seed=st.integers(0, 2**32),
)
def test_exact_and_fast_choices_agree(scores: list[int], rate: Fraction, seed: int) -> None:
    stream = UnsafeSeededStream(seed)
    uniform = _Uniform(stream, stream.bits(64), 64)
    gaps = max(scores) - np.array(scores, dtype=np.int64)
    assert choose(UnsafeSeededStream(seed), scores, rate) == _chosen_exactly(uniform, gaps, rate)


def test_a_hopeless_score_is_not_chosen_and_does_not_disturb() -> None:
    stream = UnsafeSeededStream(17)
    assert {choose(stream, [0, 10**6, 10**6, -(2**61)], Fraction(1)) for _ in range(60)} == {1, 2}
    assert choose(stream, [10**6, 0], Fraction(10**9)) == 0
    assert choose(stream, np.array([42], dtype=np.int64), Fraction(1, 7)) == 0


@pytest.mark.parametrize("distance", [0, 1, 1 << 14, 1 << 20])
def test_a_choice_near_the_boundary_takes_more_bits(distance: int) -> None:
    """Floating point has no say within the margin, and gets its say outside."""
    above, below = ScriptedBits([(1 << 63) + distance], rest=0), ScriptedBits([(1 << 63) - 1 - distance], rest=1)
    assert choose(above, [4, 4], Fraction(1)) == 1
    assert choose(below, [4, 4], Fraction(1)) == 0
    assert above.extensions == below.extensions == 1
    clear = ScriptedBits([(1 << 63) + (1 << 40)], rest=0)
    assert choose(clear, [4, 4], Fraction(1)) == 1
    assert clear.extensions == 0


def test_the_unlikeliest_place_can_be_chosen() -> None:
    """u = 1 − 2⁻⁹⁶ lies in the last interval, of relative length e⁻⁴⁰: beyond the margin, so weighed exactly."""
    assert choose(ScriptedBits([(1 << 64) - 1], 1), [40, 0], Fraction(1)) == 1
    assert choose(ScriptedBits([(1 << 64) - 1], 1), [50, 0], Fraction(1)) == 1
    assert choose(ScriptedBits([(1 << 64) - 1], 0), [50, 0], Fraction(1)) == 0


def test_many_candidates() -> None:
    scores = np.random.default_rng(2).integers(0, 1_000, 20_000)
    stream = UnsafeSeededStream(18)
    chosen = scores[[choose(stream, scores, Fraction(1, 50)) for _ in range(300)]]
    weights = np.exp(scores / 50)
    mean = (scores * weights).sum() / weights.sum()
    spread = math.sqrt(((scores - mean) ** 2 * weights).sum() / weights.sum() / len(chosen))
    assert abs(chosen.mean() - mean) < 6 * spread


@pytest.mark.parametrize(
    ("scores", "code"),
    [([], "bad-scores"), ([0.5, 1.0], "bad-scores"), ([2**62, -(2**62)], "scores-too-far-apart")],
)
def test_a_choice_refuses_what_it_cannot_weigh(scores: list[int], code: str) -> None:
    with refused(code):
        choose(UnsafeSeededStream(1), scores, Fraction(1))
