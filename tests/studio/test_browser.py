"""The way of a steward in a browser: every step by the page's own forms; axe looks at each page, small and large."""

import json
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser
from declared_people import COLUMNS, PUBLISHER
from hedgerow.private.ledger import Ledger
from hedgerow.studio.project import Project
from hedgerow.studio.server import Serving

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")
WINDOWS = ((360, "light"), (1600, "dark"))
FAULTS = (
    "axe.run(document, {iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']})"
    ".then(found => found.violations.map(one => [one.id, one.impact, one.nodes[0].html.slice(0, 200)]))"
)
AXE = next(Path(find_spec("axe_core_python").submodule_search_locations[0]).rglob("axe.min.js")).read_text()


class Walk:
    """One browser in one studio."""

    def __init__(self, serving):
        self.serving, self.browser = serving, Browser()
        self.browser.open(serving.gate.address)

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
        button = f"find(one => one.textContent.startsWith({json.dumps(words)}))"
        self.browser.js(f"[...document.querySelectorAll('main button')].{button}.click()")
        self.browser.arrive(f"document.querySelector('main').innerText.includes({json.dumps(then)})")

    def check(self, page):
        """Nothing sticks out of the window and axe finds no fault, on small and large, light and dark."""
        for width, scheme in WINDOWS:
            self.open(page, width=width, scheme=scheme)
            assert not self.browser.js("document.documentElement.scrollWidth > innerWidth"), (page, width)
            self.browser.js(AXE + "; 0")
            assert self.browser.js(FAULTS) == [], (page, width, scheme)


@pytest.fixture
def walk(people):
    serving = Serving(Project(str(people)))
    served = threading.Thread(target=serving.run)
    served.start()
    opened = Walk(serving)
    yield opened
    opened.browser.close()
    serving.end()
    served.join()


def test_from_a_table_with_a_typo_to_a_published_folder(walk, people):
    people.write_text(people.read_text().replace(",male,", ",man,"))
    walk.check("/table")
    walk.press("These are the columns", "Who is a person?")
    walk.press("Save, and go on to the columns", "age")
    for number, declared in enumerate(COLUMNS.values()):
        walk.open(f"/columns/{number}")
        walk.type(**{name: value for name, value in declared.items() if name != "other"})
        walk.browser.js("document.querySelector('main button[name=next]').click()")
        walk.browser.arrive(f"!location.pathname.endsWith('/columns/{number}')")
    walk.check("/columns")
    walk.check("/columns/0")
    walk.open("/budget")
    walk.type(lifetime="5")
    walk.press("Open", "ε = 5")
    walk.type(epsilon="2", rows="1500")
    walk.browser.js("document.getElementById('epsilon').form.requestSubmit()")
    walk.browser.arrive("document.querySelector('svg')")
    walk.check("/budget")
    walk.open("/run")
    walk.press("Make the release", "sex")
    walk.browser.arrive("document.querySelector('.fault')")
    project = walk.serving.studio.project
    assert not project.run.is_done
    walk.check("/run")

    walk.open("/columns/1")
    walk.type(values="female\nman")
    walk.browser.js("document.querySelector('main button[name=next]').click()")
    walk.browser.arrive("!location.pathname.endsWith('/columns/1')")
    walk.open("/run")
    walk.press("Make another release", "The release is there")
    walk.open("/look")
    walk.type(question="SELECT sex, COUNT(*) FROM people GROUP BY sex")
    walk.press("Ask", "man")
    walk.check("/look")
    walk.check("/look/private")
    walk.check("/publish")
    walk.open("/publish")
    walk.type(**PUBLISHER)
    walk.press("Write the folder", "The folder is written")
    walk.check("/publish")
    assert project.run.published.is_dir()
    assert Ledger(project.ledger).remaining_epsilon(1e-9) < 5


def test_an_address_that_was_used_lets_nobody_else_in(walk):
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
