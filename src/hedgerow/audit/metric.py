"""`check_metric`: the laws that every metric must keep, for our own and for those made elsewhere."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.audit.replay import Violation
from hedgerow.coded.domain import CodedTable, IntArray
from hedgerow.errors import HedgerowError
from hedgerow.private.evaluate import find
from hedgerow.private.evaluate.evaluation import shown_figures
from hedgerow.private.evaluate.metric import Comparison, Metric
from hedgerow.private.evaluate.raw import drawn_from
from hedgerow.schema import Encoding, Schema

ROWS = 500
SCHEMA = Schema.parse("""
columns:
  grade: {type: category, values: [low, mid, high], ordered: true}
  site:  {type: code, size: 40}
  age:   {type: integer, min: 0, max: 9, missing: true}
  wage:  {type: integer, min: 0, max: 99, bins: 4, heaps: [10]}
  flag:  {type: category, values: ["yes", "no"], other: true}
  price: {type: number, min: -5, max: 95, bins: 20, missing: true}
  birth: {type: date, min: 2020-01-01, max: 2020-03-31}
  came:  {type: datetime, min: 2020-01-01, max: 2020-01-14, step: hour}
""")
SINGLE = Schema.parse("columns: {flag: {type: code, size: 2}}")
TARGET, IDENTIFIERS = "grade", ("site", "age")
NAME = re.compile(r"[a-z][a-z0-9_]*")
Found = Mapping[str, Any]


def check_metric(metric: Metric | str, seed: int = 0) -> None:
    """Raise `Violation` unless `metric` (or `package.module:Name`) keeps the laws of metrics.

    On made-up tables: its figures are declared, and each is a finite number or None; the same tables and seed give the
    same figures, whatever was drawn elsewhere; the tables are left as they were; the order of rows means nothing
    (unless it `draws` rows); beside itself a table is at least as good as beside random codes or one row over and over,
    better than one of these, and gives away more; what is said of the real rows alone does not change with the
    synthetic ones; tables of one row or one column are answered or refused in words.
    """
    metric = find(metric) if isinstance(metric, str) else metric
    _check_names(metric)
    rng = np.random.default_rng(seed)
    encoding = SCHEMA.with_stand_ins().encoding()
    real, near, far = (_rows(encoding, rng, mixed) for mixed in (0.0, 0.3, 1.0))
    flat = _taken(real, np.full(ROWS, np.argmin(real[encoding.domain.names[0]])))
    usual = _beside(Comparison(encoding, real, near, seed, TARGET, IDENTIFIERS), real, near)
    found = _figures(metric, usual)
    _check_repeatable(metric, usual, found)
    if not metric.draws:
        _check_order(metric, usual, found, rng)
    alike, *unlike = (_figures(metric, _beside(usual, real, other)) for other in (real, far, flat))
    if "values" in metric.needs:
        unlike.append(_figures(metric, _finer(usual, real)))
    _check_meaning(metric, alike, unlike)
    _check_small(metric, usual)


def _rows(encoding: Encoding, rng: np.random.Generator, mixed: float) -> CodedTable:
    """Rows whose attributes all follow one hidden number, but for the share `mixed` of the codes, which are random."""
    hidden = rng.random(ROWS)
    table: CodedTable = {}
    for attribute in encoding.domain:
        follows = (hidden * attribute.size).astype(np.int64)
        anything = rng.integers(0, attribute.size, ROWS)
        codes = np.where(rng.random(ROWS) < mixed, anything, follows).astype(attribute.dtype)
        codes.flags.writeable = False
        table[attribute.name] = codes
    return table


def _beside(comparison: Comparison, real: CodedTable, synthetic: CodedTable) -> Comparison:
    """Other tables, with values drawn from their codes: the same ones for the same codes in the same order."""
    values = [drawn_from(table, comparison.encoding, comparison.seed) for table in (real, synthetic)]
    for column in (column for table in values for column in table.columns.values()):
        column.values.flags.writeable = False
    return replace(comparison, real=real, synthetic=synthetic, raw_tables=(values[0], values[1]))


def _finer(comparison: Comparison, table: CodedTable) -> Comparison:
    """A table whose numbers have lost their decimals, beside itself with them."""
    beside = _beside(comparison, table, table)
    whole, finer = beside.values
    columns = {
        name: replace(column, values=np.floor(column.values)) if column.kind == "number" else column
        for name, column in whole.columns.items()
    }
    return replace(beside, raw_tables=(replace(whole, columns=columns), finer))


def _shuffled(comparison: Comparison, rows: tuple[IntArray, IntArray]) -> Comparison:
    """The same rows, codes and values alike, in another order; or some of them."""
    real, synthetic = comparison.values
    return replace(
        comparison,
        real=_taken(comparison.real, rows[0]),
        synthetic=_taken(comparison.synthetic, rows[1]),
        raw_tables=(real.take(rows[0]), synthetic.take(rows[1])),
    )


def _taken(table: CodedTable, rows: IntArray) -> CodedTable:
    return {name: codes[rows] for name, codes in table.items()}


def _check_names(metric: Metric) -> None:
    if not metric.figures:
        raise Violation("a metric gives at least one figure.")
    for name in (metric.name, *metric.figures):
        if not NAME.fullmatch(name):
            raise Violation(f'"{name}" is no name for a metric or a figure: lower-case letters, digits and _.')
    try:
        shown_figures([metric])
    except HedgerowError as problem:
        raise Violation(str(problem)) from None
    for name, figure in metric.figures.items():
        if not (figure.title and figure.meaning):
            raise Violation(f'the figure "{name}" has no title or no meaning, in plain words.')


def _figures(metric: Metric, comparison: Comparison) -> Found:
    """The figures, if they are what was declared."""
    try:
        found = metric.compute(comparison)
    except HedgerowError:
        raise
    except Exception as problem:
        raise Violation(f"it failed, or wrote to the tables: {type(problem).__name__}: {problem}") from problem
    lacking = [name for name in metric.figures if name not in found]
    strange = [name for name in found if name not in metric.figures and not name.startswith(f"{metric.name}_")]
    if lacking or strange:
        raise Violation(f'the figure "{(lacking + strange)[0]}" is declared or given, but not both.')
    for name in metric.figures:
        value = found[name]
        if value is not None and not (type(value) is float and math.isfinite(value)):
            raise Violation(f'the figure "{name}" is neither a finite float nor None.')
    try:
        json.dumps(dict(found))
    except (TypeError, ValueError):
        raise Violation("what it gives cannot be written as JSON.") from None
    return found


@contextmanager
def _elsewhere() -> Iterator[None]:
    """As if somebody had drawn from the generators that all share."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002


def _check_repeatable(metric: Metric, comparison: Comparison, found: Found) -> None:
    with _elsewhere():
        if _figures(metric, comparison) != found:
            raise Violation("the same tables and the same seed gave other figures.")


def _check_order(metric: Metric, comparison: Comparison, found: Found, rng: np.random.Generator) -> None:
    shuffled = _shuffled(comparison, (rng.permutation(ROWS), rng.permutation(ROWS)))
    again = _figures(metric, shuffled)
    if not all(_close(again[name], found[name]) for name in metric.figures):
        raise Violation("another order of the rows gave other figures; a metric that draws rows says so.")


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _check_meaning(metric: Metric, alike: Found, unlike: Sequence[Found]) -> None:
    for name, figure in metric.figures.items():
        if figure.about == "real rows":
            if not all(_close(alike[name], other[name]) for other in unlike):
                raise Violation(f'the figure "{name}" is about the real rows, but changed with the synthetic ones.')
            continue
        sign = {"low": 1.0, "high": -1.0}.get(figure.best, 0.0) * (1.0 if figure.about == "likeness" else -1.0)
        pairs = [(alike[name], other[name]) for other in unlike]
        better = [sign * (other - same) for same, other in pairs if same is not None and other is not None]
        if any(difference < -1e-12 for difference in better):
            what = "less good" if figure.about == "likeness" else "less of a risk"
            raise Violation(f'the figure "{name}" calls a table beside itself {what} than beside random or equal rows.')
        if sign and better and not any(difference > 1e-12 for difference in better):
            raise Violation(
                f'the figure "{name}" says of a table beside itself what it says of random and of equal rows.'
            )


def _check_small(metric: Metric, comparison: Comparison) -> None:
    """One row on a side, and one column: an answer, or a refusal in words."""
    one: IntArray = np.zeros(1, dtype=np.int64)
    every: IntArray = np.arange(ROWS)
    single: CodedTable = {"flag": np.array([0, 1, 1], dtype=np.uint8)}
    smalls = [
        _shuffled(comparison, (every, one)),
        _shuffled(comparison, (one, every)),
        Comparison(SINGLE.encoding(), single, single, 0, "flag", ("flag",)),
    ]
    for small in smalls:
        try:
            _figures(metric, small)
        except HedgerowError:
            continue
