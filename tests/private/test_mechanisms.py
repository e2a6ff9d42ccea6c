"""The one door: every cell gets noise, sparse or dense, whole or in blocks, and exact answers stay sealed."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.private import mechanisms as mechanisms_module
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts
from hedgerow.private.mechanisms import Mechanisms, Randomizer
from hedgerow.private.noise import BLOCK, UnsafeSeededStream, gaussian, laplace
from refusals import refused

KINDS: tuple[Literal["gaussian", "laplace"], ...] = ("gaussian", "laplace")


def seeded(seed: int) -> Randomizer:
    return Mechanisms(UnsafeSeededStream(seed))


def sparse(counts: IntArray) -> Exact[ExactCounts]:
    occupied = np.flatnonzero(counts)
    return Exact(SparseCounts(occupied, counts[occupied]))


def dense(counts: IntArray) -> Exact[ExactCounts]:
    return Exact(counts)


count_vectors = st.lists(st.integers(0, 50), min_size=1, max_size=300).map(lambda counts: np.array(counts, np.int64))
noises = st.builds(Noise, st.sampled_from(KINDS), st.floats(0.1, 1e4))


@given(counts=count_vectors, noise=noises, seed=st.integers(0, 1000))
def test_the_answer_is_the_count_plus_the_noise(counts: IntArray, noise: Noise, seed: int) -> None:
    before = counts.copy()
    draw = gaussian if noise.kind == "gaussian" else laplace
    expected = counts + draw(UnsafeSeededStream(seed), noise.scale, len(counts))
    for answer in (dense(counts), sparse(counts)):
        noisy = seeded(seed).noisy_counts(answer, len(counts), noise)
        assert noisy.dtype == np.int64
        assert (noisy == expected).all()
    assert (counts == before).all()


@given(counts=count_vectors, noise=noises, seed=st.integers(0, 1000), scales=st.floats(-2, 4))
def test_survivors_are_the_thresholded_answer(counts: IntArray, noise: Noise, seed: int, scales: float) -> None:
    threshold = scales * noise.scale
    noisy = seeded(seed).noisy_counts(dense(counts), len(counts), noise)
    for answer in (dense(counts), sparse(counts)):
        kept, values = seeded(seed).survivors(answer, len(counts), noise, threshold)
        assert (kept == np.flatnonzero(noisy >= threshold)).all()
        assert (values == noisy[kept]).all()
        assert kept.dtype == values.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_survivors_do_not_depend_on_the_blocks(
    kind: Literal["gaussian", "laplace"], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = 3 * BLOCK + 17
    counts = np.zeros(cells, dtype=np.int64)
    counts[[0, BLOCK - 1, BLOCK, 2 * BLOCK + 5, cells - 1]] = 1_000
    noise = Noise(kind, 20.0)
    whole = seeded(1).noisy_counts(dense(counts), cells, noise)
    monkeypatch.setattr(mechanisms_module, "BLOCK_CELLS", BLOCK)
    kept, values = seeded(1).survivors(sparse(counts), cells, noise, 70.0)
    assert (kept == np.flatnonzero(whole >= 70)).all()
    assert (values == whole[kept]).all()
    assert {0, BLOCK - 1, BLOCK, 2 * BLOCK + 5, cells - 1} <= set(kept.tolist())
    assert mechanisms_module.BLOCK_CELLS % BLOCK == 0


def test_ten_million_cells_never_stand_in_memory_at_once() -> None:
    occupied = Exact[ExactCounts](SparseCounts(np.array([7, 9_999_999]), np.array([500, 500])))
    tracemalloc.start()
    try:
        kept, values = seeded(2).survivors(occupied, 10_000_000, Noise("laplace", 10.0), 150.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000
    assert {7, 9_999_999} <= set(kept.tolist())
    assert (values >= 150).all()
    assert len(kept) < 40  # 10⁷ · P(noise ≥ 150) ≈ 1.5 empty cells beside the two


def test_nothing_survives_from_no_cells() -> None:
    kept, values = seeded(3).survivors(dense(np.zeros(0, np.int64)), 0, Noise("gaussian", 1.0), 0.0)
    assert len(kept) == len(values) == 0


def test_choices_pass_the_same_door() -> None:
    chosen = [seeded(seed).choose(Exact(np.array([0, 30, 1])), Fraction(1)) for seed in range(20)]
    assert chosen == [1] * 20


@given(held=st.dictionaries(st.text(max_size=3), st.integers(1, 60), max_size=12), seed=st.integers(0, 1000))
def test_discovered_values_are_those_whose_noisy_count_passes(held: dict[str, int], seed: int) -> None:
    noise = Noise("gaussian", 10.0)
    values = sorted(held)
    noisy = seeded(seed).noisy_counts(dense(np.array([held[v] for v in values], np.int64)), len(values), noise)
    passed = tuple(value for value, count in zip(values, noisy, strict=True) if count >= 30)
    shuffled = dict(reversed(held.items()))
    assert seeded(seed).discover(Exact(held), noise, 30) == seeded(seed).discover(Exact(shuffled), noise, 30) == passed


def test_only_fresh_streams_are_guaranteed() -> None:
    assert Mechanisms().guaranteed
    assert not seeded(1).guaranteed
    first, second = (Mechanisms().noisy_counts(dense(np.zeros(50, np.int64)), 50, Noise("gaussian", 1e6)) for _ in "ab")
    assert (first != second).any()


@pytest.mark.parametrize(
    "counts",
    [
        np.full(5, 31337),
        SparseCounts(np.array([1, 9]), np.array([31337, 31337])),
        SparseCounts(np.array([-1, 2]), np.array([31337, 31337])),
    ],
)
def test_an_engine_with_other_cells_is_refused_without_telling_a_count(counts: ExactCounts) -> None:
    for ask in (
        lambda: seeded(1).noisy_counts(Exact(counts), 4, Noise("gaussian", 1.0)),
        lambda: seeded(1).survivors(Exact(counts), 4, Noise("gaussian", 1.0), 3.0),
    ):
        with refused("engine-other-cells") as refusal:
            ask()
        assert "31337" not in str(refusal.value)


# ---------------------------------------------------------------- sealed answers

escapes: list[Callable[[Any], object]] = [
    pickle.dumps,
    copy.copy,
    copy.deepcopy,
    np.array,
    np.asarray,
    bool,
    len,
    list,
    hash,
    int,
    float,
    lambda exact: exact == exact,
    lambda exact: [1, 2][exact],
]


@pytest.mark.parametrize("escape", escapes)
def test_an_exact_answer_does_not_get_out(escape: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match="private side"):
        escape(Exact(np.array([31337])))


def test_an_exact_answer_is_not_shown() -> None:
    exact = Exact(31337)
    shown = [repr(exact), str(exact), f"{exact}", f"{exact:>40}", f"{[exact]}"]
    assert not any("31337" in text for text in shown)
    assert not hasattr(exact, "__dict__")


def test_sparse_counts_are_not_shown() -> None:
    assert "31337" not in repr(SparseCounts(np.array([31337]), np.array([31337])))
