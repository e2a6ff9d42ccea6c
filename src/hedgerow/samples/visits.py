"""Made-up patients and their visits: a history in time, whose costs go on from visit to visit.

Older patients come more often, every visit is likely to be for what the last one was for, and what it costs depends on
that and on the sex of the patient. None of it is taken from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000
MOST_VISITS = 12
KINDS = ("check-up", "injury", "chronic", "acute")
SCHEMA = """\
dataset: visits
tables:
  patients:
    key: id
    columns:
      sex: {type: category, values: [f, m]}
      born: {type: integer, min: 1920, max: 2010}
  visits:
    parent: patients
    link: patient
    order: day
    max_per_parent: 10
    columns:
      day: {type: date, min: 2022-01-01, max: 2024-12-31}
      kind: {type: category, values: [check-up, injury, chronic, acute]}
      cost: {type: integer, min: 0, max: 2000}
"""


def generate(rows: int = ROWS, seed: int = 0) -> dict[str, pa.Table]:
    """`rows` patients, and their visits."""
    import pyarrow as pa

    rng = np.random.default_rng([22, seed])
    female = rng.random(rows) < 0.52
    born = np.clip(np.rint(rng.normal(1970, 20, rows)), 1920, 2010).astype(np.int64)
    counts = np.minimum(MOST_VISITS, rng.poisson(1 + (2010 - born) / 25))
    patient = np.repeat(np.arange(rows), counts)
    first = np.append(True, patient[1:] != patient[:-1]) if len(patient) else np.zeros(0, dtype=bool)
    day = np.zeros(len(patient), dtype=np.int64)
    kind = np.zeros(len(patient), dtype=np.int64)
    old = born[patient] < 1960
    for visit in range(len(patient)):
        if first[visit]:
            day[visit] = rng.integers(0, 700)
            kind[visit] = rng.choice(4, p=[0.2, 0.2, 0.45, 0.15] if old[visit] else [0.45, 0.3, 0.05, 0.2])
        else:
            day[visit] = day[visit - 1] + 1 + rng.geometric(1 / 40)
            kind[visit] = kind[visit - 1] if rng.random() < 0.6 else rng.integers(4)
    base = np.array([60, 250, 120, 180])[kind]
    cost = np.clip(np.rint(base * rng.lognormal(0, 0.4, len(patient)) * np.where(female[patient], 1.0, 1.15)), 0, 2000)
    days = np.datetime64("2022-01-01") + np.minimum(day, 1095)
    names = np.array([f"p{number:06}" for number in range(rows)])
    return {
        "patients": pa.table({"id": names, "sex": np.where(female, "f", "m"), "born": born}),
        "visits": pa.table(
            {
                "patient": names[patient],
                "day": pa.array(days, pa.date32()),
                "kind": np.array(KINDS)[kind],
                "cost": cost.astype(np.int64),
            }
        ),
    }
