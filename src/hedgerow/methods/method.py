"""What a method is: a frozen set of options that, given a curator, returns a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hedgerow.curator import Curator
from hedgerow.models.model import Model
from hedgerow.progress import Progress


@dataclass(frozen=True)
class About:
    """What `hedgerow methods` prints and the certificate repeats."""

    name: str
    title: str
    summary: str
    argument: str
    """Why the guarantee holds, in a sentence or two."""
    paper: str
    departures: tuple[str, ...] = ()
    """Where ours differs from the paper."""
    void: str | None = None
    """Why a printed procedure gives no guarantee; None for every method that Hedgerow offers."""


class Method(Protocol):
    """A method is a frozen dataclass: its fields are its options (metadata "help" explains each)."""

    @property
    def about(self) -> About:
        """Mostly a constant of the class."""
        ...

    # A method with `begins_in_epsilon = True` is given its budget in ε, where δ > 0 and no ledger adds it up: it pays
    # for Laplace noise in it, and exchanges what is left for μ² (`Curator.exchange`).

    # A method with `relations`, a number, can make linked tables: it makes the root, and an attribute of a child table
    # is drawn given so many others at most (`hedgerow.methods.shared.histories`).

    def run(self, curator: Curator, progress: Progress) -> Model:
        """Ask the curator, spend what it has, return a model."""
        ...
