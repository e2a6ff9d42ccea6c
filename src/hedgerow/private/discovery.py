"""Domains that are bought with budget: open categories, and where to cut numbers.

**Open categories** (`values: private`). Count, for each value, the people who hold it; a person brings at most θ
values, each once. Add Gaussian noise and keep a value iff its noisy count reaches T = ⌈1 + σ·Φ⁻¹(1 − δ/θ) + ½⌉. On
values that others hold too, one person moves at most θ counts by 1: cost θ/σ². A value that nobody else holds has a
true count of 1 and passes with probability at most δ/θ, so some such value passes with probability at most δ, which is
spent directly (Korolova et al. 2009; Wilson et al. 2020). There is no such mechanism for δ = 0: it is refused.

**Cuts** (`hedgerow.private.cuts`). A public tree over the declared range is descended level by level. A level counts,
for every column that still has something to split, the whole line in the parts that it has by then: one marginal query
each, in one stack. A row reaches at most one part of each, so a level costs what any stack of marginals costs; what is
split next, and how the rest is shared out, follows from noisy counts. Leaves and cells are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from hedgerow.budget.accounting import Charge, discovery_scale, discovery_threshold
from hedgerow.budget.amounts import DELTA_UNITS, Amount, Budget, Currency
from hedgerow.coded.measurement import Answer, Noise
from hedgerow.errors import SchemaError
from hedgerow.private.account import Account
from hedgerow.private.cuts.growing import Growing
from hedgerow.private.cuts.habits import habit, kept
from hedgerow.private.cuts.settling import settle
from hedgerow.private.engines.engine import Engine
from hedgerow.private.mechanisms import Randomizer
from hedgerow.private.vault import Vault
from hedgerow.schema import Encoding, Schema
from hedgerow.schema.endings import ENDING
from hedgerow.schema.fits import can_misfit, looked_at
from hedgerow.schema.leaves import Leaf
from hedgerow.schema.probing import Probing

SHARE_OF_LOOK = 0.02
"""Of the budget, for a first look at what does not fit …"""
SHARE_EACH = 0.05
"""… for each open category …"""
SHARE_OF_CUTS = 0.15
"""… for all cuts together where few lines are cut …"""
FEW_LINES = 6
MOST_OF_CUTS = 0.2
"""… growing with the root of their number up to this …"""
SHARE_OF_QUALITY = 0.05
"""… for the quality of what came out, unless another share is asked for …"""
SHARE_MOST = 0.25
"""… and for everything that is not the method's, at most."""
DELTA_SHARE = 0.1
"""Of δ, for all open categories together."""
AHEAD = 4
"""A level of a line is paid for as if no more than so many were left: most lines end sooner than they could."""

Purpose = Literal["look", "values", "cuts", "quality"]


@dataclass(frozen=True)
class Allotment:
    """What is set aside beside the method: a share of the budget, for some columns and with some δ that is spent
    directly where a domain is bought.
    """

    purpose: Purpose
    columns: tuple[str, ...]
    share: float
    delta: float = 0.0

    def __str__(self) -> str:
        named = ", ".join(self.columns)
        what = {
            "look": "a look at what does not fit",
            "values": f"the values of {named}",
            "cuts": f"where to cut {named}",
            "quality": "how far the synthetic table is from the private one",
        }
        direct = f" and δ = {self.delta:.3g}" if self.delta else ""
        return f"{what[self.purpose]}: {self.share:.1%} of the budget{direct}"


@dataclass(frozen=True)
class Discoveries:
    """What will be bought, and for how much; stated before anything is read.

    This is the one place that allots shares and direct δ: whatever is to be bought before the method starts, or after
    it, gets an `Allotment` of its own in `plan`, and together they stay within SHARE_MOST.
    """

    allotments: tuple[Allotment, ...] = ()

    @classmethod
    def plan(cls, schema: Schema, budget: Budget, quality: float = 0.0) -> Discoveries:
        open_columns = tuple(name for name, kind in schema.discoveries if kind == "values")
        if open_columns and budget.currency is Currency.PURE:
            raise SchemaError(
                "discovery-needs-delta",
                f'the values of "{open_columns[0]}" are private, and discovering them needs δ > 0: with δ = 0 a value '
                "that one person holds could never be kept back with certainty. Hint: list the "
                "values, or give a --delta.",
            )
        each = budget.delta * DELTA_SHARE / len(open_columns) if open_columns else 0.0
        asked = [Allotment("look", looked_at(schema), SHARE_OF_LOOK)] if can_misfit(schema) else []
        asked += [Allotment("values", (name,), SHARE_EACH, each) for name in open_columns]
        cut_columns = tuple(name for name, kind in schema.discoveries if kind == "cuts")
        if cut_columns:
            lines = sum(len(schema.waiting(name).trees()) for name in cut_columns)
            asked.append(Allotment("cuts", cut_columns, _share_of_cuts(lines)))
        if quality:
            asked.append(Allotment("quality", (), quality))
        return cls(tuple(_within(asked, SHARE_MOST)))

    @property
    def bought(self) -> tuple[Allotment, ...]:
        """What the domains are bought with."""
        return tuple(each for each in self.allotments if each.purpose in ("values", "cuts"))

    @property
    def look_share(self) -> float:
        """The part of the budget that a first look is given; nothing where nothing can misfit."""
        return self._share("look")

    @property
    def quality_share(self) -> float:
        """The part of the budget that is kept for the quality of what comes out."""
        return self._share("quality")

    def _share(self, purpose: Purpose) -> float:
        return sum(each.share for each in self.allotments if each.purpose == purpose)

    @property
    def direct_delta(self) -> Fraction:
        """δ that all open categories spend directly, exactly."""
        return sum((Fraction(allotment.delta) for allotment in self.allotments), Fraction(0))

    def buying(self, schema: Schema, engine: Engine, account: Account, mechanisms: Randomizer) -> Buying:
        """The purchase of every private domain of a schema, out of what the look has left."""
        shares = [each.share / (1 - self.look_share) for each in self.bought]
        return Buying(self.bought, shares, schema, engine, account, mechanisms)


class Buying:
    """Domains on their way from noisy answers into a schema."""

    def __init__(
        self,
        allotments: Sequence[Allotment],
        shares: Sequence[float],
        schema: Schema,
        engine: Engine,
        account: Account,
        mechanisms: Randomizer,
    ):
        self._asked = list(zip(allotments, shares, strict=True))
        self._schema = schema
        self._engine, self._account, self._mechanisms = engine, account, mechanisms
        self._cutting = Cutting(schema)

    def encoding(self) -> Encoding:
        """What the engine is prepared for first, before anything is charged, so that what cannot be read shows."""
        return self._cutting.encoding()

    def bought(self, answers: list[Answer]) -> Schema:
        """The schema with every private domain filled in from noisy answers, which join `answers`."""
        schema = self._schema
        for allotment, share in self._asked:
            spend = self._account.whole.share(share)
            if allotment.purpose == "values":
                (name,) = allotment.columns
                amount = Amount(spend.currency, spend.units, math.floor(Fraction(allotment.delta) * DELTA_UNITS))
                values = _open_values(schema, name, amount, self._engine, self._account, self._mechanisms)
                schema = schema.with_values(name, values)
                answers.append(Answer())
            else:
                answers += self._cutting.descend(spend, self._engine, self._account, self._mechanisms)
                schema = self._cutting.settled(schema)
        return schema


def _share_of_cuts(lines: int) -> float:
    return min(MOST_OF_CUTS, SHARE_OF_CUTS * max(1.0, math.sqrt(lines / FEW_LINES)))


def _within(asked: Sequence[Allotment], most: float) -> list[Allotment]:
    """The same allotments, all of them smaller where together they are more than `most`."""
    total = sum(allotment.share for allotment in asked)
    fits = 1.0 if total <= most else most / total
    return [Allotment(each.purpose, each.columns, each.share * fits, each.delta) for each in asked]


class Cutting:
    """The columns of a schema that wait to be cut, while their trees are descended."""

    def __init__(self, schema: Schema):
        self._schema = schema.with_stand_ins()
        self._waiting = {name: schema.waiting(name) for name, kind in schema.discoveries if kind == "cuts"}
        self._lines = {
            name: {suffix: Growing(f"{name}{suffix}", tree) for suffix, tree in column.trees().items()}
            for name, column in self._waiting.items()
        }
        self._encoding: Encoding = self._schema.encoding()

    def encoding(self) -> Encoding:
        """Codes of what is still descended in runs as fine as the next levels need, of all else as it stands."""
        starts = {
            name: {suffix: line.look() for suffix, line in lines.items() if line.levels_left}
            for name, lines in self._lines.items()
        }
        self._encoding = Probing(self._schema, self._waiting, {name: runs for name, runs in starts.items() if runs})
        return self._encoding

    def descend(self, spend: Amount, engine: Engine, account: Account, mechanisms: Randomizer) -> list[Answer]:
        """Count level by level, each line of each level for the same part of what is left of `spend`.

        Lines that end early leave more for the others; what no level needs stays in the account.
        """
        answers: list[Answer] = []
        while lines := [line for each in self._lines.values() for line in each.values() if line.levels_left]:
            if not all(line.in_sight for line in lines):
                engine.prepare(self.encoding())
            domain, people = self._encoding.domain, self._encoding.rows_per_person
            vault = Vault(engine, domain, people, account, mechanisms, np.random.default_rng(0))
            part = Fraction(len(lines), sum(min(line.levels_left, AHEAD) for line in lines))
            level = spend.share(part)
            for line, measured in zip(
                lines, vault.measure([each.query(domain) for each in lines], spend=level), strict=True
            ):
                line.answer(measured)
            spend -= level
            answers += vault.answers
        return answers

    def settled(self, schema: Schema) -> Schema:
        """The schema with every line in cells; what was counted to find them is forgotten."""
        cells: dict[str, dict[str, list[list[Leaf]]]] = {}
        likely: dict[str, Mapping[str, float]] = {}
        while self._lines:
            name = next(iter(self._lines))
            lines = self._lines.pop(name)
            cells[name] = {key: settle(line.root, line.tree.rhythm) for key, line in lines.items() if key != ENDING}
            if ENDING in lines:
                line, endings = self._waiting[name].habits()
                cells[name][line] = kept(lines[ENDING].root, cells[name][line], endings)
                likely[name] = habit(lines[ENDING].root, cells[name][line], endings)
        return schema.with_cuts(cells, likely)


def _open_values(
    schema: Schema, column: str, amount: Amount, engine: Engine, account: Account, mechanisms: Randomizer
) -> Sequence[str]:
    people = schema.max_rows_per_person
    scale = discovery_scale(amount, people)
    threshold = discovery_threshold(scale, amount, people)
    asked = {"column": column, "threshold": threshold}
    account.debit(Charge("discovery", "discover", people, (1.0,), scale, amount, (asked,)))
    return mechanisms.discover(engine.people_per_value(schema, column), Noise("gaussian", scale), threshold)
