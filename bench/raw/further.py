"""Further made-up tables, made when the constants of the cuts had been chosen; any number of rows of each.

Hospital stays, sensor readings, payrolls, meters, survey incomes, and what a service logged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.raw.declaring import Made, number, whole


def stays(rng: np.random.Generator, count: int) -> Made:
    """Hospital stays: days from 0 on, costs to the cent that follow them, a flat fee, hours, weekdays."""
    ill = rng.normal(0, 1, count)
    short = rng.random(count) < 0.22
    days = np.where(short, 0, rng.geometric(1 / (1 + 3.5 * np.exp(0.7 * ill))))
    cost = np.round((days + 0.4) * rng.gamma(6, 130, count) * np.exp(0.3 * ill), 2)
    drugs = np.where(rng.random(count) < 0.35, 0, np.round(np.exp(4.2 + ill + rng.normal(0, 0.9, count)), 2))
    share = np.where(rng.random(count) < 0.62, np.minimum(10.0 * days, 280), 0)
    age = np.where(rng.random(count) < 0.09, 0, np.rint(rng.normal(58 + 6 * ill, 19, count)).clip(0, 104))
    day = np.datetime64("2016-01-01") + rng.integers(0, 365 * 5, count)
    weekday = (day.astype("datetime64[D]").view("i8") + 3) % 7
    day = np.where((weekday > 4) & (rng.random(count) < 0.5), day - 2, day)
    planned = rng.random(count) < 0.55
    minute = np.where(planned, 7 * 60 + 15 * rng.integers(0, 12, count), rng.normal(960, 290, count) % 1440)
    columns = {
        "admitted": (day.astype("datetime64[m]") + minute.astype(int)).astype("datetime64[s]"),
        "days": days, "cost": cost, "drugs": drugs, "copayment": share, "age": age,
        "weight": np.round(rng.normal(76, 16, count).clip(0.6, 210), 1),
        "ward": rng.choice(list("abcdef"), count, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03]), "planned": planned,
    }  # fmt: skip
    declared = {
        "admitted": {"type": "datetime", "min": "2010-01-01", "max": "2029-12-31", "step": "minute"},
        "days": whole(0, 10_000), "cost": number(0, 10**7, 2), "drugs": number(0, 10**7, 2),
        "copayment": number(0, 10_000, 2), "age": whole(0, 130), "weight": number(0, 500, 1),
    }  # fmt: skip
    return columns, declared


def sensors(rng: np.random.Generator, count: int) -> Made:
    """Readings from below to above zero; some instruments stop at a bound, some report a value when they fail."""
    when = np.sort(rng.integers(0, 365 * 24 * 60, count))
    season = -np.cos(2 * np.pi * when / (365 * 24 * 60)) + 0.4 * np.sin(2 * np.pi * when / (24 * 60))
    outside = np.round(8 + 11 * season + rng.normal(0, 3, count), 1)
    columns = {
        "at": np.datetime64("2021-01-01") + when.astype("timedelta64[m]").astype("timedelta64[s]"),
        "outside": outside,
        "drift": np.round(rng.normal(0, 0.02, count) + 0.01 * season, 4),
        "pressure": np.round(1013 + rng.normal(0, 9, count), 1),
        "humidity": np.round((70 - 15 * season + rng.normal(0, 14, count)).clip(0, 100)),
        "current": np.round(np.where(rng.random(count) < 0.15, 0, rng.normal(0, 1, count) * np.exp(season)), 3),
        "fault": np.where(rng.random(count) < 0.04, -999.0, np.round(20 + 2 * season + rng.normal(0, 0.5, count), 1)),
        "particles": np.rint(np.exp(rng.normal(3.2, 0.9, count))),
        "station": rng.choice(["north", "south", "roof"], count),
    }
    declared = {
        "at": {"type": "datetime", "min": "2015-01-01", "max": "2029-12-31", "step": "minute"},
        "outside": number(-100, 100, 1), "drift": number(-10, 10, 4), "pressure": number(0, 2_000, 1),
        "humidity": number(0, 100, 0), "current": number(-1_000, 1_000, 3), "fault": number(-999, 1_000, 1),
        "particles": whole(0, 10**6),
    }  # fmt: skip
    return columns, declared


def payroll(rng: np.random.Generator, count: int) -> Made:
    """Wages by grade, to the cent; overtime that most have not; bonuses in round sums; a cap; hours in quarters."""
    grade = rng.binomial(9, 0.35, count)
    full = rng.random(count) < 0.7
    hours = np.where(full, 40.0, np.round(rng.choice([20, 25, 30, 32], count) + 0.0, 2))
    step = rng.integers(0, 6, count)
    base = np.round((2_100 + 310 * grade + 55 * step) * hours / 40 * np.where(rng.random(count) < 0.2, 1.035, 1.0), 2)
    over = np.where(rng.random(count) < 0.72, 0, np.round(4 * rng.gamma(1.5, 5, count)) / 4)
    bonus = np.where(rng.random(count) < 0.8, 0, 250.0 * rng.geometric(0.2, count))
    gross = np.round(base + over * base / 160 * 1.25 + bonus, 2)
    columns = {
        "grade": grade, "hours": hours, "base": base, "overtime": over, "overtime_pay": np.round(over * base / 128, 2),
        "bonus": bonus, "gross": gross, "tax": np.round((gross - 1_000).clip(0) * 0.27, 2),
        "insurance": np.round(np.minimum(gross, 4_837.5) * 0.093, 2),
        "years": np.rint(rng.gamma(1.4, 6, count)).clip(0, 45),
        "sex": rng.choice(["f", "m"], count), "site": rng.geometric(0.3, count).clip(1, 12),
    }  # fmt: skip
    declared = {
        "hours": number(0, 168, 2), "base": number(0, 10**6, 2), "overtime": number(0, 500, 2),
        "overtime_pay": number(0, 10**6, 2), "bonus": number(0, 10**7, 2), "gross": number(0, 10**7, 2),
        "tax": number(0, 10**7, 2), "insurance": number(0, 10**5, 2), "years": whole(0, 80),
    }  # fmt: skip
    return columns, declared


def meters(rng: np.random.Generator, count: int) -> Made:
    """Energy meters: night and day, roofs that feed back below zero, flats that stand empty, a few great consumers."""
    size = np.exp(rng.normal(0, 0.5, count))
    great = rng.random(count) < 0.01
    empty = rng.random(count) < 0.08
    day = np.round(np.where(empty, 0, size * rng.gamma(4, 1.8, count) * np.where(great, 60, 1)), 3)
    night = np.round(np.where(empty | (rng.random(count) < 0.4), 0, day * rng.beta(2, 4, count)), 3)
    roof = rng.random(count) < 0.13
    columns = {
        "read_on": (np.datetime64("2022-01-01") + rng.integers(0, 730, count)).astype("datetime64[s]"),
        "day": day, "night": night, "net": np.round(day + night - np.where(roof, rng.gamma(3, 4, count), 0), 3),
        "peak": np.round(np.where(empty, 0, 0.2 + day * rng.uniform(0.1, 0.3, count)), 2),
        "gas": np.where(rng.random(count) < 0.45, 0, np.rint(rng.gamma(2.2, 18, count))),
        "counter": np.rint(rng.gamma(1.6, 24_000, count)),
        "fuse": rng.choice([16, 25, 35, 63], count, p=[0.2, 0.5, 0.25, 0.05]),
        "roof": roof, "tariff": rng.choice(["one", "two", "three"], count, p=[0.6, 0.3, 0.1]),
    }  # fmt: skip
    declared = {
        "read_on": {"type": "date", "min": "2000-01-01", "max": "2030-12-31"},
        "day": number(0, 10**5, 3), "night": number(0, 10**5, 3), "net": number(-(10**5), 10**5, 3),
        "peak": number(0, 10**4, 2), "gas": whole(0, 10**6), "counter": whole(0, 10**8), "fuse": whole(0, 1_000),
    }  # fmt: skip
    return columns, declared


def survey(rng: np.random.Generator, count: int) -> Made:
    """Answers of persons: incomes in round thousands, debts mostly none, hours that heap, years of birth, weights."""
    able = rng.normal(0, 1, count)
    works = rng.random(count) < 0.66
    exact = np.exp(10.3 + 0.6 * able + rng.normal(0, 0.5, count))
    unit = rng.choice([100, 500, 1_000, 5_000, 10_000], count, p=[0.15, 0.1, 0.45, 0.2, 0.1])
    income = np.where(
        works, np.rint(exact / unit) * unit, np.where(rng.random(count) < 0.5, 0, np.rint(exact / 2_500) * 1_000)
    )
    heap = rng.choice(
        [10, 20, 30, 35, 38, 40, 45, 50, 60], count, p=[0.03, 0.09, 0.1, 0.08, 0.07, 0.45, 0.06, 0.09, 0.03]
    )
    hours = np.where(works, np.where(rng.random(count) < 0.8, heap, np.rint(rng.normal(36, 11, count))), 0)
    debt = np.where(rng.random(count) < 0.68, 0, np.rint(np.exp(9 + 1.2 * rng.normal(0, 1, count)) / 500) * 500)
    columns = {
        "income": income, "debt": debt,
        "wealth": income * 2 - debt + np.rint(rng.normal(0, 30_000, count) / 1_000) * 1_000,
        "hours": hours.clip(0, 99), "born": 2_019 - np.rint(rng.beta(1.6, 2, count) * 75 + 18),
        "rent": np.where(rng.random(count) < 0.5, 0, np.rint(rng.gamma(9, 85, count) / 10) * 10),
        "children": rng.poisson(0.8, count), "minutes": 5 * rng.poisson(5, count),
        "weight": np.round(rng.gamma(4, 0.25, count), 4),
        "school": rng.choice(list("abcde"), count, p=[0.1, 0.3, 0.35, 0.15, 0.1]), "works": works,
    }  # fmt: skip
    declared = {
        "income": whole(0, 10**8), "debt": whole(0, 10**9), "wealth": whole(-(10**9), 10**9), "hours": whole(0, 168),
        "born": whole(1_900, 2_030), "rent": whole(0, 10**6), "children": whole(0, 30), "minutes": whole(0, 1_440),
        "weight": number(0, 100, 4),
    }  # fmt: skip
    return columns, declared


def logged(rng: np.random.Generator, count: int) -> Made:
    """What a service wrote over six years: minutes with a daily and a weekly rhythm, times to answer, bytes."""
    day = (365 * 6 * rng.beta(1.8, 1.0, count)).astype(int)
    date = np.datetime64("2015-06-01") + day
    weekday = (date.astype("datetime64[D]").view("i8") + 3) % 7
    date = np.where((weekday > 4) & (rng.random(count) < 0.7), date - 3, date)
    batch = rng.random(count) < 0.12
    minute = np.where(
        batch, 120, np.where(rng.random(count) < 0.5, rng.normal(620, 110, count), rng.normal(860, 130, count))
    )
    wait = np.where(rng.random(count) < 0.02, 30_000, np.rint(np.exp(rng.normal(4.4, 0.8, count) + 0.8 * batch)))
    size = np.where(rng.random(count) < 0.25, 0, np.rint(np.exp(rng.normal(8.2, 1.9, count))))
    columns = {
        "at": (date.astype("datetime64[m]") + (minute % 1_440).astype(int)).astype("datetime64[s]"),
        "milliseconds": wait.clip(1, 30_000), "bytes": size.clip(0, 10**8),
        "status": rng.choice([200, 204, 301, 404, 500], count, p=[0.8, 0.06, 0.05, 0.07, 0.02]),
        "tries": rng.geometric(0.93, count),
        "port": rng.choice([80, 443, 8080, 8443], count, p=[0.2, 0.7, 0.06, 0.04]),
        "load": np.round(rng.gamma(1.5, 0.4, count), 2),
        "kind": rng.choice(["get", "put", "post"], count, p=[0.7, 0.1, 0.2]),
        "batch": batch,
    }  # fmt: skip
    declared = {
        "at": {"type": "datetime", "min": "2010-01-01", "max": "2029-12-31", "step": "minute"},
        "milliseconds": whole(0, 10**7), "bytes": whole(0, 10**10), "status": whole(100, 599), "tries": whole(0, 1_000),
        "port": whole(0, 65_535), "load": number(0, 1_000, 2),
    }  # fmt: skip
    return columns, declared


FURTHER: dict[str, Callable[[np.random.Generator], Made]] = {
    "stays": lambda rng: stays(rng, 25_000),
    "sensors": lambda rng: sensors(rng, 30_000),
    "payroll": lambda rng: payroll(rng, 10_000),
    "meters": lambda rng: meters(rng, 40_000),
    "survey": lambda rng: survey(rng, 10_000),
    "logged": lambda rng: logged(rng, 60_000),
}
