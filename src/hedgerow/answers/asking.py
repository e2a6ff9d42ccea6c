"""Questions put to a release: estimates for every group and value, with an interval and a basis each."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hedgerow.answers.basis import Basis, Grounds
from hedgerow.answers.discrepancy import Discrepancy, guess
from hedgerow.answers.question import Named, Question, read_questions
from hedgerow.answers.rows import DRAWN, SEED, ModelRows, Rows
from hedgerow.answers.spread import Spread, variance_of
from hedgerow.answers.values import Estimate, Group
from hedgerow.coded.domain import CodedTable
from hedgerow.coded.measurement import Measurement
from hedgerow.errors import Fault, OptionError
from hedgerow.markup import Markup, joined, listed
from hedgerow.models.graphical.estimation import counts_every_row
from hedgerow.models.model import block_rng
from hedgerow.schema.arrays import BoolArray

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.release.bundle import Release

MOST_GROUPS = 1_000
WEAKEST: tuple[Basis, ...] = ("measured", "modelled", "assumed")
"""The basis of an answer that is made of several is the weakest of theirs."""


class Row(NamedTuple):
    """One value of one group."""

    group: dict[str, Any]
    value: str
    estimate: float
    low: float
    high: float
    basis: Basis

    @property
    def figures(self) -> list[str]:
        """Estimate, low and high with as many digits as the interval leaves any sense to."""
        width = self.high - self.low
        decimals = 0 if not math.isfinite(width) or width >= 20 else 6
        if 0 < width < 20:
            decimals = max(0, 1 - math.floor(math.log10(width)))
        return [f"{number:,.{decimals}f}" for number in (self.estimate, self.low, self.high)]


@dataclass(frozen=True)
class Answer:
    """A question as it was understood, and its rows."""

    query: str
    rows: tuple[Row, ...]

    def _repr_html_(self) -> str:
        """For notebooks."""
        groups = list(self.rows[0].group) if self.rows else []
        cells = ([*map(_or_empty, row.group.values()), row.value, *row.figures, row.basis] for row in self.rows)
        return listed([*groups, "value", "estimate", "low", "high", "basis"], cells, self.query)

    def to_json(self) -> dict[str, Any]:
        return {"query": self.query, "rows": [row._asdict() | {"group": _plain(row.group)} for row in self.rows]}


class Answers(Sequence[Answer]):
    """The answers to some questions, in their order."""

    def __init__(self, answers: Sequence[Answer]):
        self._answers = tuple(answers)

    def __getitem__(self, index: Any) -> Any:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def _repr_html_(self) -> str:
        """For notebooks: a table for each question."""
        return joined(*(Markup(answer._repr_html_()) for answer in self))

    def to_json(self) -> dict[str, Any]:
        """The object that `hedgerow ask --json` prints."""
        return {"answers": [answer.to_json() for answer in self]}

    def table(self) -> pa.Table:
        """All rows in one Arrow table: the query, a column for everything grouped by, and the figures."""
        import pyarrow as pa

        rows = [(answer.query, row) for answer in self for row in answer.rows]
        names = list(dict.fromkeys(name for _, row in rows for name in row.group))
        columns: dict[str, Any] = {"query": [query for query, _ in rows]}
        columns |= {name: [row.group.get(name) for _, row in rows] for name in names}
        columns |= {name: [getattr(row, name) for _, row in rows] for name in Row._fields[1:]}
        return pa.table(columns)

    def to_pandas(self) -> Any:
        return self.table().to_pandas()


def _or_empty(value: Any) -> Any:
    return "" if value is None else value


class Found(NamedTuple):
    """An estimate on the way to an answer: of which group, and of which of the values that are asked for."""

    group: dict[str, Any]
    named: Named
    estimate: Estimate


class Asking:
    """A release that is asked: questions share its weighted rows, and what is known of its errors."""

    def __init__(self, release: Release):
        self._columns = release.encoding.declared
        self._rows = ModelRows(release.model, release.encoding)
        self._grounds = Grounds(release.encoding.domain, release.counted)
        self._spread = Spread(self._grounds, discrepancy_of(release), total_std(release.measurements))

    def ask(self, text: str, level: float, population: bool) -> Answers:
        """Every question of a text, answered."""
        check_level(level)
        questions = read_questions(text, self._columns)
        return Answers([self._answer(question, level, population) for question in questions])

    def _answer(self, question: Question, level: float, population: bool) -> Answer:
        rows = self._rows.of(question.columns)
        refuse_nobody(question, rows)
        found = []
        for group, named, estimate in estimates(question, rows):
            marginal = self._rows.attributes(question.columns_of(named))
            basis = self._grounds.basis(marginal, rows, estimate.influence)
            drawn = variance_of(rows.weights, estimate.linear) / rows.total if population else 0.0
            low, high = self._spread.interval(estimate, basis, marginal, rows, level, drawn)
            found.append(Row(group, named.name, estimate.value, low, high, basis))
        return Answer(question.text, tuple(found))

    @property
    def worth(self) -> int:
        """Independent rows that tell as much of the private table as the release does."""
        return self._spread.worth


def refuse_nobody(question: Question, rows: Rows) -> None:
    """A condition that no row fits has no answer."""
    if question.where is not None and rows.share(rows.truth(question.where)) <= 0:
        raise OptionError("nobody", f'no row of the release fits the condition of "{_short(question.text)}".')


def changes(now: Release, before: Release, text: str, level: float, population: bool) -> Answers:
    """What was asked of two releases, the answers of the first less those of the second.

    Their errors are taken for independent: half-widths add up as standard deviations do. A group that one of them does
    not have is left out.
    """
    answers = []
    for this, that in zip(now.ask(text, level, population), before.ask(text, level, population), strict=True):
        known = {(*map(str, row.group.items()), row.value): row for row in that.rows}
        pairs = [(row, known.get((*map(str, row.group.items()), row.value))) for row in this.rows]
        answers.append(Answer(this.query, tuple(_change(row, old) for row, old in pairs if old is not None)))
    return Answers(answers)


def _change(now: Row, before: Row) -> Row:
    """The difference of two rows."""
    below = math.hypot(now.estimate - now.low, before.high - before.estimate)
    above = math.hypot(now.high - now.estimate, before.estimate - before.low)
    change = now.estimate - before.estimate
    basis = max(now.basis, before.basis, key=WEAKEST.index)
    return Row(now.group, now.value, change, change - below, change + above, basis)


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise OptionError("bad-level", f"--level must lie between 0 and 1, for example 0.9, got {level:g}.")


def discrepancy_of(release: Release) -> Discrepancy:
    """What the release says of its own distance from the private table: measured, else guessed from its noise."""
    quality = release.quality
    distances = () if quality is None else (*quality.columns, *quality.pairs)

    @cache
    def draw() -> CodedTable:
        return release.model.draw(min(release.estimated_rows, DRAWN), block_rng(SEED, 0))

    guessed = guess(release.counted, release.model.total)
    return Discrepancy(release.encoding.domain, distances, lambda _: draw(), guessed)


def total_std(measurements: Sequence[Measurement]) -> float:
    """The standard error of the number of rows, from all sums of noisy counts together."""
    whole = [measurement for measurement in measurements if counts_every_row(measurement)]
    precision = sum(1 / max(each.query.cells * each.noise.variance, 1e-12) for each in whole)
    return 1 / math.sqrt(precision) if precision else 0.0


def estimates(question: Question, rows: Rows) -> Iterator[Found]:
    """Every value of every group that has rows, as the question lists them."""
    asked = np.ones(len(rows.weights), dtype=bool) if question.where is None else rows.truth(question.where)
    found = []
    for group, members in _groups(question, rows, asked):
        for named in question.values:
            try:
                found.append(Found(group, named, named.value.of(Group(rows, members, asked))))
            except Fault as fault:
                where = " for " + ", ".join(f"{key} = {held}" for key, held in group.items()) if group else ""
                raise OptionError(
                    fault.code,
                    f'"{named.name}"{where} in "{_short(question.text)}" has no answer: {fault}.',
                ) from None
    yield from _listed(question, found)


def _groups(question: Question, rows: Rows, asked: BoolArray) -> Iterator[tuple[dict[str, Any], BoolArray]]:
    """The groups that hold any weight, in the order of what they are grouped by."""
    if not question.groups:
        yield {}, asked
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [group.name for group in question.groups]
    keys = pa.table([group.expression.values(rows.table) for group in question.groups], names=names)
    numbered = keys.append_column("\0row", pa.array(np.arange(len(asked))))
    held = numbered.filter(pa.array(asked & (rows.weights > 0))).group_by(names).aggregate([("\0row", "list")])
    if held.num_rows > MOST_GROUPS:
        raise OptionError(
            "too-many-groups",
            f'"{_short(question.text)}" makes {held.num_rows:,} groups; at most {MOST_GROUPS:,} are answered. '
            "Hint: group by fewer columns, or by ranges of them.",
        )
    order = pc.sort_indices(held, sort_keys=[(name, "ascending") for name in names])
    for place in order.to_pylist():
        members = np.zeros(len(asked), dtype=bool)
        members[held["\0row_list"][place].values.to_numpy()] = True
        yield {name: held[name][place].as_py() for name in names}, members


def _listed(question: Question, found: list[Found]) -> list[Found]:
    """Sorted and cut as the question says: groups stay together."""
    size = len(question.values)
    groups = [found[index : index + size] for index in range(0, len(found), size)]
    for name, largest in reversed(question.order):
        values = [value.name for value in question.values]
        if name in values:
            groups.sort(key=lambda group: group[values.index(name)].estimate.value, reverse=largest)
        else:
            groups.sort(key=lambda group: _sortable(group[0].group[name]), reverse=largest)
    return [row for group in groups[: question.most] for row in group]


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is None, 0 if value is None else value)


def _plain(group: dict[str, Any]) -> dict[str, Any]:
    """What JSON can hold."""
    dates = (datetime.date, datetime.datetime, datetime.timedelta)
    return {name: str(value) if isinstance(value, dates) else value for name, value in group.items()}


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
