"""How segments differ: learnt from public ones, measured where that is worth it, and found again in the rows."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.coded.domain import Domain
from hedgerow.methods.hedge import Hedge
from hedgerow.methods.shared.segments import Differences, design, raked, tilts_of
from hedgerow.private.evaluate.marginals import distances
from hedgerow.progress import Limits, Progress, Work
from refusals import refused

PLACES = 24
SIZES = {"place": PLACES, "a": 5, "b": 4, "c": 6, "d": 3}


def towns(rows, seed, spread=1.0):
    """Towns that differ in one way: the richer, the higher all codes."""
    rng = np.random.default_rng(seed)
    rich = spread * rng.normal(0, 1, PLACES)
    place = rng.integers(0, PLACES, rows)
    own = rich[place] + rng.normal(0, 0.7, rows)
    table = {"place": place}
    for name in "abcd":
        cuts = np.linspace(-1.5, 1.5, SIZES[name] - 1)
        table[name] = np.searchsorted(cuts, own + rng.normal(0, 0.5, rows))
    return {name: codes.astype(np.uint8) for name, codes in table.items()}


def schema():
    return hr.Schema.from_dict({"columns": {name: {"type": "code", "size": size} for name, size in SIZES.items()}})


def inner():
    return Domain.of({name: size for name, size in SIZES.items() if name != "place"})


def test_towns_that_differ_in_one_way_have_few_directions():
    found = Differences.among(towns(20_000, 1), Domain.of(SIZES), "place", inner())
    assert found.variances[:2].sum() > 0.9 * found.variances.sum()


def test_towns_that_do_not_differ_have_no_directions():
    """But for what chance leaves."""
    found = Differences.among(towns(20_000, 1, spread=0.0), Domain.of(SIZES), "place", inner())
    assert found.variances.sum() < 1e-3


def test_one_column_is_asked_where_noise_is_large_and_more_where_it_is_small():
    found = Differences.among(towns(20_000, 1), Domain.of(SIZES), "place", inner())
    whole = np.concatenate([np.full(size, 1 / size) for size in (5, 4, 6, 3)])
    few, many = (design([found], [800.0], whole, noise, Progress()) for noise in (200.0, 1.0))
    assert len(few) <= 1 < len(many)


def test_segments_stop_with_the_time_that_is_left_to_them():
    """The work done is little more than what is allowed, and less is asked and weighed than without a limit."""
    found = Differences.among(towns(20_000, 1), Domain.of(SIZES), "place", inner())
    whole = np.concatenate([np.full(size, 1 / size) for size in (5, 4, 6, 3)])
    lines = np.stack([whole, whole[::-1], whole])
    free = Progress()
    asked, tilts = design([found], [800.0], whole, 1.0, free), tilts_of(towns(500, 2), inner(), lines, free)
    assert len(asked) > 1
    assert tilts.any(axis=1).all()
    for part in (0.0, 0.2, 0.5):
        short = Progress(Limits(work=Work(int(part * free.work.done))))
        fewer, less = design([found], [800.0], whole, 1.0, short), tilts_of(towns(500, 2), inner(), lines, short)
        assert fewer == asked[: len(fewer)]
        assert (len(fewer), less.any(axis=1).sum()) < (len(asked), 3)
        assert short.ended_early
        assert short.work.done <= (part + 0.5) * free.work.done


def test_what_follows_a_stretch_of_work_keeps_its_part_of_the_time():
    progress = Progress(Limits(work=Work(1000)))
    progress.worked(200)
    with progress.keeping(0.5):
        progress.worked(399)
        assert not progress.out_of_time()
        progress.worked(1)
        assert progress.out_of_time()
    assert not progress.out_of_time()
    with Progress().keeping(0.5):
        pass


def test_raked_rows_have_the_wanted_columns():
    rows, domain = towns(5_000, 2), inner()
    wanted = np.concatenate([np.random.default_rng(3).dirichlet(np.full(size, 20.0)) for size in (5, 4, 6, 3)])
    tilt = raked(rows, domain, wanted)
    weights = np.exp(sum(tilt[start + rows[n].astype(int)] for n, start in zip("abcd", (0, 5, 9, 15), strict=True)))
    held = np.concatenate([np.bincount(rows[n], weights=weights, minlength=SIZES[n]) / weights.sum() for n in "abcd"])
    assert np.abs(held - wanted).max() < 0.03


def error(private, public, method, epsilon=0.5, seed=1):
    """The mean distance over pairs with the place."""
    release = hr.synthesize(
        pa.table(private),
        schema(),
        hr.Budget(epsilon, 1e-9),
        method,
        public=None if public is None else pa.table(public),
        unsafe_noise_seed=seed,
        quality=0,
    )
    encoding = schema().encoding()
    real, drawn = (encoding.encode(each) for each in (pa.table(private), release.sample().combine_chunks()))
    pairs = [encoding.domain.marginal(("place", name)) for name in "abcd"]
    return float(distances(real, drawn, encoding.domain, pairs).mean())


def test_segments_are_found_again_in_the_rows():
    private, public = towns(10_000, 1), towns(10_000, 2)
    plain, segmented = (error(private, public, method) for method in (Hedge(), Hedge(segments=("place",))))
    assert segmented < 0.8 * plain


def test_a_public_table_that_is_wrong_does_little_harm():
    """Its towns are all alike, its columns upside down and tied the other way round: hardly worse than none.

    What was spent on segments in vain is gone: with three tenths of the budget the model is √(10/3) times as wrong.
    """
    private, public = towns(10_000, 1), towns(10_000, 2, spread=0.0)
    public = {n: c if n in ("place", "b") else (SIZES[n] - 1 - c).astype(np.uint8) for n, c in public.items()}
    for epsilon in (0.2, 2.0):
        without = np.mean([error(private, None, Hedge(), epsilon, seed) for seed in (1, 2, 3)])
        assert np.mean([error(private, public, Hedge(), epsilon, seed) for seed in (1, 2, 3)]) < 1.15 * without
        assert error(private, public, Hedge(segments=("place",)), epsilon) < 2.5 * without


@pytest.mark.parametrize(("segments", "public"), [(("place",), None), (tuple(SIZES), towns(100, 2))])
def test_segments_need_a_public_table_and_columns_beside_them(segments, public):
    with refused("segments-need-public"):
        error(towns(100, 1), public, Hedge(segments=segments))
