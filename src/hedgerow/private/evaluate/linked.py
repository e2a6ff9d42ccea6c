"""Linked tables beside synthetic ones: each table by itself, and what hangs together. PRIVATE.

Who hangs on whom is told as it is for a run (`hedgerow.private.kinship`): rows of one parent come in their order, ties
as they stand in the file; where they have none, as a hash has it, so that no file's own order counts as one. Numbers
and dates are cut at the deciles of the real table, categories are kept to the thirty commonest, so the figures of
tables of other sizes, and of other methods, can be compared. Every figure is a mean over *parts*: over columns, or over
pairs of them.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import CodedTable, Domain, IntArray, Marginal
from hedgerow.private.engines.linked import named_tables, read_tables
from hedgerow.private.evaluate.marginals import distances
from hedgerow.private.evaluate.metric import Figure
from hedgerow.private.evaluate.raw import RawColumn, RawTable, raw_table
from hedgerow.private.evaluate.values import kolmogorov
from hedgerow.private.identity import Spelling
from hedgerow.private.kinship import Kept, kept_rows
from hedgerow.private.sources.source import Source, open_source, open_synthetic
from hedgerow.progress import Progress
from hedgerow.schema.arrays import BoolArray, FloatArray
from hedgerow.schema.header import refuse_lacking
from hedgerow.schema.links import Tables

if TYPE_CHECKING:
    from hedgerow.schema import Schema

COMMONEST = 30
"""Of a category; what is rarer shares a cell."""
MISSING, CELLS = 31, 32
"""A cell for what is missing, and the cells that a column has."""
FIGURES = {
    "columns": Figure("single columns", "mean distance of its columns; 0 the same, 1 nothing in common"),
    "pairs": Figure("pairs", "mean distance of pairs of its columns"),
    "children": Figure("children", "distance of the number of its rows per row of the parent"),
    "parent_pairs": Figure("parent × child", "mean distance of pairs of a column of the parent and one of its own"),
    "steps": Figure("next row", "mean distance of pairs of a column and the same in the next row of the parent"),
    "sums": Figure("sums", "mean Kolmogorov distance of the sums of a number over the rows of a parent"),
    "spans": Figure("spans", "Kolmogorov distance of how far the last row of a parent lies from the first"),
}
"""By name, in the order in which they are shown; those from `children` on are of tables that have a parent."""
Parts = dict[str, dict[str, float]]
"""By figure, its value for each part; a figure without parts means nothing for the table."""


@dataclass(frozen=True, eq=False)
class Member:
    """The rows of one table that hang on something, sorted by parent and order."""

    values: RawTable
    parent: IntArray
    """The place of each row's parent among the rows of the parent table."""
    first: BoolArray
    """Whether a row is the first of its parent."""

    def take(self, rows: IntArray, parent: IntArray) -> Member:
        """Rows that may come several times, with parents at other places; sorted by them."""
        return Member(self.values.take(rows), parent, _first(parent))


Family = dict[str, Member]
"""Linked tables, the root first."""


@dataclass(frozen=True, eq=False)
class Read:
    """Linked tables as they were read, and how many of their rows hang on nothing or share a key."""

    schema: Schema
    tables: Mapping[str, pa.Table]
    orders: Mapping[str, FloatArray]
    seed: int = 0

    @classmethod
    def of(cls, schema: Schema, sources: Mapping[str, Source], seed: int = 0) -> Read:
        tables, orders = read_tables(schema, sources)
        return cls(schema, tables, {name: _ranks(order) for name, order in orders.items()}, seed)

    @property
    def links(self) -> Tables:
        assert self.schema.linked is not None
        return self.schema.linked

    def family(self, *, bounded: bool = False) -> Family:
        """All rows that hang on something, or as many of each parent as a run would look at."""
        kept = self._kept(self.links) if bounded else self._linked
        return {name: self._member(name, kept[name]) for name in self.links.names}

    @cached_property
    def _linked(self) -> dict[str, Kept]:
        return self._kept(_without_bounds(self.links))

    def _kept(self, links: Tables) -> dict[str, Kept]:
        return kept_rows(links, self.tables, self.orders, hashlib.sha256(str(self.seed).encode()).digest())

    def _member(self, name: str, kept: Kept) -> Member:
        alone = self.schema.table(name)
        encoding = alone.with_stand_ins(1).encoding()
        return Member(raw_table(self.tables[name], encoding).take(kept.rows), kept.parent, kept.first)

    def misfits(self) -> dict[str, dict[str, int]]:
        """Of each table the rows whose link names no row of the parent, those whose key an earlier row has, and those
        that hang on something and break a rule.
        """
        spellings = {name: Spelling() for name in self.links.names}
        keys: dict[str, pa.Array] = {}
        found: dict[str, dict[str, int]] = {}
        for name in self.links.names:
            link, table = self.links.links[name], self.tables[name]
            said: dict[str, int] = {}
            found[name] = said
            if self.links.kept:
                continue
            if link.parent is not None and link.link is not None:
                linked = pc.is_in(_spelled(spellings[link.parent], table, link.link), keys[link.parent])
                said["orphans"] = table.num_rows - int(pc.sum(linked).as_py() or 0)
            if link.key is not None:
                keys[name] = _spelled(spellings[name], table, link.key).drop_null()
                said["duplicates"] = len(keys[name]) - len(keys[name].unique())
        for each in self.schema.kept_rules.kept:
            name = self.links.view(each.condition.columns)
            held = pa.table({column: self._column(column, name) for column in each.condition.columns})
            found[name][f"breaking rule {each.number}"] = int(each.condition.truth(held).false.sum())
        return found

    def _column(self, column: str, name: str) -> pa.ChunkedArray:
        """A column of a table, or of one above it, for each row that hangs on something."""
        owner, _, own = column.partition(".")
        place: IntArray = np.arange(len(self._linked[name].rows))
        while name != owner:
            place, name = self._linked[name].parent[place], self.links.parent(name)
        return self.tables[owner].column(own).take(pa.array(self._linked[owner].rows[place]))


def _ranks(order: FloatArray) -> FloatArray:
    """Places in an order; of equals, the one that stands first in the file comes first."""
    ranks = np.empty(len(order))
    ranks[np.argsort(np.nan_to_num(order, nan=np.inf), kind="stable")] = np.arange(len(order))
    return ranks


def _spelled(spelling: Spelling, table: pa.Table, column: str) -> pa.Array:
    chunks = [pc.cast(spelling(chunk), pa.binary()) for chunk in table.column(column).chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.binary())


def _without_bounds(links: Tables) -> Tables:
    loose = copy.copy(links)
    loose.links = {name: link.model_copy(update={"max_per_parent": 1 << 62}) for name, link in links.links.items()}
    return loose


def _first(parent: IntArray) -> BoolArray:
    return np.append(True, parent[1:] != parent[:-1])[: len(parent)]


def bootstrap(links: Tables, family: Family, seed: int) -> Family:
    """As many units as there are, drawn with replacement, each with all that hangs on it: what luck alone does."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1])))
    units = len(family[links.root].parent)
    drawn = {links.root: rng.integers(0, units, units)}
    found = {links.root: family[links.root].take(drawn[links.root], np.zeros(units, dtype=np.int64))}
    for name in links.names[1:]:
        member, above = family[name], drawn[links.parent(name)]
        begins, ends = (np.searchsorted(member.parent, above, side=side) for side in ("left", "right"))
        sizes = ends - begins
        parent = np.repeat(np.arange(len(above)), sizes)
        drawn[name] = begins[parent] + np.arange(len(parent)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found[name] = member.take(drawn[name], parent)
    return found


class _Cuts:
    """The columns of a table in cells, by what its real rows hold."""

    def __init__(self, real: RawTable):
        self._cut = {name: _cut(column) for name, column in real.columns.items()}

    def __call__(self, table: RawTable) -> CodedTable:
        return {
            name: np.where(np.isnan(column.values), MISSING, self._cut[name](column.values)).astype(np.uint8)
            for name, column in table.columns.items()
        }


def _cut(column: RawColumn) -> Callable[[FloatArray], IntArray]:
    if column.kind != "category":
        tenths = np.arange(1, 10) / 10 if len(column.present) else np.zeros(0)
        edges = np.unique(np.quantile(column.present, tenths)) if len(tenths) else tenths
        return lambda values: np.searchsorted(edges, np.nan_to_num(values))
    held, counts = np.unique(column.present, return_counts=True)
    cells = np.full(int(held.max(initial=0)) + 1, COMMONEST)
    cells[held[np.argsort(-counts, kind="stable")[:COMMONEST]].astype(np.int64)] = np.arange(min(COMMONEST, len(held)))
    return lambda values: np.where(
        values < len(cells), cells[np.minimum(np.nan_to_num(values), len(cells) - 1).astype(np.int64)], COMMONEST
    )


def figures(links: Tables, real: Family, made: Family) -> dict[str, Parts]:
    """Every figure of every table, part by part."""
    cuts = {name: _Cuts(real[name].values) for name in links.names}
    codes = [{name: cuts[name](family[name].values) for name in links.names} for family in (real, made)]
    found: dict[str, Parts] = {}
    for name in links.names:
        own = [side[name] for side in codes]
        names = list(own[0])
        parts: Parts = {
            "columns": _apart(own, [(each,) for each in names]),
            "pairs": _apart(own, list(combinations(names, 2))),
        }
        if name != links.root:
            both = (real[name], made[name])
            above = links.parent(name)
            parts |= _of_children(
                both,
                (len(real[above].parent), len(made[above].parent)),
                own,
                [
                    {f"{above}.{each}": side[above][each][member.parent] for each in side[above]}
                    for side, member in zip(codes, both, strict=True)
                ],
                links.links[name].order,
            )
        found[name] = parts
    return found


def _of_children(
    members: tuple[Member, Member],
    parents: tuple[int, int],
    own: list[CodedTable],
    above: list[CodedTable],
    order: str | None,
) -> Parts:
    """The figures of a table that has a parent."""
    sizes = [np.bincount(each.parent, minlength=count) for each, count in zip(members, parents, strict=True)]
    most = max(int(size.max(initial=0)) for size in sizes) + 1
    joined = [{**upper, **lower} for upper, lower in zip(above, own, strict=True)]
    next_rows = [np.flatnonzero(~each.first) for each in members]
    steps = [
        {name: codes[rows - 1] for name, codes in side.items()}
        | {f"next {name}": codes[rows] for name, codes in side.items()}
        for side, rows in zip(own, next_rows, strict=True)
    ]
    numbers = [name for name, each in members[0].values.columns.items() if each.kind == "number" and name != order]
    parts: Parts = {
        "children": _apart([{"rows": size.astype(np.uint32)} for size in sizes], [("rows",)], most),
        "parent_pairs": _apart(joined, [(upper, lower) for upper in above[0] for lower in own[0]]),
        "steps": _apart(steps, [(name, f"next {name}") for name in own[0]]),
        "sums": {name: _kolmogorov([_sums(each, name) for each in members]) for name in numbers}
        if all(len(each.parent) for each in members)
        else {},
    }
    if order is not None and all(len(each.parent) for each in members):
        parts["spans"] = {order: _kolmogorov([_spans(each, order) for each in members])}
    return parts


def _apart(sides: list[CodedTable], marginals: list[Marginal], size: int = CELLS) -> dict[str, float]:
    """The total variation distance of each marginal; nothing where a side has no rows."""
    real, made = sides
    if not marginals or any(not len(next(iter(side.values()))) for side in sides):
        return {}
    domain = Domain.of(dict.fromkeys(real, size))
    found = distances(real, made, domain, [domain.marginal(marginal) for marginal in marginals])
    return {" × ".join(marginal): float(far) for marginal, far in zip(marginals, found, strict=True)}


def _kolmogorov(sides: list[FloatArray]) -> float:
    real, made = (np.sort(side) for side in sides)
    return kolmogorov(real, made)


def _sums(member: Member, name: str) -> FloatArray:
    """Of each parent that has rows."""
    sums: FloatArray = np.add.reduceat(np.nan_to_num(member.values.columns[name].values), np.flatnonzero(member.first))
    return sums


def _spans(member: Member, order: str) -> FloatArray:
    at = np.nan_to_num(member.values.columns[order].values)
    heads = np.flatnonzero(member.first)
    spans: FloatArray = at[np.append(heads[1:], len(at)) - 1] - at[heads]
    return spans


def means(found: Mapping[str, Parts]) -> dict[str, dict[str, float | None]]:
    """The figures of each table: means over their parts."""
    return {
        name: {figure: float(np.mean(list(each.values()))) if each else None for figure, each in parts.items()}
        for name, parts in found.items()
    }


def evaluate(
    schema: Schema,
    real: Mapping[str, Source],
    synthetic: Mapping[str, Source],
    seed: int,
    report: Path | None,
    progress: Progress,
) -> dict[str, Any]:
    """Compare linked tables with synthetic ones. The answer is PRIVATE.

    Beside each figure stand two others, of real rows in the place of synthetic ones: of those within the declared
    bounds, all that a run looks at (`truncation`), and of a bootstrap of whole units.
    """
    with progress.phase("read and link"):
        ours, theirs = (Read.of(schema, sources, seed) for sources in (real, synthetic))
        families = ours.family(), theirs.family()
    links = ours.links
    with progress.phase("compare"):
        found = figures(links, *families)
        truncation = figures(links, families[0], ours.family(bounded=True))
        again = figures(links, families[0], bootstrap(links, families[0], seed))
    answer: dict[str, Any] = {
        "private": True,
        "seed": seed,
        "rows": {
            what: {
                name: len(family[name].parent) if name == links.root and links.kept else table.num_rows
                for name, table in read.tables.items()
            }
            for what, read, family in (("real", ours, families[0]), ("synthetic", theirs, families[1]))
        },
        "misfits": {"real": ours.misfits(), "synthetic": theirs.misfits()},
        "tables": {name: {**each, **_worst(found[name])} for name, each in means(found).items()},
        "truncation": means(truncation),
        "bootstrap": means(again),
    }
    if report is not None:
        from hedgerow.private.evaluate.linked_report import write_report

        with progress.phase("draw the page"):
            write_report(report, schema, answer, found, families)
    return answer


def _worst(parts: Parts) -> dict[str, str]:
    """Where each figure that has several parts is worst."""
    return {f"{figure}_at": max(each, key=each.__getitem__) for figure, each in parts.items() if len(each) > 1}


def sources(tables: Any, schema: Schema, what: str) -> dict[str, Source]:
    """The way into each table, if it has every column that the schema declares."""
    assert schema.linked is not None
    if schema.linked.kept:
        source = open_source(tables, schema.alone.written) if what == "real" else open_synthetic(tables)
        needed = [*schema.linked.ids(schema.linked.root), *schema.alone.columns]
        refuse_lacking(source.header(), needed, needed, f"the {what} table")
        return {"": source}
    found = {}
    for name, each in named_tables(tables, schema).items():
        alone = schema.table(name)
        source = open_source(each, alone.written) if what == "real" else open_synthetic(each)
        needed = [*alone.columns, *schema.linked.ids(name)]
        refuse_lacking(source.header(), needed, needed, f'the {what} table "{name}"')
        found[name] = source
    return found
