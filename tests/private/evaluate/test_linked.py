"""Linked tables compared: equal ones are equal, broken links show where they should and nowhere else."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.errors import HedgerowError
from hedgerow.private.evaluate import evaluate
from hedgerow.private.evaluate.linked import FIGURES
from hedgerow.samples import visits
from hedgerow.schema import Schema

SCHEMA = Schema.parse(visits.SCHEMA)
CHILD = ("children", "parent_pairs", "steps", "sums", "spans")


@pytest.fixture(scope="module")
def clinic():
    return visits.generate(400, seed=0)


def relinked(tables, links):
    changed = tables["visits"].set_column(0, "patient", pa.array(links))
    return {**tables, "visits": changed}


def test_a_table_beside_itself_is_at_0_in_any_order_of_its_rows(clinic):
    rng = np.random.default_rng(0)
    days = clinic["visits"].sort_by([("patient", "ascending"), ("day", "ascending")])
    untied = [0]  # two visits of one patient on one day stand in the file's order, so one of them is left out
    for row in range(1, days.num_rows):
        if days.slice(row, 1).select(["patient", "day"]) != days.slice(untied[-1], 1).select(["patient", "day"]):
            untied.append(row)
    given = {**clinic, "visits": days.take(untied)}
    shuffled = {name: each.take(pa.array(rng.permutation(each.num_rows))) for name, each in given.items()}
    found = evaluate(given, shuffled, SCHEMA)
    assert found["private"] is True
    for name, figures in found["tables"].items():
        assert all(figures[figure] == 0 for figure in FIGURES if figure in figures), name
    assert set(CHILD) < set(found["tables"]["visits"])
    assert found["bootstrap"]["visits"]["steps"] > 0


def test_what_is_linked_at_random_differs_across_links_alone(clinic):
    keys = clinic["patients"].column("id").to_numpy()
    random = np.random.default_rng(1).choice(keys, clinic["visits"].num_rows)
    found = evaluate(clinic, relinked(clinic, random), SCHEMA)["tables"]["visits"]
    assert found["columns"] == found["pairs"] == 0
    assert all(found[figure] > 0 for figure in CHILD)
    counts = np.bincount(np.searchsorted(keys, random), minlength=len(keys))
    theirs = np.bincount(np.searchsorted(keys, clinic["visits"].column("patient").to_numpy()), minlength=len(keys))
    shares = [np.bincount(each, minlength=60) / len(keys) for each in (counts, theirs)]
    assert found["children"] == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)


def test_orphans_and_duplicates_are_counted_and_take_no_part(clinic):
    stray = clinic["visits"].slice(0, 3).set_column(0, "patient", pa.array(["nobody", None, "no one"]))
    broken = {
        "patients": pa.concat_tables([clinic["patients"], clinic["patients"].slice(0, 2)]),
        "visits": pa.concat_tables([clinic["visits"], stray]),
    }
    found = evaluate(clinic, broken, SCHEMA)
    assert found["misfits"]["real"] == {"patients": {"duplicates": 0}, "visits": {"orphans": 0}}
    assert found["misfits"]["synthetic"] == {"patients": {"duplicates": 2}, "visits": {"orphans": 3}}
    assert all(found["tables"]["visits"][figure] == 0 for figure in ("columns", "children", "sums"))


def test_an_empty_child_table_has_no_figures_but_the_number_of_its_rows(clinic):
    found = evaluate(clinic, {**clinic, "visits": clinic["visits"].slice(0, 0)}, SCHEMA)["tables"]["visits"]
    assert found["children"] > 0
    assert found["columns"] is found["steps"] is found["sums"] is None


def test_the_page_is_private_and_what_is_for_one_table_is_refused(clinic, tmp_path):
    page = tmp_path / "page.html"
    evaluate(clinic, clinic, SCHEMA, report=page)
    assert page.stat().st_mode & 0o077 == 0
    text = Path(page).read_text()
    assert "PRIVATE" in text
    assert "rows of visits per row of patients" in text
    with pytest.raises(HedgerowError) as caught:
        evaluate(clinic, clinic, SCHEMA, target="sex")
    assert caught.value.code == "not-with-tables"
    with pytest.raises(HedgerowError) as caught:
        evaluate(clinic, {"patients": clinic["patients"]}, SCHEMA)
    assert caught.value.code == "missing-table"
    with pytest.raises(HedgerowError) as caught:
        evaluate(clinic, {**clinic, "visits": clinic["visits"].drop_columns(["patient"])}, SCHEMA)
    assert caught.value.code == "missing-column"
