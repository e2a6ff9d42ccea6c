"""The Match 3 winner: two rounds, merged values, weights, levels."""

import math

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.audit import check_method
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods import build
from hedgerow.methods.match3 import Match3, Wanted
from hedgerow.methods.shared.support import supported
from hedgerow.schema import presets
from looking import asked
from refusals import refused

SCHEMA = """
columns:
  city: {type: code, size: 6}
  sex: {type: code, size: 2}
  work: {type: code, size: 40}
  wage: {type: integer, min: 0, max: 999, bins: 10, heaps: [100, 10]}
"""


def rows(count=20_000):
    rng = np.random.default_rng(5)
    city, sex = rng.integers(0, 4, count), rng.integers(0, 2, count)
    wage = np.minimum(999, 100 * city + 400 * sex + 10 * rng.integers(0, 3, count))
    return pa.table({"city": city, "sex": sex, "work": (city * 2 + sex) % 5, "wage": wage})


def release(method, epsilon=5.0, delta=1e-9):
    return hr.synthesize(
        rows(), hr.Schema.parse(SCHEMA), hr.Budget(epsilon, delta), method, unsafe_noise_seed=3, quality=0
    )


def from_preset(epsilon):
    return build("match3", presets.load("census1940-match3").options("match3", epsilon))


# the list of the write-up


def test_the_list_has_124_pairs_and_23_triples():
    marginals = from_preset(1.0).marginals
    assert sorted(len(each.attributes) for each in marginals).count(2) == 124
    assert sorted(len(each.attributes) for each in marginals).count(3) == 23
    assert len({frozenset(each.attributes) for each in marginals}) == 147


def test_its_first_97_pairs_are_the_tree_of_the_sample():
    from hedgerow.samples.census1940 import TREE

    edges = {frozenset((hub, name)) for hub, names in TREE.items() for name in names.split()}
    assert {frozenset(each.attributes) for each in from_preset(1.0).marginals[:97]} == edges


@pytest.mark.parametrize(("epsilon", "third", "norm"), [(8, 4, 13.08), (4, 4, 13.08), (1, 6, 13.82), (0.3, 8, 14.80)])
def test_weights_depend_on_epsilon_as_published(epsilon, third, norm):
    marginals = from_preset(epsilon).marginals
    by_columns = {frozenset(each.attributes): each for each in marginals}
    assert by_columns[frozenset(("SEX", "CITY", "INCWAGE"))].weight == third
    for pair in (("SEX", "CITY"), ("SEX", "INCWAGE"), ("CITY", "INCWAGE")):
        assert by_columns[frozenset(pair)].weight == 2
    assert math.sqrt(sum(each.weight**2 for each in marginals)) == pytest.approx(norm, abs=0.005)


def test_wages_are_read_in_five_levels_where_the_released_code_does():
    domain = presets.load("census1940-match3").schema.encoding().domain
    levelled = [each for each in from_preset(1.0).marginals if each.levels]
    assert {frozenset(each.attributes) for each in levelled} == {
        frozenset(("SEX", "CITY", "INCWAGE")),
        frozenset(("CITY", "INCWAGE")),
    }
    each = next(each for each in levelled if len(each.attributes) == 2)
    query = Wanted(domain.marginal(each.attributes), each.weight, each.levels).query(domain)
    index = query.attributes.index("INCWAGE")
    assert query.shape[index] == 5
    assert [np.flatnonzero(query.levels[index] == level).tolist() for level in range(4)] == [
        [0],
        list(range(1, 10)),
        list(range(10, 20)),
        list(range(20, 51)),
    ]


def test_wages_are_coded_as_published():
    column = presets.load("census1940-match3").schema.columns["INCWAGE"]
    raw = [0, 99, 100, 4999, 5000, 7000, 999_998, 20, 50, 25, 30, 5, 2, 1, 40]
    bins, heap = (codes.tolist() for codes in column.encode(pa.array(raw)).codes)
    assert bins[:7] == [0, 0, 1, 49, 50, 50, 51]
    assert heap[4:] == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 1]
    house = presets.load("census1940-match3").schema.columns["VALUEH"]
    assert house.encode(pa.array([0, 4, 5, 24999, 25000, 30000, 9_999_998, 9_999_999])).codes[0].tolist() == [
        0, 0, 1, 4999, 5000, 5000, 5001, 5002,
    ]  # fmt: skip


# the rounds


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_two_rounds_of_equal_cost_with_weights(delta):
    method = Match3(marginals=(Wanted(("city", "sex"), 2.0), Wanted(("work", "wage"))), columns=(("wage", 2.0),))
    made = release(method, delta=delta)
    first, second = asked(made)
    assert made.certificate.spent == made.certificate.whole
    assert abs(first.amount.units - second.amount.units) <= 1
    assert first.weights == (1.0, 1.0, 1.0, 2.0, 1.0)  # the round numbers of the wage are an attribute of their own
    assert second.weights == (2.0, 1.0)
    assert first.mechanism == ("gaussian" if delta else "laplace")


def test_rare_values_are_merged_unless_exempt():
    pair = (Wanted(("city", "work")),)
    merged = asked(release(Match3(marginals=pair)))[1].queries[0]
    assert merged["cells"] == 5 * 6  # two cities and 35 kinds of work never occur
    exempt = asked(release(Match3(marginals=pair, exempt=("city", "work"))))[1].queries[0]
    assert exempt["cells"] == 6 * 40


def test_an_attribute_with_levels_is_never_merged():
    wanted = Wanted(("city", "wage"), 1.0, (("wage", (1, 5)),))
    assert asked(release(Match3(marginals=(wanted,))))[1].queries[0]["cells"] == 5 * 3


def test_measured_relations_come_back():
    made = release(Match3(marginals=(Wanted(("city", "sex", "wage")), Wanted(("wage", "wage:heap")))))
    table = made.sample(20_000)
    expected = 100 * np.asarray(table["city"]) + 400 * np.asarray(table["sex"])
    assert (np.asarray(table["wage"]) // 100 * 100 == expected).mean() > 0.97
    assert (np.asarray(table["wage"]) % 10 == 0).mean() > 0.97
    assert made.estimated_rows == pytest.approx(20_000, abs=300)


def test_without_a_list_neighbouring_columns_are_measured_in_pairs():
    queries = asked(release(Match3()))[1].queries
    assert [tuple(query["attributes"]) for query in queries] == [
        ("city", "sex"),
        ("sex", "work"),
        ("work", "wage"),
        ("wage", "wage:heap"),
    ]


def test_a_marginal_beyond_the_limit_is_left_out_and_the_others_get_its_budget():
    wide = Match3(marginals=(Wanted(("city", "sex")), Wanted(("work", "wage"))), most_cells=20, exempt=("work",))
    assert [query["attributes"] for query in asked(release(wide))[1].queries] == [["city", "sex"]]


def test_if_every_marginal_is_too_wide_the_columns_are_measured_again():
    made = release(Match3(most_cells=2))
    assert [len(charge.queries) for charge in asked(made)] == [5, 5]
    assert made.certificate.spent == made.certificate.whole


def test_a_list_too_large_for_memory_is_cut_before_it_is_paid_for():
    domain = Domain.of({"a": 900, "b": 900, "c": 3})
    wanted = [Wanted(("a", "b")), Wanted(("b", "c"))]
    assert Match3().affordable(domain, wanted, 4 << 30) == wanted
    assert Match3().affordable(domain, wanted, 20 << 20) == [wanted[1]]
    assert Match3().affordable(domain, wanted, 1 << 10) == []


# families of codes


def measured(values, std=10.0):
    domain = Domain.of({"city": len(values)})
    return Measurement(MarginalQuery(domain, ("city",)), np.array(values), Noise("gaussian", std))


def test_the_family_that_stands_out_is_kept_and_the_others_are_merged():
    members = [(1, "Utah"), (2, "Utah"), (3, "Ohio"), (4, "Ohio"), (5, "Ohio")]
    mapping = supported(measured([500, 40, 300, 20, -5, 8]), members)
    assert mapping.tolist() == [0, 1, 2, 3, 3, 3]  # code 0 belongs to no family
    assert supported(measured([500, 40, 300, 20]), [(1, "Utah"), (2, "Utah"), (3, "Ohio")]) is None


def test_support_from_a_file(tmp_path):
    path = tmp_path / "cities.csv"
    path.write_text("code,family\n0,here\n1,here\n2,here\n3,here\n4,there\n5,there\n")
    method = build("match3", {"support": f"city:{path}"})
    assert asked(release(method))[1].queries[0]["cells"] == 5 * 2


def test_support_from_the_command_line(tmp_path, monkeypatch):
    import sys

    import pyarrow.parquet as pq

    from hedgerow.cli import main

    (tmp_path / "rows.yaml").write_text(SCHEMA)
    (tmp_path / "cities.csv").write_text("code,family\n0,here\n1,here\n2,here\n3,here\n4,there\n5,there\n")
    pq.write_table(rows(), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    words = "synth rows.parquet -s rows.yaml -m match3 -e 0.05 -o out.parquet --set support=city:cities.csv"
    monkeypatch.setattr(sys, "argv", ["hedgerow", *words.split(), "-q", "--unsafe-noise-seed", "3"])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    made = hr.Release.load("out.release")
    assert asked(made)[1].queries[0]["cells"] == 5 * 2  # the cities of the other family are one cell
    assert (np.asarray(made.sample(2000)["city"]) < 4).mean() > 0.95


# what is refused


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"marginals": (Wanted(("city", "wages")),)}, ("unknown-column", '"wages"', 'Did you mean "wage"')),
        ({"marginals": (Wanted(("city", "sex"), 1.0, (("wage", (1,)),)),)}, ("bad-levels", '"wage"')),
        ({"columns": (("wages", 2.0),)}, ("unknown-column", '"wages"')),
        ({"exempt": ("wages",)}, ("unknown-column", '"wages"')),
        ({"support": (("wages", ((0, "a"),)),)}, ("unknown-column", '"wages"')),
    ],
)
def test_unknown_columns_cost_nothing(options, says):
    with refused(*says) as told:
        release(Match3(**options))
    assert "Nothing was spent" in str(told.value)


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("marginals", "nowhere.yaml", "cannot-read"),
        ("marginals", [{"columns": ["a"], "weigth": 2}], "bad-marginal-entry"),
        ("marginals", [{"columns": ["a"], "weight": "heavy"}], "bad-weight"),
        ("marginals", [{"columns": ["a"], "weight": -1}], "bad-weight"),
        ("marginals", [{"columns": ["a"], "levels": {"a": [3, 2]}}], "bad-levels"),
        ("marginals", [{"columns": ["a"], "levels": ["a"]}], "bad-levels"),
        ("columns", "wage", "bad-weight"),
        ("columns", ["wage"], "bad-weights"),
        ("support", "CITY", "bad-support"),
        ("support", "CITY:nowhere.csv", "cannot-read"),
        ("most_cells", "1", "bad-option"),
    ],
)
def test_bad_options_are_refused_when_the_method_is_built(option, value, code):
    with refused(code):
        build("match3", {option: value})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("city,state\n1,here\n", "bad-support-file"),
        ("city,state\n", "bad-support-file"),
        ("code,family\n", "bad-support-file"),
        ("code,family\none,here\n", "bad-support-file"),
        ("code,family\n1,here\n2,here\n1,there\n", "bad-support-file"),
    ],
)
def test_a_file_of_families_that_says_nothing_clear_is_refused(text, says, tmp_path):
    path = tmp_path / "cities.csv"
    path.write_text(text)
    with refused(says):
        build("match3", {"support": f"CITY:{path}"})


def test_codes_outside_the_column_are_refused():
    with refused("code-out-of-range", "got 7", "Nothing was spent"):
        release(Match3(support=(("city", ((7, "here"),)),)))


# laws


def test_laws_hold_with_weights_levels_and_families():
    check_method(
        Match3(
            marginals=(Wanted(("grade", "age"), 2.0, (("age", (1, 4)),)), Wanted(("site", "flag", "grade"))),
            columns=(("age", 2.0),),
            support=(("site", ((1, "a"), (2, "a"), (3, "b"), (4, "b"))),),
        )
    )
