"""Values that are not as declared, or strange: what the user is told, what is debited, and what comes out."""

from __future__ import annotations

import csv
import datetime
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.private.ledger import Ledger
from refusals import code_in

ROWS = 6_000
SCHEMA = """dataset: d
columns:
  color: {type: category, values: [red, green]}
  paid: {type: number, min: 0, max: 10000000, decimals: 2MISSING}
  day: {type: date, min: 2000-01-01, max: 2029-12-31MISSING}
"""
LOOK = ["look"]
BOTH = ["look", "independent"]


def good(number: int, rng: random.Random) -> dict[str, str]:
    day = datetime.date(2019, 1, 1) + datetime.timedelta(days=rng.randrange(300))
    return {"color": rng.choice(["red", "green"]), "paid": f"{rng.lognormvariate(3, 1):.2f}", "day": str(day)}


def changed(column: str, value):
    """Rows of which one column is something else, as a function of the row's number and of what it was."""

    def row(number: int, rng: random.Random) -> dict[str, str]:
        made = good(number, rng)
        return {**made, column: value(number, made[column])}

    return row


def turned(text: str) -> str:
    return datetime.date.fromisoformat(text).strftime("%d/%m/%Y")


STOPPED = {
    "a misspelt value": (changed("color", lambda _, was: was.replace("green", "grene")), "color"),
    "dates in another format": (changed("day", lambda _, was: turned(was)), "day"),
    "dates beyond the bounds": (changed("day", lambda _, was: was.replace("2019", "1919")), "day"),
    "the other decimal sign": (changed("paid", lambda _, was: was.replace(".", ",")), "paid"),
    "all values missing": (changed("paid", lambda *_: ""), "paid"),
    "nothing but NaN": (changed("paid", lambda *_: "nan"), "paid"),
    "nothing but infinity": (changed("paid", lambda number, _: ("inf", "-inf")[number % 2]), "paid"),
}


@pytest.fixture
def synth(tmp_path, hedgerow):
    """Run `synth` on made-up rows against a ledger: what it did, the rows it wrote, and the debits it left."""

    def run(row, *words, missing="", encoding="utf-8", header=True, table="t.csv"):
        rng = random.Random(0)
        if table == "t.csv":
            rows = [row(number, rng) for number in range(ROWS)]
            with open(tmp_path / "t.csv", "w", encoding=encoding, newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                if header:
                    writer.writeheader()
                writer.writerows(rows)
        (tmp_path / "s.yaml").write_text(SCHEMA.replace("MISSING", missing), encoding="utf-8")
        ledger = tmp_path / "d.ledger"
        Ledger.create(ledger, "d", Budget(4.0, 1e-5))
        given = ("-s", "s.yaml", "-e", 1, "-m", "independent", "-o", "o.csv", "--ledger", ledger, *words)
        done = hedgerow("synth", table, *given)
        debits = [entry.record["method"] for entry in Ledger(ledger).entries() if "debit" in entry.record]
        out = tmp_path / "o.csv"
        made = list(csv.DictReader(out.open(encoding="utf-8"))) if out.exists() else []
        return done, made, debits

    return run


@pytest.mark.parametrize("kind", STOPPED)
def test_what_fits_nothing_stops_the_run_after_its_look(kind, synth):
    row, column = STOPPED[kind]
    done, made, debits = synth(row, "--quiet")
    assert (done.code, code_in(done.err)) == (3, "misfits")
    assert f'of "{column}"' in done.err
    assert ("`strip`" in done.err, "`format`" in done.err) == (column == "paid", column == "day")
    assert f"--allow-misfits {column}" in done.err
    assert "cost ε = 0.1" in done.err
    assert not made
    assert debits == LOOK


def test_going_on_in_spite_of_it_is_said_aloud_and_pays_for_both(synth):
    row, _ = STOPPED["dates beyond the bounds"]
    done, made, debits = synth(row, "--allow-misfits", "day")
    assert done.code == 0, done.err
    assert 'of the values of "day" fit nothing declared' in done.err
    assert debits == BOTH
    assert min(line["day"] for line in made) >= "2000-01-01"


STRANGE = {
    "a constant column": (changed("paid", lambda *_: "12.50"), ""),
    "one huge outlier": (changed("paid", lambda number, was: "9999999.99" if number == 17 else was), ""),
    "a few NaN and infinities": (
        changed("paid", lambda number, was: ["nan", "inf", "-inf"][number % 3] if number < 30 else was),
        "",
    ),
    "all values missing, as declared": (changed("paid", lambda *_: ""), ", missing: true"),
    "a value of its own in every row": (changed("paid", lambda number, _: f"{100 + number * 1.37:.2f}"), ""),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_strange_but_declared_runs_and_pays_for_both(kind, synth):
    row, missing = STRANGE[kind]
    done, made, debits = synth(row, missing=missing)
    assert done.code == 0, done.err
    assert debits == BOTH
    assert "fit nothing declared" not in done.err
    paid = [float(line["paid"]) for line in made if line["paid"]]
    assert all(abs(round(value, 2) - value) < 1e-9 for value in paid)
    if kind == "a constant column":
        assert sum(value == 12.5 for value in paid) > 0.95 * len(made)
    elif kind == "all values missing, as declared":
        assert len(paid) < 0.1 * len(made)
    elif kind == "a value of its own in every row":
        assert len(set(paid)) > 0.9 * len(paid)
        assert max(paid) < 2 * (100 + ROWS * 1.37)
    else:
        assert max(paid) < 10_000, "the tail ends where the noise says that it ends"


UNREADABLE = {
    "no header": (good, {"header": False}, "missing-column"),
    "another encoding": (changed("color", lambda *_: "grün"), {"encoding": "latin-1"}, "wrong-encoding"),
    "letters of two bytes": (good, {"encoding": "utf-16"}, "wrong-encoding"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_cannot_be_read_rightly_costs_nothing(kind, synth):
    row, written, code = UNREADABLE[kind]
    done, made, debits = synth(row, **written)
    assert (done.code, code_in(done.err)) == (2, code)
    assert "othing was spent" in done.err
    assert "2019" not in done.err, "no row is quoted"
    assert not made
    assert debits == []


def test_a_million_distinct_values_run_and_pay_for_both(synth, tmp_path):
    count = 1_000_000
    columns = {
        "color": pa.array(["red"] * count),
        "paid": np.round(100 + 1.37 * np.arange(count), 2),
        "day": pa.array([datetime.date(2019, 1, 1)] * count),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    done, made, debits = synth(good, "--rows", 2_000, table="t.parquet")
    assert done.code == 0, done.err
    assert "fit nothing declared" not in done.err
    assert debits == BOTH
    paid = sorted(float(line["paid"]) for line in made)
    assert abs(paid[len(paid) // 2] - 685_000) < 70_000
    assert max(paid) < 3_000_000
