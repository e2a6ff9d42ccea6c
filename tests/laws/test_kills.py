"""Commands killed at any moment, again and again: no debit is lost or made twice, no file is half, nothing lives on.

The moments are steps (every call that changes what is on disk: before it, after it, in the middle of a write), and
points in time. HEDGEROW_KILLS says how many kills; `pytest -s` prints what was killed, how, and how far it had come.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from forked import SIGNALS, ending, write_inputs
from hedgerow.budget.accounting import whole
from hedgerow.budget.amounts import Budget
from hedgerow.models.model import BLOCK_ROWS
from hedgerow.private.journal import _is_void, _records, nonce_of
from hedgerow.private.ledger import Ledger
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from paying import BUDGET, LOOK, debits_of, next_command, synth_words, where_synth_is

KILLS = int(os.environ.get("HEDGEROW_KILLS", "150"))
SEED = int(os.environ.get("HEDGEROW_KILLS_SEED", "0"))
ROWS = 3 * BLOCK_ROWS + 5
SMALL_PARTS = """
import hedgerow.release.parts as p
p.write_parts.__defaults__ = tuple(1 if each == p.BLOCKS_PER_PART else each for each in p.write_parts.__defaults__)
"""


class Campaign:
    """What is killed, how often, and what holds after each kill."""

    def __init__(self, folder, server):
        self.server = server
        self.inputs = _made(folder / "inputs")
        self.rng = random.Random(SEED)
        self.kills = Counter()
        self._folder, self._known = folder, {}
        write_inputs(self.inputs)
        small = Schema.parse("columns: {a: {type: code, size: 5}}")
        synthesize(pa.table({"a": [0, 1, 4] * 20}), small, BUDGET, "independent").save(self.inputs / "r.release")

    def folder(self, name):
        shutil.rmtree(self._folder / name, ignore_errors=True)
        return _made(self._folder / name)

    def finish(self, words, folder, before=""):
        done = self.server.run(words, folder, before)
        assert done.code == 0, done.err
        return done

    def learn(self, label, words, folder, before=""):
        """How many steps a command takes, and how long: only to spread the kills."""
        noted = self._folder / "steps"
        begin = time.monotonic()
        counting = f"import forked; forked.count_steps({str(noted)!r})\n"
        self.finish(words, folder, counting + before)
        self._known[label] = (int(noted.read_text()), time.monotonic() - begin)

    def knows(self, label):
        return label in self._known

    def kill(self, label, words, folder, where, before=""):
        """Kill a command somewhere, and see that nothing of it lives on and that it said what there is to say."""
        steps, seconds = self._known.get(label, self._known["synth"])
        number = self.rng.choice(SIGNALS)
        unfinished = set(folder.rglob(".*.part"))
        if self.rng.random() < 0.6:
            moment = self.rng.choice(["before", "after", "middle"])
            before += ending(self.rng.randint(1, max(1, steps)), moment, number)
            running = self.server.start(words, folder, before)
        else:
            running = self.server.start(words, folder, before)
            time.sleep(self.rng.uniform(0, 1.1 * seconds))
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, number)
        done = running.wait()
        assert running.left() == []
        assert "Traceback" not in done.err, done.err
        assert "Exception ignored" not in done.err, done.err
        if number is not signal.SIGKILL:
            assert set(folder.rglob(".*.part")) <= unfinished
            assert done.code in (0, 130, -number), done.err  # the last: before anything of ours had been imported
            assert done.code != 130 or done.err.endswith(
                "hedgerow [stopped]: stopped; no half-written file was left, and what was debited stays debited.\n"
            )
        self.kills[label, number.name if done.code else "too late", where()] += bool(done.code)

    @property
    def total(self):
        return sum(self.kills.values())


def _made(folder):
    folder.mkdir(parents=True)
    return folder


# ------------------------------------------------------------ synth, resumed, and its rows


def kill_synth(campaign, *more):
    folder = campaign.folder("synth")
    Ledger.create(folder / "l", "people", Budget(9.0, 1e-8))
    for _ in range(campaign.rng.randint(1, 3)):
        command = next_command(campaign.inputs, folder, *more)
        if command is not None:
            campaign.kill(*command, folder, lambda: where_synth_is(folder, *more))
    while (command := next_command(campaign.inputs, folder, *more)) is not None:
        campaign.finish(command[1], folder)
        where_synth_is(folder, *more)
    left = {path.name for path in folder.iterdir() if not path.name.startswith(".page.html")}
    assert left - {"page.html", "out.release.journal"} == {"l", "out.release", "out.csv"}
    assert [debit["method"] for debit in debits_of(folder)] == ["look", "mst"]
    assert Ledger(folder / "l").torn() == [] or Ledger(folder / "l").spent().units == whole(BUDGET).units


def kill_synth_with_page(campaign):
    kill_synth(campaign, "--report", "page.html")


# ------------------------------------------------------------ a folder of parts, by several processes


def parts_words(campaign):
    return ["sample", campaign.inputs / "r.release", "-o", "rows", "--rows", ROWS, "--workers", "2", "-q"]


def where_parts_are(campaign, folder):
    if not (folder / "rows").exists():
        return "nothing begun"
    names = {path.name for path in (folder / "rows").iterdir() if not path.name.endswith(".part")}
    assert names <= {"manifest.json", *(f"part-{part:06d}.parquet" for part in range(4))}
    if "manifest.json" not in names:
        return "nothing begun"
    json.loads((folder / "rows" / "manifest.json").read_text())
    parts = sorted(names - {"manifest.json"})
    for part in parts:
        assert digest(folder / "rows" / part) == campaign.parts[part]
    return f"{len(parts)} of 4 parts"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kill_sample(campaign):
    folder = campaign.folder("sample")
    for _ in range(campaign.rng.randint(1, 3)):
        words = parts_words(campaign)
        campaign.kill("sample", words, folder, lambda: where_parts_are(campaign, folder), SMALL_PARTS)
    campaign.finish(parts_words(campaign), folder, SMALL_PARTS)
    assert where_parts_are(campaign, folder) == "4 of 4 parts"
    assert not list(folder.rglob(".*"))


# ------------------------------------------------------------ ledgers and pages


def kill_ledger(campaign):
    folder = campaign.folder("ledger")
    words = ["ledger", "create", "l", "--dataset", "people", "--epsilon", "4"]

    def where():
        assert {path.name for path in folder.iterdir() if not path.name.endswith(".part")} <= {"l"}
        return "ledger there" if (folder / "l").exists() and Ledger(folder / "l").entries() else "nothing begun"

    campaign.kill("ledger", words, folder, where)
    if not (folder / "l").exists():
        campaign.finish(words, folder)
    assert [path.name for path in folder.iterdir() if where() == "ledger there"] == ["l"]


def evaluate_words(campaign, *more):
    table, schema = campaign.inputs / "t.parquet", campaign.inputs / "s.yaml"
    pages = ["--metrics", "tvd1", "--report", "page.html", "--ledger", "l"]
    return ["evaluate", table, table, "-s", schema, *pages, *more]


def kill_evaluate(campaign):
    folder = campaign.folder("evaluate")
    Ledger.create(folder / "l", "people", Budget(9.0, 1e-8))
    page = folder / "page.html"

    def where():
        assert {path.name for path in folder.iterdir() if not path.name.endswith(".part")} <= {"l", "page.html"}
        assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("*.part"))
        looked = len(Ledger(folder / "l").entries()) > 1
        assert looked or not page.exists()
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")
        return "page there" if page.exists() else "looked" if looked else "nothing begun"

    campaign.kill("evaluate", evaluate_words(campaign), folder, where)
    if not page.exists():
        campaign.finish(evaluate_words(campaign), folder)
    assert where() == "page there"
    assert Ledger(folder / "l").spent().units == 0
    if not list(folder.glob(".*")):
        assert {path.name for path in folder.iterdir()} == {"l", "page.html"}


# ------------------------------------------------------------ comparisons: every run of a method is a release


def compare_words(campaign):
    table, schema = campaign.inputs / "t.parquet", campaign.inputs / "s.yaml"
    asked = ["--methods", "independent,mst", "--epsilons", "1", "--runs", "1", "--metrics", "tvd1"]
    return ["compare", table, "-s", schema, "-o", "grid", *asked, "--ledger", "l", "-q"]


def where_compare_is(folder):
    """Each debit, two a run, is one of a cell that is done, or that has its journal."""
    grid = folder / "grid"
    cells = {path.name: path for path in (grid / "cells").glob("*")} if grid.exists() else {}
    journals = [path.read_bytes() for name, path in cells.items() if name.endswith(".journal")]
    runs = [_records(data)[0].value["nonce"] for data in journals if not _is_void(data)]
    begun = {nonce_of(run, part) for run in runs for part in ("look", "hash")}
    done = [json.loads(path.read_text()) for name, path in cells.items() if name.endswith(".json")]
    assert [row["problem"] for row in done if row["status"] != "done"] == []
    paid = sum(row["kind"] == "method" for row in done)
    debits = debits_of(folder)
    looks = sum(debit["method"] == "look" for debit in debits)
    rests = len(debits) - looks
    assert paid <= rests <= looks <= 2
    assert Ledger(folder / "l").spent().units == looks * LOOK.units + rests * (whole(BUDGET) - LOOK).units
    assert len([debit for debit in debits if debit["journal"] not in begun]) <= 2 * paid
    for name in ("comparison.html", "results.parquet", "manifest.json"):
        assert not (grid / name).exists() or (grid / name).stat().st_size
    return f"{len(done)} of 4 cells, {len(debits)} debits"


def kill_compare(campaign):
    folder = campaign.folder("compare")
    if not campaign.knows("compare"):
        Ledger.create(campaign.folder("grid") / "l", "people", Budget(9.0, 1e-8))
        campaign.learn("compare", compare_words(campaign), folder.parent / "grid")
    Ledger.create(folder / "l", "people", Budget(9.0, 1e-8))
    for _ in range(campaign.rng.randint(1, 3)):
        campaign.kill("compare", compare_words(campaign), folder, lambda: where_compare_is(folder))
    campaign.finish(compare_words(campaign), folder)
    assert where_compare_is(folder) == "4 of 4 cells, 4 debits"
    left = {path.name for path in folder.rglob("*") if path.suffix != ".json" or path.parent.name != "cells"}
    assert left == {"l", "grid", "cells", "comparison.html", "results.parquet", "manifest.json"}
    assert (folder / "grid" / "comparison.html").read_text().rstrip().endswith("</html>")


# ------------------------------------------------------------ every other command that writes


def other_words(campaign):
    """Commands that write the same bytes each time."""
    table, schema, release = (campaign.inputs / name for name in ("t.parquet", "s.yaml", "r.release"))
    return {
        "example": ["example", "opm", "-o", "t.csv", "--rows", "2000"],
        "draft": ["schema", "draft", table, "-o", "draft.yaml"],
        "check": ["schema", "check", table, "-s", schema, "--private", "misfits.html"],
        "csv": ["sample", release, "-o", "rows.csv", "--rows", "200000"],
        "verify": ["verify", release],
    }


def kill_other(campaign):
    label = campaign.rng.choice([*other_words(campaign)])
    folder, words = campaign.folder("other"), other_words(campaign)[label]

    def where():
        made = {path.name: digest(path) for path in folder.iterdir() if not path.name.endswith(".part")}
        assert made.items() <= campaign.others.items()
        return "files there" if made else "nothing begun"

    campaign.kill(label, words, folder, where)
    again = campaign.server.run(words, folder)
    assert again.code == 0 or again.refusal == "already-exists"
    where()
    assert not list(folder.glob(".*.part"))


# ------------------------------------------------------------ the campaign

FEW = {kill_synth: 10, kill_synth_with_page: 6, kill_sample: 2, kill_ledger: 3, kill_evaluate: 3, kill_other: 4}
KINDS = FEW | {kill_compare: 1}
"""How often each is killed, of so many."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory, server):
    made = Campaign(tmp_path_factory.mktemp("kills"), server)
    folder = made.folder("learn")
    Ledger.create(folder / "l", "people", Budget(9.0, 1e-8))
    made.learn("synth", synth_words(made.inputs, "--report", "page.html"), folder)
    made.learn("evaluate", evaluate_words(made, "--overwrite"), folder)
    made.learn("rows", ["sample", "out.release", "-o", "again.csv"], folder)
    made.learn("ledger", ["ledger", "create", "m", "--dataset", "people", "--epsilon", "4"], folder)
    made.learn("sample", parts_words(made), folder, SMALL_PARTS)
    others = made.folder("others")
    for label, words in other_words(made).items():
        made.learn(label, words, others)
    made.others = {path.name: digest(path) for path in others.iterdir()}
    made.parts = {path.name: digest(path) for path in (folder / "rows").glob("*.parquet")}
    yield made
    for (label, number, where), count in sorted(made.kills.items()):
        print(f"{label:9} {number:8} {where:28} {count}")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="asks /proc who lives")
@pytest.mark.parametrize("kind", [*FEW])
def test_a_few_kills(campaign, kind):
    kind(campaign)


@pytest.mark.audit
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="asks /proc who lives")
def test_many_kills(campaign):
    while campaign.total < KILLS:
        (kind,) = campaign.rng.choices([*KINDS], [*KINDS.values()])
        kind(campaign)
