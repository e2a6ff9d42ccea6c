"""Public trees: parts fill their block in order, and looks are at least as fine as the parts that they must count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.schema.cells import Sought
from hedgerow.schema.trees import Block, Blocks, Calendar, Decimal, Ladder, Tree


@st.composite
def decimals(draw: st.DrawFn) -> Tree:
    low = draw(st.one_of(st.integers(-30, 30), st.integers(-(10**15), 10**15)))
    return Decimal(low, low + draw(st.one_of(st.integers(1, 300), st.integers(1, 10**15))))


@st.composite
def ladders(draw: st.DrawFn) -> Tree:
    widths = draw(st.sampled_from([(1,), (60, 10, 1), (3600, 600, 60, 10, 1)]))
    low = draw(st.integers(0, 3000))
    return Ladder(low, low + draw(st.integers(0, 80_000)), widths)


@st.composite
def calendars(draw: st.DrawFn) -> Tree:
    low = draw(st.integers(-700_000, 2_000_000))
    return Calendar(low, low + draw(st.one_of(st.integers(0, 500), st.integers(0, 80_000))))


trees = st.one_of(decimals(), ladders(), calendars())


def parts_of(tree: Tree, block: Block) -> list[Block]:
    """What fills one block."""
    parts, sizes = tree.parts(Blocks.of([block]))
    assert sizes.tolist() == [len(parts.low)]
    return parts.listed()


def fills(low: int, high: int, parts: list[Block]) -> bool:
    edges = [low - 1] + [part.high for part in parts]
    return edges[-1] == high and all(
        part.low == before + 1 and part.low <= part.high for part, before in zip(parts, edges, strict=False)
    )


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_parts_fill_their_block_down_to_single_steps(data: st.DataObject) -> None:
    tree = data.draw(trees)
    parts, level = tree.top().listed(), 1
    assert fills(tree.low, tree.high, parts)
    while wide := [part for part in parts if not part.single]:
        block = data.draw(st.sampled_from(wide))
        parts, level = parts_of(tree, block), level + 1
        assert fills(block.low, block.high, parts)
        assert level <= tree.levels


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_many_blocks_are_split_as_each_by_itself(data: st.DataObject) -> None:
    tree = data.draw(trees)
    wide = [block for block in tree.top().listed() if not block.single]
    if not wide:
        return
    blocks = data.draw(st.lists(st.sampled_from(wide), unique=True, min_size=1))
    parts, sizes = tree.parts(Blocks.of(blocks))
    alone = [parts_of(tree, block) for block in blocks]
    assert sizes.tolist() == [*map(len, alone)]
    assert parts.listed() == [part for each in alone for part in each]
    if tree.runs(Blocks.of(blocks), 2) < 30_000:
        starts = {step for block in blocks for step in tree.starts(Blocks.of([block]), 2).tolist()}
        assert tree.starts(Blocks.of(blocks), 2).tolist() == sorted(starts)


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_a_look_can_count_every_level_that_it_is_for(data: st.DataObject) -> None:
    tree = data.draw(trees)
    block = data.draw(st.sampled_from(tree.top().listed()))
    parts = [block]
    for depth in (1, 2, 3):
        parts = [small for part in parts for small in ([part] if part.single else parts_of(tree, part))]
        if tree.runs(Blocks.of([block]), depth) > 3000:
            return
        starts = tree.starts(Blocks.of([block]), depth)
        assert starts.tolist() == sorted(set(starts.tolist()))
        assert {part.low for part in parts} <= set(starts.tolist())
        assert starts[0] == block.low
        assert starts[-1] <= block.high
        assert len(starts) <= 2 * tree.runs(Blocks.of([block]), depth) + 2


@pytest.mark.parametrize(
    ("low", "high", "top"),
    [
        (0, 10**7, [(0, 0), (1, 9), (10, 99), (100, 999)]),
        (-50, 5, [(-50, -10), (-9, -1), (0, 0), (1, 5)]),
        (1900, 2100, [(1900, 1999), (2000, 2000), (2001, 2100)]),
    ],
)
def test_sign_and_decade_come_first_and_round_numbers_stand_alone(
    low: int, high: int, top: list[tuple[int, int]]
) -> None:
    assert [(part.low, part.high) for part in Decimal(low, high).top().listed()][: len(top)] == top


def test_a_decade_is_split_by_its_digit_and_its_round_numbers() -> None:
    tree = Decimal(-5000, 5000)
    assert [(p.low, p.high) for p in parts_of(tree, Block(10, 99, 1))][:3] == [(10, 10), (11, 19), (20, 20)]
    assert [(p.low, p.high) for p in parts_of(tree, Block(-99, -10, 1))][-3:] == [(-20, -20), (-19, -11), (-10, -10)]
    assert [(p.low, p.high) for p in parts_of(tree, Block(1, 9, 0))] == [(n, n) for n in range(1, 10)]


def test_days_are_split_by_year_month_and_day() -> None:
    tree = Calendar(19_358, 20_088)  # 2023-01-01 to 2024-12-31
    years = tree.top().listed()
    assert [(year.low, year.high) for year in years] == [(19_358, 19_722), (19_723, 20_088)]
    months = parts_of(tree, years[1])
    assert [month.high - month.low + 1 for month in months] == [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert [day.single for day in parts_of(tree, months[1])] == [True] * 29


def test_the_day_is_split_by_hour_then_by_round_times() -> None:
    tree = Ladder(0, 1439, (60, 10, 1))
    assert [(hour.low, hour.high) for hour in tree.top().listed()][:2] == [(0, 59), (60, 119)]
    assert [(p.low, p.high) for p in parts_of(tree, tree.top().listed()[1])][:4] == [
        (60, 60),
        (61, 69),
        (70, 70),
        (71, 79),
    ]
    assert [(p.low, p.high) for p in parts_of(tree, Block(71, 79, 2))] == [(minute, minute) for minute in range(71, 80)]


far = st.one_of(st.integers(-60, 60), st.integers(-(10**6), 10**6), st.integers(-(10**15), 10**15))


@settings(deadline=None, max_examples=300)
@given(begins=st.lists(far, min_size=1, max_size=40), crowd=st.tuples(far, st.integers(0, 60)), numbers=st.lists(far))
def test_a_number_is_found_in_the_run_that_begins_before_it(begins, crowd, numbers):
    """By its leading bits: far from zero, below it, and where very many runs begin at about the same place."""
    first, count = crowd
    starts = np.union1d(begins, first + np.arange(count)).astype(np.int64)
    line = np.concatenate([numbers, starts, starts - 1, starts + 1])
    found = Sought(starts).of(line.astype(np.float64))
    assert found.tolist() == np.maximum(np.searchsorted(starts, line, side="right") - 1, 0).tolist()
