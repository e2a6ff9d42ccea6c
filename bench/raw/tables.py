"""Raw tables, and what a steward would declare of them who has not seen the rows.

Three are public and looked for in $HEDGEROW_DATA. Five are made up here, seeded, of kinds that people have: prices and
measures, web sessions, land sales, trips with times and money, incidents with heavy-tailed costs. They are small where
such tables are small. Six more are made up in `further`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.raw.declaring import Declared, Made, number, whole
from bench.raw.further import FURTHER
from bench.tables import DATA

if TYPE_CHECKING:
    import pandas as pd

    import hedgerow as hr


class Raw(NamedTuple):
    """Rows as people have them, and types, bounds and decimals of some columns; the others are categories."""

    rows: pd.DataFrame
    declared: Declared

    @property
    def schema(self) -> hr.Schema:
        """The declaration; categories have the values that the public table holds."""
        import hedgerow as hr

        def said(name: str) -> dict[str, Any]:
            return self.declared.get(name) or {"type": "category", "values": sorted(self.rows[name].unique())}

        return hr.Schema(columns={name: said(name) for name in self.rows})

    def columns(self, *types: str) -> list[str]:
        return [name for name, column in self.declared.items() if column["type"] in types]


PUBLIC: dict[str, tuple[str, Declared]] = {
    "adult-raw": (
        "adult.csv",
        {
            "age": whole(0, 120), "fnlwgt": whole(0, 10**7), "education-num": whole(0, 50),
            "capital-gain": whole(0, 10**6), "capital-loss": whole(0, 10**6), "hours-per-week": whole(0, 168),
        },
    ),
    "bank": (
        "data.csv",
        {
            "age": whole(0, 120), "balance": whole(-100_000, 1_000_000), "day": whole(1, 31),
            "duration": whole(0, 100_000), "campaign": whole(0, 1_000), "pdays": whole(-1, 10_000),
            "previous": whole(0, 1_000),
        },
    ),
    "creditcard": (
        "data.csv",
        {
            "limit_bal": whole(0, 10**7), "age": whole(0, 120),
            **{f"pay_{month}": whole(-10, 20) for month in (0, 2, 3, 4, 5, 6)},
            **{f"bill_amt{month}": whole(-(10**7), 10**7) for month in range(1, 7)},
            **{f"pay_amt{month}": whole(0, 10**7) for month in range(1, 7)},
        },
    ),
}  # fmt: skip


def read(name: str) -> Raw:
    """A table by its name."""
    import pandas as pd

    if name in MADE_UP:
        columns, declared = MADE_UP[name](np.random.default_rng(0))
        rows = pd.DataFrame(columns)
    else:
        file, declared = PUBLIC[name]
        rows = pd.read_csv(DATA / name / file, keep_default_na=False)
    return Raw(rows.astype({column: str for column in rows if column not in declared}), declared)


def _prices(rng: np.random.Generator) -> Made:
    """Stones: weights that heap below round ones, prices that follow, three lengths that nearly follow."""
    count = 54_000
    weight = np.exp(rng.normal(-0.4, 0.6, count)).clip(0.2, 5)
    heap = rng.choice([0.3, 0.31, 0.4, 0.5, 0.7, 0.71, 0.9, 1.0, 1.01, 1.2, 1.5, 2.0], count)
    weight = np.round(np.where(rng.random(count) < 0.45, heap, weight), 2)
    cut, color, clarity = (rng.binomial(size, share, count) for size, share in ((4, 0.7), (6, 0.45), (7, 0.4)))
    price = 4_500 * weight**1.7 * np.exp(0.06 * cut - 0.08 * color + 0.12 * clarity + rng.normal(0, 0.13, count))
    depth = np.round(rng.normal(61.8, 1.4, count), 1)
    across = 6.4 * weight ** (1 / 3) * np.exp(rng.normal(0, 0.012, count))
    lengths = [across, across * np.exp(rng.normal(0, 0.01, count)), across * depth / 100]
    x, y, z = (np.where(rng.random(count) < 0.0005, 0, np.round(length, 2)) for length in lengths)
    columns = {
        "weight": weight, "cut": cut, "color": color, "clarity": clarity, "depth": depth,
        "table": np.where(rng.random(count) < 0.98, np.rint(rng.normal(57.4, 2.1, count)), 55.5),
        "price": np.rint(price), "x": x, "y": y, "z": z,
    }  # fmt: skip
    declared = {
        "weight": number(0, 100, 2), "depth": number(0, 100, 1), "table": number(0, 100, 1), "price": whole(0, 10**6),
        **{name: number(0, 100, 2) for name in "xyz"},
    }  # fmt: skip
    return columns, declared


def _sessions(rng: np.random.Generator) -> Made:
    """Visits: counts of pages, seconds with many digits, rates that are fractions of small counts, values mostly 0."""
    count = 12_000
    engaged = rng.normal(0, 1, count)

    def pages(mean: float, none: float) -> Any:
        return np.where(rng.random(count) < none, 0, rng.geometric(1 / (1 + mean * np.exp(0.8 * engaged))))

    few, fewer, many = pages(3, 0.47), pages(1, 0.79), 1 + pages(25, 0.01)
    seconds = [np.round(seen * rng.gamma(0.8, 45, count), 6) for seen in (few, fewer, many)]
    bounced = np.where(rng.random(count) < 0.45, 0.0, rng.binomial(2, 0.15, count) / many)
    buys = rng.random(count) < 1 / (1 + np.exp(2.4 - 1.2 * engaged))
    worth = np.where(rng.random(count) < np.where(buys, 0.8, 0.12), rng.lognormal(2.8, 1.0, count), 0.0)
    columns = {
        "few": few, "few_seconds": seconds[0], "fewer": fewer, "fewer_seconds": seconds[1],
        "many": many, "many_seconds": seconds[2],
        "bounce": np.round(np.where(many <= 2, 0.2, bounced).clip(0, 0.2), 9),
        "exit": np.round((bounced + rng.gamma(2, 0.012, count)).clip(0, 0.2), 9),
        "worth": np.round(worth, 6), "special": rng.choice([0, 0.2, 0.4, 0.6, 0.8, 1], count, p=[0.9, *[0.02] * 5]),
        "month": rng.integers(1, 11, count), "system": rng.geometric(0.5, count).clip(1, 8),
        "browser": rng.geometric(0.5, count).clip(1, 13), "region": rng.geometric(0.3, count).clip(1, 9),
        "traffic": rng.geometric(0.3, count).clip(1, 20), "visitor": rng.choice(["back", "new", "other"], count),
        "weekend": rng.random(count) < 0.23, "buys": buys,
    }  # fmt: skip
    declared = {
        **{name: whole(0, 10_000) for name in ("few", "fewer", "many")},
        **{f"{name}_seconds": number(0, 10**6, 6) for name in ("few", "fewer", "many")},
        "bounce": number(0, 1, 9), "exit": number(0, 1, 9), "worth": number(0, 10**6, 6), "special": number(0, 1, 1),
    }  # fmt: skip
    return columns, declared


def _land(rng: np.random.Generator) -> Made:
    """Sales: prices from a token 0, 1 or 10 to millions, in round thousands; areas, years, places, days."""
    count = 40_000
    where = rng.normal(0, 1, (2, count))
    built = rng.random(count) < 0.8
    acres = np.round(np.exp(rng.normal(-1.2, 1.1, count) - 0.4 * np.abs(where[0])), 4)
    feet = np.where(built, np.rint(np.exp(rng.normal(7.4, 0.4, count))), 0)
    worth = np.exp(rng.normal(11.6, 0.35, count) + 0.35 * where[0]) * (0.35 * acres**0.3 + feet / 1_900)
    token = rng.choice([0, 1, 10, 100], count, p=[0.6, 0.25, 0.13, 0.02])
    rounded = np.where(rng.random(count) < 0.7, np.rint(worth / 1_000) * 1_000, np.rint(worth / 100) * 100)
    price = np.where(rng.random(count) < 0.32, token, np.where(rng.random(count) < 0.05, np.rint(worth), rounded))
    day = np.datetime64("2009-01-01") + (365 * 9 * rng.beta(1.6, 1.0, count)).astype(int)
    weekday = (day.astype("datetime64[D]").view("i8") + 3) % 7
    day = np.where((weekday > 4) & (rng.random(count) < 0.95), day - (weekday - 4), day)
    columns = {
        "sold": day.astype("datetime64[s]"), "price": price, "acres": acres, "feet": feet,
        "land_value": np.rint(worth * 0.25 / 100) * 100, "building_value": np.where(built, np.rint(worth * 0.7), 0),
        "built": np.where(built, 2_015 - np.rint(rng.gamma(1.6, 28, count)), 0),
        "rooms": np.where(built, rng.binomial(6, 0.5, count), 0),
        "baths": np.where(built, rng.binomial(6, 0.4, count) / 2, 0),
        "front": np.where(rng.random(count) < 0.3, 0.0, np.round(rng.gamma(6, 13, count), 1)),
        "north": np.round(44.97 + 0.06 * where[0], 6), "east": np.round(-93.26 + 0.08 * where[1], 6),
        "ward": np.digitize(where[0], [-1.2, -0.6, 0, 0.6, 1.2]), "kind": np.where(built, "built", "vacant"),
        "deed": rng.choice(["warranty", "quit", "trust"], count, p=[0.6, 0.3, 0.1]),
        "zone": rng.geometric(0.4, count).clip(1, 9), "stories": np.where(built, rng.integers(1, 4, count), 0),
    }  # fmt: skip
    declared = {
        "sold": {"type": "date", "min": "1990-01-01", "max": "2024-12-31"},
        "price": whole(0, 10**8), "acres": number(0, 10_000, 4), "feet": whole(0, 10**6),
        "land_value": whole(0, 10**8), "building_value": whole(0, 10**8), "built": whole(0, 2_030),
        "rooms": whole(0, 100), "baths": number(0, 50, 1), "front": number(0, 10_000, 1),
        "north": number(40, 50, 6), "east": number(-100, -90, 6),
    }  # fmt: skip
    return columns, declared


def _trips(rng: np.random.Generator) -> Made:
    """Rides of one spring: rush hours, flat fares, tips of a round share of what is paid by card."""
    count = 6_400
    day = np.datetime64("2019-02-28") + rng.integers(0, 32, count)
    weekend = (day.astype("datetime64[D]").view("i8") + 3) % 7 > 4
    late = np.where(rng.random(count) < 0.35, rng.normal(8.5, 1.5, count), rng.normal(18, 3.5, count))
    hour = np.where(weekend, rng.normal(15, 5.5, count), late) % 24
    begin = (day.astype("datetime64[s]").view("i8") + (hour * 3_600).astype(int)).astype("datetime64[s]")
    miles = np.round(rng.lognormal(0.5, 0.9, count), 2).clip(0, 40)
    seconds = (miles * rng.gamma(9, 34, count) + rng.gamma(2, 60, count)).astype(int)
    flat = miles > 16
    fare = np.where(flat, 52.0, np.round(2 * (2.5 + 2.5 * miles * np.exp(rng.normal(0, 0.15, count)))) / 2)
    tolls = np.where(rng.random(count) < np.where(flat, 0.6, 0.03), 5.76, 0.0)
    card = rng.random(count) < 0.72
    tip = np.where(card & (rng.random(count) < 0.9), np.round(rng.choice([0.2, 0.25, 0.3], count) * (fare + 3.3), 2), 0)
    columns = {
        "pickup": begin, "dropoff": begin + seconds.astype("timedelta64[s]"),
        "riders": rng.geometric(0.65, count).clip(0, 6), "miles": miles, "fare": fare, "tip": tip, "tolls": tolls,
        "total": np.round(fare + tip + tolls + 3.3, 2), "color": np.where(rng.random(count) < 0.85, "yellow", "green"),
        "paid": np.where(card, "card", "cash"),
        "from": rng.geometric(0.1, count).clip(1, 40), "to": rng.geometric(0.1, count).clip(1, 40),
        "from_part": rng.choice(list("MBQX"), count, p=[0.8, 0.08, 0.1, 0.02]),
        "to_part": rng.choice(list("MBQX"), count, p=[0.78, 0.1, 0.1, 0.02]),
    }  # fmt: skip
    moment = {"type": "datetime", "min": "2015-01-01", "max": "2024-12-31", "step": "second"}
    declared = {
        "pickup": moment, "dropoff": moment, "riders": whole(0, 20), "miles": number(0, 1_000, 2),
        **{name: number(0, 10_000, 2) for name in ("fare", "tip", "tolls", "total")},
    }  # fmt: skip
    return columns, declared


def _incidents(rng: np.random.Generator) -> Made:
    """What went wrong, when, and what it cost: mostly nothing, seldom millions, guessed in round numbers."""
    count = 10_000
    size = rng.normal(0, 1, count)

    def cost(none: float, typical: float) -> Any:
        exact = typical * np.exp(1.6 * size + rng.normal(0, 1, count))
        round_to = 10.0 ** (np.floor(np.log10(exact.clip(1))) - rng.integers(0, 2, count))
        return np.where(rng.random(count) < none, 0, np.rint(exact / round_to) * round_to).clip(0, 10**7).astype(int)

    property_cost, repair, other = cost(0.4, 8_000), cost(0.6, 3_000), cost(0.78, 900)
    day = np.datetime64("2010-01-01") + rng.integers(0, 365 * 12, count)
    minute = np.where(rng.random(count) < 0.3, rng.integers(6, 20, count) * 60, rng.normal(780, 240, count) % 1_440)
    moment = day.astype("datetime64[m]") + minute.astype(int)
    columns = {
        "when": moment.astype("datetime64[s]"), "property_cost": property_cost, "repair_cost": repair,
        "other_cost": other, "total_cost": property_cost + repair + other,
        "released": np.round(np.where(rng.random(count) < 0.35, 0, np.exp(1.3 * size + rng.normal(1, 1, count))), 2),
        "hurt": rng.poisson(0.02 * np.exp(size), count), "killed": rng.poisson(0.003, count),
        "age": np.rint(rng.gamma(3, 12, count)), "diameter": rng.choice([0, 2, 4, 6, 8, 12, 16, 20, 24], count),
        "cause": rng.choice(list("abcdefg"), count, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.06, 0.04]),
        "state": rng.geometric(0.08, count).clip(1, 50), "kind": rng.choice(["gas", "oil", "water"], count),
        "shut": rng.random(count) < 0.4,
    }  # fmt: skip
    declared = {
        "when": {"type": "datetime", "min": "1990-01-01", "max": "2029-12-31", "step": "minute"},
        **{f"{name}_cost": whole(0, 10**9) for name in ("property", "repair", "other", "total")},
        "released": number(0, 10**7, 2), "hurt": whole(0, 1_000), "killed": whole(0, 1_000), "age": whole(0, 200),
        "diameter": number(0, 200, 1),
    }  # fmt: skip
    return columns, declared


MADE_UP: dict[str, Callable[[np.random.Generator], Made]] = {
    "prices": _prices,
    "sessions": _sessions,
    "land": _land,
    "trips": _trips,
    "incidents": _incidents,
    **FURTHER,
}
