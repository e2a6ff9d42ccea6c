"""Independent columns: every column right by itself, no relation between columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow.coded.domain import Counts, Domain
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.curator import Curator
from hedgerow.methods.method import About
from hedgerow.methods.shared.start import measure_columns
from hedgerow.models.denoising import denoised
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.histograms import Histograms, Part, project_to_simplex
from hedgerow.models.model import Model
from hedgerow.progress import Progress


@dataclass(frozen=True)
class Independent:
    """One noisy histogram per attribute."""

    relations: ClassVar[int] = 0
    about: ClassVar[About] = About(
        name="independent",
        title="Independent columns",
        summary="One noisy histogram per column; columns are drawn independently of each other.",
        argument=(
            "All one-way counts are measured once in a single stack with integer noise; everything after that is "
            "post-processing of noisy counts."
        ),
        paper="The common baseline; noise is smoothed away where Stein's risk estimate (1981) says that it pays.",
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain = curator.domain
        with progress.phase("measure every column", len(domain)):
            # a column that is coded by two attributes (a bin and its round numbers) is measured as one
            marginals = list(dict.fromkeys(domain.marginal(attributes) for attributes in curator.columns.values()))
            measured = measure_columns(curator, marginals, curator.remaining)
            progress.step(len(domain))
        with progress.phase("fit", len(domain)):
            total = estimated_total(measured)
            parts = [
                Part(measurement.query.attributes, _counts(domain, measurement, total)) for measurement in measured
            ]
            if not domain.support:
                return Histograms(domain, parts, total)
            # as independent as the rules allow
            known = [
                Measurement(each.query, np.rint(part.weights).astype(np.int64).reshape(-1), each.noise)
                for each, part in zip(measured, parts, strict=True)
            ]
            return fit(domain, known, total=total, limits=progress.limits)


def _counts(domain: Domain, measurement: Measurement, total: float) -> Counts:
    """A histogram without its noise; one of two attributes is only made possible."""
    names = measurement.query.attributes
    if len(names) == 1:
        return denoised(measurement, domain[names[0]], total).counts
    return project_to_simplex(measurement.dense(), total)
