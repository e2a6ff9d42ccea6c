"""A private choice among methods: each gets an equal part, and the one whose rows are nearest is likeliest to be taken.

What is chosen by is the mean over all pairs of ‖d − n̂p‖₁, where p are shares of rows that were drawn from a method's
model: one person moves every distance by at most θ, and so their mean. The exponential mechanism chooses, charged like
any other choice. Publishing the best of several after looking at them would not be covered by the guarantee; this is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any

from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Curator, Part
from hedgerow.errors import OptionError
from hedgerow.methods.method import About, Method
from hedgerow.methods.option import values
from hedgerow.methods.shared.workloads import Listed
from hedgerow.models.model import BLOCK_ROWS, Model
from hedgerow.models.rows import CountedRows
from hedgerow.progress import Progress

CHOOSING_SHARE = 0.02
"""Of the budget, for the choice itself."""
MOST_PAIRS = 5_000
"""So many pairs, by lot where there are more, decide."""


@dataclass(frozen=True)
class Choice:
    """Several methods, of which one makes the release."""

    members: InitVar[Sequence[Method]]
    among: tuple[dict[str, Any], ...] = field(init=False)
    """What the certificate says of them: names and options."""

    def __post_init__(self, members: Sequence[Method]) -> None:
        names = [member.about.name for member in members]
        if len(set(names)) < len(names) or len(names) < 2:
            raise OptionError("bad-choice", f"a choice needs different methods, got {', '.join(names)}.")
        for member in members:
            if getattr(member, "accounting", "gdp") != "gdp":
                raise OptionError(
                    "bad-choice", f"{member.about.name} keeps books of another kind; a choice adds up μ²."
                )
        set_ = object.__setattr__
        set_(self, "among", tuple({"name": each.about.name, "options": values(each)} for each in members))
        set_(self, "_members", tuple(members))

    @property
    def about(self) -> About:
        """The choice as the certificate names it."""
        members = self._methods
        return About(
            name=",".join(member.about.name for member in members),
            title="A private choice among methods",
            summary="Runs several methods, and takes the one whose rows are nearest, by the exponential mechanism.",
            argument=(
                "Every method asks for itself, within one filter on Σμ². The mean L1 distance of a method's drawn rows "
                "over all pairs moves by at most θ, and the exponential mechanism chooses on it. "
                + " ".join(f"{member.about.name}: {member.about.argument}" for member in members)
            ),
            paper=" ".join(f"{member.about.name}: {member.about.paper}" for member in members),
            departures=tuple(said for member in members for said in member.about.departures),
            void=next((member.about.void for member in members if member.about.void), None),
        )

    @property
    def workload(self) -> str | Listed:
        """The marginals that were listed for one of them, where they were."""
        said = [getattr(member, "workload", "1") for member in self._methods]
        return next((each for each in said if not (isinstance(each, str) and each.isdigit())), "1")

    def bound(self, schema: Any) -> Choice:
        """The same choice with options in the table's own values."""
        return Choice([each.bound(schema) if hasattr(each, "bound") else each for each in self._methods])

    def run(self, curator: Curator, progress: Progress) -> Model:
        """Let each method make its model with its part, and choose."""
        choosing = curator.remaining.share(CHOOSING_SHARE)
        models: list[Model] = []
        for waiting in reversed(range(len(self._methods))):
            free = curator.remaining - choosing
            later = free - free.share(Fraction(1, waiting + 1))
            method = self._methods[len(models)]
            models.append(method.run(Part(curator, choosing + later), progress))
        with progress.phase("choose a method"):
            rows = [CountedRows(model.draw(_rows(model), curator.rng), model.total) for model in models]
            names = [method.about.name for method in self._methods]
            return models[curator.nearest(rows, self._queries(curator), names, spend=curator.remaining)]

    def _queries(self, curator: Curator) -> list[MarginalQuery]:
        """All pairs, or some by lot; of a single column that one."""
        domain = curator.domain
        marginals = list(domain.marginals(min(2, len(domain))))
        if len(marginals) > MOST_PAIRS:
            marginals = [
                marginals[lot] for lot in sorted(curator.rng.permutation(len(marginals))[:MOST_PAIRS].tolist())
            ]
        return [MarginalQuery(domain, marginal) for marginal in marginals]

    @property
    def _methods(self) -> tuple[Method, ...]:
        found: tuple[Method, ...] = self.__dict__["_members"]
        return found


def _rows(model: Model) -> int:
    return int(min(BLOCK_ROWS, max(1, round(model.total))))
