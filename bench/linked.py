"""Linked tables beside what else could be done with them: makes docs/studies/linked.md.

    python -m bench.linked [--runs 3] [--epsilons 4,10]

Players and their batting and fielding seasons (`baseball` in $HEDGEROW_DATA), the unit a player. The figures are those
of `hedgerow evaluate`, against the tables as they are bounded. Which teams there were is public; the list is read off
the rows. Releases whose figures stand in linked.json already are not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.process import ROOT, in_a_process, needed
from bench.tables import DATA

if TYPE_CHECKING:
    import pandas as pd

RESULTS = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "studies" / "linked.md"
DELTA = 1e-6
NOISELESS = 1000.0
"""An ε with hardly any noise: what is left is what the model cannot say."""
KEY, LINK, ORDER, BOUND = "id", "players_id", "year", {"batting": 20, "fielding": 25}
COUNTRIES = [
    "USA", "D.R.", "Venezuela", "P.R.", "CAN", "Cuba", "Mexico", "Japan", "Panama", "Ireland", "United Kingdom",
    "Germany", "Australia", "Colombia", "South Korea", "Curacao", "Nicaragua",
]  # fmt: skip
MOST = {
    "batting": {
        "G": 200, "AB": 750, "R": 200, "H": 300, "HR": 80, "RBI": 200, "SB": 150, "CS": 50, "BB": 250, "SO": 250
    },
    "fielding": {"G": 200, "GS": 200, "InnOuts": 4500, "PO": 2000, "A": 700, "E": 120, "DP": 200},
}  # fmt: skip
FIGURES = {
    "children": "seasons per player",
    "parent_pairs": "player × season pairs",
    "steps": "step to the next season",
    "sums": "career sums (KS)",
    "spans": "career spans (KS)",
}

Frames = dict[str, "pd.DataFrame"]


def read(children: tuple[str, ...] = tuple(BOUND)) -> Frames:
    """Players without their names, and their seasons."""
    import pandas as pd

    found = {name: pd.read_csv(DATA / "baseball" / f"{name}.csv") for name in ("players", *children)}
    found["players"] = found["players"].drop(columns=["nameFirst", "nameLast"])
    return found


def declared(children: tuple[str, ...]) -> dict[str, Any]:
    """What a steward would declare."""
    teams = sorted({team for table in list(read().values())[1:] for team in table.team})

    def number(low: int, high: int) -> dict[str, Any]:
        return {"type": "integer", "min": low, "max": high, "missing": True}

    players = {
        "country": {"type": "category", "values": COUNTRIES, "other": True, "missing": True},
        "birthDate": {"type": "date", "min": "1820-01-01", "max": "2005-12-31", "missing": True},
        "deathDate": {"type": "date", "min": "1870-01-01", "max": "2025-12-31", "missing": True},
        "weight": number(60, 330), "height": number(40, 90),
        "bats": {"type": "category", "values": ["R", "L", "B"], "missing": True},
        "throws": {"type": "category", "values": ["R", "L", "S"], "missing": True},
    }  # fmt: skip
    tables: dict[str, Any] = {"players": {"key": KEY, "columns": players}}
    leagues = {"type": "category", "values": ["NL", "AL", "AA", "FL", "UA", "PL"], "other": True, "missing": True}
    for name in children:
        columns: dict[str, Any] = {
            "year": {"type": "integer", "min": 1871, "max": 2019},
            "team": {"type": "category", "values": teams},
            "league": leagues,
        }
        if name == "fielding":
            columns["POS"] = {"type": "category", "values": ["P", "C", "1B", "2B", "3B", "SS", "OF"]}
        columns |= {column: number(0, most) for column, most in MOST[name].items()}
        tables[name] = {
            "parent": "players", "link": LINK, "order": ORDER, "max_per_parent": BOUND[name], "columns": columns
        }  # fmt: skip
    return {"dataset": "baseball", "tables": tables}


def bounded(tables: Frames) -> Frames:
    """At most so many seasons of each player, one stretch."""
    return {name: table if name == "players" else _stretch(table, BOUND[name]) for name, table in tables.items()}


def _stretch(table: pd.DataFrame, most: int) -> pd.DataFrame:
    table = table.sample(frac=1, random_state=0).sort_values([LINK, ORDER], kind="stable").reset_index(drop=True)
    place = table.groupby(LINK).cumcount().to_numpy()
    spare = np.maximum(0, table.groupby(LINK)[ORDER].transform("size").to_numpy() - most)
    names = table[LINK].unique()
    lots = table[LINK].map(dict(zip(names, np.random.default_rng(0).random(len(names)), strict=True)))
    begins = (lots.to_numpy() * (spare + 1)).astype(int)
    return table[(place >= begins) & (place < begins + most)].reset_index(drop=True)


def compared(real: Frames, made: Frames, side: str = "tables") -> dict[str, Any]:
    """The figures of every child table, as `hedgerow evaluate` has them; every key must fit."""
    import hedgerow as hr
    from hedgerow.private.evaluate import evaluate

    children = tuple(name for name in real if name != "players")
    found = evaluate(real, made, hr.Schema.from_dict(declared(children)))
    assert not any(count for each in found["misfits"]["synthetic"].values() for count in each.values())
    return {name: {figure: found[side][name][figure] for figure in FIGURES} for name in children}


# ---------------------------------------------------------------- what is compared: real seasons, without noise


def truncation() -> dict[str, Any]:
    return compared(read(), bounded(read()))


def at_random() -> dict[str, Any]:
    """Every season goes to any player."""
    tables = bounded(read())
    rng = np.random.default_rng(0)
    keys = tables["players"][KEY].to_numpy()
    made = {name: tables[name].assign(**{LINK: rng.choice(keys, len(tables[name]))}) for name in BOUND}
    return compared(tables, {**tables, **made})


def right_number() -> dict[str, Any]:
    """Every player has as many seasons as he had, and any."""
    tables = bounded(read())
    rng = np.random.default_rng(0)
    made = {name: tables[name].assign(**{LINK: rng.permutation(tables[name][LINK].to_numpy())}) for name in BOUND}
    return compared(tables, {**tables, **made})


def bootstrap() -> dict[str, Any]:
    return compared(bounded(read()), bounded(read()), "bootstrap")


# ---------------------------------------------------------------- what is compared: synthetic seasons


def linked(children: tuple[str, ...], epsilon: float, method: str, seed: int) -> dict[str, Any]:
    """A release of linked tables."""
    import hedgerow as hr

    tables, schema, began = read(children), hr.Schema.from_dict(declared(children)), time.process_time()
    release = hr.synthesize(tables, schema, hr.Budget(epsilon, DELTA), method, seed=seed, unsafe_noise_seed=seed)
    return _cost(began, tables, release.to_pandas())


def apart(children: tuple[str, ...], epsilon: float, method: str, seed: int) -> dict[str, Any]:
    """Players and seasons made apart, with half of the budget each, and linked at random."""
    (name,) = children
    tables, said, began = read(children), declared(children)["tables"], time.process_time()
    players = _single(tables["players"], said["players"]["columns"], 1, epsilon / 2, method, seed)
    seasons = _single(tables[name], said[name]["columns"], BOUND[name], epsilon / 2, method, seed)
    links = np.random.default_rng(seed).integers(0, len(players), len(seasons))
    made = {"players": players.assign(**{KEY: np.arange(len(players))}), name: seasons.assign(**{LINK: links})}
    return _cost(began, tables, made)


def regrouped(children: tuple[str, ...], epsilon: float, method: str, seed: int) -> dict[str, Any]:
    """The joined table made as one; seasons whose players are alike in every column are one player's."""
    (name,) = children
    tables, said, began = read(children), declared(children)["tables"], time.process_time()
    of_player, of_season = ([*said[table]["columns"]] for table in ("players", name))
    joined = tables[name].merge(tables["players"], left_on=LINK, right_on=KEY).drop(columns=[KEY])
    columns = said["players"]["columns"] | said[name]["columns"]
    rows = _single(joined, columns, BOUND[name], epsilon, method, seed)
    rows[LINK] = rows.groupby(of_player, dropna=False, sort=False).ngroup()
    players = rows.drop_duplicates(LINK)[[LINK, *of_player]].rename(columns={LINK: KEY})
    return _cost(began, tables, {"players": players, name: rows[[LINK, *of_season]]})


def _single(
    table: pd.DataFrame, columns: dict[str, Any], most: int, epsilon: float, method: str, seed: int
) -> pd.DataFrame:
    """A table by itself; a player is at most so many of its rows."""
    import hedgerow as hr

    person = KEY if most == 1 else LINK
    schema = hr.Schema.from_dict({"columns": columns, "person": person, "max_rows_per_person": most})
    made = hr.synthesize(
        table, schema, hr.Budget(epsilon, DELTA / 2), method, seed=seed, unsafe_noise_seed=seed, quality=0
    )
    return made.to_pandas()


def _cost(began: float, real: Frames, made: Frames) -> dict[str, Any]:
    from hedgerow.progress import peak_rss_mb

    cost = {"cpu_s": time.process_time() - began, "mb": peak_rss_mb()}
    return cost | compared(bounded(real), made)


# ---------------------------------------------------------------- answers

QUESTIONS = 60
"""Of each of three kinds of rows."""
LEVEL = 0.9
ASKED_AT = (4.0,)
ASKED_OF = {
    "players": "players",
    "batting": "batting",
    "players and batting": "players JOIN batting ON players.id = batting.players_id",
}
NOT_ASKED = ("players.country", "players.birthDate", "players.deathDate")
"""Conditions of the generator are ranges of numbers and sets of declared values."""


def answers(children: tuple[str, ...], epsilon: float, method: str, seed: int) -> dict[str, Any]:
    """A release asked, and the bounded tables beside it: how often intervals held, and how wide they were."""
    from types import SimpleNamespace

    import hedgerow as hr
    from bench.coverage import Generator
    from hedgerow.answers.asking import estimates
    from hedgerow.answers.question import read_questions
    from hedgerow.answers.rows import Rows

    tables, schema = read(children), hr.Schema.from_dict(declared(children))
    release = hr.synthesize(tables, schema, hr.Budget(epsilon, DELTA), method, seed=seed, unsafe_noise_seed=seed)
    real = bounded(tables)
    players = real["players"].add_prefix("players.")
    seasons = real["batting"].add_prefix("batting.")
    joined = seasons.merge(players, left_on=f"batting.{LINK}", right_on=f"players.{KEY}")
    found: list[dict[str, Any]] = []
    began = time.process_time()
    for about, source in ASKED_OF.items():
        rows = {"players": players, "batting": seasons}.get(about, joined)
        columns = {
            name: column for name, column in schema.columns.items() if name in rows.columns and name not in NOT_ASKED
        }
        generator = Generator(rows[[*columns]], SimpleNamespace(columns=columns))  # type: ignore[arg-type]
        for shares in generator.shares.values():
            shares.pop("nan", None)
        truth = Rows.of_table(generator.table)
        for kind, text in generator.questions(QUESTIONS):
            (question,) = read_questions(text, columns)
            expected = next(iter(estimates(question, truth))).estimate.value
            asked = text.replace("FROM t ", f"FROM {source} ").replace('"players.', 'players."')
            row = release.ask(asked.replace('"batting.', 'batting."'), LEVEL)[0].rows[0]
            slip = 1e-9 * max(1.0, abs(expected))
            found.append(
                {
                    "about": about,
                    "kind": kind,
                    "basis": row.basis,
                    "held": bool(row.low - slip <= expected <= row.high + slip),
                    "width": (row.high - row.low) / len(rows),
                }
            )
    return {"answers": found, "cpu_s": time.process_time() - began}


def _answered(runs: dict[float, list[dict[str, Any]]]) -> list[str]:
    """How often intervals held: a line for each kind of rows, at each ε."""
    lines = ["| rows of | ε | releases | answers | held | measured | modelled | assumed | width of a count of two |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for about in ASKED_OF:
        for epsilon, made in runs.items():
            every = [each for run in made for each in run["answers"] if each["about"] == about]
            by_basis = []
            for basis in ("measured", "modelled", "assumed"):
                held = [each["held"] for each in every if each["basis"] == basis]
                by_basis.append(f"{100 * np.mean(held):.0f} % of {len(held)}" if held else "")
            widths = [each["width"] for each in every if each["kind"] == "count of two"]
            said = f"{100 * np.mean([each['held'] for each in every]):.0f} %"
            width = f"{100 * np.median(widths):.1f} % of the rows"
            lines.append(
                f"| {about} | {epsilon:g} | {len(made)} | {len(every)} | {said} | {' | '.join(by_basis)} | {width} |"
            )
    return lines


# ---------------------------------------------------------------- the page

REAL_SEASONS = {
    "truncation": "truncation alone, against all seasons",
    "at_random": "real seasons, linked at random",
    "right_number": "the right number, real seasons at random",
    "bootstrap": "bootstrap of players",
}
MADE = {
    "linked": "{method}, ε = {epsilon:g}",
    "apart": "made apart with {method} and linked at random, ε = {epsilon:g}",
    "regrouped": "joined, made as one with {method} and regrouped, ε = {epsilon:g}",
}


def wanted(epsilons: list[float]) -> list[tuple[str, tuple[str, ...], float, str]]:
    """What is made: how, which child tables, at which ε, by which method."""
    found = []
    for children in ((name,) for name in BOUND):
        found += [("linked", children, epsilon, "hedge") for epsilon in epsilons]
        found += [("linked", children, NOISELESS, "hedge")] * (children == ("batting",))
        found += [("linked", children, epsilons[0], method) for method in ("mst", "independent")]
        found += [(how, children, epsilons[0], "hedge") for how in ("apart", "regrouped")]
    return found + [("linked", tuple(BOUND), epsilon, "hedge") for epsilon in epsilons]


def name_of(how: str, children: tuple[str, ...], epsilon: float, method: str) -> str:
    return f"{how} {'+'.join(children)} {epsilon:g} {method}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", default="4,10")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    epsilons = [float(each) for each in asked.epsilons.split(",")]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def keep(name: str, found: dict[str, Any]) -> None:
        results.setdefault(name, []).append(found)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        print(name, found, flush=True)

    for how in REAL_SEASONS:
        if how not in results:
            keep(how, needed(in_a_process("bench.linked", how)))
    asking = [("answers", ("batting",), epsilon, "hedge") for epsilon in ASKED_AT]
    for seed in range(asked.runs):  # all of them once before any is made again
        for each in [*wanted(epsilons), *asking]:
            name, (how, *words) = name_of(*each), each
            if len(results.get(name, [])) <= seed:
                keep(name, needed(in_a_process("bench.linked", how, *words, seed)))
    PAGE.write_text(page(results, epsilons), encoding="utf-8")


def page(results: dict[str, list[dict[str, Any]]], epsilons: list[float]) -> str:
    """docs/studies/linked.md; what its last section says was read off the figures of three runs."""
    lines = [INTRODUCTION]
    for table in BOUND:
        lines += [f"\n## {table.capitalize()}\n", f"| | {' | '.join(FIGURES.values())} | runs | CPU s | MB |"]
        lines.append(f"|---|{'---|' * (len(FIGURES) + 3)}")
        lines += [_line(said, results[how], table, costs=False) for how, said in REAL_SEASONS.items()]
        for how, children, epsilon, method in wanted(epsilons):
            if table in children:
                both = ", both tables at once" if len(children) > 1 else ""
                said = MADE[how].format(method=method, epsilon=epsilon) + both
                lines.append(_line(said, results[name_of(how, children, epsilon, method)], table))
    runs = {epsilon: results[name_of("answers", ("batting",), epsilon, "hedge")] for epsilon in ASKED_AT}
    return "\n".join([*lines, FIGURES_END, *_answered(runs), CONCLUSION])


def _line(said: str, runs: list[dict[str, Any]], table: str, *, costs: bool = True) -> str:
    values = [f"{np.mean([run[table][figure] for run in runs]):.3f}".removeprefix("0") for figure in FIGURES]
    cost = ["", "", ""]
    if costs:
        cost = [str(len(runs)), f"{np.mean([r['cpu_s'] for r in runs]):.0f}", f"{max(r['mb'] for r in runs):.0f}"]
    return f"| {said} | {' | '.join([*values, *cost])} |"


INTRODUCTION = """\
# Linked tables: players and their seasons

19,878 baseball players with 107,429 batting and 143,046 fielding seasons, the unit a player with all of them; at most
20 batting and 25 fielding seasons of a player count. `python -m bench.linked` makes this page. Linked releases have
δ = 10⁻⁶ and spend 5 % on measuring their own distances. Noise was seeded for the study (the tables are public), so
these releases carry no guarantee; their noise is that of ones that do.

The figures are those of [`hedgerow evaluate`](../use/evaluate.md#linked-tables), against the tables as they are
bounded: total variation distance of the number of seasons per player; of every pair of a player's and a season's
column, the mean (7 × 13 and 7 × 11 pairs); of every column with itself in the next season, the mean; the
Kolmogorov–Smirnov distance of the sums over a player's seasons, the mean over the columns that are numbers; and of the
years from the first season to the last. Numbers and dates are cut at the real table's deciles, texts are kept to their
30 commonest. Players' names are left out. Which teams there were is taken as public. In every release there was no
orphan and no key twice.

Above the releases stand figures of *real* seasons, without any noise: what the bound alone does, two ways to link at
random, and whole players drawn again. Below them stand two ways to do without linked tables: players and seasons made
apart with half of the budget each and linked at random, and the joined table made as one (a player is at most 20 or 25
of its rows), where rows whose players are alike in every column are then one player's. Their tables have
δ = 5 · 10⁻⁷ each, the joined one as well, and measure no distances of their own.

google/dpsynth has a module for tables that are linked. It is not beside them: pip finds no package of it
(`pip install dpsynth`: no matching distribution, November 2026)."""
FIGURES_END = f"""
Figures are means over the runs; memory is that of the run that needed most.

## Answers

Releases of players and batting were [asked](../use/ask.md#linked-tables) {QUESTIONS} questions about the rows of
each table and of both joined: counts of two and three conditions, means and quantiles under one or two, as in
[Do intervals hold?](coverage.md). The truth is what the bounded tables say; intervals are for {100 * LEVEL:.0f} %.
Dates and countries were not asked about. How much wider intervals about child tables are
than distances over units tell (one constant) was set after another release of the same tables that was asked the same
questions, so other tables may hold less often.
"""
CONCLUSION = """
## What they say

- Numbers of seasons, steps, sums and spans are far closer than those of real seasons that are linked at random, and
  than those of tables made apart or regrouped, which were made at ε = 4 alone.
- Pairs across tables are closer than those of the joined table, made as one, for batting and for fielding. An ε of 1000
  leaves hardly any noise: what is still off there is what weights of two columns at a time cannot say, what comes from
  learning means over players, and luck, of which a bootstrap of players has half as much. So of the distance at ε = 10
  about a seventh goes with the noise.
- Both tables at once share the budget, and their pairs are a little further off than those of one table alone; more
  budget brings them closer. It helps less than it might, because codes are merged into about twenty however little
  noise there is; with more of them pairs came no closer at ε = 10 in trials, and why was not settled.
- Where the column of runs says less than three, small differences say nothing.
- `mst` and `independent` have pairs that are further off than those of real seasons at random. What is measured is the
  mean over players, in which long careers weigh no more than short ones; a column that is not given how many seasons
  follow comes back with that mean. Use them as baselines.
"""


if __name__ == "__main__":
    main()
