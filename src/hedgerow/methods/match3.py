"""The winner of Match 3: every column, then a list of marginals chosen beforehand, then a graphical model.

Ryan McKenna (rmckenna), 2018 NIST Differential Privacy Synthetic Data Challenge, Match 3, first place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from hedgerow.coded.domain import CodedTable, Domain, Marginal
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import Curator
from hedgerow.errors import OptionError
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.compression import Compression, compress
from hedgerow.methods.shared.documents import attributes_of, read_list, read_names
from hedgerow.methods.shared.public import Relations, forest
from hedgerow.methods.shared.start import measure_one_ways
from hedgerow.methods.shared.support import Families, check_codes, codes_of, read_families, supported
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.junction import plan
from hedgerow.models.model import Model
from hedgerow.progress import Progress

if TYPE_CHECKING:
    from hedgerow.schema import Schema

ROUND_SHARE = 0.5
"""Each of the two rounds gets half of the budget, so both have the same noise."""
LEAST_MISSED = 0.1
"""A triple is learnt from a public table if its two pairs miss it by this L1 distance, as in the authors' program."""
FORCED = 100.0
"""Nats that a pair inside a forced marginal is taken to share beyond its own, as in the authors' program."""


class Wanted(NamedTuple):
    """A marginal to measure: its attributes, its weight, and the codes where further levels of an attribute start."""

    attributes: tuple[str, ...]
    weight: float = 1.0
    levels: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def query(self, domain: Domain) -> MarginalQuery:
        """What is asked. Attributes with levels keep their codes, so these hold in the merged domain too."""
        levels = {
            name: np.searchsorted(starts, np.arange(domain[name].size), side="right") for name, starts in self.levels
        }
        return MarginalQuery(domain, self.attributes, levels=levels)


def read_marginals(value: Any) -> tuple[Wanted, ...]:
    """Lists of columns, or {columns: […], weight: 2, levels: {wage: [1, 10]}}; or the name of a file of them.

    `public` is none: what the public table teaches, even where a preset has a list.
    """
    if value == "public":
        return ()
    return tuple(_wanted(entry, number) for number, entry in enumerate(read_list(value, "marginals"), start=1))


def read_weights(value: Any) -> tuple[tuple[str, float], ...]:
    """{wage: 2}, or `wage:2,age:3`."""
    if isinstance(value, str):
        value = dict(part.strip().rpartition(":")[::2] for part in value.split(","))
    if not isinstance(value, Mapping):
        raise OptionError("bad-weights", "columns takes weights, such as wage:2.")
    return tuple((str(column), _weight(weight, f'the weight of "{column}"')) for column, weight in value.items())


@dataclass(frozen=True)
class Match3(Options):
    """Two rounds of Gaussian noise, the second on what the first showed to be there."""

    marginals: tuple[Wanted, ...] = option(
        (),
        "what the second round measures, as a YAML file, or `public`: learnt from --public; else neighbours in pairs",
        read=read_marginals,
    )
    forced: tuple[Wanted, ...] = option(
        (), "marginals that are measured beside those that --public teaches, as a YAML file", read=read_marginals
    )
    columns: tuple[tuple[str, float], ...] = option(
        (), "weights of columns in the first round, such as wage:2; 1 otherwise", read=read_weights
    )
    merge: float = options.merge()
    exempt: tuple[str, ...] = option(
        (),
        "columns whose values are never merged, with commas between them; those with levels never are",
        read=lambda value: read_names(value, "exempt"),
    )
    support: Families = option(
        (),
        "COLUMN:FILE, a CSV of code,family or JSON of cities: only the family that stands out is kept apart",
        read=read_families,
    )
    most_cells: int = option(1_000_000, "leave out marginals with as many cells or more", at_least=2)

    about: ClassVar[About] = About(
        name="match3",
        title="Match 3 winner",
        summary="Every column, then a given list of marginals on merged values, and a graphical model of all of it.",
        argument=(
            "Two stacks of weighted counts, each with half of the budget: a row reaches one cell of each query, so one "
            "person moves a stack by at most θ√Σw². Which values are merged for the second stack follows from the "
            "noisy counts of the first; adaptive composition allows for that. The list of marginals is given or "
            "public. Fitting and drawing are post-processing."
        ),
        paper=(
            "McKenna, Match 3 of the 2018 Differential Privacy Synthetic Data Challenge (NIST PrivacyEngCollabSpace); "
            "McKenna, Miklau, Sheldon (2021), Winning the NIST Contest, arXiv:2108.04978."
        ),
        departures=(
            "All domains are declared; the original read those of five columns off the private rows, and took δ from "
            "the number of rows.",
            "The noise is calibrated in Gaussian DP, which needs less of it than the original's Rényi accounting; with "
            "δ = 0 it is Laplace.",
            "A marginal is also left out where the model would not fit the memory allowed, the widest first.",
            "Values of VALUEH come back at multiples of 5 as often as they were, instead of always.",
        ),
    )

    def bound(self, schema: Schema) -> Match3:
        """The method with families of values, as a table holds them, turned into families of codes."""
        return replace(self, support=codes_of(self.support, schema))

    def run(self, curator: Curator, progress: Progress) -> Model:
        with progress.phase("list the marginals"):
            wanted = self.wanted(curator)
        weights = self.column_weights(curator)
        families = {attribute: members for name, members in self.support for attribute in named(curator, name)}
        for attribute, members in families.items():
            check_codes(curator.domain[attribute], members)
        exempt = {attribute for name in self.exempt for attribute in named(curator, name)}
        exempt |= {attribute for each in wanted for attribute, _ in each.levels}
        with progress.phase("measure every column"):
            one_ways = measure_one_ways(curator, curator.remaining.share(ROUND_SHARE), weights)
        compression = self.compression(curator.domain, one_ways, exempt, families)
        merged = curator.recode(compression.recoding)
        with progress.phase("measure the marginals"):
            affordable = self.affordable(merged.domain, wanted, progress.limits.memory)
            if affordable:
                queries = [each.query(merged.domain) for each in affordable]
                measured = merged.measure(
                    queries, spend=curator.remaining, weights=[each.weight for each in affordable]
                )
            else:
                one_ways += measure_one_ways(curator, curator.remaining, weights)
                measured = []
        with progress.phase("fit"):
            total = estimated_total([*one_ways, *measured])
            answers = [*compression.reexpress(one_ways), *measured]
            model = fit(merged.domain, answers, total=total, limits=progress.limits, progress=progress)
        return compression.expand(model)

    def wanted(self, curator: Curator) -> list[Wanted]:
        """The second round's marginals in domain order, each once: given, learnt, or else neighbours in pairs."""
        domain = curator.domain
        if not self.marginals and curator.public is not None:
            forced = self.resolved(curator, self.forced)
            learnt = learnt_marginals(curator, curator.public, self.most_cells, [each.attributes for each in forced])
            held = {each.attributes for each in forced}
            return [*forced, *(Wanted(marginal) for marginal in learnt if marginal not in held)]
        if not self.marginals:
            return [Wanted(pair) for pair in pairwise(domain.names)]
        return self.resolved(curator, self.marginals)

    def resolved(self, curator: Curator, marginals: Sequence[Wanted]) -> list[Wanted]:
        """Marginals in domain order, each once."""
        domain = curator.domain
        found: dict[tuple[Marginal, tuple[Any, ...]], Wanted] = {}
        for number, each in enumerate(marginals, start=1):
            what = f"marginal {number}"
            names = domain.marginal(a for name in each.attributes for a in named(curator, name, what))
            strange = [name for name, _ in each.levels if name not in names]
            if strange:
                raise OptionError("bad-levels", f'{what} has levels of "{strange[0]}", which it does not hold.')
            found.setdefault((names, each.levels), Wanted(names, each.weight, each.levels))
        return list(found.values())

    def column_weights(self, curator: Curator) -> list[float]:
        """The first round's weights, in domain order."""
        given = {attribute: weight for name, weight in self.columns for attribute in named(curator, name)}
        return [given.get(name, 1.0) for name in curator.domain.names]

    def compression(
        self,
        domain: Domain,
        one_ways: Sequence[Measurement],
        exempt: set[str],
        families: Mapping[str, Sequence[tuple[int | str, str]]],
    ) -> Compression:
        """Merge what noise hides, and of attributes with families all codes but those of the likeliest."""
        by_attribute = {measurement.query.attributes[0]: measurement for measurement in one_ways}
        rare = compress(
            domain, [m for name, m in by_attribute.items() if name not in exempt | set(families)], self.merge
        )
        kept = {name: supported(by_attribute[name], members) for name, members in families.items()}
        strange = {name: mapping for name, mapping in kept.items() if mapping is not None}
        return Compression(Recoding(domain, {**rare.recoding.maps, **strange}))

    def affordable(self, domain: Domain, wanted: Sequence[Wanted], memory: int) -> list[Wanted]:
        """The marginals below the limit of cells, without the widest as long as a model of them would not fit.

        Sizes follow from the merged domain, so from noisy counts.
        """
        kept = [each for each in wanted if domain.cells(each.attributes) < self.most_cells]
        while kept and _model_bytes(domain, kept) > memory:
            kept.remove(max(kept, key=lambda each: domain.cells(each.attributes)))
        return kept


def learnt_marginals(
    curator: Curator, public: CodedTable, most_cells: int, forced: Sequence[Marginal] = ()
) -> list[Marginal]:
    """The way in which the authors' list seems to have been made: the tree of largest mutual information, and triples.

    A triple is a column with two of its neighbours in the tree. Around each column the worst missed are taken, without
    a circle, and each brings the pair of its neighbours. The tree grows around the pairs inside forced marginals first.
    """
    domain = curator.domain
    relations = Relations(domain, public, curator.rng)
    within = {pair for marginal in forced for pair in combinations(marginal, 2)}
    information = {
        pair: nats + FORCED * (pair in within)
        for pair, nats in relations.information(most_cells).items()
        if nats > 0 or pair in within
    }
    tree = forest([(name,) for name in domain.names], information).pairs
    found = list(tree)
    for centre in domain.names:
        around = domain.marginal(name for pair in tree if centre in pair for name in pair if name != centre)
        missed: dict[Marginal, float] = {}
        for first, second in combinations(around, 2):
            if relations.cells((centre, first, second)) < most_cells:
                missed[first, second] = relations.missed(centre, first, second)
        missed = {pair: distance for pair, distance in missed.items() if distance >= LEAST_MISSED}
        for pair in forest([(name,) for name in around], missed).pairs:
            found += [pair, (centre, *pair)]
    return list(dict.fromkeys(domain.marginal(marginal) for marginal in found))


def named(curator: Curator, name: str, what: str = "the options") -> Marginal:
    """The attribute of this name (of a column with heaps: its bins), or the one that codes the column of this name."""
    return (name,) if name in curator.domain else attributes_of((name,), curator.domain, curator.columns, what)


def _model_bytes(domain: Domain, wanted: Sequence[Wanted]) -> int:
    """What fitting these marginals and every column takes, roughly: the model, and vectors over all measurements."""
    structure = plan(domain, [each.attributes for each in wanted])
    measured = sum(domain.cells(each.attributes) for each in wanted) + sum(attribute.size for attribute in domain)
    return structure.bytes + 24 * structure.leaf_cells + 200 * measured


def _wanted(entry: Any, number: int) -> Wanted:
    what = f"marginal {number}"
    if not isinstance(entry, Mapping):
        return Wanted(read_names(entry, what))
    strange = [key for key in entry if key not in ("columns", "weight", "levels")]
    if strange or "columns" not in entry:
        raise OptionError(
            "bad-marginal-entry",
            f"{what} must be a list of columns, or have columns, weight and levels.",
        )
    levels = entry.get("levels", {})
    if not isinstance(levels, Mapping):
        raise OptionError("bad-levels", f"{what}: levels must name attributes and the codes at which levels start.")
    starts = tuple((str(name), _starts(codes, what)) for name, codes in levels.items())
    return Wanted(
        read_names(entry["columns"], what), _weight(entry.get("weight", 1.0), f"the weight of {what}"), starts
    )


def _starts(codes: Any, what: str) -> tuple[int, ...]:
    try:
        starts = tuple(int(code) for code in codes)
    except (TypeError, ValueError):
        starts = ()
    if not starts or starts[0] < 1 or any(right <= left for left, right in pairwise(starts)):
        raise OptionError("bad-levels", f"{what}: levels must start at growing codes of at least 1.")
    return starts


def _weight(value: Any, what: str) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise OptionError("bad-weight", f"{what} must be a positive number.")
    return weight
