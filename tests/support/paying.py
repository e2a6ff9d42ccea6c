"""A run that pays a ledger, step by step: what a user types next, how far it has come, and what must hold there."""

from hedgerow.budget.accounting import whole
from hedgerow.budget.amounts import Budget
from hedgerow.private.discovery import SHARE_OF_LOOK
from hedgerow.private.journal import _is_void, _records, nonce_of
from hedgerow.private.ledger import Ledger, confirm_entry
from hedgerow.release.bundle import verify

BUDGET = Budget(1.0, 1e-9)
LOOK = whole(BUDGET).share(SHARE_OF_LOOK)
LOOKED = 5
"""Records of a look at three columns: its charge, the number of rows, and misfits."""


def synth_words(inputs, *more):
    table, schema = inputs / "t.parquet", inputs / "s.yaml"
    return ["synth", table, "-s", schema, "-e", "1", "-m", "mst", "-o", "out.csv", "--ledger", "l", *more]


def next_command(inputs, folder, *more):
    """What a user would type now, or nothing where everything is there."""
    journal = folder / "out.release.journal"
    if journal.exists() and journal.stat().st_size:
        return "resume", synth_words(inputs, *more, "--resume")
    if not (folder / "out.release").exists():
        return "synth", synth_words(inputs, *more)
    if not (folder / "out.csv").exists():
        return "rows", ["sample", "out.release", "-o", "out.csv", *rows_of(more)]
    return None


def rows_of(more):
    """--rows and its number, where they are typed."""
    return [word for index, word in enumerate(more) if "--rows" in more[max(0, index - 1) : index + 1]]


def where_synth_is(folder, *more):
    """How far the run of a folder has come; everything that must hold there is checked on the way."""
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".part")}
    assert names <= {"l", "out.release", "out.csv", "out.release.journal", "page.html"}
    ledger, journal = Ledger(folder / "l"), folder / "out.release.journal"
    debits = debits_of(folder)
    spent = ledger.spent().units
    assert spent in (0, LOOK.units, whole(BUDGET).units)
    assert [debit["method"] for debit in debits] in ([], ["look"], ["look", "mst"])
    data = journal.read_bytes() if journal.exists() else b""
    header, answers = (None, []) if _is_void(data) else _records(data)[:2]
    if (folder / "page.html").exists():
        assert (folder / "page.html").read_text().rstrip().endswith("</html>")
        assert (folder / "out.csv").exists()
    if (folder / "out.csv").exists():
        rows = int(rows_of(more)[1]) if rows_of(more) else verify(folder / "out.release")[0].estimated_rows
        assert (folder / "out.csv").read_bytes().count(b"\n") == rows + 1
        return "rows there" if "--report" not in more or (folder / "page.html").exists() else "draw the page"
    if (folder / "out.release").exists():
        release, _ = verify(folder / "out.release")
        confirm_entry(folder / "l", release.certificate.ledger)
        return "release there, journal too" if data else "draw rows"
    if not spent:
        assert not answers
        return "nothing begun" if header is None else "journal, no debit"
    assert header is not None, "the debit is lost"
    names = [nonce_of(header.value["nonce"], part) for part in ("look", "hash")]
    assert [debit["journal"] for debit in debits] == names[: len(debits)]
    charges = [record.asked[1] for record in answers if record.asked[0] == "charge"]
    if spent == LOOK.units:
        assert charges in ([], ["look"])
        return "look, no answer" if len(answers) < 2 else "look"
    return "debits, no answer" if len(answers) < LOOKED + 2 else "answers"


def debits_of(folder):
    """What the ledger of a folder was debited."""
    return [entry.record for entry in Ledger(folder / "l").entries() if "debit" in entry.record]
