"""What a release will be worth, foretold from public quantities alone: no table is opened, nothing is spent.

Two things make the default method's table differ from the private one. *Noise*: d columns share the budget, and a
marginal of F free cells spreads it over as many counts, so an error begins as N = √d·F^w/(μ·n/θ), and grows with its
root only where it is large, because the method then denoises, merges cells and measures fewer relations. *Detail*: rows
that are drawn from a model differ from real ones as two samples do, √(F/n), except where one model holds the whole
table. F is the mean of ∏(size − 1) over all marginals of a degree, n the rows, θ those of a person, μ what is left for
the method. Triples lose so many times what pairs lose, by either. How strongly columns depend on each other nobody
knows beforehand; it is what makes a forecast right within a factor, and no better.

The constants were fitted by `python -m bench.plan` to runs of `hedge` on public tables; docs/studies/plan.md has what
constants that were fitted to all other tables say of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hedgerow.budget.accounting import whole
from hedgerow.budget.amounts import Budget
from hedgerow.errors import OptionError
from hedgerow.markup import Markup
from hedgerow.methods.hedge import FEW_CODES, MOST_PICKS_FACTOR, Hedge
from hedgerow.methods.shared.blocks import FEWEST_BLOCKS
from hedgerow.pages.charts import Spread, curves
from hedgerow.private.discovery import SHARE_OF_QUALITY, Discoveries
from hedgerow.schema import Schema


class Law(NamedTuple):
    """The constants of a degree: noise scale·N/(1 + √(bend·N)) with N = √d·F^width·θ/(μ·n), and detail·√(F/n)."""

    scale: float
    bend: float
    width: float
    detail: float


class Laws(NamedTuple):
    """Those of columns and of pairs; and how many times the pairs' noise and detail triples lose."""

    columns: Law
    pairs: Law
    more_noise: float
    more_detail: float


LAWS = Laws(Law(1.788, 142.6, 0.7976, 0.0305), Law(6.937, 1082.0, 0.4992, 0.0928), 1.685, 3.511)
SPREAD = 3.0
"""The range that is given for triples, from end to end, as a factor."""
HELD = 1 << 19
"""Cells of a table that one model holds whole, so that no detail is lost."""
CUT_CELLS = 40
CELLS_PER_SIGNAL = 0.45
"""A column that is cut privately comes out in about this times √(μ·n/θ) cells, up to so many."""
TOO_WIDE = 0.25
"""A column is too wide where noise alone would put so many of the rows into wrong cells."""
GOOD, ROUGH, NOISE = 0.03, 0.08, 0.25
"""Distances of pairs up to which a table is good for most uses, good for rough ones, and mostly noise beyond."""


@dataclass(frozen=True)
class Table:
    """What matters of a table before it is seen: the sizes of its coded columns, its rows, and those of a person."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: int
    rows_per_person: int = 1

    def free(self, degree: int) -> float:
        """The mean of ∏(size − 1) over all marginals of so many columns; of the widest where there are fewer."""
        degree = min(degree, len(self.sizes))
        # elementary symmetric polynomials of the sizes less 1, one column after the other
        sums = [1.0] + [0.0] * degree
        for size in self.sizes:
            for order in range(degree, 0, -1):
                sums[order] += max(1, size - 1) * sums[order - 1]
        return sums[degree] / math.comb(len(self.sizes), degree)

    @property
    def is_held(self) -> bool:
        """Whether one model holds the whole table."""
        return math.prod(self.sizes) <= HELD

    def without_widest(self, count: int) -> Table:
        """The same table without its widest columns."""
        order = sorted(range(len(self.sizes)), key=lambda index: self.sizes[index])
        kept = sorted(order[: len(order) - count])
        return replace(self, names=tuple(self.names[i] for i in kept), sizes=tuple(self.sizes[i] for i in kept))


@dataclass(frozen=True)
class Forecast:
    """What to expect at one ε: mean total variation distances, and how many relations can be learnt."""

    epsilon: float
    columns: float
    pairs: float
    triples: tuple[float, float]
    """A range: it depends most on what the columns have to do with each other."""
    relations: int
    """Marginals of several columns that the budget can measure above their noise."""
    too_wide: tuple[str, ...]

    @property
    def is_noise(self) -> bool:
        """Whether most of what comes out would be noise."""
        return self.pairs > NOISE


class Expected(NamedTuple):
    """Mean distances of columns, pairs and triples from the private ones."""

    columns: float
    pairs: float
    triples: float


def expected(table: Table, mu: float, laws: Laws = LAWS) -> Expected:
    """What to expect where the method has μ."""
    columns = _losses(table, mu, 1, laws.columns)
    pairs = _losses(table, mu, 2, laws.pairs)
    triples = (laws.more_noise * pairs[0], laws.more_detail * pairs[1])
    return Expected(*(min(1.0, sum(each)) for each in (columns, pairs, triples)))


def _losses(table: Table, mu: float, degree: int, law: Law) -> tuple[float, float]:
    """What noise takes, and what detail."""
    free = table.free(degree)
    noise = math.sqrt(len(table.sizes)) * free**law.width * table.rows_per_person / (mu * table.rows)
    detail = 0.0 if table.is_held else law.detail * math.sqrt(min(1.0, free / table.rows))
    return law.scale * noise / (1 + math.sqrt(law.bend * noise)), detail


def relations(table: Table, mu: float) -> int:
    """How many marginals `hedge` measures: as many as it plans, or as can be told from noise in the fewest blocks."""
    method, count = Hedge(), len(table.sizes)
    mean = sum(table.sizes) / count
    planned = method.picks * count * min(MOST_PICKS_FACTOR, max(1.0, FEW_CODES / mean))
    most_noise = method.noise * table.rows / FEWEST_BLOCKS / math.sqrt(2 / math.pi)  # of a block, a standard deviation
    affordable = method.measuring * mu**2 * (most_noise / table.rows_per_person) ** 2
    return int(min(planned, affordable, math.comb(count, 2) + math.comb(count, 3)))


def forecast(schema: Schema, budget: Budget, rows: int, quality: float = SHARE_OF_QUALITY, rivals: int = 1) -> Forecast:
    """What to expect of the default method on a table of so many rows; of several methods each gets its part."""
    mu = method_mu(schema, budget, quality) / math.sqrt(rivals)
    return foretold(table_of(schema, rows, mu), mu, budget.epsilon)


def foretold(table: Table, mu: float, epsilon: float) -> Forecast:
    """The forecast for a table and what is left for the method."""
    columns, pairs, triples = expected(table, mu)
    root = math.sqrt(SPREAD)
    return Forecast(
        epsilon,
        columns,
        pairs,
        (triples / root, min(1.0, triples * root)),
        relations(table, mu),
        _too_wide(table, mu),
    )


def method_mu(schema: Schema, budget: Budget, quality: float) -> float:
    """μ that is left for the method when everything that is set aside beside it is."""
    if budget.delta == 0:
        raise OptionError(
            "plan-needs-delta", "a plan was fitted to runs with Gaussian noise; it foretells nothing for --delta 0."
        )
    beside = Discoveries.plan(schema, budget, quality)
    amount = whole(budget, beside.direct_delta)
    return math.sqrt(amount.value * (1 - sum(each.share for each in beside.allotments)))


def table_of(schema: Schema, rows: int, mu: float) -> Table:
    """The table as far as the schema and a guess at its rows tell, with stand-ins for domains that are still to buy."""
    signal = mu * rows / schema.max_rows_per_person
    cells = max(1, min(CUT_CELLS, round(CELLS_PER_SIGNAL * math.sqrt(signal))))
    domain = _plain(schema).with_stand_ins(cells).encoding().domain
    names, sizes = tuple(domain.names), tuple(attribute.size for attribute in domain)
    return Table(names, sizes, rows, schema.max_rows_per_person)


def _plain(schema: Schema) -> Schema:
    """The schema without groups that wait for a public table: their columns stand by themselves."""
    if not schema.public_groups:
        return schema
    data = schema.to_dict()
    data["groups"] = [group for group in data["groups"] if group["allowed"] != "public"]
    return Schema.from_dict(data)


def _too_wide(table: Table, mu: float) -> tuple[str, ...]:
    """Columns whose noise, were all columns measured alike with everything, is beyond TOO_WIDE of the rows."""
    noise = math.sqrt(2 / math.pi) * math.sqrt(len(table.sizes)) * table.rows_per_person / mu
    wide = [(size, name) for name, size in zip(table.names, table.sizes, strict=True)]
    return tuple(name for size, name in sorted(wide, reverse=True) if size * noise / 2 > TOO_WIDE * table.rows)


def alternatives(schema: Schema, budget: Budget, rows: int, quality: float = SHARE_OF_QUALITY) -> dict[str, Forecast]:
    """What else could be done at this ε, in words, and what it would give."""
    mu = method_mu(schema, budget, quality)
    table = table_of(schema, rows, mu)
    found = {}
    half = len(table.sizes) // 2
    if half:
        found[f"without the {half} widest of {len(table.sizes)} columns"] = table.without_widest(half)
    if table.rows_per_person > 1:
        found["with max_rows_per_person: 1, were hardly a row lost by it"] = replace(table, rows_per_person=1)
    told = {name: foretold(other, mu, budget.epsilon) for name, other in found.items()}
    twice = Budget(2 * budget.epsilon, budget.delta)
    return {**told, f"with ε = {twice.epsilon:g}": forecast(schema, twice, rows, quality)}


def cost_of_choice(schema: Schema, budget: Budget, rows: int, rivals: int, quality: float = SHARE_OF_QUALITY) -> float:
    """By how much the pairs' error grows where so many methods share the budget: what the best must be better by."""
    alone, shared = (forecast(schema, budget, rows, quality, count).pairs for count in (1, rivals))
    return shared / alone - 1


def advice(told: Sequence[Forecast], others: Mapping[str, Forecast]) -> str:
    """One sentence on what to do; `others` are the alternatives at the largest ε."""
    good = [each for each in told if each.pairs <= GOOD and not each.is_noise]
    if good:
        least = min(good, key=lambda each: each.epsilon)
        return f"ε = {least.epsilon:g} should do: pairs of columns come out within about {100 * least.pairs:.1f} %."
    name, best = min(others.items(), key=lambda other: other[1].pairs)
    instead = f"{name}, pairs would come out within about {100 * best.pairs:.1f} %."
    rough = [each for each in told if each.pairs <= ROUGH and not each.is_noise]
    if rough:
        least = min(rough, key=lambda each: each.epsilon)
        said = f"ε = {least.epsilon:g} gives a table for rough questions (pairs within about {100 * least.pairs:.0f} %)"
    elif all(each.is_noise for each in told):
        said = "At every ε given here most of the table would be noise"
    else:
        said = "Trust single columns and little else at these ε"
    return f"{said}; at the largest ε given, {instead}"


def drawn(told: Sequence[Forecast]) -> Markup:
    """Expected error against ε: columns and pairs within the factor that forecasts are right by, triples in a range."""
    series = {
        "columns": [_spread(each, "columns", each.columns / 2, 2 * each.columns) for each in told],
        "pairs": [_spread(each, "pairs", each.pairs / 2, 2 * each.pairs) for each in told],
        "triples": [_spread(each, "triples", *each.triples) for each in told],
    }
    return curves(series, {}, "Expected error against ε", "ε", "share of rows in wrong cells")


def _spread(told: Forecast, what: str, low: float, high: float) -> Spread:
    said = f"{what} at ε = {told.epsilon:g}: {100 * low:.2g} % to {100 * high:.2g} %"
    return Spread(told.epsilon, (low * high) ** 0.5, low, high, said)
