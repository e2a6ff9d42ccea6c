"""The pages in a browser: what is drawn, what a mouse and a keyboard find, and that nothing runs or is fetched."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from browser import CHROMIUM, Browser
from hedgerow.pages.comparison import MetricView, comparison_page
from hedgerow.pages.release import release_page
from hedgerow.private.evaluate import evaluate
from hedgerow.private.evaluate.marginals import distances
from hedgerow.schema import Schema

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium on the path, so the pages are not opened in a browser"
)
EVIL = "<script>alert(1)</script>"
LONG = "a very long category name that goes on and on, longer than anyone would like to read in a picture"
SCHEMA = Schema.from_dict(
    {
        "dataset": EVIL,
        "columns": {
            EVIL: {"type": "category", "values": ["=cmd()", "<img src=x onerror=alert(2)>", LONG]},
            "grade": {"type": "category", "values": ["low", "mid", "high"], "ordered": True, "missing": True},
            "born": {"type": "date", "min": "1950-01-01", "max": "2009-12-31", "step": "month"},
            "pay": {"type": "number", "min": 0, "max": 1000, "bins": 25},
            "flag": {"type": "boolean"},
        },
    }
)


def rows(count, seed):
    rng = np.random.default_rng(seed)
    place = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    grade = np.minimum(place + rng.integers(0, 2, count), 2)
    return pa.table(
        {
            EVIL: pa.array(["=cmd()", "<img src=x onerror=alert(2)>", LONG]).take(pa.array(place)),
            "grade": pa.array(["low", "mid", "high"]).take(pa.array(grade)),
            "born": pa.array(rng.integers(-7000, 14000, count).astype("datetime64[D]")),
            "pay": pa.array(np.clip(300 * (grade + rng.random(count)), 0, 1000)),
            "flag": pa.array(rng.random(count) < 0.3),
        }
    )


@pytest.fixture(scope="module")
def browser():
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    page = tmp_path_factory.mktemp("pages") / "evaluation.html"
    report = evaluate(rows(800, 0), rows(700, 1), SCHEMA, metrics=["tvd1", "tvd2", "svm"], target="grade", report=page)
    return page, report


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    made = hr.synthesize(rows(3000, 0), SCHEMA, hr.Budget(2.0), "mst")
    page = tmp_path_factory.mktemp("pages") / "release.html"
    page.write_text(release_page(made))
    return page, made


TIP = "document.getElementById('tip')"
OVERLAPS = """(() => {
  const bad = [];
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const upright = [...svg.querySelectorAll("text")].filter(text => !text.getAttribute("transform"));
    const boxes = upright.map(text => [text.textContent, text.getBoundingClientRect()]).filter(pair => pair[1].width);
    for (const [i, [one, a]] of boxes.entries()) for (const [other, b] of boxes.slice(0, i)) {
      const across = a.left < b.right - 1 && b.left < a.right - 1;
      if (across && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(one + " / " + other);
    }
  }
  return bad;
})()"""
BARS = """(() => {
  const figures = [...document.querySelectorAll("#columns figure")];
  const figure = figures.find(each => each.querySelector("b").textContent === "flag");
  const groups = [...figure.querySelectorAll("g[data-tip]")];
  return groups.map(group => [...group.querySelectorAll("rect")].slice(0, 2).map(rect => rect.getBBox().width));
})()"""
PANELS = """(() => {
  const tabs = document.querySelector("#correlations [data-tabs]");
  return [...tabs.querySelectorAll("[data-panel]")].filter(each => !each.hidden).map(each => each.dataset.panel);
})()"""
UNSEEN = """[...document.querySelectorAll("[data-panel]")]
  .filter(each => getComputedStyle(each).display === "none").length"""


def test_names_and_values_stay_text(browser, evaluation, release):
    for page, _ in (evaluation, release):
        browser.open(page)
        assert browser.complaints == []
        assert browser.js("document.querySelectorAll('script').length") == 1
        assert browser.js("document.querySelectorAll('img').length") == 0
        assert EVIL in browser.js("document.querySelector('h1').textContent")
        assert "=cmd()" in browser.js("document.querySelector('#columns').textContent")


def test_hovering_the_heat_map_shows_the_pair_that_was_computed(browser, evaluation):
    page, _ = evaluation
    browser.open(page)
    browser.hover("#pairs [data-cell='4,1']")
    said = browser.js(f"{TIP}.hidden ? '' : {TIP}.textContent")
    found = evaluate(rows(800, 0), rows(700, 1), SCHEMA, metrics=["tvd1"])
    assert said.startswith("grade × flag: ")
    encoding = SCHEMA.encoding()
    coded = [encoding.encode(rows(*args)) for args in ((800, 0), (700, 1))]
    (apart,) = distances(*coded, encoding.domain, [("grade", "flag")])
    assert said == f"grade × flag: {100 * apart:.2f} % of the rows differ"
    tile = "document.querySelector('[data-figure=tvd1] b').textContent"
    assert browser.js(tile) == f"{found['tvd1']:.4f}"


def test_the_heat_map_by_keyboard(browser, evaluation):
    browser.open(evaluation[0])
    browser.js("document.querySelector('#pairs [data-cell]').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        browser.press(key)
    assert browser.js("document.activeElement.dataset.cell") == "2,1"
    assert browser.js(f"{TIP}.textContent").startswith("grade × born")
    browser.press("Escape")
    assert browser.js(f"{TIP}.hidden") is True
    reachable = "document.querySelectorAll('#pairs [data-cell][tabindex=\"0\"]').length"
    assert browser.js(reachable) == 1  # one stop in the tab order, not fifteen


def test_bars_are_as_long_as_their_shares(browser, evaluation):
    browser.open(evaluation[0])
    lengths = browser.js(BARS)
    truth = [np.mean(rows(*args)["flag"].to_numpy()) for args in ((800, 0), (700, 1))]
    for (no, yes), share in zip(zip(*lengths, strict=True), truth, strict=True):
        assert yes / no == pytest.approx(share / (1 - share), rel=0.02)


def test_tabs_change_the_picture(browser, evaluation):
    browser.open(evaluation[0])
    assert browser.js(PANELS) == ["before: real"]
    browser.click("#correlations [data-tabs] button[data-show='difference']")
    assert browser.js(PANELS) == ["difference"]
    browser.hover("#correlations [data-panel='difference'] [data-cell='1,0']")
    assert "synthetic" in browser.js(f"{TIP}.textContent")


def test_the_budget_adds_up_on_the_release_page(browser, release):
    page, made = release
    browser.open(page)
    parts = browser.js("[...document.querySelectorAll('#budget svg rect[data-tip]')].map(r => r.getBBox().width + 0)")
    assert len(parts) == len(made.certificate.charges)
    assert sum(parts) == pytest.approx(900, abs=len(parts) + 1)
    browser.click("body > details > summary")
    browser.hover("#budget svg rect[data-tip]")
    assert "% of the budget" in browser.js(f"{TIP}.textContent")
    browser.click("#certificate summary")
    assert browser.js("document.querySelector('#certificate details').open") is True
    assert browser.js("document.querySelectorAll('#certificate details tbody tr').length") == len(parts)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_pages_on_a_phone_in_light_and_dark(browser, evaluation, release, scheme):
    for page, _ in (evaluation, release):
        browser.open(page, width=390, height=844, scheme=scheme)
        assert browser.js("document.documentElement.scrollWidth") <= 390
        assert browser.js(OVERLAPS) == []
        ground, ink = browser.js("['backgroundColor', 'color'].map(k => getComputedStyle(document.body)[k])")
        dark = sum(map(int, ground[4:-1].split(",")[:3])) < 200
        assert dark == (scheme == "dark")
        assert ground != ink


def test_on_a_desk_and_in_print_nothing_covers_anything(browser, evaluation, release):
    for page, _ in (evaluation, release):
        browser.open(page)
        assert browser.js(OVERLAPS) == []
        browser.open(page, media="print")
        assert browser.js("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert browser.js(UNSEEN) == 0
    browser.open(evaluation[0], media="print")
    assert browser.js("getComputedStyle(document.querySelector('.private')).position") == "fixed"  # on every sheet


def test_a_hundred_columns(browser, tmp_path):
    schema = Schema.from_dict({f"column number {index}": 2 + index % 5 for index in range(100)})
    tables = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        tables.append(pa.table({name: rng.integers(0, column.size, 50) for name, column in schema.columns.items()}))
    evaluate(*tables, schema, metrics=["tvd1"], report=tmp_path / "wide.html")
    browser.open(tmp_path / "wide.html", width=390, height=844)
    assert browser.js("document.documentElement.scrollWidth") <= 390
    assert browser.js("document.querySelectorAll('#pairs [data-cell]').length") == 5050
    assert browser.js("document.querySelectorAll('#columns figure').length") == 100
    browser.hover("#pairs [data-cell='99,98']")
    assert "column number 98 × column number 99" in browser.js(f"{TIP}.textContent")


def test_the_comparison_draws_better_methods_lower(browser, tmp_path):
    def row(name, epsilon, error, kind="method", status="done"):
        took = {"cpu_s": 1.0, "wall_s": 1.0, "peak_mb": 100.0} if kind == "method" else {}
        found = {"tvd3": error} if status == "done" else {}
        about = {"kind": kind, "name": name, "epsilon": epsilon, "run": 0, "options": "{}", "status": status}
        return {**about, "problem": None if status == "done" else EVIL, **found, **took}

    made = [row("good", 1.0, 0.05), row("bad", 1.0, 0.2), row("bad", 10.0, 0.1), row("good", 10.0, 0.02)]
    made += [row("bootstrap", None, 0.01, "floor"), row("broken", 1.0, 0, status="failed")]
    metric = MetricView("tvd3", "triples", "mean distance", "low")
    manifest = {"judged": {}, "versions": {}, "commands": [["hedgerow", "compare", EVIL]]}
    (tmp_path / "comparison.html").write_text(comparison_page(made, [metric], manifest))
    browser.open(tmp_path / "comparison.html")
    assert browser.complaints == []
    heights = browser.js(
        "Object.fromEntries([...document.querySelectorAll('#error svg [data-tip][tabindex]')]"
        ".map(m => [m.dataset.tip.split('\\n')[0], m.getBoundingClientRect().top]))"
    )
    assert heights["good, ε = 1"] > heights["bad, ε = 1"]
    assert heights["good, ε = 10"] > heights["good, ε = 1"]
    assert browser.js("document.querySelector('#best tbody tr').textContent").startswith("1good0.05")
    assert EVIL in browser.js("document.querySelector('#failed').textContent")
