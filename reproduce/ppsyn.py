"""The experiments of PPSyn's write-up (Zhang, Deng, Yin 2023): the figures and the table of docs/studies/ppsyn.md.

    python -m reproduce.ppsyn                 # what is missing of the small grid, then the page
    python -m reproduce.ppsyn --full          # ε in nine steps, three runs everywhere
    python -m reproduce.ppsyn --printed       # the printed procedure alone (NOT PRIVATE)
    python -m reproduce.ppsyn --minutes 5     # stop after five minutes; a later call goes on

Every cell is a run of one method on one table, kept in the folder as soon as it is done. The tables are the coded ones
of the field (data.parquet and domain.json in a folder each), looked for in $HEDGEROW_DATA.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bench.tables import DATA, at_hand

import hedgerow as hr
from hedgerow.coded.domain import CodedTable, Domain, Marginal
from hedgerow.private.evaluate.marginals import distances
from hedgerow.private.evaluate.ranges import random_ranges, range_error
from hedgerow.private.sources.source import open_source
from reproduce.ppsyn_report import METHODS, PRIVATE, TABLES, write_page
from reproduce.printed_ppsyn import Printed

ROOT = Path(__file__).resolve().parent.parent
DELTA = 1e-9
EPSILONS = (0.05, 0.1, 0.3, 1.0, 2.0)
FULL_EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0)
ETAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TARGETS = {"adult": "income>50K", "br2000": "13"}
FOLDS = 5
TRAINING_ROWS = 5_000
MOST_CELLS = 10_000
WORKLOAD = 210
SETS = {3: 210, 5: 37}


@dataclass(frozen=True)
class Cell:
    """One run: what the figure asks, on which table, by which method."""

    study: str
    table: str
    method: str
    epsilon: float
    run: int
    eta: float | None = None
    degree: int = 3
    partition: str = "mass"

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def grid(full: bool) -> Iterator[Cell]:
    """Every cell, the most telling ones first."""
    epsilons = FULL_EPSILONS if full else EPSILONS
    yield from errors(TABLES, epsilons, METHODS, range(1))
    yield from errors(TARGETS, (0.05, 0.1, 0.3), PRIVATE, range(5))
    for degree in (2, 3, 4, 5):
        for method in METHODS:
            yield Cell("degree", "br2000", method, 0.1, 0, degree=degree)
    yield from etas(range(1))
    for epsilon in (0.3, 1.0, 0.1):
        for fold in range(FOLDS):
            for table in TARGETS:
                for method in METHODS:
                    yield Cell("svm", table, method, epsilon, fold)
    for run in range(3):
        for table in TARGETS:
            for epsilon in (0.1, 0.3):
                for partition in ("error", "sorted"):
                    yield Cell("family", table, "ppsyn", epsilon, run, partition=partition)
    yield from errors(TABLES if full else TARGETS, epsilons, METHODS, range(3))
    yield from etas(range(3))


def etas(runs: Iterable[int]) -> Iterator[Cell]:
    return (
        Cell("eta", table, method, 0.1, run, eta=eta)
        for run in runs
        for table in TABLES
        for method in METHODS[:2]
        for eta in ETAS
    )


def errors(
    tables: Iterable[str], epsilons: Sequence[float], methods: Sequence[str], runs: Iterable[int]
) -> Iterator[Cell]:
    return (
        Cell("errors", table, method, epsilon, run)
        for run in runs
        for table in tables
        for epsilon in epsilons
        for method in methods
    )


@cache
def table_of(name: str) -> tuple[hr.Schema, CodedTable]:
    schema = hr.Schema.load(DATA / name / "domain.json")
    encoding = schema.encoding()
    batches = [encoding.encode(batch) for batch in open_source(DATA / name / "data.parquet").batches(encoding.columns)]
    return schema, {column: np.concatenate([batch[column] for batch in batches]) for column in encoding.domain.names}


def workload(domain: Domain, degree: int) -> tuple[Marginal, ...]:
    """The marginals of at most 10,000 cells, or 210 of them by lot: the same for every method and run."""
    small = [marginal for marginal in domain.marginals(degree) if domain.cells(marginal) <= MOST_CELLS]
    if len(small) <= WORKLOAD:
        return tuple(small)
    lots = np.random.default_rng(degree).choice(len(small), WORKLOAD, replace=False)
    return tuple(small[lot] for lot in sorted(lots))


def method_of(cell: Cell, marginals: tuple[Marginal, ...], folder: Path) -> Any:
    if cell.method == "ppsyn-printed":
        return Printed(marginals) if cell.eta is None else Printed(marginals, eta=cell.eta)
    if cell.method in ("mst", "privmrf"):  # which know of no workload
        return hr.methods.build(cell.method)
    path = folder / f"{cell.table}-{cell.degree}.json"
    path.write_text(json.dumps(marginals))
    options = {"workload": str(path)}
    if cell.method == "ppsyn":
        options |= {"partition": cell.partition} | ({} if cell.eta is None else {"eta": str(cell.eta)})
    return hr.methods.build(cell.method, options)


def measure(cell: Cell, folder: Path) -> dict[str, float]:
    """Run it, and judge its rows by the study's metrics."""
    schema, real = table_of(cell.table)
    domain = schema.encoding().domain
    marginals = workload(domain, cell.degree)
    method = method_of(cell, marginals, folder)
    train, test = fold_of(real, cell.run) if cell.study == "svm" else (real, real)
    begin = time.process_time()
    release = hr.synthesize(decoded(schema, train), schema, hr.Budget(cell.epsilon, DELTA), method)
    synthetic = schema.encoding().encode(release.sample().combine_chunks())
    seconds = round(time.process_time() - begin, 2)
    rounds = sum(charge.purpose == "select" for charge in release.certificate.charges)
    return {**judged(cell, domain, marginals, test, synthetic, train), "cpu_s": seconds, "rounds": rounds}


def judged(
    cell: Cell,
    domain: Domain,
    marginals: tuple[Marginal, ...],
    real: CodedTable,
    synthetic: CodedTable,
    train: CodedTable,
) -> dict[str, float]:
    if cell.study == "svm":
        target = TARGETS[cell.table]
        found = {"svm": misclassified(synthetic, real, target)}
        if cell.method == "mst":  # what does not depend on the method is measured once
            found["svm_real"] = misclassified(train, real, target)
            found["majority"] = float((real[target] != np.bincount(train[target]).argmax()).mean())
        return found
    # (1/n|W|) Σ ‖counts − counts‖₁ on equal numbers of rows: twice the mean total variation distance
    found = {"workload": 2 * float(distances(real, synthetic, domain, marginals).mean())}
    if cell.study != "degree":
        for attributes, sets in SETS.items():
            queries = random_ranges(domain, attributes, 0, sets)
            found[f"range{attributes}"] = range_error(real, synthetic, queries)
    return found


def decoded(schema: hr.Schema, coded: CodedTable) -> Any:
    import pyarrow as pa

    return pa.table({name: coded[name] for name in schema.encoding().columns})


def fold_of(real: CodedTable, fold: int) -> tuple[CodedTable, CodedTable]:
    """Four fifths to synthesise from, and the fifth that nothing but the test sees."""
    rows = len(next(iter(real.values())))
    place = np.random.default_rng(0).permutation(rows) % FOLDS
    return (
        {name: codes[place != fold] for name, codes in real.items()},
        {name: codes[place == fold] for name, codes in real.items()},
    )


def misclassified(train: CodedTable, test: CodedTable, target: str) -> float:
    """A support vector machine with a radial kernel on standardised codes, as in PrivMRF's experiments."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    features = [name for name in train if name != target]
    rows = np.random.default_rng(0).permutation(len(train[target]))[:TRAINING_ROWS]
    classes = train[target][rows]
    if (classes == classes[0]).all():
        return float((test[target] != classes[0]).mean())
    machine = make_pipeline(StandardScaler(), SVC(kernel="rbf", gamma="auto"))
    machine.fit(np.column_stack([train[name][rows].astype(np.float64) for name in features]), classes)
    guesses = machine.predict(np.column_stack([test[name].astype(np.float64) for name in features]))
    return float((guesses != test[target]).mean())


def required_budgets() -> dict[str, list[float]]:
    """Figure 2: the ρ that partitions of hours-per-week need, by their number of blocks. From exact counts."""
    from hedgerow.models.partitions import sorted_merges
    from reproduce.printed_ppsyn import required

    _, real = table_of("adult")
    counts = np.bincount(real["hours-per-week"], minlength=99).astype(np.float64)
    contribution = float(np.abs(counts - counts.mean()).sum())
    errors = sorted_merges(counts).errors
    return {str(eta): required(errors, eta * contribution).tolist() for eta in (0.5, 0.7, 0.9)}


def read(kept: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads(kept.read_text()) if kept.exists() else {}
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--full", action="store_true", help="the whole grid")
    asked.add_argument("--printed", action="store_true", help="only the printed procedure, which is NOT PRIVATE")
    asked.add_argument("--tables", default=",".join(TABLES))
    asked.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    asked.add_argument("--again", action="store_true", help="measure cells anew")
    asked.add_argument("--folder", type=Path, default=Path("out/ppsyn"))
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    kept = given.folder / "results.json"
    results = read(kept)
    end = time.monotonic() + 60 * given.minutes
    wanted = [cell for cell in dict.fromkeys(grid(given.full)) if cell.table in given.tables.split(",")]
    for cell in wanted:
        if given.printed and cell.method != "ppsyn-printed":
            continue
        if time.monotonic() > end:
            break
        if given.again or cell.key not in results:
            found = measure(cell, given.folder)
            results = {**read(kept), cell.key: found}  # another process may have added to it
            kept.write_text(json.dumps(results, indent=1))
            marked = "NOT PRIVATE " if cell.method == "ppsyn-printed" else ""
            print(marked, *asdict(cell).values(), results[cell.key], file=sys.stderr, flush=True)
    if at_hand("adult"):
        write_page(ROOT / "docs", [(json.loads(key), found) for key, found in results.items()], required_budgets())
    missing = sum(cell.key not in results for cell in wanted)
    print(f"{len(wanted) - missing} of {len(wanted)} cells are done.")


if __name__ == "__main__":
    main()
