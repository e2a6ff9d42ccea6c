"""A public table: what it fills in, what methods see of it, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.coded.domain import Domain
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import RecodedCurator
from hedgerow.methods import build
from hedgerow.methods.independent import Independent
from hedgerow.models.model import Model
from hedgerow.release.certificate import PUBLIC
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

SCHEMA = """
columns:
  region: {type: category, values: [north, south]}
  city:   {type: category, values: ["1", "2", "3"], missing: true}
  age:    {type: integer, min: 0, max: 9, bins: [5]}
groups:
  - {columns: [region, city], allowed: public}
"""
PRIVATE = pa.table({"region": ["north"] * 40, "city": ["1"] * 40, "age": [1] * 40})
OPEN = pa.table(
    {
        "region": ["south", "north", "north", "atlantis", "south"],
        "city": pa.array([2, 1, None, 1, 2]),
        "age": [3, 4, 5, 6, 7],
    }
)


def seen_by_a_method(**given):
    """Run a method that notes what it is given."""
    seen = {}

    class Watching(Independent):
        def run(self, curator, progress) -> Model:
            seen["curator"] = curator
            return super().run(curator, progress)

    release = synthesize(PRIVATE, Schema.parse(SCHEMA), Budget(1.0, 1e-9), Watching(), **given)
    return release, seen["curator"]


def test_it_says_which_combinations_can_occur():
    release, _ = seen_by_a_method(public=OPEN)
    assert release.schema.groups[0].allowed == (("north", "1"), ("north", ""), ("south", "2"))
    drawn = pa.concat_tables(release.batches(200, 0))
    rows = set(zip(drawn["region"].to_pylist(), drawn["city"].to_pylist(), strict=True))
    assert rows <= {("north", "1"), ("north", None), ("south", "2")}


def test_methods_see_it_coded_and_the_certificate_says_so():
    release, curator = seen_by_a_method(public=OPEN)
    assert curator.public["region+city"].tolist() == [2, 0, 1, 3, 2]
    assert curator.public["age"].tolist() == [0, 0, 1, 1, 1]
    assert PUBLIC in release.certificate.statements()


def test_without_one_there_is_none_and_nothing_is_said():
    release = synthesize(PRIVATE, Schema.parse(SCHEMA.partition("groups")[0]), Budget(1.0, 1e-9), "independent")
    assert PUBLIC not in release.certificate.statements()


def test_a_recoded_curator_recodes_it():
    domain = Domain.of({"a": 4, "b": 2})
    rows = {"a": np.array([0, 3, 2], dtype=np.uint8), "b": np.array([1, 0, 1], dtype=np.uint8)}
    base = SimpleNamespace(domain=domain, public=rows)
    recoded = RecodedCurator(base, Recoding(domain, {"a": np.array([0, 1, 1, 1])}))
    assert recoded.public["a"].tolist() == [0, 1, 1]
    assert recoded.public["b"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("public", "complaint"),
    [
        (None, ("needs-public-table",)),
        (OPEN.drop_columns(["age"]), ("missing-column", '"age"')),
        (OPEN.slice(3, 1), ("no-combination",)),
        (OPEN.slice(0, 0), ("no-combination",)),
    ],
)
def test_what_it_cannot_be_is_refused_before_anything_is_spent(tmp_path, public, complaint):
    with refused(*complaint):
        synthesize(PRIVATE, Schema.parse(SCHEMA), Budget(1.0, 1e-9), build("independent"), public=public)


def test_from_the_command_line(hedgerow, tmp_path):
    import pyarrow.csv as csv

    csv.write_csv(PRIVATE, tmp_path / "private.csv")
    csv.write_csv(OPEN, tmp_path / "open.csv")
    (tmp_path / "s.yaml").write_text(SCHEMA)
    words = ["synth", "private.csv", "-s", "s.yaml", "-e", "1", "-m", "independent", "-o", "out.csv"]
    assert hedgerow(*words, "--public", "open.csv").code == 0
    refused = hedgerow(*words, "--overwrite", "--public", "out.csv")
    assert (refused.code, refused.refusal) == (2, "output-is-input")
    dry = hedgerow(*words, "--public", "open.csv", "--dry-run")
    assert dry.code == 0, dry.err


def test_the_private_table_is_not_its_own_public_one(tmp_path):
    """Neither the same frame, nor the same file by another name."""
    schema, file, link = Schema.parse(SCHEMA), tmp_path / "people.parquet", tmp_path / "link.parquet"
    pq.write_table(PRIVATE, file)
    link.symlink_to(file)
    for table, public in [(PRIVATE, PRIVATE), (file, file), (file, link), (str(file), tmp_path / "." / file.name)]:
        with refused("private-as-public"):
            synthesize(table, schema, Budget(1.0), Independent(), public=public)
