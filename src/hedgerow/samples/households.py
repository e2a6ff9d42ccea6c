"""Made-up households and the persons in them: children of a parent that are in no order.

Large households own their homes more often, persons of one household are of like age and schooling. None of it is taken
from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000
REGIONS = ("north", "east", "south", "west")
SCHEMA = """\
dataset: households
tables:
  households:
    key: id
    columns:
      region: {type: category, values: [north, east, south, west]}
      owns: {type: boolean}
      rooms: {type: integer, min: 1, max: 12}
  persons:
    parent: households
    link: household
    max_per_parent: 8
    columns:
      sex: {type: category, values: [f, m]}
      age: {type: integer, min: 0, max: 100}
      school: {type: category, values: [none, primary, secondary, higher], ordered: true}
"""


def generate(rows: int = ROWS, seed: int = 0) -> dict[str, pa.Table]:
    """`rows` households, and the persons in them."""
    import pyarrow as pa

    rng = np.random.default_rng([11, seed])
    region = rng.choice(4, rows, p=[0.3, 0.2, 0.35, 0.15])
    counts = np.minimum(9, 1 + rng.poisson(1.4 + 0.3 * (region == 2)))
    owns = rng.random(rows) < 0.25 + 0.1 * np.minimum(counts, 5)
    rooms = np.clip(1 + rng.poisson(1.2 + 0.6 * counts + owns), 1, 12)
    house = np.repeat(np.arange(rows), counts)
    place = np.arange(len(house)) - np.repeat(np.cumsum(counts) - counts, counts)
    level = rng.normal(45, 14, rows)[house]
    age = np.where(place < 2, level + rng.normal(0, 4, len(house)), level - 28 + rng.normal(0, 5, len(house)))
    age = np.clip(np.rint(age), 0, 100).astype(np.int64)
    wealth = rng.normal(0, 0.8, rows)[house]
    school = np.clip(np.floor(1.8 + wealth + rng.normal(0, 0.6, len(house))), 0, 3).astype(np.int64)
    school = np.where(age < 6, 0, np.where(age < 14, np.minimum(school, 1), school))
    names = np.array([f"h{number:06}" for number in range(rows)])
    return {
        "households": pa.table(
            {"id": names, "region": np.array(REGIONS)[region], "owns": owns, "rooms": rooms.astype(np.int64)}
        ),
        "persons": pa.table(
            {
                "household": names[house],
                "sex": np.where(rng.random(len(house)) < 0.5, "f", "m"),
                "age": age,
                "school": np.array(["none", "primary", "secondary", "higher"])[school],
            }
        ),
    }
