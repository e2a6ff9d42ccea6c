"""The way of a steward in a browser: every step by the page's own forms; axe looks at each page, small and large."""

import http.server
import json
import random
import re
import shlex
import signal
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser
from declared_people import COLUMNS, PUBLISHER, SECRET
from hedgerow.private.ledger import Ledger
from hedgerow.studio.project import Project
from hedgerow.studio.server import Serving

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")
WINDOWS = ((360, "light"), (1600, "dark"))
SECONDS = 100
"""How long a command of a test may take."""
TABS = 400
"""How many tabs the way to a field may take."""
FAULTS = (
    "axe.run(document, {iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']})"
    ".then(found => found.violations.map(one => [one.id, one.impact, one.nodes[0].html.slice(0, 200)]))"
)
AXE = next(Path(find_spec("axe_core_python").submodule_search_locations[0]).rglob("axe.min.js")).read_text()
CHOSEN = "document.activeElement.selectedOptions[0].value"


class Walk:
    """One browser in one studio."""

    def __init__(self, table, **project):
        self.serving = Serving(Project(str(table), **project))
        self._served = threading.Thread(target=self.serving.run)
        self._served.start()
        self.browser = Browser()
        self.browser.open(self.serving.gate.address)
        self.browser.arrive("location.pathname.endsWith('/table')")

    @property
    def project(self):
        return self.serving.studio.project

    @property
    def text(self):
        return self.browser.js("document.querySelector('main').innerText")

    @property
    def command(self):
        """The words of the command that the page shows."""
        return shlex.split(self.browser.js("document.querySelector('details.command pre').textContent"))[1:]

    def open(self, page, **window):
        self.browser.open(f"http://127.0.0.1:{self.serving.port}{self.serving.gate.base}{page}", **window)

    def type(self, **typed):
        for name, value in typed.items():
            self.browser.js(
                f"(() => {{ const field = document.querySelector('main [name=\"{name}\"]');"
                f"field.closest('details') && (field.closest('details').open = true);"
                f"if (field.type === 'checkbox') field.checked = true; else field.value = {json.dumps(value)};"
                "field.dispatchEvent(new Event('change', {bubbles: true})) })()"
            )

    def press(self, words, then):
        """The button with these words, and wait for what the page says then."""
        self.click(words)
        self.browser.arrive(f"document.querySelector('main').innerText.includes({json.dumps(then)})")

    def click(self, words):
        button = f"find(one => one.textContent.startsWith({json.dumps(words)}))"
        self.browser.js(f"[...document.querySelectorAll('main button, main a')].{button}.click()")

    def declare(self, columns):
        """Columns by their forms, one after the other."""
        for number, declared in enumerate(columns):
            self.open(f"/columns/{number}")
            self.type(**declared)
            self.browser.js("document.querySelector('main button[name=next]').click()")
            self.browser.arrive(f"!location.pathname.endsWith('/columns/{number}')")

    def begin_alike(self, **declared):
        """All columns in one go."""
        self.press("These are the columns", "Who is a person?")
        self.press("Save, and go on to the columns", "0 of")
        self.click("Tick all")
        self.click("Declare the ticked")
        self.browser.arrive("location.pathname.endsWith('/columns/several')")
        self.type(**declared)
        self.press("Save for all", "Nothing is left to do")

    def budget(self, epsilon, lifetime=None):
        self.open("/budget")
        if lifetime is not None:
            self.type(lifetime=lifetime)
            self.press("Open a ledger", f"ε = {lifetime}")
        self.type(epsilon=epsilon, rows="1500")
        before = self.browser.js(REVISION)
        self.browser.js("document.getElementById('epsilon').form.requestSubmit()")
        self.browser.arrive(f"{REVISION} !== '{before}'")

    def check(self, page):
        """Nothing sticks out of the window and axe finds no fault, on small and large, light and dark."""
        for width, scheme in WINDOWS:
            self.open(page, width=width, scheme=scheme)
            assert not self.browser.js("document.documentElement.scrollWidth > innerWidth"), (page, width)
            self.browser.js(AXE + "; 0")
            assert self.browser.js(FAULTS) == [], (page, width, scheme)

    def tab_to(self, condition):
        """From where the focus is, by Tab alone, to an element of which a condition holds."""
        for _ in range(TABS):
            self.browser.press("Tab")
            if self.browser.js(f"(one => Boolean({condition}))(document.activeElement)"):
                return
        raise RuntimeError(f"no tab leads to it: {condition}")

    def key_in(self, **typed):
        """Fields by the keyboard: Tab to each, letters into it, the space bar on what is ticked."""
        for name, value in typed.items():
            self.tab_to(f"one.name === {json.dumps(name)}")
            if self.browser.js("document.activeElement.tagName") == "SELECT":
                while self.browser.js(CHOSEN) != value:
                    before = self.browser.js(CHOSEN)
                    self.browser.press("ArrowDown")
                    assert self.browser.js(CHOSEN) != before, (name, value)
            elif self.browser.js("document.activeElement.type") == "checkbox":
                self.browser.press(" ")
            elif self.browser.js("document.activeElement.type") != "date":
                self.browser.js("document.activeElement.select()")
                self.browser.write(value)
            else:
                self.browser.write(value)

    def enter(self, words, arrived):
        """Tab to the button or the link with these words, press Enter, and wait."""
        self.tab_to(f"one.textContent.trim().startsWith({json.dumps(words)})")
        self.browser.press("Enter")
        self.browser.arrive(arrived)

    def close(self):
        self.browser.close()
        self.serving.end()
        self._served.join()


REVISION = "document.querySelector('main [name=revision]').value"
GONE_ON = "document.querySelector('main').innerText.includes('Go on to the run')"


@pytest.fixture
def walk():
    opened = []

    def begin(table, **project):
        opened.append(Walk(table, **project))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def typed(columns=COLUMNS):
    return [{name: value for name, value in declared.items() if name != "other"} for declared in columns.values()]


def test_from_a_table_with_a_typo_to_a_published_folder_and_an_exhausted_ledger(walk, people):
    people.write_text(people.read_text().replace(",male,", ",man,"))
    walk = walk(people)
    walk.check("/table")
    walk.press("These are the columns", "Who is a person?")
    walk.check("/table")
    walk.press("Save, and go on to the columns", "age")
    walk.check("/columns")
    walk.declare(typed())
    walk.check("/columns")
    walk.check("/columns/0")
    walk.check("/columns/several?at=0&at=1")
    walk.check("/columns/text")
    walk.budget("2", "5")
    walk.browser.arrive("document.querySelector('svg')")
    walk.check("/budget")
    walk.open("/run")
    walk.check("/run")
    walk.press("Make the release", "Try again")
    assert not walk.project.run.is_done
    assert "sex" in walk.browser.js("document.querySelector('.fault').innerText")
    walk.check("/run")

    walk.open("/run")
    walk.click("sex")  # what is to be mended is a link
    walk.browser.arrive("location.pathname.endsWith('/columns/1')")
    walk.type(values="female\nman")
    walk.browser.js("document.querySelector('main button[name=next]').click()")
    walk.browser.arrive("!location.pathname.endsWith('/columns/1')")
    walk.open("/run")
    walk.press("Try again", "The release is there")
    walk.open("/look")
    walk.type(question="SELECT sex, COUNT(*) FROM people GROUP BY sex")
    walk.press("Ask", "man")
    walk.check("/look")
    walk.check("/look/private")
    walk.check("/publish")
    walk.open("/publish")
    walk.press("Write the folder", "no answer yet")
    walk.check("/publish")
    walk.open("/publish")
    walk.type(**PUBLISHER)
    walk.press("Write the folder", "The folder is written")
    walk.check("/publish")
    assert walk.project.run.published.is_dir()
    books = Ledger(walk.project.ledger)
    assert books.remaining_epsilon(1e-9) < 5

    walk.budget("8")
    assert "It does not fit" in walk.text
    walk.check("/budget")
    entries = len(books.entries())
    walk.open("/run")
    walk.press("Make another release", "Try again")
    assert "too little" in walk.browser.js("document.querySelector('.fault').innerText")
    assert not walk.project.run.is_done
    assert len(Ledger(walk.project.ledger).entries()) == entries


def wide(folder):
    """A table of which one declaration holds for all columns."""
    draw = random.Random(1)
    rows = [",".join(str(draw.randrange(6)) for _ in range(8)) for _ in range(1500)]
    (folder / "people.csv").write_text("\n".join([",".join("abcdefgh"), *rows]) + "\n")
    return folder / "people.csv"


def test_a_run_that_is_stopped_is_gone_on_with_and_costs_what_the_printed_command_costs(walk, tmp_path, hedgerow):
    walk = walk(wide(tmp_path))
    walk.begin_alike(type="code", size="6")
    walk.budget("2", "5")
    walk.open("/run")
    printed = walk.command
    books = Ledger(walk.project.ledger)
    before = len(books.entries())
    walk.press("Make the release", "Stop it")
    run = walk.project.run
    until = time.monotonic() + SECONDS
    while len(books.entries()) == before and time.monotonic() < until:
        time.sleep(0.001)
    process = walk.serving.studio.job._process
    process.send_signal(signal.SIGSTOP)  # so that it is not over before the browser has stopped it
    threading.Timer(1, process.send_signal, [signal.SIGCONT]).start()
    walk.click("Stop it")
    walk.browser.arrive("document.querySelector('main form:not([action$=stop])')")
    assert not run.is_done
    assert "is kept" in walk.text
    walk.check("/run")
    walk.open("/run")
    assert walk.command == [*printed, "--resume"]
    walk.press("Go on with it", "The release is there")

    folder = tmp_path / "again"
    folder.mkdir()
    ledger = folder / "people.ledger"
    assert hedgerow("ledger", "create", str(ledger), "--dataset", "people", "--epsilon", "5").code == 0
    assert hedgerow(*(elsewhere(word, {run.folder: folder, walk.project.ledger: ledger}) for word in printed)).code == 0
    assert Ledger(walk.project.ledger).spent() == Ledger(ledger).spent()
    assert hedgerow("verify", str(run.release), "--ledger", str(walk.project.ledger)).code == 0


def test_a_release_is_that_of_the_printed_command(walk, tmp_path, hedgerow):
    walk = walk(wide(tmp_path), noise_seed=7)
    walk.begin_alike(type="code", size="6")
    walk.budget("2")
    walk.open("/run")
    printed = walk.command
    walk.press("Make the release", "The release is there")
    run = walk.project.run
    (tmp_path / "again").mkdir()
    assert hedgerow(*(elsewhere(word, {run.folder: tmp_path / "again"}) for word in printed)).code == 0
    assert (tmp_path / "again" / run.table.name).read_bytes() == run.table.read_bytes()


def elsewhere(word, moved):
    for before, after in moved.items():
        word = word.replace(str(before), str(after))
    return word


def test_linked_tables_go_the_whole_way(walk, tmp_path):
    clinic = tmp_path / "clinic"
    clinic.mkdir()
    (clinic / "patients.csv").write_text("id,sex\n" + "".join(f"{n},{'fm'[n % 2]}\n" for n in range(400)))
    (clinic / "visits.csv").write_text("patient,ward\n" + "".join(f"{n % 400},{'abc'[n % 3]}\n" for n in range(900)))
    walk = walk(clinic)
    walk.press("These are the columns", "How the tables hang together")
    walk.type(**{"key-0": "id", "parent-1": "patients", "link-1": "patient", "max_per_parent-1": "3"})
    walk.check("/table")
    walk.open("/table")
    walk.type(**{"key-0": "id", "parent-1": "patients", "link-1": "patient", "max_per_parent-1": "3"})
    walk.press("Save, and go on to the columns", "visits.ward")
    walk.declare([{"type": "category", "values": "f\nm"}, {"type": "category", "values": "a\nb\nc"}])
    walk.budget("4", "6")
    walk.open("/run")
    walk.press("Make the release", "The release is there")
    walk.open("/look")
    walk.type(question="SELECT sex, COUNT(*) FROM patients JOIN visits ON patients.id = visits.patient GROUP BY sex")
    walk.press("Ask", "estimate")
    walk.check("/look")
    walk.open("/publish")
    walk.type(**PUBLISHER)
    walk.press("Write the folder", "The folder is written")
    written = {path.name for path in walk.project.run.published.rglob("*")}
    assert {"patients.csv", "visits.csv"} <= written


def test_a_keyboard_alone_goes_the_whole_way(walk, people):
    walk = walk(people)
    walk.enter("These are the columns", "document.getElementById('who')")
    walk.enter("Save, and go on", "location.pathname.endsWith('/columns')")
    walk.enter("Declare age", "location.pathname.endsWith('/columns/0')")
    for declared, after in zip(typed(), ("/columns/1", "/columns/2", "/columns/3", "/columns"), strict=True):
        walk.key_in(**declared)
        walk.enter("Save, and go to the next", f"location.pathname.endsWith('{after}')")
    walk.enter("Go on to the budget", "location.pathname.endsWith('/budget')")
    walk.key_in(lifetime="4")
    walk.enter("Open a ledger", "document.querySelector('main').innerText.includes('ε = 4')")
    walk.key_in(epsilon="2", rows="1500")
    walk.enter("Save", GONE_ON)
    walk.enter("Go on to the run", "location.pathname.endsWith('/run')")
    walk.enter("Make the release", "document.querySelector('main').innerText.includes('The release is there')")
    walk.enter("Go on, and look", "location.pathname.endsWith('/look')")
    walk.key_in(question="SELECT COUNT(*) FROM t")
    walk.enter("Ask", "document.querySelector('#answers table')")
    walk.enter("a private room", "location.pathname.endsWith('/look/private')")
    walk.key_in(agreed="1")
    walk.enter("Compare with", "document.querySelector('iframe')")
    walk.enter("Leave this room", "location.pathname.endsWith('/look')")
    walk.enter("Go on to publish", "location.pathname.endsWith('/publish')")
    walk.key_in(**{key: answer for key, answer in PUBLISHER.items() if key != "publication_date"})
    walk.enter("Write the folder", "document.querySelector('main').innerText.includes('The folder is written')")
    assert walk.project.run.published.is_dir()


def test_two_hundred_columns_are_declared_in_one_go(walk, tmp_path):
    names = [f"answer {number}" for number in range(200)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    walk = walk(tmp_path / "wide.csv")
    walk.begin_alike(type="category", values="1\n2\n3\n4\n5")
    walk.check("/columns")
    walk.open("/columns")
    assert walk.browser.js("document.querySelectorAll('td .chip.good').length") == 200
    walk.browser.js("document.querySelector('[data-holding]').focus()")
    walk.browser.write("Answer 19")
    walk.click("Tick all")
    walk.click("Declare the ticked")
    walk.browser.arrive("location.pathname.endsWith('/columns/several')")
    assert "11 columns together" in walk.text  # 19 and 190 to 199


def test_a_script_in_a_header_or_a_value_runs_nowhere(walk, tmp_path):
    nasty = "<img src=x onerror=top.ran=1><script>top.ran=1</script>"
    (tmp_path / "t.csv").write_text(f'a,"{nasty}"\n1,2\n')
    walk = walk(tmp_path / "t.csv")
    walk.press("These are the columns", "Who is a person?")
    walk.declare([{"type": "category", "values": f"1\n{nasty}"}, {"type": "boolean"}])
    for page in ("/table", "/columns", "/columns/0", "/columns/1", "/columns/several?at=0&at=1", "/columns/text"):
        walk.open(page)
        assert walk.browser.js("window.ran") is None
        assert walk.browser.js("document.querySelectorAll('main img, main script').length") == 0
        own = f"http://127.0.0.1:{walk.serving.port}{walk.serving.gate.base}/"
        assert [said for said in walk.browser.complaints if not str(said).startswith(own)] == []


def test_a_page_of_another_server_of_this_machine_gets_nothing_and_changes_nothing(walk, people):
    walk = walk(people)
    walk.press("These are the columns", "Who is a person?")
    studio = f"http://127.0.0.1:{walk.serving.port}{walk.serving.gate.base}"  # even if it knew the path
    page = (
        f"<iframe id=f src='{studio}/table'></iframe><img id=i src='{studio}/icon.svg'>"
        f"<script src='{studio}/studio.js'></script><form method=post action='{studio}/budget' target=f>"
        f"<input name=epsilon value=9><input name=delta value=1e-9><input name=revision value=1></form>"
    )

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("set-cookie", f"hedgerow-{walk.serving.port}=another; Path=/")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *said):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        walk.browser.open(f"http://127.0.0.1:{server.server_port}/")
        assert walk.browser.js("document.getElementById('i').naturalWidth") == 0
        assert not walk.browser.js("document.documentElement.classList.contains('scripted')")
        walk.browser.js("document.forms[0].submit()")
        taken = walk.browser.js(
            f"fetch('{studio}/table', {{credentials: 'include'}}).then(a => a.text(), () => 'refused')"
        )
        assert taken == "refused"
        server.shutdown()
    assert walk.project.notes.epsilon is None
    walk.open("/table")  # and its cookie of the same name locks nobody out
    assert "age" in walk.text


def test_an_address_that_was_used_lets_nobody_else_in(walk, people):
    walk = walk(people)
    other = Browser()
    try:
        other.open(walk.serving.gate.address)
        shown = other.js("document.documentElement.innerText")
        assert "age" not in shown
        assert other.js("document.cookie") == ""
    finally:
        other.close()
    walk.open("/table")
    assert "age" in walk.browser.js("document.body.innerText")


def test_nothing_that_is_private_is_in_an_address_or_kept_by_the_browser(walk, people):
    walk = walk(people)
    walk.press("These are the columns", "Who is a person?")
    walk.open("/columns/0")
    walk.type(type="category", values=SECRET)
    walk.browser.js("document.querySelector('main button.plain').click()")
    walk.browser.arrive("location.pathname.endsWith('/columns')")
    for page in ("/columns", "/columns/0", "/columns/text"):
        walk.open(page)
        assert walk.browser.js("location.search + location.hash") == ""
        assert walk.browser.js("caches.keys().then(k => k.length + localStorage.length + sessionStorage.length)") == 0
    kept = [
        event["params"]["response"]["headers"]
        for event in walk.browser.events
        if event.get("method") == "Network.responseReceived"
    ]
    assert kept
    assert all(re.search("no-store", headers["cache-control"]) for headers in kept)
