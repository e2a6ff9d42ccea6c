"""Exact counts, for reproducing printed procedures that are not private as printed.

Only `reproduce/` and tests import this module (an import contract keeps it so). A run that looks at exact counts has
no guarantee: its certificate says why, and no ledger takes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.coded.domain import CodedTable, IntArray
from hedgerow.coded.query import Query
from hedgerow.curator import PRINTED, Curator
from hedgerow.errors import HedgerowError
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.exact import SparseCounts
from hedgerow.private.vault import Vault


def exact_counts(curator: Curator, queries: Sequence[Query]) -> list[IntArray]:
    """Every cell of the queries, without noise. From here on the run has no guarantee."""
    found = []
    for query, exact in zip(queries, _exposed(curator)._engine.count(queries), strict=True):
        counts = exact.opened()
        if isinstance(counts, SparseCounts):
            dense: IntArray = np.zeros(query.cells, dtype=np.int64)
            dense[counts.cells] = counts.counts
            counts = dense
        found.append(counts)
    return found


def exact_rows(curator: Curator) -> CodedTable:
    """The coded rows themselves: a printed procedure makes each synthetic row from a true one."""
    vault = _exposed(curator)
    engine = vault._engine
    if not isinstance(engine, ArrowEngine):
        raise HedgerowError("embedded-engine-only", "rows come from the embedded engine only.")
    table = engine._prepared
    columns = table.views()
    return {name: columns[table.domain.index(name)].copy() for name in vault.domain.names}


def _exposed(curator: Curator) -> Vault:
    if not isinstance(curator, Vault):
        raise HedgerowError("vault-only", "exact counts come from the vault itself, not from a recoding of it.")
    curator.exposed = PRINTED
    return curator
