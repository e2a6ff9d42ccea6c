"""The model engine beside mbi 2.0.0: same cliques, same measurements, same total, one run, CPU seconds.

The peer runs its mirror descent for its default 1,000 iterations, first cold (compiling), then warm. Ours is timed
until it reaches the peer's loss, and until it has converged; both losses are shown. `python -m bench.model` also
measures how cost grows and writes docs/performance.md.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from hedgerow.domain import Counts, Domain, IntArray, Marginal
from hedgerow.measurement import Measurement, Noise, estimated_total
from hedgerow.models import proximal
from hedgerow.models.estimation import TOLERANCE, fit, loss
from hedgerow.models.graphical import GraphicalModel
from hedgerow.models.junction import plan, size
from hedgerow.models.terms import Terms
from hedgerow.progress import Limits, Progress
from hedgerow.query import MarginalQuery

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
ITERATIONS = 1000
SIGMAS = (300.0, 15.0, 1.0)
Table = dict[str, IntArray]
Row = dict[str, Any]


# Problems


def load(name: str) -> tuple[Domain, Table]:
    domain = Domain.of(json.loads((DATA / name / "domain.json").read_text()))
    columns = pq.read_table(DATA / name / "data.parquet")
    return domain, {column: columns[column].to_numpy().astype(np.int64) for column in domain.names}


def count(domain: Domain, table: Table, marginal: Marginal) -> IntArray:
    key = np.zeros(len(table[marginal[0]]), dtype=np.int64)
    for name in marginal:
        key = key * domain[name].size + table[name]
    return np.bincount(key, minlength=domain.cells(marginal)).astype(np.int64)


def spanning_tree(domain: Domain, table: Table) -> list[Marginal]:
    """The pairs furthest from independence, as a tree."""
    distances = []
    for first, second in domain.marginals(2):
        pair = count(domain, table, (first, second)).reshape(domain.shape((first, second))) / len(table[first])
        independent = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0, keepdims=True)
        distances.append((-np.abs(pair - independent).sum(), first, second))
    part = {name: {name} for name in domain.names}
    tree: list[Marginal] = []
    for _, first, second in sorted(distances):
        if second not in part[first]:
            tree.append((first, second))
            joined = part[first] | part[second]
            part.update(dict.fromkeys(joined, joined))
    return tree


def random_cliques(domain: Domain, number: int, megabytes: float, widest: int, seed: int) -> list[Marginal]:
    """Pairs and triples, none inside another, whose junction tree stays within a size."""
    coins = np.random.default_rng(seed)
    cliques: list[Marginal] = []
    while len(cliques) < number:
        names = coins.choice(domain.names, int(coins.integers(2, 4)), replace=False)
        clique = domain.marginal(str(name) for name in names)
        nested = any(set(clique) <= set(other) or set(other) <= set(clique) for other in cliques)
        if not nested and domain.cells(clique) <= widest and size(domain, [*cliques, clique]) <= megabytes * 1e6:
            cliques.append(clique)
    return cliques


def measure(domain: Domain, table: Table, cliques: Sequence[Marginal], sigma: float) -> list[Measurement]:
    """Counts of a public table with ordinary Gaussian noise: a benchmark, no release."""
    coins = np.random.default_rng(0)
    noise = Noise("gaussian", sigma)
    counts = [count(domain, table, clique) for clique in cliques]
    return [
        Measurement(
            MarginalQuery(domain, clique), exact + np.rint(coins.normal(0, sigma, exact.shape)).astype(int), noise
        )
        for clique, exact in zip(cliques, counts, strict=True)
    ]


@dataclass(frozen=True)
class Problem:
    name: str
    domain: Domain
    table: Table
    cliques: list[Marginal]

    def measurements(self, sigma: float) -> list[Measurement]:
        return measure(self.domain, self.table, self.cliques, sigma)


def problems() -> list[Problem]:
    adult, people = load("adult")
    acs, persons = load("acs-temporal")
    loans, borrowers = load("loans")
    return [
        Problem("adult, spanning tree", adult, people, spanning_tree(adult, people)),
        Problem("loans, spanning tree", loans, borrowers, spanning_tree(loans, borrowers)),
        Problem("acs-temporal, 40 cliques", acs, persons, random_cliques(acs, 40, 20, 200_000, 1)),
        Problem("adult, 30 cliques", adult, people, random_cliques(adult, 30, 80, 200_000, 1)),
    ]


# Clocks


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


class Reached(Exception):
    """The loss that was asked for."""


class Racing(proximal.Oracle):
    """An oracle that stops the search as soon as its loss is as low as the peer's."""

    target = -math.inf

    def __call__(self, potentials: Counts) -> tuple[float, Counts]:
        result = super().__call__(potentials)
        if self.best_loss <= self.target:
            raise Reached
        return result


def race(domain: Domain, measurements: Sequence[Measurement], target: float) -> None:
    """What `fit` does, up to the moment when the loss is reached."""
    structure = plan(domain, [measurement.query.attributes for measurement in measurements])
    oracle = Racing(structure.network(), Terms(structure, measurements), estimated_total(measurements))
    oracle.target = target
    alpha = measurements[0].std
    try:
        proximal.minimise(oracle, np.zeros(structure.leaf_cells), alpha, TOLERANCE, 2000, proximal.MEMORY, Progress())
    except Reached:
        return


class Peer:
    """mbi 2.0.0 in double precision on one thread."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
        warnings.simplefilter("ignore")
        import jax  # type: ignore[import-not-found,unused-ignore]

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_enable_compilation_cache", False)
        import mbi

        self.jax, self.mbi = jax, mbi
        self.compiled: set[str] = set()

    def fit(self, domain: Domain, measurements: Sequence[Measurement]) -> tuple[float, Any]:
        """(loss, model) after its default number of iterations."""
        mbi = self.mbi
        peers = mbi.Domain(list(domain.names), [attribute.size for attribute in domain])
        asked = [mbi.LinearMeasurement(m.dense(), m.query.attributes, stddev=m.std) for m in measurements]
        model = mbi.estimation.MirrorDescent().estimate(
            peers, asked, known_total=estimated_total(measurements), iters=ITERATIONS
        )
        return float(mbi.marginal_loss.from_linear_measurements(asked, peers)(model.marginals)), model

    def forget(self) -> None:
        """Give back the memory of compiled programs."""
        self.compiled.clear()
        self.jax.clear_caches()
        gc.collect()

    def answer(self, model: Any, marginals: Sequence[Marginal]) -> None:
        answers = self.mbi.marginal_oracles.bulk_variable_elimination(model.potentials, list(marginals), model.total)
        self.jax.block_until_ready([factor.values for factor in answers.tables.values()])

    def uniform(self, domain: Domain, model: GraphicalModel) -> Any:
        """The peer's model with our potentials."""
        mbi = self.mbi
        peers = mbi.Domain(list(domain.names), [attribute.size for attribute in domain])
        tables = {
            clique: mbi.Factor(peers.project(clique), self.jax.numpy.asarray(model.potential(clique)))
            for clique in model.cliques
        }
        potentials = mbi.CliqueVector(peers, list(tables), tables)
        marginals = mbi.marginal_oracles.message_passing_stable(potentials, model.total)
        return mbi.MarkovRandomField(potentials=potentials, marginals=marginals, total=model.total)


# Comparisons


def compare_fits(peer: Peer, problem: Problem, sigma: float) -> Row:
    measurements = problem.measurements(sigma)
    cold, (peer_loss, _) = timed(lambda: peer.fit(problem.domain, measurements))
    known = problem.name in peer.compiled  # the same cliques were fitted before: there is no cold run any more
    peer.compiled.add(problem.name)
    warm = cold if known else timed(lambda: peer.fit(problem.domain, measurements))[0]
    same, _ = timed(lambda: race(problem.domain, measurements, peer_loss))
    converged, model = timed(lambda: fit(problem.domain, measurements))
    return {
        "problem": f"{problem.name}, σ = {sigma:g}",
        "peer cold s": None if known else cold,
        "peer warm s": warm,
        "peer loss": round(peer_loss, 1),
        "ours to that loss s": same,
        "ours converged s": converged,
        "our loss": round(loss(model, measurements), 1),
        "× cold": None if known else cold / same,
        "× warm": warm / same,
    }


def compare_rows(peer: Peer, rows: int = 1_000_000) -> Row:
    domain, table = load("adult")
    model = fit(domain, measure(domain, table, spanning_tree(domain, table), 15.0))
    theirs = peer.uniform(domain, model)
    theirs.synthetic_data(rows=1000)
    slow, _ = timed(lambda: theirs.synthetic_data(rows=rows))
    fast, _ = timed(lambda: model.draw(rows, np.random.default_rng(0)))
    return {"problem": f"adult's tree, {rows:,} rows", "peer warm s": slow, "ours s": fast, "× warm": slow / fast}


def compare_triples(peer: Peer) -> Row:
    """All 364 three-way marginals. The cliques are narrow enough for the peer's tables to fit into memory."""
    domain, table = load("adult")
    cliques = random_cliques(domain, 30, 2, 20_000, 10)
    model = fit(domain, measure(domain, table, cliques, 15.0))
    triples = list(domain.marginals(3))
    fast, _ = timed(lambda: [model.marginal(triple) for triple in triples])
    theirs = peer.uniform(domain, model)
    cold, _ = timed(lambda: peer.answer(theirs, triples))
    warm, _ = timed(lambda: peer.answer(theirs, triples))
    row = {"problem": "364 triples of a 30-clique adult model", "peer cold s": cold, "peer warm s": warm}
    return row | {"ours s": fast, "× cold": cold / fast, "× warm": warm / fast}


def run() -> list[Row]:
    """Every comparison; the tree of adult at three noise levels, the others at one."""
    if not DATA.is_dir():
        return [{"problem": f"skipped: the public tables are not at {DATA}"}]
    peer = Peer()
    tree, *others = problems()
    rows: list[Row] = []
    work: list[Callable[[], Row]] = [lambda: compare_rows(peer), lambda: compare_triples(peer)]
    work += [partial(compare_fits, peer, tree, sigma) for sigma in SIGMAS]
    work += [partial(compare_fits, peer, problem, 15.0) for problem in others]
    for place, comparison in enumerate(work):
        if not 2 < place <= 1 + len(SIGMAS):  # the tree's noise levels share their cliques
            peer.forget()
        rows.append(comparison())
        print(rows[-1], file=sys.stderr, flush=True)  # the peer takes minutes for some of them
    return rows


# How cost grows


def grow_rows(rows: int) -> Row:
    domain = Domain.of({f"x{place}": 20 for place in range(14)})
    structure = plan(domain, itertools.pairwise(domain.names))
    model = GraphicalModel(structure, np.random.default_rng(0).normal(size=structure.leaf_cells), 1.0)
    seconds, _ = timed(lambda: model.draw(rows, np.random.default_rng(0)))
    return {"rows": f"{rows:,}", "cpu s": seconds}


def _random_table(domain: Domain, rows: int) -> Table:
    """Each attribute a noisy copy of the one before it."""
    coins = np.random.default_rng(0)
    table: Table = {}
    before = coins.integers(0, 1 << 20, rows)
    for attribute in domain:
        fresh = coins.integers(0, 1 << 20, rows)
        before = np.where(coins.random(rows) < 0.5, before, fresh)
        table[attribute.name] = before * attribute.size >> 20
    return table


def grow_cliques(number: int) -> Row:
    domain = Domain.of({f"x{place:02}": 10 for place in range(50)})
    windows = [window for start in range(47) for window in itertools.combinations(domain.names[start : start + 4], 3)]
    chosen = np.random.default_rng(0).permutation(sorted(set(windows)))[:number]
    cliques = [domain.marginal(str(name) for name in clique) for clique in chosen]
    measurements = measure(domain, _random_table(domain, 50_000), cliques, 15.0)
    seconds, _ = timed(lambda: fit(domain, measurements))
    return {"cliques": number, "junction tree MB": size(domain, cliques) / 1e6, "cpu s": seconds}


def grow_cells(cells: int) -> Row:
    side = round(math.sqrt(cells / 10))
    domain = Domain.of({"a": side, "b": side, "c": side, "group": 10})
    cliques = [("a", "b", "group"), ("b", "c", "group")]
    measurements = measure(domain, _random_table(domain, 50_000), cliques, 15.0)
    seconds, _ = timed(lambda: fit(domain, measurements, limits=Limits(memory=8 << 30)))
    return {"cells per clique": f"{domain.cells(cliques[0]):,}", "cpu s": seconds}


def _measured(work: Callable[[int], Row], amount: int) -> Row:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = work(amount)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return row | {"peak MB above start": round((after - before) / 1024)}


def growth() -> dict[str, list[Row]]:
    """Each point in a process of its own, so that its peak memory is its own."""
    series: dict[str, tuple[Callable[[int], Row], list[int]]] = {
        "Rows drawn (14 attributes of 20 values, a chain)": (grow_rows, [10**power for power in range(4, 8)]),
        "Cliques fitted (triples over 50 attributes of 10 values, σ = 15)": (grow_cliques, [10, 20, 40, 80]),
        "Cells per clique (two overlapping triples, σ = 15)": (grow_cells, [10**power for power in range(3, 8)]),
    }
    found: dict[str, list[Row]] = {}
    for title, (work, amounts) in series.items():
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            found[title] = pool.starmap(_measured, [(work, amount) for amount in amounts], chunksize=1)
    return found


# The page


def as_markdown(rows: list[Row]) -> str:
    keys = list(dict.fromkeys(key for row in rows for key in row))

    def text(value: Any) -> str:
        return "" if value is None else f"{value:.3g}" if isinstance(value, float) and abs(value) < 1e4 else str(value)

    lines = [keys, ["---"] * len(keys), *([text(row.get(key)) for key in keys] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    page = [
        "# Performance of the model engine",
        "",
        "Written by `python -m bench.model`; CPU seconds on one thread.",
        "",
    ]
    page += ["## Beside mbi 2.0.0", "", (__doc__ or "").split("\n\n")[1].split(" `python")[0].strip(), ""]
    page += [as_markdown(run()), ""]
    for title, rows in growth().items():
        page += [f"## {title}", "", as_markdown(rows), ""]
    (ROOT / "docs" / "performance.md").write_text("\n".join(page))
    print("\n".join(page))


if __name__ == "__main__":
    main()
