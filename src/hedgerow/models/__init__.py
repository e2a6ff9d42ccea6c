"""Models: public distributions over coded rows, fitted to noisy answers. No handle on data."""

from __future__ import annotations

import importlib

from hedgerow.coded.domain import Domain
from hedgerow.errors import ReleaseError, listing
from hedgerow.models.model import Model, State

_KINDS = {
    "adjusted": "hedgerow.models.records:Adjusted",
    "expanded": "hedgerow.models.expanded:Expanded",
    "graphical": "hedgerow.models.graphical.model:GraphicalModel",
    "histograms": "hedgerow.models.histograms:Histograms",
    "records": "hedgerow.models.records:Records",
    "segments": "hedgerow.models.segments:Segments",
    "trees": "hedgerow.models.forests:RandomTrees",
}


def load(domain: Domain, state: State) -> Model:
    """The model that a state describes."""
    if state.kind not in _KINDS:
        raise ReleaseError(f'unknown kind of model "{state.kind}"; kinds: {listing(_KINDS)}.')
    module, name = _KINDS[state.kind].split(":")
    model: Model = getattr(importlib.import_module(module), name).from_state(domain, state)
    return model
