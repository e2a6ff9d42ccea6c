"""Whether two checkouts make the same releases and the same rows, byte for byte, under seeded noise.

    python -m bench.same ../before            # this checkout beside another, each with its own .venv
    python -m bench.same ../before hedge      # the cases of one method alone

A move or a rename must not change what comes out. Every method runs on small made-up tables (raw columns, codes, people
with several rows, a public table) under δ > 0 and δ = 0, with workloads, targets and the options that lead it down its
other branches. Where a release differs, the members of the file that do are named. The CPU seconds are those of whole
runs, one of each.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEED = 7
METHODS = ["aim", "dpsyn", "field-groups", "hedge", "independent", "match3", "mst", "mwem", "ppsyn", "privsyn", "rdt"]
ODD = """
dataset: odd
person: id
max_rows_per_person: 3
columns:
  wage:  {type: integer, min: 0, max: 999, bins: 10, special: [9998], heaps: [100, 10]}
  size:  {type: number, min: 0, max: 10, bins: 4, missing: true}
  grade: {type: category, values: [low, mid, high], ordered: true, other: true, missing: true}
  left:  {type: category, values: [a, b]}
  right: {type: category, values: [x, "y"]}
  born:  {type: date, min: 1990-01-01, max: 1999-12-31, step: year}
  well:  {type: boolean, missing: true}
groups:
  - {columns: [left, right], allowed: [[a, x], [b, x], [b, "y"]]}
"""


class Case(NamedTuple):
    """One run: a table of `inputs`, a method and what it is told."""

    method: str
    table: str
    epsilon: float
    delta: float = 1e-9
    options: tuple[tuple[str, str], ...] = ()
    public: str = ""
    seconds: float | None = None

    @property
    def name(self) -> str:
        told = [f"{option}={value}" for option, value in self.options]
        late = [f"within {self.seconds:g} s"] if self.seconds else []
        public = ["public"] if self.public else []
        return " ".join([self.method, self.table, f"ε={self.epsilon:g}", f"δ={self.delta:g}", *told, *public, *late])


def cases() -> Iterator[Case]:
    """Every method on every table, then the branches that few runs take."""
    for method in METHODS:
        for delta in (1e-9, 0.0):
            small = (("size", "0.1"),) if method in ("aim", "hedge", "mwem", "ppsyn") else ()
            yield Case(method, "raw", 2.0, delta, small)
            yield Case(method, "coded", 1.0, delta, small)
            yield Case(method, "odd", 3.0, delta, small)
            yield Case(method, "raw", 0.05, delta, small)
            yield Case(method, "raw", 2.0, delta, small, public="raw-public")
    for method in ("aim", "hedge", "mwem", "ppsyn"):
        yield Case(method, "raw", 2.0, options=(("workload", "2"), ("target", "pay"), ("size", "0.1")))
        yield Case(method, "raw", 2.0, options=(("workload", "workload.yaml"), ("size", "0.1")))
        yield Case(method, "raw", 2.0, options=(("size", "0.1"),), seconds=1e-6)
        yield Case(method, "wide", 20.0, options=(("size", "0.05"), ("workload", "2")))
    for method in ("aim", "hedge", "mst", "ppsyn"):
        yield Case(method, "raw", 1.0, options=(("accounting", "zcdp"),))
    for family in ("error", "sorted"):
        yield Case("ppsyn", "raw", 2.0, options=(("partition", family), ("rounds", "3"), ("size", "0.1")))
    yield Case("hedge", "narrow", 2.0)
    yield Case("hedge", "narrow", 8.0, options=(("picks", "1"), ("noise", "0.5"), ("measuring", "0.8")))
    yield Case("hedge", "wide", 5.0)
    for method in ("hedge", "ppsyn"):  # more marginals than a round goes through: lots decide
        yield Case(method, "many", 1.0, options=(("size", "0.1"),), seconds=1e-6)
    yield Case("rdt", "raw", 2.0, options=(("noise", "clip"), ("height", "3"), ("order", "pay,sex"), ("ranges", "0")))
    yield Case("dpsyn", "acs", 4.0, options=(("segments", "PUMA,YEAR"), ("floor", "2"), ("round", "5")))
    yield Case("dpsyn", "acs", 4.0, options=(("segments", "PUMA,YEAR"), ("shrink", "no")), public="acs-public")
    yield Case("match3", "raw", 2.0, options=(("columns", "pay:2"), ("exempt", "year,sex"), ("merge", "2")))
    yield Case("field-groups", "raw", 2.0, options=(("groups", "groups.yaml"), ("threshold", "1.2")))


def inputs(folder: Path) -> None:
    """The tables and schemas of the cases."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hedgerow.samples import acs, acs_public, opm
    from hedgerow.schema import Schema

    def write(name: str, table: pa.Table, schema: str) -> None:
        pq.write_table(table, folder / f"{name}.parquet")
        (folder / f"{name}.yaml").write_text(schema, encoding="utf-8")

    def sizes(columns: dict[str, int]) -> str:
        return json.dumps({name: int(size) for name, size in columns.items()})

    raw = opm.generate(2000)
    write("raw", raw, opm.SCHEMA)
    write("raw-public", opm.generate(1500, seed=1), opm.SCHEMA)
    encoding = Schema.parse(opm.SCHEMA).encoding()
    codes = encoding.encode(raw.combine_chunks())
    write("coded", pa.table(codes), sizes({attribute.name: attribute.size for attribute in encoding.domain}))
    rng = np.random.default_rng(3)
    rows = 3000
    base = rng.integers(0, 4, rows)
    narrow = {f"n{number}": (base + rng.integers(0, 2, rows)) % 4 for number in range(6)}
    write("narrow", pa.table(narrow), sizes(dict.fromkeys(narrow, 4)))
    wide = {f"w{number}": np.tile((3 * base + rng.integers(0, 6, rows)) % 12, 20) for number in range(12)}
    write("wide", pa.table(wide), sizes(dict.fromkeys(wide, 12)))
    many = {f"m{number}": (base + rng.integers(0, 2, rows)) % 3 for number in range(36)}
    write("many", pa.table(many), sizes(dict.fromkeys(many, 3)))

    def some(values: list[Any]) -> list[Any]:
        return [values[index] for index in rng.integers(0, len(values), rows)]

    odd = {
        "id": [f"p{number // 3}" for number in range(rows)],  # no more rows than θ: which are kept is never seeded
        # in every column fewer values fit nothing than the first look takes for a mistake
        "wage": some([0, 100, 110, 555, 990, 9998] * 3 + [1000, -7, None]),
        "size": some([0.0, 2.5, 9.9] * 2 + [1e300, None]),
        "grade": some(["low", "mid", "high", "unheard-of", None]),
        "left": some(["a", "b"] * 4 + ["c"]),
        "right": some(["x", "y"]),
        "born": some(["1990-05-01", "1995-12-31", "1999-01-01"] * 4 + ["2020-02-02", "never"]),
        "well": some([True, False, None]),
    }
    write("odd", pa.table(odd), ODD)
    write("acs", acs.generate(3000), acs.SCHEMA)
    write("acs-public", acs_public.generate(3000), acs_public.SCHEMA)
    (folder / "workload.yaml").write_text("- [year, sex]\n- {columns: [pay, age, education], weight: 3}\n- [race]\n")
    (folder / "groups.yaml").write_text("- [sex, race]\n- [age, education]\n")


def work(folder: Path, chosen: list[str]) -> None:
    """In a checkout's own process: every case, its release and its rows written down."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.progress import Limits

    found = {}
    for number, case in enumerate(cases()):
        if chosen and case.method not in chosen:
            continue
        begin = time.process_time()
        release = hr.synthesize(
            f"{case.table}.parquet",
            hr.Schema.load(f"{case.table}.yaml"),
            hr.Budget(case.epsilon, case.delta),
            hr.methods.build(case.method, dict(case.options)),
            public=f"{case.public}.parquet" if case.public else None,
            limits=Limits(seconds=case.seconds),
            seed=SEED,
            unsafe_noise_seed=SEED,
        )
        rows = release.sample(5000, seed=SEED)
        seconds = time.process_time() - begin
        path = folder / f"{number}.release"
        release.save(path)
        digest = hashlib.sha256()
        for batch in rows.combine_chunks().to_batches():
            with pa.BufferOutputStream() as sink, pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            digest.update(sink.getvalue().to_pybytes())
        found[str(number)] = {"rows": digest.hexdigest(), "model": release.model.kind, "cpu_s": seconds}
    (folder / "found.json").write_text(json.dumps(found))


def differing(before: Path, after: Path) -> str:
    """`` where two releases are the same file; otherwise their members that differ."""
    if before.read_bytes() == after.read_bytes():
        return ""
    with zipfile.ZipFile(before) as old, zipfile.ZipFile(after) as new:
        names = dict.fromkeys([*old.namelist(), *new.namelist()])
        both = set(old.namelist()) & set(new.namelist())
        apart = [name for name in names if name not in both or old.read(name) != new.read(name)]
    more = f", … ({len(apart) - 4} more)" if len(apart) > 4 else ""
    return ", ".join(apart[:4]) + more or "the order of members"


def run(other: Path, chosen: list[str]) -> list[dict[str, Any]]:
    """A line for each case."""
    here = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        inputs(folder)
        results = {}
        for label, checkout in (("before", other.resolve()), ("after", here)):
            (folder / label).mkdir()
            python = checkout / ".venv" / "bin" / "python"
            subprocess.run([python, __file__, "--work", folder / label, *chosen], cwd=folder, check=True)
            results[label] = json.loads((folder / label / "found.json").read_text())
        lines = []
        for number, case in enumerate(cases()):
            before, after = (results[label].get(str(number)) for label in ("before", "after"))
            if before is None or after is None:
                continue
            apart = differing(folder / "before" / f"{number}.release", folder / "after" / f"{number}.release")
            lines.append(
                {
                    "case": case.name,
                    "model": after["model"],
                    "release": apart or "same",
                    "rows": "same" if before["rows"] == after["rows"] else "DIFFER",
                    "before_cpu_s": before["cpu_s"],
                    "after_cpu_s": after["cpu_s"],
                }
            )
    return lines


def main() -> None:
    """Print every case; exit 1 where anything differs."""
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), sys.argv[3:])
        return
    from bench.__main__ import show

    lines = run(Path(sys.argv[1]), sys.argv[2:])
    show(lines)
    apart = [line for line in lines if line["release"] != "same" or line["rows"] != "same"]
    print(f"\n{len(lines)} cases, {len(apart)} differ")
    sys.exit(bool(apart))


if __name__ == "__main__":
    main()
