"""Sprint 2 of NIST's 2020 challenge, a made-up survey and a real one: the tables of docs/studies/challenge2020.md.

    python -m reproduce.dpsyn --tables acs,acs-temporal --epsilons 0.1,1,10

`acs` is the sample of that name: one region private, the other public, up to seven records a person. `acs-temporal` is
a discretised survey with one record a person, where it is at hand (`--data FOLDER`); half of its places are taken as
public, half as private. Every run is a process of its own. Results are kept in the folder, so that the tables can be
filled in piece by piece; `--again` runs a cell anew.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench.tables import DATA

import hedgerow as hr
from hedgerow.methods import build
from hedgerow.methods.dpsyn import Regime
from hedgerow.private.evaluate.nist2020 import sprint2
from hedgerow.progress import Limits, Progress

DELTA = 1 / 170_254**2
"""The contest's δ."""
EPSILONS = ("0.1", "1", "10")
SEGMENTS = ("PUMA", "YEAR")
GROUPS = (
    "SEX MARST",
    "HCOVANY HCOVPRIV HINSEMP HINSCAID HINSCARE",
    "EMPSTAT EMPSTATD LABFORCE WRKLSTWK WORKEDYR",
    "ABSENT LOOKING",
    "AVAILBLE WRKRECAL",
)
METHODS: dict[str, tuple[str, float, dict[str, str]]] = {
    "dpsyn": ("dpsyn", DELTA, {}),
    "dpsyn, shrink=no as printed": ("dpsyn", DELTA, {"shrink": "no"}),
    "dpsyn, δ = 0": ("dpsyn", 0.0, {}),
    "mst": ("mst", DELTA, {}),
    "aim": ("aim", DELTA, {"workload": "2"}),
    "hedge": ("hedge", DELTA, {}),
    "hedge, segments": ("hedge", DELTA, {"segments": ",".join(SEGMENTS)}),
}
YARDSTICKS = ("public rows only", "10 % subsample", "50 % subsample")


@dataclass(frozen=True, eq=False)
class Case:
    """A private table, a public one, and what is declared about both."""

    private: pa.Table
    public: pa.Table
    schema: hr.Schema
    options: dict[str, Any]


def options(rows_per_segment: float) -> dict[str, str]:
    """The contest's floor of 300 for about 816 rows a segment, to scale; nothing is rounded."""
    return {"segments": ",".join(SEGMENTS), "floor": str(round(300 * rows_per_segment / 816))}


def acs(rows: int, data: Path) -> Case:
    """The two regions of the made-up survey, in the preset's bins and groups."""
    from hedgerow.samples import acs as sample

    public = sample.generate(rows, region=sample.PUBLIC)
    scaled = options(rows / (sample.PLACES * len(sample.YEARS)))
    return Case(sample.generate(rows), public, sample.schema(), scaled)


def temporal(rows: int, data: Path, rows_per_person: int = 1) -> Case:
    """The real survey: every second place is private. With more than one row a person, as if that were the bound."""
    import pyarrow.parquet as pq

    table = pq.read_table(data / "acs-temporal" / "data.parquet")
    sizes = json.loads((data / "acs-temporal" / "domain.json").read_text())
    place = np.asarray(table["PUMA"])
    parts = []
    for mask in (place % 2 == 1, place % 2 == 0):
        part = table.filter(pa.array(mask)).append_column("person", pa.array(np.arange(int(mask.sum()))))
        parts.append(part.set_column(part.schema.get_field_index("PUMA"), "PUMA", pa.array(place[mask] // 2)))
    sizes["PUMA"] = int(place.max() + 1) // 2
    schema = hr.Schema.from_dict(
        {
            "person": "person",
            "max_rows_per_person": rows_per_person,
            "columns": {name: {"type": "code", "size": size} for name, size in sizes.items()},
            "groups": [{"columns": group.split(), "allowed": "public"} for group in GROUPS],
        }
    )
    private, public = parts
    return Case(private, public, schema, options(public.num_rows / (sizes["PUMA"] * sizes["YEAR"])))


TABLES: dict[str, Callable[[int, Path], Case]] = {
    "acs": acs,
    "acs-temporal": temporal,
    "acs-temporal, θ = 7": partial(temporal, rows_per_person=7),
}


def run(table: str, what: str, epsilon: str, rows: int, data: Path) -> dict[str, Any]:
    """The score of one method or yardstick, its regime where it has one, CPU seconds and memory."""
    case = TABLES[table](rows, data)
    before = resource.getrusage(resource.RUSAGE_SELF)
    found: dict[str, Any] = {}
    if what in METHODS:
        name, delta, given = METHODS[what]
        method = build(name, {**given, **(case.options if name == "dpsyn" else {})})
        progress = Progress(Limits(seconds=180.0))
        release = hr.synthesize(
            case.private, case.schema, hr.Budget(float(epsilon), delta), method, public=case.public, progress=progress
        )
        made = release.sample()
        if name == "dpsyn":
            found["regime"] = regime(release)
    else:
        made = yardstick(case, what)
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found |= {"cpu_s": round(spent), "peak_mb": after.ru_maxrss >> 10, "rows": made.num_rows}
    found["no penalty"] = round(sprint2(case.private, made, case.schema, penalty=None), 1)
    return {"score": round(sprint2(case.private, made, case.schema), 1), **found}


def regime(release: hr.Release) -> str:
    """What was measured beside the segments."""
    degrees = {len(query["attributes"]) for query in release.certificate.charges[-1].queries}
    if len(release.certificate.charges) < 3:
        return Regime.PUBLIC.value
    return Regime.ONE_WAY.value if degrees == {1} else Regime.TWO_WAY.value


def yardstick(case: Case, what: str) -> pa.Table:
    """Rows that no method made: public ones, as many in every segment; or a part of the private ones."""
    rng = np.random.default_rng(0)
    if what.endswith("subsample"):
        count = round(case.private.num_rows * float(what.split()[0]) / 100)
        return case.private.take(rng.permutation(case.private.num_rows)[:count])
    real = [np.unique(np.asarray(case.private[name])) for name in SEGMENTS]
    public = [np.unique(np.asarray(case.public[name])) for name in SEGMENTS]
    each = case.public.num_rows // (len(public[0]) * len(public[1]))
    made = case.public.take(rng.integers(0, case.public.num_rows, each * len(real[0]) * len(real[1])))
    places = np.repeat(real[0], len(real[1]) * each), np.tile(np.repeat(real[1], each), len(real[0]))
    for name, values in zip(SEGMENTS, places, strict=True):
        made = made.set_column(made.schema.get_field_index(name), name, pa.array(values))
    return made


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--tables", default="acs;acs-temporal;acs-temporal, θ = 7", help="with ; between them")
    asked.add_argument("--methods", default=";".join([*YARDSTICKS, *METHODS]), help="with ; between them")
    asked.add_argument("--epsilons", default=",".join(EPSILONS))
    asked.add_argument("--rows", type=int, default=258_492, help="of the made-up survey; the contest had 1,033,968")
    asked.add_argument("--data", type=Path, default=DATA)
    asked.add_argument("--folder", type=Path, default=Path("out/dpsyn"))
    asked.add_argument("--again", action="store_true")
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    kept = given.folder / "results.json"
    for table in given.tables.split(";"):
        for what in given.methods.split(";"):
            for epsilon in given.epsilons.split(",") if what in METHODS else ["1"]:
                results = json.loads(kept.read_text()) if kept.exists() else {}
                cell = f"{table}|{what}|{epsilon}"
                if given.again or cell not in results:
                    # in a process of its own: memory that this one had held would count as the next run's peak
                    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                        results[cell] = process.submit(run, table, what, epsilon, given.rows, given.data).result()
                    kept.write_text(json.dumps(results, indent=1, ensure_ascii=False))
                    print(cell, results[cell], file=sys.stderr, flush=True)
    print(page(json.loads(kept.read_text())))


def page(results: dict[str, dict[str, Any]]) -> str:
    """Markdown: a table for each table, a line for each method."""
    lines = []
    for table in TABLES:
        lines += [f"## {table}", "", "| | " + " | ".join(f"ε = {epsilon}" for epsilon in EPSILONS) + " | CPU s |"]
        lines.append("|---" * (len(EPSILONS) + 2) + "|")
        for what in [*YARDSTICKS, *METHODS]:
            cells = [results.get(f"{table}|{what}|{epsilon if what in METHODS else '1'}") for epsilon in EPSILONS]
            if any(cells):
                said = " | ".join(_cell(cell) for cell in cells)
                effort = max(cell["cpu_s"] for cell in cells if cell) if what in METHODS else ""
                lines.append(f"| {what} | {said} | {effort} |")
        lines.append("")
    return "\n".join(lines)


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return f"{cell['score']:.0f}" + (f" ({cell['regime'].partition(' ')[0]})" if "regime" in cell else "")


if __name__ == "__main__":
    main()
