"""Real tables as a steward would declare them, for benchmarks that compare releases with rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bench.raw.tables import PUBLIC, read
from bench.tables import DATA

if TYPE_CHECKING:
    import pandas as pd

    import hedgerow as hr

MOST_ROWS = 60_000
"""Of a larger table a fixed sample of so many rows is the table, where a benchmark asks for `few`."""


def declared(name: str) -> tuple[pd.DataFrame, hr.Schema]:
    """The rows and what a steward would declare."""
    import pandas as pd

    import hedgerow as hr

    if name in PUBLIC:
        raw = read(name)
        return raw.rows, raw.schema
    if name == "ma2019":
        return _ma2019()
    return pd.read_parquet(DATA / name / "data.parquet"), hr.Schema.load(DATA / name / "domain.json")


def few(name: str) -> tuple[pd.DataFrame, hr.Schema]:
    """The same, with at most `MOST_ROWS` rows."""
    rows, schema = declared(name)
    if len(rows) > MOST_ROWS:
        rows = rows.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
    return rows, schema


def _ma2019() -> tuple[pd.DataFrame, hr.Schema]:
    """Bounds and values from the table's own public description; N is "not applicable"."""
    import pandas as pd

    import hedgerow as hr

    rows = pd.read_csv(DATA / "ma2019" / "ma2019.csv", dtype=str, keep_default_na=False)
    columns: dict[str, Any] = {}
    for name, about in json.loads((DATA / "ma2019" / "ma2019.json").read_text())["schema"].items():
        null = {"missing": {about["null_value"]: "not applicable"}} if about.get("has_null") else {}
        if "values" in about:
            values = [str(value) for value in about["values"] if str(value) != about.get("null_value")]
            columns[name] = {"type": "category", "values": values, **null}
        elif name == "DENSITY":
            columns[name] = {"type": "number", "min": about["min"], "max": about["max"], "decimals": 1, **null}
        else:
            rows[name] = rows[name].str.replace(r"\.0$", "", regex=True)
            columns[name] = {"type": "integer", "min": int(about["min"]), "max": int(about["max"]), **null}
    return rows[list(columns)], hr.Schema(columns=columns)
