"""Printed procedures: exact counts come without noise, and never with a guarantee."""

import pyarrow as pa

from hedgerow.budget.amounts import Budget
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods.independent import Independent
from hedgerow.methods.method import About
from hedgerow.models.model import Model
from hedgerow.private.ledger import Ledger
from hedgerow.private.unsafe import PRINTED, exact_counts
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

SCHEMA = Schema.parse("dataset: d\ncolumns: {a: {type: code, size: 3}}")
TABLE = pa.table({"a": [0, 2, 2]})


class Printed(Independent):
    about = About("printed", "Printed", "Reads exact counts.", "none", "none", void=PRINTED)

    def run(self, curator, progress) -> Model:
        self.seen.extend(exact_counts(curator, [MarginalQuery(curator.domain, ("a",))])[0].tolist())
        return super().run(curator, progress)

    seen: list[int] = []  # noqa: RUF012


def test_exact_counts_void_the_release():
    release = synthesize(TABLE, SCHEMA, Budget(1.0, 1e-9), Printed())
    assert Printed.seen == [1, 0, 2]
    assert release.certificate.guarantee is None
    assert PRINTED in release.certificate.statements()[0]


def test_the_ledger_refuses_it_and_debits_nothing(tmp_path):
    books = tmp_path / "d.ledger"
    Ledger.create(books, "d", Budget(3.0, 1e-9))
    before = books.read_bytes()
    with refused("ledger-needs-guarantee"):
        synthesize(TABLE, SCHEMA, Budget(1.0, 1e-9), Printed(), ledger=books)
    assert books.read_bytes() == before
