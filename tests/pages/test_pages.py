"""Pages as text: nothing becomes markup, nothing comes from outside, PRIVATE and publishable are never mixed."""

import base64
import hashlib
import re
import stat
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.markup import joined, number, tag
from hedgerow.methods import names
from hedgerow.pages.charts import curves, shortened
from hedgerow.pages.distributions import Distribution
from hedgerow.pages.release import release_page
from hedgerow.pages.shell import private_page, public_page
from hedgerow.private.evaluate import evaluate
from hedgerow.samples import opm
from hedgerow.schema import Schema

CANARY = "Zaphod-7731"
SCHEMA = Schema.from_dict(
    {
        "dataset": "people",
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99, "bins": 20, "missing": True},
            "city": {"type": "category", "values": ["north", "south"], "other": True},
            "born": {"type": "date", "min": "2000-01-01", "max": "2009-12-31", "step": "year"},
        },
    }
)


def people(rows, seed=0, city=None):
    rng = np.random.default_rng(seed)
    days = rng.integers(10957, 14609, rows).astype("datetime64[D]")
    cities = rng.choice(["north", "south"], rows) if city is None else [city] * rows
    age = [None if each > 95 else int(each) for each in rng.integers(0, 100, rows)]
    return pa.table({"age": age, "city": cities, "born": pa.array(days)})


class Reader(HTMLParser):
    """What a browser would see: elements with their attributes, and the text between them."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.text = [], []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


class TestMarkup:
    @given(st.text(), st.text())
    def test_text_stays_text(self, content, title):
        reader = Reader(tag("p", content, title=title))
        clean = (content + title).isprintable()
        assert [name for name, _ in reader.elements] == ["p"]
        if clean:
            assert "".join(reader.text) == content
            assert reader.elements[0][1]["title"] == title

    @given(st.text(st.sampled_from("ab \n\t\u202e\u202d\u2066\u2069\u200f\u061c\x00\x07\x1b\u2028\ufeff\u200d\ud800é")))
    def test_what_cannot_be_seen_is_spelled_out(self, content):
        """A value with U+202E once turned the letters after it about."""
        reader = Reader(tag("p", content, title=content))
        for shown in ("".join(reader.text), reader.elements[0][1]["title"] or ""):
            assert not set(shown) & set("\u202e\u202d\u2066\u2069\u200f\u061c\x00\x07\x1b\u2028\ufeff\ud800")
            assert shown.count("⟨U+202E⟩") == content.count("\u202e")
            assert shown.count("\u200d") == content.count("\u200d")  # joins letters, and is not seen by itself
            assert re.sub("⟨U[+]([0-9A-F]{4})⟩", lambda code: chr(int(code[1], 16)), shown) == content

    def test_pieces_are_escaped_once(self):
        assert joined("<", tag("b", "&"), ["<", tag("i", "x")]) == "&lt;<b>&amp;</b>&lt;<i>x</i>"
        assert tag("rect", x=1.5, fill_opacity="0.5", hidden=None, role="img") == (
            '<rect x="1.50" fill-opacity="0.5" role="img"></rect>'
        )

    def test_numbers_are_never_words(self):
        assert number(float("nan")) == "0"
        assert number(2.0) == "2"

    @given(st.text(min_size=1), st.integers(4, 30))
    def test_shortened_text_keeps_its_ends(self, text, most):
        short = shortened(text, most)
        assert len(short) <= max(most, 1)
        assert short == text if len(text) <= most else short[0] == text[0] and short[-1] == text[-1]


class TestShell:
    @pytest.mark.parametrize("page", [private_page("x", "body"), public_page("x", "status", "body")])
    def test_the_policy_lets_nothing_in_but_our_own_lines(self, page):
        reader = Reader(page)
        policy = next(a["content"] for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy")
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        for kind in ("style", "script"):
            inside = page.split(f"<{kind}>")[1].split(f"</{kind}>")[0]
            digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy
        assert not re.search(r"https?://", page)
        assert not any({"src", "style", "onclick"} & set(attributes) for _, attributes in reader.elements)

    def test_private_pages_say_so_everywhere(self):
        reader = Reader(private_page("evaluation", "body"))
        assert ("meta", {"name": "classification", "content": "PRIVATE"}) in reader.elements
        assert "".join(reader.text).count("PRIVATE") >= 2  # in the title and in the banner, which print repeats
        assert "PRIVATE:" not in public_page("release", "status", "body")


class TestDistributions:
    @given(st.integers(15, 200), st.booleans())
    def test_no_row_is_lost_by_merging(self, size, ordered):
        rng = np.random.default_rng(size)
        values = rng.random(size)
        shown = Distribution("x", [f"v{i}" for i in range(size)], [("real", values)], size if ordered else 0)
        groups = shown._runs() if ordered else shown._frequent()
        assert sorted(index for group in groups for index in group) == list(range(size))
        assert len(groups) <= 48
        bars = shown._bars(groups)
        assert sum(bar.heights[0] for bar in bars) == pytest.approx(values.sum())

    def test_noise_of_merged_cells_adds_up_in_squares(self):
        shown = Distribution("x", ["a"] * 100, [("measured", np.ones(100))], 100, spread=3.0, unit="rows")
        assert shown._bar([0, 1, 2, 3]).whisker == 12  # twice 3 · √4
        assert shown._bar([5]).tip == "x = a\nmeasured: 1 rows ± 6 rows"

    def test_a_picture_can_be_read_out(self):
        shown = Distribution("sex", ["f", "m"], [("real", np.array([0.25, 0.75])), ("synthetic", np.array([0.5, 0.5]))])
        drawn = Reader(shown.picture(["red", "blue"]))
        said = drawn.elements[0][1]["aria-label"]
        assert said == "sex, real and synthetic. f: 25.00 % and 50.00 %; m: 75.00 % and 50.00 %"

    def test_a_value_of_no_letters_has_a_name(self):
        shown = Distribution("country", ["", "Cuba"], [("real", np.array([0.25, 0.75]))])
        assert shown._bar([0]).tip == "country = (empty)\nreal: 25.00 %"

    def test_a_curve_without_points_is_still_a_picture(self):
        assert "<svg" in curves({"a": []}, {}, "t", "x", "y")


TURNED = "\u202egnihton\u202c\x1b[2J"


def turning():
    """A schema whose names and values would turn a page about, and rows of it."""
    columns = {f"age{TURNED}": {"type": "integer", "min": 0, "max": 9}}
    columns |= {f"city{TURNED}": {"type": "category", "values": [f"north{TURNED}", "south"], "other": True}}
    schema = Schema.from_dict({"dataset": f"people{TURNED}", "columns": columns})
    ages, cities = columns
    return schema, pa.table({ages: [1, 2, 3] * 40, cities: [f"north{TURNED}", "south", "x"] * 40})


def shows_what_turns(page):
    return "⟨U+202E⟩gnihton⟨U+202C⟩⟨U+001B⟩[2J" in page and not set(page) & set("\u202e\u202c\x1b")


def test_no_page_is_turned_about_by_a_name_or_a_value(tmp_path):
    schema, rows = turning()
    release = hr.synthesize(rows, schema, hr.Budget(1.0), "independent")
    assert shows_what_turns(release_page(release))
    evaluate(rows, release.sample(90), schema, metrics=["tvd1", "pearson"], report=tmp_path / "page.html")
    assert shows_what_turns((tmp_path / "page.html").read_text())
    for shell in (private_page, lambda title, body: public_page(title, title, body)):  # a comparison has no other way
        assert shows_what_turns(shell(f"comparison{TURNED}", f"method{TURNED}"))


class TestReleasePage:
    def test_a_canary_in_the_private_table_is_not_on_the_page(self):
        """Neither a value that the schema does not hold, nor one in every row."""
        for rows in (people(500).slice(0, 499), people(500, city=CANARY)):
            table = pa.concat_tables([rows, people(1, city=CANARY)])
            release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), "independent")
            page = release_page(release)
            assert CANARY not in page
            assert "May be published" in page
            assert "PRIVATE:" not in page

    def test_the_page_of_the_command(self, hedgerow, tmp_path):
        """Written beside the table and the release; the canary is in none of them."""
        lines = [f"{index % 100},{'north' if index % 3 else 'south'},2005-01-01" for index in range(600)]
        (tmp_path / "people.csv").write_text("\n".join(["age,city,born", *lines, f"7,{CANARY},{CANARY}"]))
        (tmp_path / "people.yaml").write_text(SCHEMA.to_yaml())
        words = (
            "people.csv",
            "-s",
            "people.yaml",
            "-e",
            1,
            "-m",
            "independent",
            "-o",
            "out.csv",
            "--report",
            "out.html",
        )
        done = hedgerow("synth", *words, "--json")
        assert done.code == 0, done.err
        assert done.json["report"] == "out.html"
        assert "May be published" in (tmp_path / "out.html").read_text()
        assert (
            CANARY not in (tmp_path / "out.html").read_text() + (tmp_path / "out.csv").read_text() + done.out + done.err
        )
        wrong = hedgerow("synth", *words[:-1], "out.txt", "--overwrite")
        assert (wrong.code, wrong.refusal) == (2, "unknown-suffix")
        assert ".html" in wrong.err

    def test_it_says_what_the_certificate_says(self):
        release = hr.synthesize(people(500), SCHEMA, hr.Budget(1.0, 0.0), "mst")
        text = "".join(Reader(release_page(release, rows=77)).text)
        for said in release.certificate.statements():
            assert said in text
        assert "77 made-up rows" in text
        assert release.certificate.method["paper"] in text
        assert f"All {len(release.certificate.charges)} accesses" in text
        assert "73.1 % sure" in text  # e/(1 + e)

    @pytest.mark.parametrize("method", names())
    def test_every_method_has_a_page(self, method):
        """Trees, partitions, merged values and kept cells are measurements too."""
        release = hr.synthesize(opm.generate(500), Schema.parse(opm.SCHEMA), hr.Budget(1.0), method)
        text = "".join(Reader(release_page(release)).text)
        assert release.certificate.method["title"] in text
        assert text.count("± ") >= len(release.measurements)

    def test_a_release_without_a_guarantee_says_that_first(self):
        release = hr.synthesize(people(200), SCHEMA, hr.Budget(1.0), "independent", unsafe_noise_seed=1)
        text = "".join(Reader(release_page(release)).text)
        assert "NO PRIVACY GUARANTEE" in text
        assert "May be published" not in text

    def test_domains_that_were_bought(self):
        """Their measurements speak of cells that the final schema does not have."""
        data = SCHEMA.to_dict()
        data["columns"]["city"] = {"type": "category", "values": "private"}
        data["columns"]["age"] = {"type": "integer", "min": 0, "max": 99, "bins": "private"}
        table = pa.concat_tables([people(3000), people(1, city=CANARY)])
        release = hr.synthesize(table, Schema.from_dict(data), hr.Budget(4.0, 1e-6), "independent")
        page = release_page(release)
        assert "domains bought" in page
        assert CANARY not in page


class TestUses:
    """What a lay reader is told first, from the measured distances."""

    @staticmethod
    def told(rows, epsilon, **given):
        rng = np.random.default_rng(0)
        a = rng.integers(0, 4, rows)
        table = pa.table({"a": a, "b": (a + (rng.random(rows) < 0.1)) % 4, "c": rng.integers(0, 3, rows)})
        schema = hr.Schema.from_dict({"a": 4, "b": 4, "c": 3})
        made = hr.synthesize(table, schema, hr.Budget(epsilon), "independent", unsafe_noise_seed=1, **given)
        return release_page(made).split("For those who want to check")[0]

    def test_what_holds_what_does_not_and_what_nobody_measured(self):
        said = self.told(20_000, 3.0)
        assert "relations of two columns" in said
        assert re.search(r"did not come through</b>: a × b \(\d+\.\d+ % ±", said)
        assert "3 pairs of columns were never counted together: a × b, a × c, b × c." in said
        assert "How wrong, the measured distances say" in said

    def test_a_table_that_tells_nothing_says_so(self):
        said = self.told(40, 0.1)
        assert "too small, or ε too strict" in said
        assert "relations of two columns" not in said

    def test_a_release_without_quality_says_that(self):
        assert "was not measured" in self.told(500, 1.0, quality=0)


class TestEvaluationPage:
    def test_it_shows_what_was_computed_and_only_its_owner_can_read_it(self, tmp_path):
        page = tmp_path / "page.html"
        report = evaluate(people(400), people(300, 1), SCHEMA, metrics=["tvd1", "tvd2", "subsample"], report=page)
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        text = "".join(Reader(page.read_text()).text)
        assert f"{report['tvd2']:.4f}" in text
        assert "400 real rows beside 300 synthetic rows" in text
        for table in (people(400), people(300, 1)):
            assert f"{100 * table['age'].null_count / len(table):.2f} %" in text

    def test_values_as_they_stand(self, tmp_path):
        """What readers compute, in words and beside samples; misfits are said, and no word is there of what is not."""
        schema = Schema.parse("""
columns:
  cost: {type: number, min: 0, max: 10000, bins: 4}
  name: {type: category, values: [a, b]}
  when: {type: datetime, min: 2020-01-01, max: 2020-01-31, step: hour}
""")
        hours = [f"2020-01-{1 + i % 20:02} {i % 24:02}:00" for i in range(200)]
        real = pa.table({"cost": [0] * 150 + [float(i) for i in range(50)], "name": ["a"] * 199 + ["z"], "when": hours})
        made = pa.table({"cost": [float(50 * i) for i in range(200)], "name": ["a", "b"] * 100, "when": hours[::-1]})
        metrics = ["means", "ks", "spikes", "weekdays", "hours", "spearman"]
        report = evaluate(real, made, schema, metrics=metrics, report=tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        text = "".join(Reader(page).text)
        assert f"Means are off by {100 * report['means']:.1f} % of a standard deviation." in text
        assert "times as far as a tenth of the real rows" in text
        assert "6.125 → 4975" in text
        for part in ("numbers", "spikes", "rhythms", "left-out"):
            assert f'<section id="{part}"' in page
        assert 'id="detector"' not in page
        assert "when, hour" in text
        assert "0.50 %" in text[text.index("Values that do not fit") :]
        plain = evaluate(*[pa.table({"a": [0, 1]})] * 2, Schema.from_dict({"a": 3}), report=tmp_path / "plain.html")
        assert plain["means"] is None
        assert 'id="numbers"' not in (tmp_path / "plain.html").read_text()

    def test_sixty_columns_are_folded_the_worst_first_and_all_in_the_order_of_the_schema(self, tmp_path):
        names = [f"c{index:02}" for index in range(60)]
        schema = Schema.from_dict({"columns": {x: {"type": "integer", "min": 0, "max": 99} for x in names}})
        rng = np.random.default_rng(0)
        real = {name: rng.integers(0, 50, 60) for name in names}
        made = {name: values + (40 if name == "c41" else 0) for name, values in real.items()}
        evaluate(pa.table(real), pa.table(made), schema, metrics=["means"], report=tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        numbers = page[page.index('<section id="numbers"') :]
        first, _, rest = numbers[: numbers.index("</section>")].partition("45 more columns")
        assert first.count("<tr>") == 1 + 15
        assert first.index("c41") < first.index("c00")
        ordered = rest[rest.index("in the schema") :]
        assert [ordered.index(f">{name}<") for name in names] == sorted(ordered.index(f">{name}<") for name in names)

    def test_a_table_of_one_column(self, tmp_path):
        schema = Schema.from_dict({"a": 3})
        rows = pa.table({"a": [0, 1, 2, 2]})
        evaluate(rows, rows, schema, metrics=["tvd1", "pearson", "cramers_v"], report=tmp_path / "page.html")
        assert "nothing can go together" in (tmp_path / "page.html").read_text()
