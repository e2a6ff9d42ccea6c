"""Domains that are bought with budget: open categories and private bins.

**Open categories** (`values: private`). Count, for each value, the people who hold it; a person brings at most θ
values, each once. Add Gaussian noise and keep a value iff its noisy count reaches T = ⌈1 + σ·Φ⁻¹(1 − δ/θ) + ½⌉. On
values that others hold too, one person moves at most θ counts by 1: cost θ/σ². A value that nobody else holds has a
true count of 1 and passes with probability at most δ/θ, so some such value passes with probability at most δ, which is
spent directly (Korolova et al. 2009; Wilson et al. 2020). There is no such mechanism for δ = 0: it is refused.

**Private bins** (`bins: private`). Dyadic histograms over 1,024 public cells between the declared bounds: each level is
a query, so ten levels are a stack of ten. They are made consistent (Hay et al. 2010), and bins are cut at the quantiles
of the resulting distribution. All of that is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hedgerow.budget.accounting import Charge, discovery_scale, discovery_threshold
from hedgerow.budget.amounts import DELTA_UNITS, Amount, Budget, Currency
from hedgerow.coded.domain import Counts, Domain
from hedgerow.coded.measurement import Answer, Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import SchemaError
from hedgerow.private.account import Account
from hedgerow.private.engines.engine import Engine
from hedgerow.private.mechanisms import Randomizer
from hedgerow.private.vault import Vault
from hedgerow.schema import Schema

SHARE_EACH = 0.05
"""Of the budget, for each discovered column …"""
SHARE_MOST = 0.25
"""… and for all of them together, at most."""
DELTA_SHARE = 0.1
"""Of δ, for all open categories together."""
CELLS = 1024
MOST_BINS = 32
ROWS_PER_BIN = 10.0
"""In standard deviations of a cell's noise: a bin should hold clearly more rows than noise."""


@dataclass(frozen=True)
class Discoveries:
    """What will be bought, and for how much; stated before anything is read."""

    columns: tuple[tuple[str, str], ...]
    share: float
    delta: float
    """Of each open category."""

    @classmethod
    def plan(cls, schema: Schema, budget: Budget) -> Discoveries:
        columns = tuple(schema.discoveries)
        open_columns = [name for name, kind in columns if kind == "values"]
        if open_columns and budget.currency is Currency.PURE:
            raise SchemaError(
                "discovery-needs-delta",
                f'the values of "{open_columns[0]}" are private, and discovering them needs δ > 0: with δ = 0 a value '
                "that one person holds could never be kept back with certainty. Hint: list the "
                "values, or give a --delta.",
            )
        share = min(SHARE_EACH, SHARE_MOST / len(columns)) if columns else 0.0
        return cls(columns, share, budget.delta * DELTA_SHARE / len(open_columns) if open_columns else 0.0)

    @property
    def direct_delta(self) -> Fraction:
        """δ that all open categories spend directly, exactly."""
        return Fraction(self.delta) * sum(kind == "values" for _, kind in self.columns)

    def buy(
        self, schema: Schema, engine: Engine, account: Account, mechanisms: Randomizer, answers: list[Answer]
    ) -> Schema:
        """The schema with every private domain filled in from noisy answers, which join `answers`."""
        for name, kind in self.columns:
            spend = account.whole.share(self.share)
            if kind == "values":
                amount = Amount(spend.currency, spend.units, math.floor(Fraction(self.delta) * DELTA_UNITS))
                schema = schema.with_values(name, _open_values(schema, name, amount, engine, account, mechanisms))
                answers.append(Answer())
            else:
                levels = _dyadic_counts(schema, name, spend, engine, account, mechanisms)
                schema = schema.with_bins(name, _quantiles(schema, name, levels))
                answers.append(Answer(measurements=tuple(levels)))
        return schema


def _open_values(
    schema: Schema, column: str, amount: Amount, engine: Engine, account: Account, mechanisms: Randomizer
) -> Sequence[str]:
    people = schema.max_rows_per_person
    scale = discovery_scale(amount, people)
    threshold = discovery_threshold(scale, amount, people)
    asked = {"column": column, "threshold": threshold}
    account.debit(Charge("discovery", "discover", people, (1.0,), scale, amount, (asked,)))
    return mechanisms.discover(engine.people_per_value(schema, column), Noise("gaussian", scale), threshold)


def _dyadic_counts(
    schema: Schema, column: str, spend: Amount, engine: Engine, account: Account, mechanisms: Randomizer
) -> list[Measurement]:
    declared = schema.to_dict()
    about = declared["columns"][column]
    cells = min(CELLS, about["max"] - about["min"] + 1) if about["type"] == "integer" else CELLS
    alone = {key: declared[key] for key in ("person", "max_rows_per_person") if key in declared}
    encoding = Schema.from_dict({**alone, "columns": {column: {**about, "bins": cells}}}).encoding()
    engine.prepare(encoding)
    vault = Vault(engine, encoding.domain, encoding.rows_per_person, account, mechanisms, np.random.default_rng(0))
    return vault.measure(_dyadic(encoding.domain, cells), spend=spend)


def _quantiles(schema: Schema, column: str, levels: Sequence[Measurement]) -> list[float]:
    """Cuts between bins that hold about equally many rows, as far as the noise lets see."""
    about = schema.to_dict()["columns"][column]
    low, high = float(about["min"]), float(about["max"])
    finest = _consistent(levels)
    total = finest.sum()
    bins = int(np.clip(total / (ROWS_PER_BIN * levels[0].std), 1, MOST_BINS))
    below = np.cumsum(finest)
    # the nearest rising curves from above and below; clipping single cells would pile up noise where nobody is
    rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
    cuts = np.searchsorted(rising, total * np.arange(1, bins) / bins) + 1
    return [low + (high - low) * cut / len(finest) for cut in cuts]


def _dyadic(domain: Domain, cells: int) -> list[MarginalQuery]:
    """Halves, quarters, … of the cells; codes beyond them (special, missing, other) are not counted."""
    name = domain.names[0]
    codes = np.arange(domain[name].size)
    depth = max(1, math.ceil(math.log2(cells)))
    return [
        MarginalQuery(domain, (name,), blocks=np.where(codes < cells, codes * (1 << level) // cells, -1))
        for level in range(1, depth + 1)
    ]


def _consistent(levels: Sequence[Measurement]) -> Counts:
    """The finest counts that fit all levels best in least squares (each level has the same noise).

    Hay, Rastogi, Miklau, Suciu (2010), §4: average each node with the sum of its children on the way up, then share
    out on the way down what the children's sum lacks.
    """
    sizes = [1 << (index + 1) for index in range(len(levels))]
    noisy = [np.append(m.dense(), np.zeros(size - m.query.cells)) for m, size in zip(levels, sizes, strict=True)]
    upward = [noisy[-1]]
    for level, counts in enumerate(reversed(noisy[:-1]), start=2):
        weight = (2**level - 2 ** (level - 1)) / (2**level - 1)
        upward.append(weight * counts + (1 - weight) * upward[-1].reshape(-1, 2).sum(axis=1))
    down = upward[-1]
    for below in reversed(upward[:-1]):
        lacking = (down - below.reshape(-1, 2).sum(axis=1)) / 2
        down = below + np.repeat(lacking, 2)
    return down
