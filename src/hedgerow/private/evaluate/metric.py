"""What a metric is: a name, a function of two tables, what it needs, and the figures that it gives. PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.coded.domain import CodedTable, Domain, Marginal

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.private.evaluate.raw import RawTable
    from hedgerow.schema import Encoding

MOST_MARGINALS = 2_000
"""Where a table has more marginals of a degree than this, a sample of so many stands for all."""
Distance = Callable[[CodedTable, CodedTable, Domain, int], float | None]
"""(real, synthetic, domain, seed) → a number."""
Need = Literal["target", "identifiers", "scikit-learn", "to be named", "values"]
"""What has to be named, or installed; a metric that needs to be named itself is left out of "all"."""


@dataclass(frozen=True)
class Figure:
    """One number of the report."""

    title: str
    meaning: str
    unit: Literal["share", "percent", "score", "square", "factor"] = "share"
    degree: int = 0
    """Of which degree the marginals are that it is a mean over."""
    headline: bool = False
    best: Literal["low", "high", ""] = "low"
    """Which values are good; "" where neither end is."""
    about: Literal["likeness", "risk", "real rows"] = "likeness"
    """How alike the tables are, how far rows of one give away rows of the other, or the real table by itself."""
    words: str = ""
    """A sentence for readers without statistics, with {} where the value stands as a percentage."""

    def sentence(self, value: float) -> str:
        """The value in words."""
        return self.words.format(percentage(value))

    def text(self, value: float | None) -> str:
        """The value as people read it."""
        if value is None:
            return "–"
        match self.unit:
            case "percent":
                return percentage(value)
            case "score":
                return f"{value:.1f}"
            case "square":
                return f"{value:.2e}"
            case "factor":
                return f"× {math.exp(value):.2f}"
            case _:
                return f"{value:.4f}"

    def sampled(self, attributes: int) -> str:
        """Said where a sample of the marginals stands for all."""
        marginals = math.comb(attributes, min(self.degree, attributes))
        return f" (a sample of {MOST_MARGINALS:,} of {marginals:,})" if marginals > MOST_MARGINALS else ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two tables under one encoding, and what is asked about them."""

    encoding: Encoding
    real: CodedTable
    synthetic: CodedTable
    seed: int = 0
    target: str | None = None
    identifiers: tuple[str, ...] = ()
    name: str = "table"
    """What the real table is called."""
    raw_tables: tuple[RawTable, RawTable] | None = None
    """The values of the real and the synthetic rows, where they were read."""
    raw: Callable[[], tuple[pa.Table, pa.Table]] | None = None
    """The rows of both tables as they stand in their files, for scores that are defined on them."""

    @cached_property
    def values(self) -> tuple[RawTable, RawTable]:
        """The values of the real and of the synthetic rows; drawn from the codes where only those are there."""
        from hedgerow.private.evaluate.raw import drawn_from

        if self.raw_tables is not None:
            return self.raw_tables
        return drawn_from(self.real, self.encoding, self.seed), drawn_from(self.synthetic, self.encoding, self.seed)

    @property
    def domain(self) -> Domain:
        return self.encoding.domain

    @property
    def tables(self) -> tuple[CodedTable, CodedTable, Domain]:
        """The real table, the synthetic one, and their domain."""
        return self.real, self.synthetic, self.domain

    @property
    def ordered(self) -> dict[str, int]:
        """The ordered attributes, with the number of codes that are in order."""
        return {name: length for name in self.domain.names if (length := self.encoding.ordered(name)) > 0}

    def rows(self) -> tuple[pa.Table, pa.Table]:
        """The real and the synthetic rows; where their files cannot be read again, values drawn from their codes."""
        if self.raw is not None:
            return self.raw()
        rng = np.random.default_rng(self.seed)
        return self.encoding.decode(self.real, rng), self.encoding.decode(self.synthetic, rng)

    @property
    def label(self) -> Marginal:
        """The attributes of the target."""
        assert self.target is not None
        return self.encoding.attributes_of(self.target)

    @property
    def known(self) -> Marginal:
        """The attributes of the identifying columns."""
        return self.domain.marginal(x for column in self.identifiers for x in self.encoding.attributes_of(column))


@dataclass(frozen=True)
class Metric:
    """One way to compare two tables. `hedgerow.audit.check_metric` states the laws that it keeps."""

    name: str
    compute: Callable[[Comparison], Mapping[str, Any]]
    """A number (or None where there is none) for each figure; what else it tells has a name that begins with ours."""
    figures: Mapping[str, Figure]
    """What `compute` gives, by the names under which a report holds it."""
    needs: tuple[Need, ...] = field(default=())
    """What has to be named, or installed; "values" where it looks at values and not only at codes."""
    draws: bool = False
    """Whether it looks at rows that the seed draws: then another order of the rows is like another seed."""
    compared: bool = False
    """Whether a comparison computes it where no metrics are named and its needs are met."""
    beside_samples: bool = False
    """Whether the same figures for samples of the real rows stand beside its own."""


def percentage(share: float) -> str:
    """A share as people say it: 12.3 %, 0.25 %."""
    percent = 100 * share
    return f"{percent:.1f} %" if abs(percent) >= 1 or percent == 0 else f"{percent:.2g} %"


def distance(name: str, compute: Distance, figure: Figure, draws: bool = False, compared: bool = False) -> Metric:
    """The metric that is one number, of the name of the metric."""
    return Metric(name, lambda c: {name: compute(*c.tables, c.seed)}, {name: figure}, draws=draws, compared=compared)
