"""Methods and mechanisms with one rule broken. An audit that passes any of them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from hedgerow.budget.accounting import Charge
from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.curator import Curator
from hedgerow.methods import options
from hedgerow.methods.method import Method
from hedgerow.models.model import Model
from hedgerow.private.account import Account
from hedgerow.private.engines import linked
from hedgerow.private.kinship import Kept, kept_rows
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.vault import Vault
from hedgerow.progress import Progress
from hedgerow.schema.links import Tables

Mutant = Callable[[Method], AbstractContextManager[Method]]
"""Given a method, one to audit in its place while the context lasts."""


@contextmanager
def halved_noise(method: Method) -> Iterator[Method]:
    """Half of the noise that is charged for is drawn."""
    draw = Mechanisms._draw

    def timid(self: Mechanisms, noise: Noise, count: int) -> IntArray:
        return draw(self, Noise(noise.kind, noise.scale / 2), count)

    with patch.object(Mechanisms, "_draw", timid):
        yield method


@contextmanager
def forgotten_rows(method: Method) -> Iterator[Method]:
    """Sensitivities forget that a person can have several rows."""
    begin = Vault.__init__

    def forgetful(self: Vault, engine: Any, domain: Any, rows_per_person: int, *rest: Any, **named: Any) -> None:
        begin(self, engine, domain, 1, *rest, **named)

    with patch.object(Vault, "__init__", forgetful):
        yield method


@contextmanager
def skipped_debit(method: Method) -> Iterator[Method]:
    """The first access to the data is not charged."""
    debit = Account.debit

    def generous(self: Account, charge: Charge) -> None:
        if self.charges or getattr(self, "waived", False):
            debit(self, charge)
        self.waived = True  # type: ignore[attr-defined]

    with patch.object(Account, "debit", generous):
        yield method


@contextmanager
def exact_total(method: Method) -> Iterator[Method]:
    """What is asked depends on the exact number of rows."""

    def peek(curator: Curator) -> None:
        if _exact(curator, total_query(curator.domain)).sum() % 2:
            curator.total(spend=curator.remaining.share(0.01))

    yield _after(peek, method)


@contextmanager
def exact_partition(method: Method) -> Iterator[Method]:
    """Cells are grouped by their exact counts, as one of the write-ups prints it."""

    def peek(curator: Curator) -> None:
        widest = max(curator.domain, key=lambda attribute: attribute.size).name
        exact = _exact(curator, MarginalQuery(curator.domain, (widest,)))
        blocks = (exact > np.median(exact)).astype(np.int64)
        blocks[0] = 1
        grouped = MarginalQuery(curator.domain, (widest,), blocks=blocks)
        curator.measure([grouped], spend=curator.remaining.share(0.1))

    yield _after(peek, method)


@contextmanager
def bounded_after_joining(method: Method) -> Iterator[Method]:
    """Linked tables are joined as they are: rows weigh what the bounds would let them, and all of them count."""

    def joined(tables: Tables, *rest: Any) -> dict[str, Kept]:
        loose = Tables(
            {
                name: link if link.parent is None else link.model_copy(update={"max_per_parent": 60})
                for name, link in tables.links.items()
            }
        )
        loose.parts = tables.parts
        found = kept_rows(loose, *rest)
        for name, each in found.items():
            allowed = np.minimum(np.bincount(each.unit)[each.unit], tables.most_rows[name])
            left = np.minimum(each.left, max(0, tables.links[name].max_per_parent - 1))
            found[name] = replace(each, weight=tables.parts // allowed, left=left)
        return found

    with patch.object(linked, "kept_rows", joined):
        yield method


MUTANTS: Mapping[str, Mutant] = {
    "noise halved": halved_noise,
    "rows per person forgotten": forgotten_rows,
    "debit skipped": skipped_debit,
    "exact number of rows": exact_total,
    "partition from exact counts": exact_partition,
}


def _exact(curator: Curator, query: MarginalQuery) -> IntArray:
    """What no method may see."""
    counts = next(iter(cast(Vault, curator)._engine.count([query]))).opened()
    assert isinstance(counts, np.ndarray)
    return counts


def _after(peek: Callable[[Curator], None], method: Method) -> Method:
    """The method, after a look that it has no right to."""
    kind: Any = type(method)

    class Peeking(kind):  # type: ignore[misc]
        def run(self, curator: Curator, progress: Progress) -> Model:
            peek(curator)
            model: Model = super().run(curator, progress)
            return model

    return cast(Method, Peeking(**options(method)))
