"""MWEM with a graphical model as published: so many rounds as attributes, each on the marginal that is furthest off.

Hardt, Ligett, McSherry (2012), §3.3; McKenna, Sheldon, Miklau (2019). Constants are those of the authors' program
(private-pgm, `mwem+pgm.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.mwem import MWEM as OURS
from hedgerow.methods.option import Options
from hedgerow.methods.shared import options
from hedgerow.methods.shared.rounds import fitting
from hedgerow.methods.shared.workloads import workload_of
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.model import Model
from hedgerow.progress import Progress


@dataclass(frozen=True)
class MWEM(Options):
    """A fixed number of rounds, as published."""

    workload: str = options.workload("2")
    measuring: float = options.measuring(0.9)
    size: float = options.size(25.0, when=", reached in the last round")

    accounting: ClassVar[str] = "zcdp"
    about: ClassVar[About] = replace(
        OURS.about,
        name="mwem:paper",
        title="MWEM with a graphical model, as published",
        departures=("Noise is drawn on whole counts.",),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain, wanted = curator.domain, list(workload_of(curator, self.workload).weights)
        spend = curator.remaining.share(Fraction(1, len(domain)))
        model = fit(domain, [], total=1.0, limits=progress.limits)
        measured: list[Measurement] = []
        with progress.phase("choose and measure marginals", len(domain)):
            for number in range(1, len(domain) + 1):
                if number == len(domain) or progress.out_of_time():
                    spend = curator.remaining
                small = fitting(domain, model.cliques, wanted, self.size * number / len(domain))
                queries = [MarginalQuery(domain, marginal) for marginal in small]
                measuring = spend.share(self.measuring)
                candidates = [Candidate(query, penalty=query.cells) for query in queries]
                chosen = curator.select(candidates, against=model, spend=spend - measuring)
                measured += curator.measure([chosen.query], spend=measuring)
                model = fit(domain, measured, start=model, limits=progress.limits)
                progress.step()
                if not curator.remaining:
                    break
        return model
