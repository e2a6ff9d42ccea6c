"""A graphical model: the distribution proportional to the product of e^potential over its cliques.

This is the maximum-entropy distribution among those with its clique marginals, which is what makes it the natural
answer to a set of noisy marginals (McKenna, Sheldon, Miklau 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hedgerow import _model
from hedgerow.coded.domain import Attribute, CodedTable, Counts, Domain, Marginal
from hedgerow.errors import HedgerowError, LimitError, ReleaseError
from hedgerow.models.conditioning import Factor, Given, TooRareError, combinations
from hedgerow.models.graphical.inference import Inference, TooLargeError
from hedgerow.models.graphical.junction import Plan, plan
from hedgerow.models.model import FromMarginals, State, block_rng
from hedgerow.models.stored import Stored
from hedgerow.progress import Limits

SAMPLE_ROWS = 1 << 20
"""Rows drawn once to estimate marginals that cannot be computed exactly."""
LARGEST_POTENTIAL = 1e12
"""Sums of so large potentials still tell weights apart; no fit comes near."""
MOST_WORK = 1 << 31
"""Cells that one pass over a model may go through that has taken up a condition: some seconds."""


class GraphicalModel(FromMarginals):
    """Potentials on the leaves of a plan, calibrated on construction.

    `memory` bounds the tables of `marginal` and `answers`; the model itself takes `plan.bytes`.
    """

    kind: str = "graphical"

    def __init__(self, plan: Plan, potentials: Counts, total: float, memory: int = Limits.memory):
        self.plan = plan
        self.potentials = potentials
        self._total = float(total)
        self._memory = memory
        self._network: _model.Network = plan.network()
        self._probabilities = np.empty(plan.leaf_cells)
        self.log_partition = self._network.calibrate(potentials, self._probabilities)
        if not math.isfinite(self.log_partition):
            raise HedgerowError(
                "nothing-possible", "no cell of the model has any weight: its structural zeros exclude every row."
            )
        self._inference = Inference(plan, self._network, self._probabilities, memory)

    @classmethod
    def uniform(cls, domain: Domain, total: float, cliques: Sequence[Marginal] = ()) -> GraphicalModel:
        """Every row equally likely: what is known before anything is measured."""
        structure = plan(domain, cliques)
        return cls(structure, np.zeros(structure.leaf_cells), total)

    @property
    def domain(self) -> Domain:
        return self.plan.layout.domain

    @property
    def total(self) -> float:
        return self._total

    @property
    def cliques(self) -> list[Marginal]:
        """The cliques that have a potential; attributes that were never measured stand alone."""
        return self.plan.cliques

    def potential(self, clique: Marginal) -> Counts:
        """The potential of one of `cliques`, with its axes in domain order."""
        number = self.cliques.index(clique)
        return self.plan.layout.shown(self.potentials[self.plan.leaf_places[number]], self.plan.leaves[number])

    def marginal(self, marginal: Marginal) -> Counts:
        """Expected counts, exact where that is feasible; otherwise the estimate of `sampled`."""
        layout = self.plan.layout
        axes = layout.axes(marginal)
        if tuple(marginal) != layout.marginal(axes):
            raise HedgerowError("bad-marginal", f"the attributes of {marginal} must be distinct and in domain order.")
        try:
            return layout.shown(self._total * self._inference.probabilities(axes), axes)
        except TooLargeError:
            return self.sampled(marginal)[0]

    def is_exact(self, marginal: Marginal) -> bool:
        """Whether `marginal` computes this one exactly. Costs as much as computing it."""
        try:
            self._inference.probabilities(self.plan.layout.axes(marginal))
        except TooLargeError:
            return False
        return True

    def sampled(self, marginal: Marginal) -> tuple[Counts, float]:
        """Counts of a fixed large sample, scaled to the total, and their expected L1 distance from the exact ones.

        The error is that of independent rows, Σ √(2p/πn)·total with the sample's own p; rows of a rounded sample
        are at least as even.
        """
        shape = self.domain.shape(marginal)
        cells = math.prod(shape)
        if 8 * cells > self._memory:
            raise LimitError(
                "marginal-too-large",
                f"the marginal {' × '.join(marginal)} has {cells:,} cells ({8 * cells:,} bytes); "
                f"{self._memory:,} bytes are allowed. Nothing was computed. "
                "Ask for fewer attributes or allow more memory.",
            )
        key = np.zeros(SAMPLE_ROWS, dtype=np.int64)
        for name, size in zip(marginal, shape, strict=True):
            key = key * size + self._sample[name]
        share = np.bincount(key, minlength=cells) / SAMPLE_ROWS
        error = self._total * float(np.sqrt(share * (2 / math.pi / SAMPLE_ROWS)).sum())
        return self._total * share.reshape(shape), error

    @cached_property
    def _sample(self) -> CodedTable:
        return self.draw(SAMPLE_ROWS, block_rng(0, 0))

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        """Rows whose counts follow the model as closely as whole rows can, in random order.

        Given its neighbours, each value of an attribute gets its expected count rounded up or down, slice by slice,
        spread evenly over what was drawn before, so what is conditionally independent in the model is so in the rows.
        """
        return self._draw(rows, rng, systematic=True)

    def draw_independent(self, rows: int, rng: np.random.Generator) -> CodedTable:
        """Rows drawn one by one, independently of each other."""
        return self._draw(rows, rng, systematic=False)

    def _draw(self, rows: int, rng: np.random.Generator, systematic: bool) -> CodedTable:
        table: CodedTable = {attribute.name: np.zeros(rows, dtype=attribute.dtype) for attribute in self.domain}
        words = rng.integers(1, 2**64, size=4, dtype=np.uint64)
        self._network.draw([table[name] for name in self.plan.layout.names], words.tolist(), systematic)
        return table

    def given(self, factors: Sequence[Factor]) -> Given:
        """The same potentials and the factors' logarithms, calibrated anew; left are factors that it has no room for.

        A factor inside a clique costs nothing. One that spans several becomes a clique, smallest first, as long as the
        model stays within `MOST_WORK` and its memory.
        """
        structure, taken, left = self.plan, [], []
        for factor in sorted(factors, key=lambda each: each.weights.size):
            axes = structure.layout.axes(factor.marginal)
            if structure.home(axes) is None:
                wider = plan(self.domain, [*structure.cliques, factor.marginal])
                if wider.work > MOST_WORK or wider.bytes > self._memory:
                    left.append(factor)
                    continue
                structure = wider
            taken.append(factor)
        potentials = np.zeros(structure.leaf_cells)
        for leaf, index in zip(self.plan.leaves, self.plan.leaf_places, strict=True):
            structure.add(leaf, self.potentials[index], potentials)
        layout = structure.layout
        with np.errstate(divide="ignore"):
            for factor in taken:
                weights = layout.stored(np.log(factor.weights), factor.marginal)
                structure.add(layout.axes(factor.marginal), weights, potentials)
        model = _calibrated(structure, potentials, self)
        if model is None:
            return Given(self, 0.0, left)
        return Given(model, min(1.0, math.exp(model.log_partition - self.log_partition)), left)

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """For each combination of fixed codes, rows of the model that the codes leave: its tables, cut at them."""
        names = self.domain.names
        cut = Domain(Attribute(each.name, 1) if each.name in fixed else each for each in self.domain)
        structure = plan(cut, self.cliques)
        tables = [(clique, self.potential(clique)) for clique in self.cliques]
        rows = len(next(iter(fixed.values())))
        table: CodedTable = {attribute.name: np.zeros(rows, dtype=attribute.dtype) for attribute in self.domain}
        for codes, where in combinations(fixed):
            potentials = np.zeros(structure.leaf_cells)
            for clique, held in tables:
                kept = held[tuple(slice(codes[n], codes[n] + 1) if n in codes else slice(None) for n in clique)]
                structure.add(structure.layout.axes(clique), structure.layout.stored(kept, clique), potentials)
            model = _calibrated(structure, potentials, self)
            if model is None:
                raise TooRareError(where)
            drawn = model.draw(len(where), rng)
            for name in names:
                table[name][where] = codes.get(name, drawn[name])
        return table

    def state(self) -> State:
        values = {
            "cliques": [list(clique) for clique in self.cliques],
            "order": list(self.plan.order),
            "total": self._total,
        }
        return State(self.kind, values, {"potentials": self.potentials})

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> GraphicalModel:
        """The same model: the elimination order is part of the state, so the same seed draws the same rows."""
        cliques, order = stored.marginals("cliques", domain), stored.names("order", domain)
        if len(order) != len(domain):
            raise ReleaseError("model-order", "the model of the release is damaged: its order leaves attributes out.")
        named = sum(map(len, cliques))
        stored.take(python=len(cliques) ** 2 + (len(domain) + len(cliques)) * (len(domain) + named))
        structure = plan(domain, cliques, order)
        if structure.cliques != cliques:
            raise ReleaseError(
                "model-cliques", "the model of the release is damaged: its cliques are not those that it would write."
            )
        # a drawn value is looked for in the products of its bucket, in up to 16 slices of a block
        products = sum(structure.layout.cells(step.scope) * (len(step.inputs) + 1) for step in structure.buckets)
        stored.take(memory=structure.bytes, steps=4 * structure.leaf_cells + 20 * products, rows=20 * len(domain))
        potentials = stored.floats(
            "potentials", (structure.leaf_cells,), -LARGEST_POTENTIAL, LARGEST_POTENTIAL, zeros=True
        )
        return cls(structure, potentials, stored.total())


def _calibrated(structure: Plan, potentials: Counts, like: GraphicalModel) -> GraphicalModel | None:
    """A model with the total and the memory of another; None where no row has any weight."""
    try:
        return GraphicalModel(structure, potentials, like._total, like._memory)
    except HedgerowError as problem:
        if problem.code != "nothing-possible":
            raise
        return None
