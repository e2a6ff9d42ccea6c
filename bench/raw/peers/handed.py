"""What a peer's program is handed and hands back, all in one folder: rows.csv, declared.json; made.csv."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

Asked = dict[str, Any]


def answer(make: Callable[[pd.DataFrame, Asked], pd.DataFrame]) -> None:
    """Let `make` turn the rows into as many synthetic ones; prints the CPU seconds that took."""
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "declared.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(
        folder / "rows.csv",
        keep_default_na=False,
        parse_dates=of_type(asked, "date", "datetime"),
        dtype=dict.fromkeys(of_type(asked, "category"), str),
    )
    begin = time.process_time()
    made = make(rows, asked)
    print(time.process_time() - begin)
    made.to_csv(folder / "made.csv", index=False)


def of_type(asked: Asked, *types: str) -> list[str]:
    return [name for name, column in asked["columns"].items() if column["type"] in types]
