"""Laws of every column kind: nothing raises, codes stay inside, and what comes back lies in the cell it came from."""

from __future__ import annotations

import datetime
import itertools
import json
import sys
import types
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.audit import Violation, check_column
from hedgerow.audit.column import CANARY, ODD_TEXTS, ODD_VALUES, coded_by_itself, stays_in_its_cell
from hedgerow.schema import Schema, allow, kinds
from hedgerow.schema.cells import Sought, Steps
from hedgerow.schema.column import Column, Encoded
from hedgerow.schema.listed import Category
from hedgerow.schema.numeric import Integer
from refusals import refused

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
marks = st.one_of(
    st.booleans(),
    st.dictionaries(
        st.sampled_from(["", "-8", "-9.5", "NA", "9999-12-31", "999", "inf", "1e300"]), st.just("why"), min_size=1
    ),
)
common = st.fixed_dictionaries({}, optional={"missing": marks, "other": st.booleans()})


@st.composite
def integers(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.integers(-10_000, 10_000))
    wide = draw(st.booleans())
    high = low + draw(st.integers(20, 10**12 if wide else 2_000))
    column: dict[str, Any] = {"type": "integer", "min": low, "max": high}
    if wide or draw(st.booleans()):
        inner = st.lists(st.integers(low + 1, high - 1), min_size=1, max_size=5, unique=True).map(sorted)
        column["bins"] = draw(st.one_of(st.integers(1, 20), inner))
        column["closed"] = draw(st.sampled_from(["left", "right"]))
    else:
        column["bins"] = high - low + 1  # a cell for each value
    if "closed" in column and draw(st.booleans()):
        column["heaps"] = draw(st.sampled_from([[100, 20, 50, 25, 10, 5, 2], [7], [10, 3], [1000, 5]]))
    if draw(st.booleans()):
        column["special"] = draw(st.lists(st.integers(low - 5, high + 5), max_size=3, unique=True))
    return column


@st.composite
def reals(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.floats(-1e6, 1e6))
    high = low + draw(st.floats(1e-3, 1e9))
    column: dict[str, Any] = {
        "type": "number",
        "min": low,
        "max": high,
        "closed": draw(st.sampled_from(["left", "right"])),
    }
    column["bins"] = draw(st.one_of(st.integers(1, 30), st.just([low + (high - low) / 3, low + (high - low) / 2])))
    if draw(st.booleans()):
        column["special"] = [low, high + 1]
    return column


@st.composite
def cut(draw: st.DrawFn) -> dict[str, Any]:
    """Columns as a discovery leaves them: cells of leaves, with gaps, on a grid of any fineness."""
    decimals = draw(st.integers(0, 6))
    low = draw(st.integers(-(10**9), 10**9))
    ends = draw(st.lists(st.integers(0, 10**6), min_size=2, max_size=16, unique=True).map(sorted))
    high = low + ends[-1] + draw(st.integers(0, 10**6))
    integer = decimals == 0 and draw(st.booleans())
    unit = (lambda step: step) if integer else (lambda step: step / 10**decimals)
    leaves = [
        [unit(low + a), unit(low + b), draw(st.integers(1, 10**6))] for a, b in zip(ends[::2], ends[1::2], strict=False)
    ]
    single = draw(st.sampled_from([None, 0]))
    if single is not None:
        leaves[0][1] = leaves[0][0]
    cells: list[list[Any]] = []
    for leaf in leaves:
        if cells and draw(st.booleans()):
            cells[-1].append(leaf)
        else:
            cells.append([leaf])
    column: dict[str, Any] = {"type": "integer" if integer else "number", "min": unit(low), "max": unit(high)}
    if not integer:
        column["decimals"] = decimals
    if draw(st.booleans()):
        column["special"] = [unit(low + ends[0] + 1), unit(high + 1)]
    if draw(st.booleans()):
        column["endings"] = draw(st.sampled_from([{"99": 5, "": 1}, {"00": 30.5, "500": 4}, {"01": 2, "": 0}]))
    return column | {"leaves": cells, "discovered": True}


@st.composite
def calendar(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.dates(datetime.date(1, 1, 1), datetime.date(9000, 1, 1)))
    high = low + datetime.timedelta(days=draw(st.integers(0, 9_000)))
    if draw(st.booleans()):
        step = draw(st.sampled_from(["day", "week", "month", "quarter", "year"]))
        return {"type": "date", "min": low.isoformat(), "max": high.isoformat(), "step": step}
    start = datetime.datetime.combine(low, draw(st.times()).replace(microsecond=0, tzinfo=None))
    step = draw(st.sampled_from(["second", "minute", "hour", "day", "week", "month", "quarter", "year"]))
    width = {"second": 1, "minute": 60, "hour": 3600}.get(step, 86_400)
    end = start + datetime.timedelta(seconds=width * draw(st.integers(0, 9_000)))
    return {"type": "datetime", "min": start.isoformat(), "max": end.isoformat(), "step": step}


@st.composite
def cut_calendar(draw: st.DrawFn) -> dict[str, Any]:
    """Dates and moments as a discovery leaves them, with gaps between stretches and between times."""
    low = draw(st.dates(datetime.date(1000, 1, 1), datetime.date(9000, 1, 1)))
    ends = draw(st.lists(st.integers(0, 5_000), min_size=2, max_size=12, unique=True).map(sorted))
    days = [low + datetime.timedelta(days=end) for end in ends]
    high = days[-1] + datetime.timedelta(days=draw(st.integers(200, 900)))
    leaves = [[[a.isoformat(), b.isoformat(), 3]] for a, b in zip(days[::2], days[1::2], strict=False)]
    bounds = {"min": low.isoformat(), "max": high.isoformat(), "leaves": leaves, "discovered": True}
    if draw(st.booleans()):
        return {"type": "date", **bounds, "format": draw(st.sampled_from(["%d.%m.%Y", "%Y%m%d", "%b %d, %Y"]))}
    step = draw(st.sampled_from(["second", "minute", "hour", "day"]))
    if step == "day":
        return {"type": "datetime", "step": step, **bounds}
    hours = draw(st.lists(st.integers(0, 23), min_size=2, max_size=8, unique=True).map(sorted))
    times = [[[f"{a:02}:00:00", f"{b:02}:00:00", 2]] for a, b in zip(hours[::2], hours[1::2], strict=False)]
    units = {"hour": ["60m"], "minute": ["60m", "15m", "1m"], "second": ["30m", "5m", "1m", "10s"]}[step]
    likely = draw(st.dictionaries(st.sampled_from([*units, ""]), st.floats(0, 1e6), max_size=3))
    return {"type": "datetime", "step": step, **bounds, "times": times, "endings": likely}


categories = st.fixed_dictionaries(
    {
        "type": st.just("category"),
        "values": st.lists(
            st.one_of(texts, st.sampled_from(["39", "06001", "6001", "yes", "no", "other", "1", "NO"])),
            min_size=1, max_size=8, unique=True,
        ),
    },
    optional={"ordered": st.booleans()},
)  # fmt: skip
declarations = st.one_of(
    integers(),
    reals(),
    cut(),
    calendar(),
    cut_calendar(),
    categories,
    st.just({"type": "boolean"}),
    st.builds(lambda size: {"type": "code", "size": size}, st.integers(1, 300)),
)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    declaration = draw(declarations)
    extra = draw(common)
    if isinstance(extra.get("missing"), dict) or extra.get("missing"):
        named = extra["missing"] if isinstance(extra["missing"], dict) else {"": ""}
        if set(named) & set(declaration.get("values", [])):
            extra.pop("missing")
    return Schema(columns={"x": {**declaration, **extra}}).with_stand_ins(draw(st.integers(1, 30))).columns["x"]


@st.composite
def arrays(draw: st.DrawFn, column: Column) -> pa.Array:
    """Text and typed arrays: nasty ones, and some near the declaration."""
    if draw(st.booleans()):
        kind, pool = draw(st.sampled_from(ODD_VALUES))
        items = draw(st.lists(st.sampled_from([*pool, None]), max_size=12)) if pool else [None]
        return pa.array(items, kind)
    near = [str(getattr(column, key)) for key in ("min", "max") if hasattr(column, key)]
    near += [str(each) for each in (*getattr(column, "special", ()), *getattr(column, "listed", ()), *column.marks)]
    near += ["3", "17"]
    odd = st.one_of(texts, st.integers(-3000, 10**13).map(str), st.floats().map(str))
    any_text = st.one_of(st.none(), st.sampled_from(ODD_TEXTS), st.sampled_from(near), odd)
    items = draw(st.lists(any_text, max_size=12))
    return pa.array(items, pa.string())


@settings(deadline=None, max_examples=600)
@given(data=st.data())
def test_decoding_an_encoded_value_stays_in_its_cell(data: st.DataObject) -> None:
    column = data.draw(columns())
    stays_in_its_cell(column, data.draw(arrays(column)), seed=data.draw(st.integers(0, 99)))


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(texts, columns(), min_size=1, max_size=4), st.one_of(st.none(), texts))
def test_schemas_round_trip_through_yaml_and_plain_values(declared: dict[str, Column], dataset: str | None) -> None:
    schema = Schema(dataset=dataset, columns=declared)
    assert Schema.parse(schema.to_yaml()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert Schema.parse(json.dumps(schema.to_dict()), "schema.json") == schema


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_each_value_is_coded_by_itself(data: st.DataObject) -> None:
    """A row's code must not depend on the other rows, or a neighbour would move more than one row."""
    column = data.draw(columns())
    coded_by_itself(column, data.draw(arrays(column)))


def test_the_laws_catch_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that return special values, cells counted from the batch's minimum, a cell too far on."""
    declaration = {"type": "integer", "min": 0, "max": 99, "bins": 10, "special": [0, 1, 2, 3, 4, 5, 6, 7, 8]}
    array = pa.array(["9", "50", "", "1000", "77"])

    def fresh() -> Column:
        return Schema(columns={"x": declaration}).columns["x"]

    stays_in_its_cell(fresh(), array, seed=1)
    coded_by_itself(fresh(), array)
    settle = Steps.settle
    with monkeypatch.context() as mutant:
        mutant.setattr(Integer, "own_numbers", [])
        with pytest.raises(AssertionError):
            stays_in_its_cell(fresh(), array, seed=1)
    with monkeypatch.context() as mutant:
        mutant.setattr(Steps, "settle", lambda steps, line: settle(steps, line - np.nanmin(line)))
        with pytest.raises(AssertionError):
            coded_by_itself(fresh(), array)
    with monkeypatch.context() as mutant:
        mutant.setattr(Sought, "of", lambda runs, line: np.searchsorted(runs.starts, line, side="left"))
        with pytest.raises(AssertionError):
            stays_in_its_cell(fresh(), array, seed=1)


@pytest.mark.parametrize(
    "declaration",
    [
        {"type": "integer", "min": 0, "max": 115},
        {"type": "integer", "min": 0, "max": 1000, "bins": 25},
        {"type": "integer", "min": 0, "max": 5, "missing": {"39": "unknown"}},
        {"type": "number", "min": 0, "max": 115, "bins": 10, "special": [39]},
        {"type": "number", "min": 0, "max": 115, "decimals": 2, "leaves": [[[0, 5, 1]], [[39, 39, 3]], [[70, 80, 1]]]},
        {"type": "code", "size": 100},
        {"type": "category", "values": ["39", "40"]},
        {"type": "category", "values": ["40"], "missing": {"39": "unknown"}},
    ],
)
def test_thirty_nine_is_thirty_nine_however_it_is_held(declaration: dict[str, Any]) -> None:
    column = Schema(columns={"x": declaration}).columns["x"]
    held = [
        pa.array(["39"]),
        pa.array([39], pa.int64()),
        pa.array([39], pa.uint8()),
        pa.array([39.0], pa.float64()),
        pa.array([39.0], pa.float32()),
        pa.array([Decimal("39.00")], pa.decimal128(10, 2)),
        pa.array(["39"]).dictionary_encode(),
        pa.array([39]).dictionary_encode(),
        pa.array([b"39"], pa.binary()),
        pa.chunked_array([pa.array([39])]),
    ]
    results = {(int(column.encode(array).codes[0][0]), bool(column.encode(array).outside[0])) for array in held}
    assert len(results) == 1
    assert not results.pop()[1]


@settings(deadline=None, max_examples=100)
@given(
    low=st.integers(-500, 500),
    widths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    heaps=st.sampled_from([(), (10, 5, 2), (100, 20, 50, 25, 10, 5, 2), (7, 3)]),
    avoid=st.sets(st.integers(-500, 700), max_size=8),
)
def test_a_class_is_drawn_uniformly_from_all_its_values(
    low: int, widths: list[int], heaps: tuple[int, ...], avoid: set[int]
) -> None:
    """Ranks in closed form agree with counting one by one: every admissible value, and no other, has its rank."""
    starts = [low + sum(widths[:index]) for index in range(len(widths))]
    last = low + sum(widths) - 1
    steps = Steps(starts, last, heaps, sorted(avoid))
    numbers = np.arange(low, last + 1)
    cell = steps.cell(numbers.astype(float))
    divisibility = steps.divisibility(numbers.astype(float))
    for index, one in enumerate(steps._classes):
        for run in range(len(starts)):
            members = [
                number for number, at, kind in zip(numbers.tolist(), cell, divisibility, strict=True)
                if at == run and kind == index and number not in avoid
            ]  # fmt: skip
            assert one.count[run] == len(members)
            if members:
                drawn = one.draw(np.full(len(members), run), _Ladder(len(members)))  # type: ignore[arg-type]
                assert drawn.tolist() == members


class _Ladder:
    """Coins that come up 0, 1, 2, …"""

    def __init__(self, count: int):
        self._count = count

    def integers(self, low: int, high: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        assert (high == self._count).all()
        return np.arange(self._count)


def test_a_class_that_a_bin_lacks_falls_back_to_any_value_of_the_bin() -> None:
    column = Schema(columns={"x": {"type": "integer", "min": 1, "max": 9, "bins": [4], "heaps": [100]}}).columns["x"]
    drawn = column.decode([np.zeros(500, int), np.zeros(500, int)], np.random.default_rng(0)).to_pylist()
    assert set(drawn) == {1, 2, 3}


@pytest.mark.parametrize(
    ("declaration", "value", "code"),
    [
        ({"type": "integer", "min": 1, "max": 99, "bins": [20, 50]}, "20", 1),
        ({"type": "integer", "min": 1, "max": 99, "bins": [20, 50], "closed": "right"}, "20", 0),
        ({"type": "integer", "min": 1, "max": 99, "bins": [20, 50], "closed": "right"}, "21", 1),
        ({"type": "integer", "min": 0, "max": 9, "bins": 3}, "2", 0),
        ({"type": "integer", "min": 0, "max": 9, "bins": 3}, "3", 1),
        ({"type": "integer", "min": 0, "max": 9}, "-inf", 0),
        ({"type": "integer", "min": 0, "max": 9}, "1e300", 9),
        ({"type": "integer", "min": 0, "max": 9}, "", 10),
        ({"type": "integer", "min": 0, "max": 9, "other": True}, "10", 10),
        ({"type": "integer", "min": 0, "max": 9, "other": True}, "3.5", 10),
        ({"type": "integer", "min": 0, "max": 9, "other": True}, "three", 10),
        ({"type": "integer", "min": 0, "max": 9}, "3.5", 3),
        ({"type": "integer", "min": 0, "max": 9, "special": [99], "missing": {"-8": "r", "NA": "n"}}, "99", 10),
        ({"type": "integer", "min": 0, "max": 9, "special": [99], "missing": {"-8": "r", "NA": "n"}}, "-8", 11),
        ({"type": "integer", "min": 0, "max": 9, "special": [99], "missing": {"-8": "r", "NA": "n"}}, "NA", 12),
        ({"type": "integer", "min": 0, "max": 9, "special": [99], "missing": {"-8": "r", "NA": "n"}}, "", 13),
        ({"type": "number", "min": 0, "max": 10, "bins": 10}, "10", 9),
        ({"type": "number", "min": 0, "max": 10, "bins": 10, "closed": "right"}, "0", 0),
        ({"type": "number", "min": 0, "max": 10, "bins": 10, "closed": "right"}, "1", 0),
        ({"type": "category", "values": ["a", "b"]}, "c", 2),
        ({"type": "category", "values": ["a", "b"], "missing": True}, "", 2),
        ({"type": "category", "values": ["a", "b"], "missing": True}, "c", 3),
        ({"type": "category", "values": ["a", "other"], "other": True}, "c", 1),
        ({"type": "boolean"}, "Yes", 1),
        ({"type": "boolean"}, "F", 0),
        ({"type": "boolean"}, "maybe", 2),
        ({"type": "date", "min": "2000-01-15", "max": "2001-12-31", "step": "month"}, "2000-02-29", 1),
        ({"type": "date", "min": "2000-01-01", "max": "2001-12-31", "step": "year"}, "2001-01-01", 1),
        ({"type": "date", "min": "2024-01-01", "max": "2024-12-31", "step": "week"}, "2024-01-08", 1),
        (
            {"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "step": "hour"},
            "2019-12-31T23:30:00-05:00",
            4,
        ),
        ({"type": "code", "size": 5}, "7", 4),
        ({"type": "code", "size": 5}, "", 0),
    ],
)
def test_worked_examples(declaration: dict[str, Any], value: str, code: int) -> None:
    column = Schema(columns={"x": declaration}).columns["x"]
    assert column.encode(pa.array([value])).codes[0].tolist() == [code]


def test_marks_come_back_as_themselves_and_types_stay() -> None:
    named = {"": "not asked", "-8": "refused"}
    integer = Schema(columns={"x": {"type": "integer", "min": 0, "max": 9, "missing": named}}).columns["x"]
    codes, _ = integer.encode(pa.array(["3", "", "-8", None]))
    assert integer.decode(codes, np.random.default_rng(0)).to_pylist() == [3, None, -8, None]
    category = Schema(columns={"x": {"type": "category", "values": ["NO"], "missing": named, "other": True}}).columns[
        "x"
    ]
    codes, _ = category.encode(pa.array(["NO", "", "-8", None, "SE"]))
    assert category.decode(codes, np.random.default_rng(0)).to_pylist() == ["NO", None, "-8", None, "other"]


def test_hidden_cells_are_filled_from_the_other_rows() -> None:
    column = Schema(columns={"x": {"type": "category", "values": ["a", "b", "c"]}}).columns["x"]
    codes, outside = column.encode(pa.array(["b"] * 5 + [None, "z"]))
    assert outside.tolist() == [False] * 5 + [True, True]
    assert column.decode(codes, np.random.default_rng(0)).to_pylist() == ["b"] * 7
    lonely, _ = column.encode(pa.array(["z"] * 300))
    assert set(column.decode(lonely, np.random.default_rng(0)).to_pylist()) == {"a", "b", "c"}


def test_draws_within_a_bin_are_uniform_and_leave_special_values_alone() -> None:
    declaration = {"type": "integer", "min": 0, "max": 9, "bins": 1, "special": [0, 5]}
    column = Schema(columns={"x": declaration}).columns["x"]
    drawn = np.array(column.decode([np.zeros(80_000, int)], np.random.default_rng(1)))
    counts = np.bincount(drawn, minlength=10)
    assert counts[[0, 5]].sum() == 0
    assert np.abs(counts[[1, 2, 3, 4, 6, 7, 8, 9]] - 10_000).max() < 600  # six standard deviations


DAY, MOMENT = datetime.date, datetime.datetime
DECLARED: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "integer", "min": 0, "max": 115}, [0, 39, 115], ["116", "-1", "2.5", "x"]),
    (
        {"type": "integer", "min": 0, "max": 999, "bins": 10, "special": [9998], "heaps": [100, 10], "other": True},
        [0, 9998, 555],
        [1000, -7],
    ),
    ({"type": "number", "min": 0, "max": 10, "bins": 4, "missing": True}, [0.0, 2.5, 10.0], [10.1, -1e300]),
    (
        {"type": "number", "min": 0, "max": 10, "bins": [1, 5], "closed": "right", "missing": {"-8": "no", "NA": "?"}},
        [0.0, 2.5, 10.0],
        [10.1, float("inf")],
    ),
    (
        {
            "type": "integer",
            "min": -5,
            "max": 10**7,
            "leaves": [[[-5, -5, 9]], [[0, 0, 5], [1, 90, 3]], [[99, 999, 1]]],
        },
        [-5, 0, 50, 95, 99, 10**7],
        [-6, 10**7 + 1],
    ),
    (
        {
            "type": "number",
            "min": -1.5,
            "max": 1e6,
            "decimals": 2,
            "other": True,
            "missing": {"-8": "no"},
            "special": [0, 11.77],
            "leaves": [[[-1.5, -0.01, 9], [0, 11.76, 1]], [[11.77, 11.78, 2]], [[50, 60, 1]]],
        },
        [-1.5, 0.0, 3.14, 11.77, 20.0, 30.995, 55.0, 1e6],
        [-1.51, 1e6 + 0.01, float("inf"), 1e300],
    ),
    ({"type": "number", "min": 0, "max": 10, "decimals": 1, "bins": [2.5, 3]}, [0.0, 2.4, 2.5, 2.75, 10.0], [10.1]),
    ({"type": "category", "values": ["low", "mid", "high"], "ordered": True}, ["low", "high"], ["LOW", "low "]),
    ({"type": "category", "values": ["é", "東京", "06001"], "other": True, "missing": True}, ["é", "06001"], ["e"]),
    ({"type": "boolean", "missing": True}, [True, False], ["maybe"]),
    ({"type": "date", "min": "1900-01-01", "max": "2009-12-31", "step": "month"}, [DAY(1900, 1, 1)], [DAY(2010, 1, 1)]),
    (
        {"type": "datetime", "min": "2020-01-01", "max": "2020-01-03", "step": "hour", "other": True},
        [MOMENT(2020, 1, 2, 3, 4, 5)],
        [MOMENT(2021, 1, 1)],
    ),
    (
        {
            "type": "date",
            "min": "1900-01-01",
            "max": "2009-12-31",
            "missing": {"1960-05-01": "never"},
            "discovered": True,
            "leaves": [
                [["1950-01-01", "1950-01-01", 5], ["1960-05-01", "1999-12-31", 3]],
                [["2001-01-03", "2001-01-05", 2]],
            ],
        },
        [DAY(1900, 1, 1), DAY(1950, 1, 2), DAY(1955, 5, 5), DAY(2001, 1, 4), DAY(2009, 12, 31)],
        [DAY(2010, 1, 1), DAY(1899, 12, 31)],
    ),
    (
        {
            "type": "datetime",
            "min": "2020-01-01",
            "max": "2020-12-31",
            "step": "minute",
            "other": True,
            "discovered": True,
            "leaves": [
                [["2020-02-01", "2020-02-29", 5]],
                [["2020-06-01", "2020-06-07", 2], ["2020-09-01", "2020-09-30", 2]],
            ],
            "times": [[["00:00:00", "07:59:00", 1]], [["08:00:00", "08:00:00", 9]], [["12:00:00", "18:30:00", 1]]],
        },
        [MOMENT(2020, 2, 3, 4, 5, 6), MOMENT(2020, 12, 31, 23, 59, 59), MOMENT(2020, 7, 1, 8, 0)],
        [MOMENT(2021, 1, 1), MOMENT(2019, 12, 31, 23, 59, 59)],
    ),
    (
        {"type": "date", "min": "2001-01-01", "max": "2001-03-31", "format": "%d/%m/%y"},
        ["01/01/01", "31/03/01"],
        ["2001-01-01", "01/04/01", "31/31/01"],
    ),
    (
        {"type": "datetime", "min": "2001-01-01", "max": "2001-01-03", "step": "hour", "format": "%d.%m.%Y %H:%M"},
        ["01.01.2001 00:00", "02.01.2001 13:59"],
        ["04.01.2001 00:00", "2001-01-01T00:00:00"],
    ),
    ({"type": "code", "size": 18}, [0, 17], [18, -1]),
    ({"type": "code", "size": 300, "missing": True, "other": True}, [0, 299], [300, -1]),
]


@pytest.mark.parametrize(("declaration", "inside", "outside"), DECLARED)
def test_every_kind_keeps_the_laws_of_columns(
    declaration: dict[str, Any], inside: list[Any], outside: list[Any]
) -> None:
    check_column(Schema(columns={"x": declaration}).columns["x"], inside, outside)


class Grade(Category):
    """A kind made elsewhere."""

    values: tuple[str, ...] = ("a", "b", "c")


class Shouting(Grade):
    def encode(self, array: pa.Array) -> Encoded:
        print(array)
        return super().encode(array)


class Raising(Grade):
    def encode(self, array: pa.Array) -> Encoded:
        if CANARY in array.to_pylist():
            raise ValueError(CANARY)
        return super().encode(array)


class Widening(Grade):
    def encode(self, array: pa.Array) -> Encoded:
        (codes,), outside = super().encode(array)
        return Encoded((np.where(outside, self.layout.size, codes),), outside)


class Ranking(Grade):
    def encode(self, array: pa.Array) -> Encoded:
        (codes,), outside = super().encode(array)
        return Encoded((codes - (codes.min() if len(codes) else 0),), outside)


class Forgetting(Grade):
    def encode(self, array: pa.Array) -> Encoded:
        return Encoded(super().encode(array).codes, np.zeros(len(array), dtype=bool))


class Mislabelled(Grade):
    def value_labels(self) -> list[str]:
        return ["one", "two"]


class Constant(Grade):
    def write(self, codes: Any, rng: np.random.Generator) -> pa.Array:
        return pa.array(["a"] * len(codes[0]))


CALLS = itertools.count()


class Restless(Grade):
    """Draws by how often it was asked, not by the seed."""

    def write(self, codes: Any, rng: np.random.Generator) -> pa.Array:
        return pa.array(np.random.default_rng(next(CALLS)).choice(["a", "b", "c"], len(codes[0])))


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Shouting, "says nothing"),
        (Raising, "never raises"),
        (Widening, "the hidden cell"),
        (Ranking, "nulls go to"),
        (Forgetting, "is not declared is told"),
        (Mislabelled, "has a label"),
        (Constant, "its own cell"),
        (Restless, "its own cell|the same seed"),
    ],
)
def test_kinds_that_break_a_law_are_caught(kind: type[Column], law: str) -> None:
    check_column(Grade(), ["a", "c"], ["d"])
    with pytest.raises(Violation, match=law) as caught:
        check_column(kind(), ["a", "c"], ["d"])
    assert CANARY not in str(caught.value)


FOREIGN = "acme_columns:Grade"
FILE = f"columns:\n  mark: {{type: '{FOREIGN}', values: [a, b], other: true}}\n"


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module that can be imported, and a process that allows nothing yet."""
    module = types.ModuleType("acme_columns")
    module.Grade = type("Grade", (Category,), {"__module__": "acme_columns"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_columns", module)
    monkeypatch.setattr(kinds, "_allowed", {})
    return module


def test_a_kind_that_a_file_names_is_not_imported_without_the_users_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "imported", lambda *_: pytest.fail("it was imported"))
    with refused("column-not-allowed", "line 2", "columns.mark.type", "--allow-column"):
        Schema.parse(FILE)


def test_an_allowed_kind_is_read_checked_and_written(acme: types.ModuleType) -> None:
    allow(FOREIGN)
    schema = Schema.parse(FILE)
    column = schema.columns["mark"]
    assert type(column) is acme.Grade
    assert schema.to_dict()["columns"]["mark"] == {"type": FOREIGN, "values": ["a", "b"], "other": True}
    assert Schema.parse(schema.to_yaml()) == Schema.from_dict(schema.to_dict()) == schema
    check_column(column, ["a"], ["c"])
    with refused("unknown-key", "line 2", "columns.mark", '"valeus"', 'Did you mean "values"'):
        Schema.parse(FILE.replace("values", "valeus"))
    with refused("value-twice", "columns.mark.values"):
        Schema.parse(FILE.replace("[a, b]", "[a, a]"))


def test_a_column_that_is_handed_in_needs_no_other_word(acme: types.ModuleType) -> None:
    schema = Schema(columns={"mark": acme.Grade(values=("a", "b")), "age": {"type": "integer", "min": 0, "max": 9}})
    assert Schema.parse(schema.to_yaml()) == schema
    table = schema.encoding().decode(
        schema.encoding().encode(pa.table({"mark": ["a", "b"], "age": [3, 4]})), np.random.default_rng(0)
    )
    assert table.to_pydict() == {"mark": ["a", "b"], "age": [3, 4]}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("acme_columns:Nothing", "cannot-import"),
        ("no.such:Thing", "cannot-import"),
        ("hedgerow.schema:Schema", "not-a-column-kind"),
    ],
)
def test_what_is_no_kind_cannot_be_allowed(acme: types.ModuleType, name: str, code: str) -> None:
    with refused(code):
        allow(name)
