"""Models: public distributions over coded rows, fitted to noisy answers. No handle on data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hedgerow.coded.domain import Domain
from hedgerow.errors import HedgerowError, OptionError, ReleaseError, listing
from hedgerow.foreign import imported
from hedgerow.models.model import Model, State
from hedgerow.models.stored import MEMORY, Allowance, Stored

_KINDS = {
    "adjusted": "hedgerow.models.records:Adjusted",
    "evened": "hedgerow.models.evened:Evened",
    "expanded": "hedgerow.models.expanded:Expanded",
    "graphical": "hedgerow.models.graphical.model:GraphicalModel",
    "histograms": "hedgerow.models.histograms:Histograms",
    "joined": "hedgerow.models.joined:Joined",
    "linked": "hedgerow.models.linked:LinkedModel",
    "network": "hedgerow.models.network:BayesianNetwork",
    "records": "hedgerow.models.records:Records",
    "segments": "hedgerow.models.segments:Segments",
    "tilted": "hedgerow.models.tilted:Tilted",
    "trees": "hedgerow.models.forests:RandomTrees",
    "updated": "hedgerow.models.records:Updated",
}


def load(domain: Domain, state: State, *, memory: int = MEMORY, models: Iterable[str] = ()) -> Model:
    """The model that a state describes, if rows can be drawn from it in `memory` bytes beside themselves.

    `models` names classes made elsewhere, `package.module:Class`, that the reader trusts: reading such a model runs
    their code. What a state names is never imported without that.
    """
    return read(domain, Stored(state, Allowance(memory, models=frozenset(models))))


def read(domain: Domain, stored: Stored) -> Model:
    """The same for a state that is being read already: models hold models."""
    kind = _KINDS.get(stored.kind)
    if kind is None and stored.kind in stored.allowance.models:
        kind = stored.kind
    if kind is None:
        raise _unknown(stored.kind)
    try:
        model: Model = imported(kind, "model").from_state(domain, stored)
    except ReleaseError:
        raise
    except HedgerowError as problem:
        raise ReleaseError(problem.code, f"the model of the release is damaged: {problem}") from None
    stored.finish()
    return model


def refuse_unreadable(model: type[Any]) -> None:
    """Refuses a class of models that no reader of a release could load again."""
    name = f"{model.__module__}:{model.__qualname__}"
    kind = getattr(model, "kind", None)
    if kind in _KINDS and issubclass(model, imported(_KINDS[kind], "model")):
        return
    if kind != name:
        raise OptionError(
            "model-kind",
            f'the model {name} says that its kind is "{kind}". One that is made elsewhere is of the kind "{name}": '
            "that is how readers find it.",
        )
    if model.__module__ == "__main__" or imported(name, "model") is not model or not hasattr(model, "from_state"):
        raise OptionError(
            "model-unreadable",
            f"the model {name} cannot be read back: it needs a place in a module that readers can import, and a class "
            "method from_state(domain, stored).",
        )


def _unknown(kind: str) -> ReleaseError:
    if len(kind) > 200 or not kind.isprintable():
        return ReleaseError(
            "unknown-model", f"the release holds a model of a kind that does not exist; kinds: {listing(_KINDS)}."
        )
    if ":" not in kind:
        return ReleaseError("unknown-model", f'unknown kind of model "{kind}"; kinds: {listing(_KINDS)}.')
    return ReleaseError(
        "model-not-allowed",
        f'the release holds a model made elsewhere, "{kind}". Reading it runs the code of that class, so nothing was '
        f"imported. Hint: if you trust it, and it is installed, add --allow-model {kind}.",
    )
