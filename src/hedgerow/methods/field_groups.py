"""DPFieldGroups: one joint histogram per group of columns, noised everywhere, kept where it stands out.

John Gardner, 2018 NIST Differential Privacy Synthetic Data Challenge, Match 3, fourth place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from hedgerow.coded.domain import CodedTable, Domain, Marginal
from hedgerow.coded.measurement import Measurement, Noise, Threshold
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Curator
from hedgerow.errors import LimitError, OptionError
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared.documents import attributes_of, read_list, read_names
from hedgerow.methods.shared.public import Relations, forest
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.model import Model
from hedgerow.progress import Progress

TOTAL_SHARE = 0.01
MOST_CELLS = 1 << 30
"""Every cell of a group gets noise, so a wider group would never end."""
LEAST_TOLD_SHARE = 0.5
"""Two columns are one group if one of them tells this part of what the other holds, in a public table."""
MOST_LEARNT_CELLS = 4_000_000
"""The widest group that is learnt; most groups of the original are narrower."""


def read_groups(value: Any) -> tuple[tuple[str, ...], ...]:
    """Lists of columns, or the name of a file that holds them."""
    return tuple(read_names(group, "a group") for group in read_list(value, "groups"))


@dataclass(frozen=True)
class FieldGroups(Options):
    """Joint histograms of column groups."""

    groups: tuple[tuple[str, ...], ...] = option(
        (),
        "lists of columns, as a YAML file, or learnt from --public; columns in none of them stand alone",
        read=read_groups,
    )
    threshold: float = option(
        1.9, "a cell is kept from this · noise scale · log10(cells) on (Laplace noise)", at_least=0
    )

    about: ClassVar[About] = About(
        name="field-groups",
        title="Field groups",
        summary="One joint histogram per group of columns; groups are drawn independently of each other.",
        argument=(
            "The histograms of all groups are one stack of queries, measured once: a row reaches one cell of each. "
            "Every cell gets noise, also the empty ones, and only noisy counts decide which cells are kept. The "
            "groups are given or public, never learnt from the private rows."
        ),
        paper=(
            "John Gardner, DPFieldGroups, 2018 Differential Privacy Synthetic Data Challenge, Match 3 (NIST "
            "PrivacyEngCollabSpace)."
        ),
        departures=(
            "All domains are declared; the original read those of five columns off the private rows.",
            "With δ > 0 the noise is Gaussian, and the threshold is where as many empty cells survive as under "
            "Laplace noise: ½·cells^(1 − 1.9/ln 10).",
            "A group without surviving cells is drawn uniformly from its declared domain; the original wrote zeros.",
            "1 % of the budget buys the number of rows, unless --rows gives it; the original always wrote 800,000.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain = curator.domain
        with progress.phase("group the columns"):
            marginals = self.marginals(curator)
        with progress.phase("measure every group"):
            if curator.rows is None:
                total = curator.total(spend=curator.remaining.share(TOTAL_SHARE)).total
            else:
                total = float(curator.rows)  # nothing else needs it
            noise = curator.noise(curator.remaining, [1.0] * len(marginals))[0]
            queries = [MarginalQuery(domain, marginal) for marginal in marginals]
            keep = [Threshold(self.scales(query.cells, noise)) for query in queries]
            measured = curator.measure(queries, spend=curator.remaining, keep=keep)
        parts = [part for measurement in measured for part in histogram(domain, measurement)]
        return Histograms(domain, parts, total)

    def marginals(self, curator: Curator) -> list[Marginal]:
        """The attributes of each group, given or learnt, then those of columns in none. Refuses what overlaps."""
        domain, columns = curator.domain, curator.columns
        if not self.groups and curator.public is not None:
            return learnt_groups(curator, curator.public)
        found: list[Marginal] = []
        taken: dict[str, int] = {}
        for number, group in enumerate(self.groups, start=1):
            marginal = attributes_of(group, domain, columns, f"group {number}")
            for name in marginal:
                if name in taken:
                    raise OptionError(
                        "column-in-two-groups",
                        f'group {number} holds "{name}", which group {taken[name]} already holds; a column belongs '
                        "to one group.",
                    )
                taken[name] = number
            _refuse_wide(domain, marginal, f"group {number}")
            found.append(marginal)
        alone = (domain.marginal(columns[column]) for column in columns if not set(columns[column]) & set(taken))
        return list(dict.fromkeys([*found, *alone]))

    def scales(self, cells: int, noise: Noise) -> float:
        """The threshold in noise scales: an empty cell survives with probability ½·cells^(−threshold/ln 10).

        For Laplace noise that is the original's 1.9·log10(cells); a Gaussian reaches the same probability far sooner.
        """
        if noise.kind == "laplace":
            return self.threshold * math.log10(cells)
        survives = 0.5 * cells ** (-self.threshold / math.log(10))
        return -NormalDist().inv_cdf(max(survives, 1e-300))


def learnt_groups(curator: Curator, public: CodedTable) -> list[Marginal]:
    """Columns of which one tells much of the other, joined while the joint histogram is narrow enough."""
    domain = curator.domain
    relations = Relations(domain, public, curator.rng)
    entropy = relations.entropies()
    strong = {
        pair: information
        for pair, information in relations.information().items()
        if information > LEAST_TOLD_SHARE * min(entropy[name] for name in pair)
    }
    columns = dict.fromkeys(curator.columns.values())
    trees = forest(columns, strong, lambda tree: domain.cells(tuple(tree)) <= MOST_LEARNT_CELLS).trees
    return [domain.marginal(tree) for tree in trees]


def histogram(domain: Domain, measurement: Measurement) -> Sequence[Part]:
    """The surviving cells of a group; where none survived, every combination of its codes equally likely."""
    marginal = measurement.query.attributes
    weights = np.maximum(measurement.values, 0).astype(np.float64)
    if weights.sum() > 0:
        return [Part(marginal, weights, measurement.kept)]
    return [Part((name,), np.ones(domain[name].size)) for name in marginal]


def _refuse_wide(domain: Domain, marginal: Marginal, what: str) -> None:
    cells = domain.cells(marginal)
    if cells > MOST_CELLS:
        raise LimitError(
            "too-many-cells",
            f"{what} ({' × '.join(marginal)}) has {cells:,} cells; at most {MOST_CELLS:,} can get noise. "
            "Hint: split the group, or declare bins.",
        )
