"""Independent columns: every column right by itself, no relation between columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hedgerow.curator import Curator
from hedgerow.domain import Counts
from hedgerow.measurement import Measurement, estimated_total
from hedgerow.methods.compression import compress
from hedgerow.methods.method import About
from hedgerow.models.histograms import Histograms, Part, project_to_simplex
from hedgerow.models.model import Model
from hedgerow.progress import Progress
from hedgerow.query import MarginalQuery


@dataclass(frozen=True)
class Independent:
    """One noisy histogram per attribute."""

    merge: float = field(
        default=3.0, metadata={"help": "merge values whose noisy count is below this many standard deviations"}
    )

    about: ClassVar[About] = About(
        name="independent",
        title="Independent columns",
        summary="One noisy histogram per column; columns are drawn independently of each other.",
        argument=(
            "All one-way counts are measured once in a single stack with integer noise; everything after that is "
            "post-processing of noisy counts."
        ),
        paper="The common baseline; rare values are merged as in McKenna, Miklau, Sheldon (2021), arXiv:2108.04978.",
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain = curator.domain
        with progress.phase("measure every column", len(domain)):
            # a column that is coded by two attributes (a bin and its round numbers) is measured as one
            marginals = list(dict.fromkeys(domain.marginal(attributes) for attributes in curator.columns.values()))
            queries = [MarginalQuery(domain, marginal) for marginal in marginals]
            # noise on k cells costs k·σ of L1 error; under a fixed Σ1/σ² the least total has 1/σ ∝ k^(1/3)
            weights = [query.cells ** (1 / 3) for query in queries]
            measured = curator.measure(queries, spend=curator.remaining, weights=weights)
            progress.step(len(domain))
        with progress.phase("fit", len(domain)):
            total = estimated_total(measured)
            singles = [measurement for measurement in measured if len(measurement.query.attributes) == 1]
            compression = compress(domain, singles, self.merge)
            target = compression.recoding.target()
            counts = {marginal: np.zeros(target.cells(marginal)) for marginal in marginals}
            joint = [measurement for measurement in measured if len(measurement.query.attributes) > 1]
            for measurement in (*compression.reexpress(singles), *joint):
                _place(counts[measurement.query.attributes], measurement)
            parts = [Part(marginal, project_to_simplex(counts[marginal], total)) for marginal in marginals]
            return compression.expand(Histograms(target, parts, total))


def _place(counts: Counts, measurement: Measurement) -> None:
    """Write a measurement's values into the cells that it measured."""
    assert isinstance(measurement.query, MarginalQuery)
    blocks = measurement.query.blocks
    counts[slice(None) if blocks is None else np.flatnonzero(blocks >= 0)] = measurement.values
