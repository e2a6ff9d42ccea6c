"""Rows that have the marginals of their model more nearly than drawing alone gives them.

A draw follows the model's cliques as closely as whole rows can. Marginals that lie in no clique are right up to chance,
and in a table of a few ten thousand rows that chance can be as large as what noise did. So rows exchange single values
afterwards where the marginals that matter come nearer to the model's own by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, Domain, Marginal
from hedgerow.errors import ReleaseError
from hedgerow.models.conditioning import Factor, Given, completed, given
from hedgerow.models.graphical.inference import EXACT_WORK
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import FromMarginals, Model, State
from hedgerow.models.records import Adjusted, Target, updated
from hedgerow.models.stored import Stored

MOST_PASSES = 12
"""Partners tried for every row and attribute, at most: later ones gain little."""
VISITS = 1 << 29
"""Cells looked at for a draw, in all: 3 CPU seconds on adult, 15 where 337,000 rows do not fit into caches."""
LEAST_PASSES = 2
"""Draws of so many rows that there is no time for so many stay as they are: their chance is small. This bounds memory
too: a row takes four bytes for each marginal."""
MOST_MARGINALS, MOST_CELLS = 6_000, 1 << 23
"""Marginals that are looked at (all pairs of 110 columns), and their cells together."""
SWEEPS = 6
"""Times that a marginal is brought in line with what is known of its parts."""


class Evened(FromMarginals):
    """`model`, whose rows exchange values until they are near its `marginals`. No exchange changes a column.

    What an `Adjusted` model says of a marginal is what the model inside says of it, with the targets of the former.
    """

    kind = "evened"

    def __init__(self, model: GraphicalModel | Adjusted, marginals: Sequence[Marginal]):
        self.model = model
        self.marginals = tuple(marginals)

    @property
    def domain(self) -> Domain:
        return self.model.domain

    @property
    def total(self) -> float:
        return self.model.total

    def marginal(self, marginal: Marginal) -> Counts:
        return self.model.marginal(marginal)

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        drawn = self.model.draw(rows, rng)
        passes = min(MOST_PASSES, VISITS // max(1, visits(self.marginals, rows)))
        if rows and passes >= LEAST_PASSES:
            codes = {name: column.astype(np.uint32) for name, column in drawn.items()}
            updated(codes, self.domain, self._goals, 0, passes, rng)
            drawn = {name: codes[name].astype(self.domain[name].dtype) for name in self.domain.names}
        return drawn

    @cached_property
    def _goals(self) -> list[Target]:
        inside, known = (self.model.model, self.model.targets) if isinstance(self.model, Adjusted) else (self.model, ())
        goals = [raked(Target.of(each, np.maximum(inside.marginal(each), 0.0)), known) for each in self.marginals]
        return [*goals, *known]

    def given(self, factors: Sequence[Factor]) -> Given:
        """Rows given something are those of the model inside."""
        return given(self.model, factors)

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """By the model inside: rows whose values are given cannot exchange them."""
        return completed(self.model, fixed, {}, len(next(iter(fixed.values()))), rng)

    def state(self) -> State:
        values = {"marginals": [list(marginal) for marginal in self.marginals]}
        return self.model.state().held_by(self.kind, values, {})

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Evened:
        from hedgerow.models import read

        marginals = stored.marginals("marginals", domain)
        cells = sum(domain.cells(marginal) for marginal in marginals)
        if len(marginals) > MOST_MARGINALS or cells > MOST_CELLS:
            raise ReleaseError("model-evened", "the rows of the release are evened in more than such a model is.")
        stored.take(memory=48 * cells, steps=EXACT_WORK * len(marginals) + 4 * VISITS)
        model = read(domain, stored.held())
        if not isinstance(model, GraphicalModel) and not (
            isinstance(model, Adjusted) and isinstance(model.model, GraphicalModel)
        ):
            raise ReleaseError("model-evened", "the rows of the release are evened by a model that has no goals.")
        return cls(model, marginals)


def evened(model: GraphicalModel | Adjusted, *offers: Sequence[Marginal]) -> Model:
    """The model, evened in the first of several lists of marginals that is not too long for as many rows as it counts.

    Where some cells cannot occur an exchange might fill them, so rows stay as they are.
    """
    domain = model.domain
    for marginals in offers:
        few = 0 < len(marginals) <= MOST_MARGINALS and sum(map(domain.cells, marginals)) <= MOST_CELLS
        if few and not domain.support and LEAST_PASSES * visits(marginals, round(model.total)) <= VISITS:
            return Evened(model, marginals)
    return model


def raked(target: Target, known: Sequence[Target]) -> Target:
    """The nearest to a distribution (least KL) that has the known distributions of its parts, by fitting one after the
    other (Deming, Stephan 1940).
    """
    parts = [part for part in known if set(part.marginal) <= set(target.marginal)]
    shares = target.shares
    for _ in range(SWEEPS if len(parts) > 1 else len(parts)):
        for part in parts:
            others = tuple(axis for axis, name in enumerate(target.marginal) if name not in part.marginal)
            held = shares.sum(axis=others)
            factor = np.divide(part.shares, held, out=np.zeros_like(held), where=held > 0)
            shares = shares * np.expand_dims(factor, others)
    return Target.of(target.marginal, shares) if shares.sum() > 0 else target


def visits(marginals: Sequence[Marginal], rows: int) -> int:
    """Cells that are looked at where every row tries one partner for every attribute."""
    return rows * sum(map(len, marginals))
