"""What single columns tell, once their noise is taken off: histograms, coarser domains, a first model.

Everything here follows from noisy counts, so it is post-processing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hedgerow.coded.domain import Attribute, Counts, Domain, IntArray
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.methods.shared.views import kept_part
from hedgerow.models.denoising import Column, denoised
from hedgerow.models.expanded import Expanded
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model

FEW_CODES = 16
"""Attributes of at most so many codes are merged wherever the codes stand."""
LEAST_STD_SHARE = 0.1
"""No cell of a first model holds less than this part of its standard error: it must be able to fill."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Every attribute of a domain by itself."""

    domain: Domain
    of: Mapping[str, Column]
    total: float

    @classmethod
    def known_from(cls, domain: Domain, one_ways: Sequence[Measurement], total: float) -> Columns:
        """From one plain measurement of every attribute."""
        measured = {measurement.query.attributes[0]: measurement for measurement in one_ways}
        return cls(domain, {a.name: denoised(measured[a.name], a, total) for a in domain}, total)

    def towards(self, public: Mapping[str, Counts], one_ways: Sequence[Measurement]) -> Columns:
        """Drawn to the shares of a public table, each column by as much as noise explains of its distance from them.

        James and Stein's factor sees to it that a public table that is wrong is hardly followed.
        """
        drawn = {}
        for measurement in one_ways:
            (name,) = measurement.query.attributes
            prior, column = self.total * public[name], self.of[name]
            kept = kept_part(measurement.dense() - prior, measurement.noise.variance)
            drawn[name] = Column(prior + kept * (column.counts - prior), column.std)
        return Columns(self.domain, drawn, self.total)

    def coarsening(self, finest: float) -> Recoding:
        """Merge codes that together hold less than 1/`finest` of the rows: neighbours along a line, else the rarest."""
        maps = {}
        for attribute in self.domain:
            kinds = self.domain.kinds(attribute.name)
            mapping = _merged(self.of[attribute.name].counts, kinds, attribute, self.total / finest)
            if int(mapping.max()) + 1 < attribute.size:
                maps[attribute.name] = mapping
        return Recoding(self.domain, maps)

    def measurements(self, recoding: Recoding) -> list[Measurement]:
        """The columns as measurements of the coarser domain, as uncertain as they are."""
        target = recoding.target()
        found = []
        for attribute in target:
            counts, std = self._coarse(recoding, attribute)
            query = MarginalQuery(target, (attribute.name,))
            found.append(Measurement(query, np.rint(counts).astype(np.int64), Noise("gaussian", std)))
        return found

    def model(self, recoding: Recoding) -> GraphicalModel:
        """Columns over the coarser domain, independent but for what cannot occur together."""
        target = recoding.target()
        if target.support:
            return fit(target, self.measurements(recoding), total=self.total)
        structure = plan(target, [(name,) for name in target.names])
        potentials = np.empty(structure.leaf_cells)
        for (axis,), index in zip(structure.leaves, structure.leaf_places, strict=True):
            counts, std = self._coarse(recoding, target[structure.layout.names[axis]])
            potentials[index] = np.log(np.maximum(counts, LEAST_STD_SHARE * std))
        return GraphicalModel(structure, potentials, self.total)

    def expand(self, model: Model, recoding: Recoding) -> Model:
        """The model in the original domain; a merged code is spread over its own as the column says."""
        if not recoding.maps:
            return model
        return Expanded(model, recoding, {name: self.of[name].counts for name in recoding.maps})

    def _coarse(self, recoding: Recoding, attribute: Attribute) -> tuple[Counts, float]:
        """Counts of the merged codes, and the standard error of one of them."""
        column = self.of[attribute.name]
        mapping = recoding.maps.get(attribute.name)
        if mapping is None:
            return column.counts, column.std
        sums: Counts = np.bincount(mapping, weights=column.counts, minlength=attribute.size).astype(np.float64)
        return sums, column.std * math.sqrt(len(mapping) / attribute.size)


def coarser(measurement: Measurement, recoding: Recoding) -> Measurement:
    """A plain measurement as it reads after merging codes; its noise is that of a mean cell."""
    query = measurement.query
    names = query.attributes
    levels = {name: recoding.maps[name] for name in names if name in recoding.maps}
    counts = MarginalQuery(recoding.domain, names, levels=levels).aggregate(measurement.dense())
    merged = MarginalQuery(recoding.target(), names)
    std = measurement.std * math.sqrt(query.cells / merged.cells)
    return Measurement(merged, np.rint(counts).astype(np.int64), Noise("gaussian", std))


def _merged(counts: Counts, kinds: IntArray, attribute: Attribute, least: float) -> IntArray:
    """A code for each old one, so that any two that could be merged further hold at least `least` rows together.

    Codes that the domain's support tells apart stay apart.
    """
    ordered = attribute.size if attribute.ordered is None else attribute.ordered
    if ordered <= FEW_CODES:
        ordered = 0
    runs = np.split(np.arange(ordered), np.flatnonzero(np.diff(kinds[:ordered])) + 1) if ordered else []
    rest = ordered + np.arange(len(counts) - ordered)
    groups = [(run, _neighbours(counts[run], least)) for run in runs]
    alike = [rest[kinds[rest] == kind] for kind in dict.fromkeys(kinds[rest].tolist())]
    groups += [(codes, _rarest(counts[codes], least)) for codes in alike]
    mapping: IntArray = np.zeros(len(counts), dtype=np.int64)
    first = 0
    for codes, merged in groups:
        mapping[codes] = first + merged
        first += int(merged.max()) + 1
    return mapping


def _neighbours(counts: Counts, least: float) -> IntArray:
    """Merge the two neighbours that hold least together, while that is below `least`."""
    mass = counts.tolist()
    before, after = list(range(-1, len(mass) - 1)), list(range(1, len(mass) + 1))
    waiting = [(left + right, index) for index, (left, right) in enumerate(pairwise(mass))]
    heapq.heapify(waiting)
    starts = np.ones(len(mass), dtype=np.int64)
    while waiting and waiting[0][0] < least:
        held, index = heapq.heappop(waiting)
        second = after[index]
        if not starts[index] or second >= len(mass) or held != mass[index] + mass[second]:
            continue  # one of the two has been merged since
        starts[second] = 0
        mass[index] = held
        after[index] = after[second]
        if after[index] < len(mass):
            before[after[index]] = index
            heapq.heappush(waiting, (held + mass[after[index]], index))
        if before[index] >= 0:
            heapq.heappush(waiting, (mass[before[index]] + held, before[index]))
    return np.cumsum(starts) - 1


def _rarest(counts: Counts, least: float) -> IntArray:
    """Merge the two that hold least, wherever they stand, while they hold less than `least` together."""
    waiting = [(count, index) for index, count in enumerate(counts.tolist())]
    heapq.heapify(waiting)
    root = np.arange(len(counts))
    while len(waiting) > 1:
        first, second = heapq.heappop(waiting), heapq.heappop(waiting)
        if first[0] + second[0] >= least:
            break
        low, high = sorted((first[1], second[1]))
        root[high] = low
        heapq.heappush(waiting, (first[0] + second[0], low))
    for index in range(len(root)):
        root[index] = root[root[index]]  # roots stand before what was merged into them
    return np.unique(root, return_inverse=True)[1]
