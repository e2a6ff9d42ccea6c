"""Domain compression: codes too rare to tell from noise are merged into one.

McKenna, Miklau, Sheldon (2021), "Winning the NIST contest": a code whose noisy count is below three standard
deviations is not worth a cell of its own in later measurements. What is merged is decided from noisy counts, so this
is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.coded.domain import Domain, IntArray
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.models.expanded import Expanded
from hedgerow.models.model import Model


@dataclass(frozen=True, eq=False)
class Compression:
    """A recoding that merges rare codes, and what it does to measurements and models."""

    recoding: Recoding

    def reexpress(self, one_ways: Iterable[Measurement]) -> list[Measurement]:
        """One-way measurements of the original domain as they read after the recoding.

        A merged cell's count is a sum of k noisy counts, so it carries √k times the noise: it becomes a measurement
        of its own.
        """
        target = self.recoding.target()
        return [part for measurement in one_ways for part in _reexpressed(target, self.recoding, measurement)]

    def expand(self, model: Model) -> Model:
        """The model in the original domain; a merged code is spread evenly over what it stands for."""
        if not self.recoding.maps:
            return model
        fill = {name: np.ones(len(mapping)) for name, mapping in self.recoding.maps.items()}
        return Expanded(model, self.recoding, fill)


def compress(domain: Domain, one_ways: Sequence[Measurement], deviations: float = 3.0) -> Compression:
    """Merge, attribute by attribute, the codes whose noisy count is below `deviations` standard deviations.

    `one_ways` are plain one-way measurements, one per attribute. Merged codes come last, one for each kind: codes that
    the domain's support tells apart stay apart.
    """
    maps = {}
    for measurement in one_ways:
        rare = measurement.values < deviations * measurement.std
        rare[measurement.values.argmax()] = False  # the commonest code is never hidden among the others
        (name,) = measurement.query.attributes
        kinds = domain.kinds(name)
        rare &= np.bincount(kinds, weights=rare)[kinds] > 1  # nothing to be merged with
        if rare.any():
            merged = np.unique(kinds[rare], return_inverse=True)[1].reshape(-1)
            mapping: IntArray = np.cumsum(~rare) - 1
            mapping[rare] = np.count_nonzero(~rare) + merged
            maps[name] = mapping
    return Compression(Recoding(domain, maps))


def _reexpressed(target: Domain, recoding: Recoding, measurement: Measurement) -> list[Measurement]:
    attributes = measurement.query.attributes
    mapping = recoding.maps.get(attributes[0])
    if mapping is None:
        return [Measurement(MarginalQuery(target, attributes), measurement.values, measurement.noise)]
    sizes = np.bincount(mapping)
    sums = np.bincount(mapping, weights=measurement.values).astype(np.int64)
    parts = []
    for size in np.unique(sizes).tolist():  # codes that hold as many carry the same noise
        alike = sizes == size
        blocks = np.where(alike, np.cumsum(alike) - 1, -1)
        noise = Noise(measurement.noise.kind, measurement.noise.scale * math.sqrt(size))
        parts.append(Measurement(MarginalQuery(target, attributes, blocks=blocks), sums[alike], noise))
    return parts
