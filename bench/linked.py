"""Linked tables beside children that are linked at random: the figures of docs/studies/linked.md.

    python -m bench.linked --epsilons 4,10

Players and their batting and fielding seasons (`baseball` in $HEDGEROW_DATA), the unit a player. Total variation
distances, against the tables as they are bounded: of the number of seasons per player; of every pair of a player's and
a season's column, the mean; of every column with itself in the next season, the mean; and the Kolmogorov–Smirnov
distance of the sums of a player's seasons, the mean over the columns that are numbers; all as `hedgerow evaluate` has
them. Which teams there were is public; the list is read off
the rows.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.process import in_a_process, needed
from bench.tables import DATA

if TYPE_CHECKING:
    import pandas as pd

DELTA = 1e-6
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
FIGURES = ("seasons per player", "player × season pairs", "step to the next season", "career sums (KS)")


def read() -> dict[str, pd.DataFrame]:
    import pandas as pd

    found = {name: pd.read_csv(DATA / "baseball" / f"{name}.csv") for name in ("players", *BOUND)}
    found["players"] = found["players"].drop(columns=["nameFirst", "nameLast"])
    return found


def schema(tables: dict[str, pd.DataFrame], children: tuple[str, ...]) -> dict[str, Any]:
    """What a steward would declare."""
    teams = sorted({team for name in BOUND for team in tables[name].team})

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
    declared: dict[str, Any] = {"players": {"key": KEY, "columns": players}}
    for name in children:
        columns: dict[str, Any] = {
            "year": {"type": "integer", "min": 1871, "max": 2019},
            "team": {"type": "category", "values": teams},
            "league": {
                "type": "category",
                "values": ["NL", "AL", "AA", "FL", "UA", "PL"],
                "other": True,
                "missing": True,
            },
        }
        if name == "fielding":
            columns["POS"] = {"type": "category", "values": ["P", "C", "1B", "2B", "3B", "SS", "OF"]}
        columns |= {column: number(0, most) for column, most in MOST[name].items()}
        declared[name] = {
            "parent": "players", "link": LINK, "order": ORDER, "max_per_parent": BOUND[name], "columns": columns
        }  # fmt: skip
    return {"dataset": "baseball", "tables": declared}


def bounded(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many seasons of each player, one stretch."""
    table = table.sample(frac=1, random_state=0).sort_values([LINK, ORDER], kind="stable").reset_index(drop=True)
    place = table.groupby(LINK).cumcount().to_numpy()
    spare = np.maximum(0, table.groupby(LINK)[ORDER].transform("size").to_numpy() - most)
    lots = table[LINK].map(
        dict(zip(table[LINK].unique(), np.random.default_rng(0).random(table[LINK].nunique()), strict=True))
    )
    begins = (lots.to_numpy() * (spare + 1)).astype(int)
    return table[(place >= begins) & (place < begins + most)].reset_index(drop=True)


def figures(players: tuple[pd.DataFrame, pd.DataFrame], seasons: tuple[pd.DataFrame, pd.DataFrame]) -> list[float]:
    """The four figures of a real and a synthetic pair of tables; keys must fit."""
    import hedgerow as hr
    from hedgerow.private.evaluate import linked
    from hedgerow.private.sources.source import open_source

    name = "fielding" if "POS" in seasons[0] else "batting"
    declared = hr.Schema.from_dict(schema(read(), (name,)))
    families = []
    for frames in zip(players, seasons, strict=True):
        sources = {each: open_source(frame) for each, frame in zip(("players", name), frames, strict=True)}
        found = linked.Read.of(declared, sources)
        assert not any(count for each in found.misfits().values() for count in each.values()), "a key does not fit"
        families.append(found.family())
    assert declared.linked is not None
    means = linked.means(linked.figures(declared.linked, *families))[name]
    return [means[figure] or 0.0 for figure in ("children", "parent_pairs", "steps", "sums")]


def baselines(players: pd.DataFrame, seasons: pd.DataFrame) -> dict[str, list[float]]:
    """What linking at random gives from the real rows themselves, and a bootstrap of whole players."""
    rng = np.random.default_rng(0)
    random = seasons.assign(**{LINK: rng.choice(players[KEY].to_numpy(), len(seasons))})
    numbers = seasons.assign(**{LINK: rng.permutation(seasons[LINK].to_numpy())})
    chosen = rng.integers(0, len(players), len(players))
    again = players.iloc[chosen].assign(**{KEY: np.arange(len(players))}).reset_index(drop=True)
    of = seasons.groupby(LINK).indices
    rows = [of.get(name, np.zeros(0, dtype=int)) for name in players[KEY].to_numpy()[chosen]]
    boot = seasons.iloc[np.concatenate(rows)].assign(**{LINK: np.repeat(np.arange(len(players)), list(map(len, rows)))})
    return {
        "real seasons, linked at random": figures((players, players), (seasons, random)),
        "the right number, seasons at random": figures((players, players), (seasons, numbers)),
        "bootstrap of players": figures((players, again), (seasons, boot)),
    }


def released(children: tuple[str, ...], epsilon: float, method: str, seed: int) -> dict[str, Any]:
    """The figures of a release, table by table, its CPU seconds with drawing, and the peak of memory in MB."""
    import hedgerow as hr
    from hedgerow.progress import peak_rss_mb

    tables = read()
    began = time.process_time()
    given = {name: tables[name] for name in ("players", *children)}
    declared = hr.Schema.from_dict(schema(tables, children))
    made = hr.synthesize(given, declared, hr.Budget(epsilon, DELTA), method, seed=seed, unsafe_noise_seed=seed)
    drawn: dict[str, Any] = made.to_pandas()
    cost = {"cpu_s": time.process_time() - began, "mb": peak_rss_mb()}
    real = {name: bounded(tables[name], BOUND[name]) for name in children}
    return cost | {name: figures((tables["players"], drawn["players"]), (real[name], drawn[name])) for name in children}


def row(what: str, values: list[float], *more: str) -> str:
    return f"| {what} | {' | '.join([*(f'{value:.3f}' for value in values), *more])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", default="4,10")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    tables = read()
    for name in BOUND:
        real = bounded(tables[name], BOUND[name])
        print(f"\n## {name}, at most {BOUND[name]} seasons of a player\n")
        print(f"| | {' | '.join(FIGURES)} | CPU s | MB |\n|---|{'---|' * 6}")
        print(row("truncation alone", figures((tables["players"],) * 2, (tables[name], real)), "", ""))
        for what, values in baselines(tables["players"], real).items():
            print(row(what, values, "", ""))
        for children in ((name,), tuple(BOUND)):
            for epsilon in map(float, asked.epsilons.split(",")):
                for method in ("hedge", "mst", "independent") if len(children) == 1 else ("hedge",):
                    words = (children, epsilon, method)
                    runs = [
                        needed(in_a_process("bench.linked", "released", *words, seed)) for seed in range(asked.runs)
                    ]
                    means = np.mean([found[name] for found in runs], axis=0).tolist()
                    both = "" if len(children) == 1 else ", both tables at once"
                    cost = (f"{np.mean([found['cpu_s'] for found in runs]):.0f}", f"{max(f['mb'] for f in runs):.0f}")
                    print(row(f"{method}, ε = {epsilon:g}{both}", means, *cost), flush=True)


if __name__ == "__main__":
    main()
