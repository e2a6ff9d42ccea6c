"""What rules are worth, and what they cost: the figures of docs/studies/rules.md.

    python -m bench.rules --epsilons 0.1,1,10 --runs 3

Census rows (`ma2019` in $HEDGEROW_DATA) are released with and without the rules of their data dictionary, at the same
budget. Counted are the rows that break a rule, the mean total variation distance of all marginals of three columns
(numbers in fixed public bins), and the CPU seconds of the run and of drawing as many rows.

    python -m bench.rules --lengths --epsilons 1,10

Made-up trips are released with the rule that they end after they begin, and with their length declared and their end
derived. Measured is the Kolmogorov distance of the lengths.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.process import in_a_process, needed
from bench.tables import DATA

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    import hedgerow as hr

DELTA = 1e-6
NOT_APPLICABLE = {"N": "not applicable"}
INDUSTRIES = {
    "0": (170, 290), "1": (370, 490), "2": (570, 690), "3": (770, 770), "4": (1070, 3990), "5": (4070, 4590),
    "6": (4670, 5791), "7": (6070, 6390), "8": (6470, 6780), "9": (6870, 7190), "10": (7270, 7790),
    "11": (7860, 7890), "12": (7970, 8290), "13": (8370, 8470), "14": (8560, 8690), "15": (8770, 9290),
    "16": (9370, 9590), "17": (9670, 9870), "18": (9920, 9920),
}  # fmt: skip
"""The codes of each category, as the Census Bureau's data dictionary has them."""
DENSITIES = [
    ["25-00503", "2872.7"], ["25-00703", "2195.3"], ["25-01000", "2447.1"], ["25-01300", "1457.2"],
    ["25-02800", "3683.9"],
]  # fmt: skip
"""People per square mile of each area: a public table."""
BINS: dict[str, list[float]] = {
    "AGEP": [3, 5, 15, 16, 18, 25, 35, 45, 55, 65, 75], "PINCP": [0, 5e3, 1e4, 2e4, 3e4, 45e3, 6e4, 8e4, 12e4],
    "POVPIP": [50, 100, 150, 200, 300, 400, 501], "PWGTP": [20, 40, 60, 80, 120], "WGTP": [1, 20, 40, 60, 80, 120],
    "DENSITY": [2000, 2300, 2600, 3000],
}  # fmt: skip


def rules() -> list[Any]:
    """What the data dictionary says of the columns together."""
    young = [("MSP", 15), ("PINCP_DECILE", 15), ("EDU", 3), ("DREM", 5), ("DPHY", 5)]
    found: list[Any] = []
    for name, age in young:
        found.append({"when": f"AGEP < {age}", "then": f"{name} = 'N'"})
        found.append({"when": f"AGEP >= {age}", "then": f"{name} <> 'N'"})
    found += [
        {"when": "AGEP < 15", "then": "PINCP IS NULL"},
        {"when": "AGEP >= 15", "then": "PINCP IS NOT NULL"},
        {"when": "AGEP < 16", "then": "INDP_CAT = 'N'"},
        {"when": "AGEP < 16", "then": "INDP = 'N'"},
        {"when": "AGEP < 17", "then": "DVET = 'N'"},
        {"when": "AGEP < 5", "then": "EDU IN ('N', '1', '2', '3', '4')"},
        {"when": "AGEP < 15", "then": "EDU <> '12'"},
        {"when": "HOUSING_TYPE <> '1'", "then": "NOC IS NULL"},
        {"when": "HOUSING_TYPE = '1'", "then": "NOC IS NOT NULL"},
        {"when": "HOUSING_TYPE <> '1'", "then": "NPF IS NULL"},
        {"when": "HOUSING_TYPE <> '1'", "then": "OWN_RENT = '0'"},
        {"when": "HOUSING_TYPE = '1'", "then": "OWN_RENT <> '0'"},
        {"when": "HOUSING_TYPE <> '1'", "then": "WGTP = 0"},
        {"when": "HOUSING_TYPE = '1'", "then": "WGTP > 0"},
        {"when": "HOUSING_TYPE = '2'", "then": "POVPIP IS NULL"},
        "NOC < NPF",
        {"columns": ["PUMA", "DENSITY"], "lookup": DENSITIES},
        {"columns": ["INDP", "INDP_CAT"], "lookup": _industries()},
    ]
    return found


def _industries() -> list[list[str]]:
    codes = [code for code in _listed("INDP") if code != "N"]
    of = {code: next(name for name, (a, b) in INDUSTRIES.items() if a <= int(code) <= b) for code in codes}
    return [["N", "N"], *([code, category] for code, category in of.items())]


def _listed(column: str) -> list[str]:
    """The values that the table's own description lists."""
    import json

    described = json.loads((DATA / "ma2019" / "ma2019.json").read_text())["schema"][column]
    return [str(value) for value in described["values"]]


def schema(with_rules: bool) -> hr.Schema:
    """The declaration, with or without its rules."""
    import hedgerow as hr

    def category(name: str, *values: str) -> dict[str, Any]:
        return {"type": "category", "values": list(values) or _listed(name)}

    def number(low: int, high: int, **more: Any) -> dict[str, Any]:
        return {"type": "integer", "min": low, "max": high, **more}

    columns: dict[str, Any] = {
        "PUMA": category("PUMA"), "AGEP": number(0, 99), "SEX": category("SEX", "1", "2"),
        "MSP": category("MSP", "N", *"123456"), "HISP": category("HISP", *"01234"),
        "RAC1P": category("RAC1P", *"123456789"), "NOC": number(0, 19, missing=NOT_APPLICABLE),
        "NPF": number(2, 20, missing=NOT_APPLICABLE), "HOUSING_TYPE": category("HOUSING_TYPE", *"123"),
        "OWN_RENT": category("OWN_RENT", *"012"),
        "DENSITY": {"type": "number", "min": 16, "max": 53_000, "decimals": 1}, "INDP": category("INDP"),
        "INDP_CAT": category("INDP_CAT", "N", *map(str, range(19))),
        "EDU": category("EDU", "N", *map(str, range(1, 13))),
        "PINCP": number(-9_000, 1_341_000, missing=NOT_APPLICABLE),
        "PINCP_DECILE": category("PINCP_DECILE", "N", *"0123456789"),
        "POVPIP": number(0, 501, missing=NOT_APPLICABLE), "DVET": category("DVET", "N", *"123456"),
        "DREM": category("DREM", *"N12"), "DPHY": category("DPHY", *"N12"), "DEYE": category("DEYE", *"12"),
        "DEAR": category("DEAR", *"12"), "PWGTP": number(1, 9_999), "WGTP": number(0, 9_999),
    }  # fmt: skip
    return hr.Schema.from_dict({"columns": columns, **({"rules": rules()} if with_rules else {})})


def coded(table: pa.Table) -> npt.NDArray[np.int64]:
    """Every column in few public cells: numbers in bins, blanks apart, industries by their first digits."""
    import pandas as pd

    found = []
    for name in table.column_names:
        values = table.column(name).to_pandas()
        if name in BINS:
            numbers = pd.to_numeric(values, errors="coerce")
            code = np.where(
                numbers.isna(), len(BINS[name]) + 1, np.digitize(numbers.fillna(0).to_numpy(), np.array(BINS[name]))
            )
        else:
            text = values.astype(object).where(values.notna(), "N").astype(str).str.removesuffix(".0")
            text = text.where(text == "N", text.str.zfill(4).str[:2]) if name == "INDP" else text
            code = np.array([_number(value) for value in text])
        found.append(code)
    return np.stack(found).astype(np.int64)


def _number(text: str) -> int:
    return 99 if text == "N" else int(text.rpartition("-")[2]) % 100_000


def distance(real: npt.NDArray[np.int64], made: npt.NDArray[np.int64]) -> float:
    """The mean total variation distance of all marginals of three columns."""
    levels = [np.unique(np.concatenate(pair)) for pair in zip(real, made, strict=True)]
    left = [np.searchsorted(level, column) for level, column in zip(levels, real, strict=True)]
    right = [np.searchsorted(level, column) for level, column in zip(levels, made, strict=True)]
    found = []
    for a, b, c in itertools.combinations(range(len(levels)), 3):
        size = len(levels[a]) * len(levels[b]) * len(levels[c])
        key = [(one[a] * len(levels[b]) + one[b]) * len(levels[c]) + one[c] for one in (left, right)]
        first, second = (np.bincount(each, minlength=size) / len(each) for each in key)
        found.append(0.5 * float(np.abs(first - second).sum()))
    return statistics.fmean(found)


def run(method: str, epsilon: float, with_rules: bool) -> dict[str, float]:
    """One release: breaches, error, CPU seconds."""
    import pyarrow.csv

    import hedgerow as hr
    from hedgerow.models.model import block_rng
    from hedgerow.release.drawing import Drawing

    path = DATA / "ma2019" / "ma2019.csv"
    declared = schema(with_rules)
    begin = time.process_time()
    release = hr.synthesize(str(path), declared, hr.Budget(epsilon, DELTA), method)
    took = time.process_time() - begin
    rows = max(1, round(release.model.total))
    release.sample(1_000)  # what is loaded once is no part of drawing
    begin = time.process_time()
    made = release.sample(100_000, seed=1)
    drew = time.process_time() - begin
    drawing = Drawing(release.model, release.encoding, block_rng(0, 0))
    for _ in drawing.rows(20_000):
        pass
    strings = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(declared.columns, "string"))
    real = pyarrow.csv.read_csv(path, convert_options=strings)
    broken = schema(True).kept_rules.broken(made)
    return {
        "broken": float(broken.mean()),
        "error": distance(coded(real), coded(made.select(real.column_names))),
        "run": took,
        "draw": drew,
        "rows": rows,
        "tried": drawing.tried / 20_000,
        "completed": drawing.completed / 20_000,
    }


TRIPS = 20_000
MOMENT = {"type": "datetime", "min": "2024-02-01", "max": "2024-03-02", "step": "second"}


def trips() -> pa.Table:
    """Moments of four weeks with the rhythm of a day, and skewed lengths of some minutes."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    rhythm = np.array([1, 1, 1, 1, 1, 1, 3, 6, 8, 6, 4, 4, 4, 4, 5, 6, 8, 9, 7, 5, 4, 3, 2, 1])
    hours = rng.integers(0, 28, TRIPS) * 24 + rng.choice(24, TRIPS, p=rhythm / rhythm.sum())
    seconds = np.minimum(rng.lognormal(6.6, 0.7, TRIPS), 6 * 3600).astype(np.int64)
    pickup = np.datetime64("2024-02-01") + (hours * 3600 + rng.integers(0, 3600, TRIPS)).astype("timedelta64[s]")
    miles = np.round(np.minimum(seconds / 3600 * rng.normal(14, 3, TRIPS).clip(3, 40), 60), 1)
    return pa.table({"pickup": pickup, "dropoff": pickup + seconds.astype("timedelta64[s]"), "miles": miles})


def length(method: str, epsilon: float, derived: bool) -> dict[str, float]:
    """One release of trips: the Kolmogorov distance of their lengths, and the mean length over the real one."""
    import hedgerow as hr

    miles = {"type": "number", "min": 0, "max": 200, "decimals": 1}
    plain = {"columns": {"pickup": MOMENT, "dropoff": MOMENT, "miles": miles}, "rules": ["dropoff >= pickup"]}
    lengths = {
        "columns": {"pickup": MOMENT, "seconds": {"type": "integer", "min": 0, "max": 30 * 86_400}, "miles": miles},
        "derive": {"dropoff": "pickup + seconds * INTERVAL '1 second'"},
        "rules": ["dropoff <= '2024-03-02'"],
    }
    real = trips()
    declared = hr.Schema.from_dict(lengths if derived else plain)
    made = hr.synthesize(real, declared, hr.Budget(epsilon, DELTA), method).sample(TRIPS)
    first, second = (
        np.sort(
            np.subtract(*(each[n].to_numpy() for n in ("dropoff", "pickup"))).astype("timedelta64[s]").astype(np.int64)
        )
        for each in (real, made)
    )
    places = np.concatenate([first, second])
    below = [np.searchsorted(each, places, side="right") / len(each) for each in (first, second)]
    return {"KS": float(np.abs(below[0] - below[1]).max()), "mean": float(second.mean() / first.mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--methods", default="hedge,mst,aim")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--lengths", action="store_true", help="of made-up trips, instead of census rows")
    given = parser.parse_args()
    measured, what = ("length", "a derived end") if given.lengths else ("run", "rules")
    for method, epsilon in itertools.product(given.methods.split(","), map(float, given.epsilons.split(","))):
        for having in (False, True):
            found = [needed(in_a_process("bench.rules", measured, method, epsilon, having)) for _ in range(given.runs)]
            medians = {name: statistics.median(each[name] for each in found) for name in found[0]}
            said = " ".join(f"{name} {value:.4g}" for name, value in medians.items())
            print(f"{method} ε={epsilon:g} {'with' if having else 'without'} {what}: {said}", flush=True)


if __name__ == "__main__":
    main()
