"""The way of a steward, over the application itself: from a table to a published folder, and what goes wrong on it."""

import asyncio
import html
import json
import re
import time
from urllib.parse import urlencode

import pytest

from declared_people import COLUMNS, PUBLISHER, SECRET
from hedgerow.private.ledger import Ledger
from hedgerow.release.bundle import Release
from hedgerow.studio import commands
from hedgerow.studio.app import Studio, application
from hedgerow.studio.gate import FORM, Gate
from hedgerow.studio.project import Project

PORT = 5556
SECONDS = 100
"""How long a command of a test may take."""


class Steward:
    """A browser that entered by the printed address."""

    def __init__(self, project):
        self.studio = Studio(project)
        self.gate = Gate(application(self.studio), PORT)
        self.studio.base = self.gate.base
        self.status, entered = self._ask("GET", "/open", query=self.gate.address.partition("?")[2], cookie="")
        self.cookie = entered["set-cookie"].partition(";")[0]

    def _ask(self, method, path, body=b"", query="", cookie=None, **headers):
        sent, left = [], [body]
        host = f"127.0.0.1:{PORT}"
        given = {"host": host, "origin": f"http://{host}", "content-type": FORM} | headers
        given["cookie"] = self.cookie if cookie is None else cookie

        async def receive():
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
            "method": method,
            "path": self.gate.base + path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        asyncio.run(self.gate(scope, receive, send))
        self.raw = b"".join(message.get("body", b"") for message in sent[1:]).decode()
        self.body = html.unescape(self.raw)
        return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}

    def get(self, path, **headers):
        path, _, query = path.partition("?")
        self.status, self.headers = self._ask("GET", path, query=query, **headers)
        return self.body

    def post(self, path, *, revision=None, **typed):
        """Send a form, and follow where it leads."""
        typed["revision"] = self.studio.project.notes.revision if revision is None else revision
        typed["from"] = typed.pop("from_", "")
        self.status, headers = self._ask("POST", path, urlencode(typed).encode())
        if self.status != 303:
            return self.body
        assert headers["location"].startswith(self.gate.base)
        return self.get(headers["location"].removeprefix(self.gate.base).partition("#")[0])

    def ask_all(self, path, typed):
        """Send a form in which a name stands more than once, and follow."""
        typed = [*typed, ("revision", self.studio.project.notes.revision)]
        self.status, headers = self._ask("POST", path, urlencode(typed).encode())
        return self.get(headers["location"].removeprefix(self.gate.base).partition("#")[0])

    def wait(self):
        until = time.monotonic() + SECONDS
        while self.studio.at_work and time.monotonic() < until:
            time.sleep(0.05)
        assert not self.studio.at_work

    def declare(self, columns=COLUMNS):
        """Table and Columns."""
        self.post("/table")
        assert self.status == 200, self.body
        self.get("/columns")
        for number, name in re.findall(r"/columns/(\d+)\">([^<]+)<", self.raw):
            self.post(f"/columns/{number}", **columns[html.unescape(name)])
            assert self.status == 200, self.body
        assert "Nothing is left to do" in self.get("/columns"), self.body

    def run(self, epsilon="2", **typed):
        self.post("/budget", epsilon=epsilon, delta="1e-9", rows="2,000")
        self.post("/run", **typed)
        assert self.status == 200, self.body
        self.wait()
        return self.get("/run")


@pytest.fixture
def steward(people):
    opened = Steward(Project(str(people)))
    yield opened
    opened.studio.close()


def test_a_table_becomes_a_published_folder(steward):
    assert "female" not in steward.get("/table")
    assert "age" in steward.body
    steward.declare()
    assert "Open one before" in steward.get("/budget")
    assert "ε = 4" in steward.post("/budget/ledger", lifetime="4")
    project = steward.studio.project
    assert "look at it" in steward.run()
    run = project.run
    assert run.is_done
    assert "hedgerow synth" in steward.body
    assert Ledger(project.ledger).remaining_epsilon(1e-9) < 4
    assert "publish" in steward.get("/look")
    assert "sandbox" in steward.get("/look/page") or "sandbox" in steward.headers["content-security-policy"]
    answered = steward.post("/look", question="SELECT sex, COUNT(*) FROM people GROUP BY sex")
    assert "female" in answered
    assert "basis" in answered
    steward.post("/look/private", agreed="1")
    steward.wait()
    assert "PRIVATE" in steward.get("/look/private")
    assert "PRIVATE" in steward.get("/look/private/page"), steward.body
    assert run.evaluation.parent.name == "private"
    assert "PRIVATE" not in steward.get("/look")
    assert "no answer yet" in steward.post("/publish", title="People", publish="1")
    assert not run.published.exists()
    assert "The folder is written" in steward.post("/publish", **PUBLISHER, publish="1"), steward.body
    made = Release.load(run.release)
    assert made.guarantee is not None
    assert sorted(path.name for path in run.published.iterdir())
    for path in run.published.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_exact_figures_are_in_the_rooms_that_are_marked_private_alone(steward, people):
    people.write_text(people.read_text().replace("male,", "man,"))  # and "female" is "feman" now
    steward.declare(COLUMNS | {"sex": {"type": "category", "values": "female\nmale"}})
    steward.post("/budget/ledger", lifetime="4")
    refused = steward.run()
    assert "sex" in refused
    assert "fit" in refused
    assert not steward.studio.project.run.is_done
    project = steward.studio.project
    assert "PRIVATE" in steward.get("/columns/private")
    assert not project.misfits.exists()
    assert "say first" in steward.post("/columns/private")
    assert not project.misfits.exists()
    steward.post("/columns/private", agreed="1")
    steward.wait()
    assert "PRIVATE" in steward.get("/columns/private/page")
    assert "1,500" in steward.body
    assert any("looked" in entry.record for entry in Ledger(project.ledger).entries())
    for page in ("/table", "/columns", "/columns/0", "/columns/text", "/budget", "/run", "/publish"):
        shown = steward.get(page)
        assert "1,500" not in shown
        assert "1500" not in shown
        assert "feman" not in shown
        assert steward.headers["cache-control"] == "no-store"


def test_a_run_that_is_stopped_is_gone_on_with_and_pays_once(steward):
    steward.declare()
    steward.post("/budget/ledger", lifetime="4")
    steward.post("/budget", epsilon="2", delta="1e-9", rows="2000")
    project = steward.studio.project
    before = len(Ledger(project.ledger).entries())
    steward.post("/run")
    run = project.run
    until = time.monotonic() + SECONDS
    while steward.studio.at_work and len(Ledger(project.ledger).entries()) == before and time.monotonic() < until:
        time.sleep(0.01)
    steward.post("/run/stop")
    if run.is_done:
        pytest.skip("the run was over before it could be stopped")
    assert "Go on with it" in steward.get("/run")
    spent = Ledger(project.ledger).spent()
    words = run.words
    steward.post("/run/resume")
    steward.wait()
    assert "look at it" in steward.get("/run"), steward.body
    assert run.words == words
    assert Ledger(project.ledger).spent() >= spent
    assert Ledger(project.ledger).remaining_epsilon(1e-9) > 0


def test_the_printed_command_makes_the_same_release(people, hedgerow, tmp_path):
    steward = Steward(Project(str(people), noise_seed=7))
    steward.declare()
    steward.run()
    run = steward.studio.project.run
    words = [word.replace(str(run.folder), str(tmp_path / "again")) for word in run.words]
    (tmp_path / "again").mkdir()
    steward.studio.close()
    assert hedgerow(*words).code == 0
    assert (tmp_path / "again" / "synthetic.csv").read_bytes() == run.table.read_bytes()


def test_an_exhausted_ledger_refuses_and_nothing_is_read(steward):
    steward.declare()
    steward.post("/budget/ledger", lifetime="1")
    before = steward.studio.project.ledger.read_bytes()
    assert "It does not fit" in steward.post("/budget", epsilon="2", delta="1e-9")
    assert "fault" in steward.run()
    assert not steward.studio.project.run.is_done
    assert steward.studio.project.ledger.read_bytes() == before


def test_linked_tables_become_a_published_folder_and_what_is_not_there_is_said(hedgerow, tmp_path):
    hedgerow("example", "visits", "-o", "visits", "--rows", "400")
    given = next(tmp_path.glob("visits*.yaml"))
    steward = Steward(Project(str(tmp_path / "visits"), schema=given))
    assert "How the tables hang together" in steward.get("/table")
    assert "Nothing is left to do" in steward.get("/columns"), steward.body
    assert "not there for linked tables yet" in steward.body
    assert "look at it" in steward.run()
    assert "This page goes with the synthetic tables" in steward.get("/look")
    assert "SELECT COUNT(*) FROM patients" in steward.body
    assert "made-up unit" in steward.get("/look/page")
    joined = "SELECT sex, COUNT(*) FROM patients JOIN visits ON patients.id = visits.patient GROUP BY sex"
    assert "basis" in steward.post("/look", question=joined), steward.body
    assert "FROM" in steward.post("/look", question="SELECT COUNT(*) FROM elsewhere")
    assert steward.status == 422
    steward.post("/look/private", agreed="1")
    steward.wait()
    assert "PRIVATE" in steward.get("/look/private/page"), steward.body
    assert "The folder is written" in steward.post("/publish", **PUBLISHER, publish="1"), steward.body
    assert {"patients.csv", "visits.csv"} <= {path.name for path in steward.studio.project.run.published.rglob("*")}
    assert hedgerow("verify", str(steward.studio.project.run.published)).code == 0
    steward.get("/columns/private")
    assert steward.status == 422
    steward.studio.close()


@pytest.mark.parametrize("page", ["/columns", "/columns/0", "/look", "/look/private", "/look/page", "/publish"])
def test_a_step_that_comes_too_early_says_what_comes_first(steward, page):
    assert "Hint" in steward.get(page)
    assert steward.status == 422


@pytest.mark.parametrize(
    ("path", "typed", "said"),
    [
        ("/table", {"delimiter": "five"}, "delimiter"),
        ("/table", {"encoding": "klingon"}, "encoding"),
        ("/budget", {"epsilon": "much", "delta": "1e-9"}, "must be a number"),
        ("/budget", {"epsilon": "-1", "delta": "1e-9"}, "epsilon must"),
        ("/budget", {"epsilon": "1", "delta": "1e-9", "rows": "many"}, "whole number"),
        ("/run", {}, "choose ε first"),
        ("/run/resume", {}, "no run to go on with"),
        ("/columns/0", {"type": "novel"}, "there is no schema yet"),
    ],
)
def test_wrong_input_is_answered_by_a_sentence_and_saved_nowhere(steward, path, typed, said):
    assert said in steward.post(path, **typed).lower()
    assert steward.status == 422
    assert not (steward.studio.project.folder / "studio.json").exists()


def test_a_page_that_another_tab_made_old_saves_nothing(steward):
    old = steward.studio.project.notes.revision
    steward.declare()
    text = steward.studio.project.schema.read_text()
    assert "out of date" in steward.post("/columns/0", revision=old, type="boolean")
    assert steward.status == 409
    assert steward.studio.project.schema.read_text() == text


def test_strangers_find_nothing_on_any_page(steward):
    steward.declare()
    for path in ("/table", "/columns", "/budget", "/run", "/run/progress", "/columns/private/page", "/style.css"):
        steward.get(path, cookie="")
        assert steward.status == 403
        steward.get(path, host="evil.example")
        assert steward.status == 421
        steward.get(path, origin="http://evil.example")
        assert steward.status == 403


def test_paths_lead_nowhere_else(steward):
    for path in ("/../people.csv", "/%2e%2e/people.csv", "/people.csv", "/studio.json", "/columns/0/../../studio.json"):
        steward.get(path)
        assert steward.status in (404, 422)
        assert SECRET not in steward.body


def test_scripts_in_a_header_and_in_values_are_text(tmp_path):
    nasty = "<script>alert(1)</script>"
    (tmp_path / "t.csv").write_text(f"a,{nasty}\n1,2\n")
    steward = Steward(Project(str(tmp_path / "t.csv")))
    steward.declare({"a": {"type": "category", "values": f"1\n{nasty}"}, nasty: {"type": "boolean"}})
    for page in ("/table", "/columns", "/columns/0", "/columns/1", "/columns/text"):
        assert nasty in steward.get(page) or page == "/columns/0"
        assert nasty not in steward.raw
    steward.studio.close()


def test_many_columns_stay_usable(tmp_path):
    names = [f"c{number}" for number in range(10_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    steward = Steward(Project(str(tmp_path / "wide.csv")))
    steward.post("/table")
    assert "page 40 of 40" in steward.get("/columns?page=99")
    assert "c9999" in steward.body
    steward.post("/columns/9999", type="boolean")
    assert steward.status == 200
    steward.studio.close()


def test_several_columns_are_declared_at_once(steward):
    steward.post("/table")
    assert "2 columns together" in steward.get("/columns/several?at=0&at=2")
    assert "can be used" in steward.post("/columns/several/check", at="0", type="boolean")
    steward.ask_all("/columns/several", [("at", "0"), ("at", "2"), ("type", "integer"), ("min", "9"), ("max", "0")])
    assert "Smallest: 9 is greater" in steward.body
    assert "2 columns together" in steward.body
    steward.ask_all("/columns/several", [("at", "0"), ("at", "2"), ("type", "integer"), ("min", "0"), ("max", "9")])
    assert "2 of 4" in steward.body
    assert steward.studio.project.schema.read_text().count("{type: integer, min: 0, max: 9}") == 2
    assert "sex" in steward.get("/columns?open=1")
    assert "/columns/0" not in steward.raw
    assert "tick the columns" in steward.get("/columns/several").lower()
    assert "no such column" in steward.get("/columns/several?at=99").lower()


def test_how_the_file_is_written_is_filled_in_where_the_header_tells(tmp_path):
    (tmp_path / "t.csv").write_bytes("Größe;Alter\n1,5;3\n".encode("cp1252"))
    steward = Steward(Project(str(tmp_path / "t.csv")))
    assert "not UTF-8" in steward.get("/table")
    assert 'value="windows-1252"' in steward.raw
    assert "--file" not in steward.body
    steward.post("/table", again="1", encoding="windows-1252")
    assert 'value=";"' in steward.raw or 'value="semicolon"' in steward.raw
    assert not steward.studio.project.schema.exists()
    assert "Größe" in steward.post("/table", again="1", encoding="windows-1252", delimiter="semicolon")
    assert not steward.studio.project.schema.exists()
    assert "Who is a person?" in steward.post("/table", encoding="windows-1252", delimiter="semicolon")
    steward.studio.close()


def test_what_does_not_fit_leads_to_the_columns_to_mend(steward, people):
    people.write_text(people.read_text().replace("female", "woman"))
    steward.declare(COLUMNS | {"sex": {"type": "category", "values": "female\nmale"}})
    assert "No release was made" in steward.run()
    assert re.search(r'/columns/1">sex</a>', steward.raw)
    assert "--allow-misfits" not in steward.body
    assert "Try again" in steward.body


def test_what_is_typed_is_checked_and_not_saved(steward):
    steward.post("/table")
    text = steward.studio.project.schema.read_text()
    assert "can be used" in steward.post("/columns/0/check", type="integer", min="0", max="9")
    assert "still to be filled in" in steward.post("/columns/0/check", type="integer", min="0")
    assert "Smallest: 9 is greater" in steward.post("/columns/0/check", type="integer", min="9", max="0")
    assert steward.studio.project.schema.read_text() == text


def test_what_was_saved_is_there_again(people):
    steward = Steward(Project(str(people)))
    steward.declare()
    steward.post("/budget", epsilon="1.5", delta="1e-9")
    steward.studio.close()
    again = Steward(Project(str(people)))
    assert 'value="1.5"' in again.get("/budget")
    saved = json.loads((again.studio.project.folder / "studio.json").read_text())
    assert saved["epsilon"] == 1.5
    assert commands.shown(commands.check(again.studio.project)).startswith("hedgerow schema check")
    again.studio.close()
