"""The model engine beside mbi 2.0.0: same cliques, same measurements, same total, CPU seconds on one thread.

Every problem has a process of its own, so that the peer's first fit finds nothing compiled. The peer runs its mirror
descent for its default 1,000 iterations, or until it has had 100 CPU seconds; its clock and its loss are read after
every 50. "Cold" is its time until its loss agrees with its last one to four digits. "Warm" is the same number of
iterations at the median pace of the later ones, so without compilation. Ours is timed from the measurements until it
is at that loss, and until it has converged. Of linear queries "cold" is all of the iterations that are named; made-up
counts of 10,000 rows, noise of 20 on every query.

`python -m bench.performance` keeps the rows for the page in docs/.
"""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import hedgerow as hr
from bench.tables import DATA, at_hand
from hedgerow.coded.domain import Attribute, Counts, Domain, IntArray, Marginal
from hedgerow.coded.measurement import Measurement, Noise, estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.models.graphical import proximal
from hedgerow.models.graphical.estimation import TOLERANCE, fit, loss
from hedgerow.models.graphical.junction import plan, size
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.graphical.noisy import Noisy
from hedgerow.models.graphical.terms import Terms
from hedgerow.models.interactions import Asked
from hedgerow.progress import Progress

ROOT = Path(__file__).resolve().parents[1]
ITERATIONS, BLOCK = 1000, 50
PATIENCE = 100.0
"""CPU seconds after which the peer is stopped at the end of a block."""
DIGITS = 1e-4
SIGMAS = (300.0, 15.0, 1.0)
LINEAR_STD = 20.0
HELD = 1e3
"""The weight of the total against one query, where the least loss is looked for."""
Table = dict[str, IntArray]
Row = dict[str, Any]


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
    rng = np.random.default_rng(seed)
    cliques: list[Marginal] = []
    while len(cliques) < number:
        names = rng.choice(domain.names, int(rng.integers(2, 4)), replace=False)
        clique = domain.marginal(str(name) for name in names)
        nested = any(set(clique) <= set(other) or set(other) <= set(clique) for other in cliques)
        if not nested and domain.cells(clique) <= widest and size(domain, [*cliques, clique]) <= megabytes * 1e6:
            cliques.append(clique)
    return cliques


def measure(domain: Domain, table: Table, cliques: Sequence[Marginal], sigma: float) -> list[Measurement]:
    """Counts of a public table with ordinary Gaussian noise: a benchmark, no release."""
    rng = np.random.default_rng(0)
    noise = Noise("gaussian", sigma)
    counts = [count(domain, table, clique) for clique in cliques]
    return [
        Measurement(
            MarginalQuery(domain, clique), exact + np.rint(rng.normal(0, sigma, exact.shape)).astype(int), noise
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


def problem(name: str) -> Problem:
    dataset, kind = name.split("-")
    domain, table = load("acs-temporal" if dataset == "acs" else dataset)
    if kind == "tree":
        return Problem(name, domain, table, spanning_tree(domain, table))
    megabytes = {"adult-30": 80, "acs-40": 20}[name]
    return Problem(name, domain, table, random_cliques(domain, int(kind), megabytes, 200_000, 1))


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


@dataclass(frozen=True)
class Trail:
    """The peer's CPU seconds and loss after every block of iterations."""

    seconds: list[float]
    losses: list[float]

    @property
    def target(self) -> float:
        return (1 + DIGITS) * self.losses[-1]

    @property
    def blocks(self) -> int:
        """How many it took to reach the target."""
        return 1 + next(index for index, value in enumerate(self.losses) if value <= self.target)

    @property
    def cold(self) -> float:
        return self.seconds[self.blocks - 1]

    @property
    def warm(self) -> float:
        return self.blocks * statistics.median(after - before for before, after in itertools.pairwise(self.seconds))


class Tired(Exception):
    """The peer has had its time."""


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

    def fit(self, domain: Domain, measurements: Sequence[Measurement]) -> Trail:
        mbi = self.mbi
        peers = mbi.Domain(list(domain.names), [attribute.size for attribute in domain])
        asked = [mbi.LinearMeasurement(m.dense(), m.query.attributes, stddev=m.std) for m in measurements]
        loss_of = mbi.marginal_loss.from_linear_measurements(asked, peers)
        trail = Trail([], [])
        start = time.process_time()

        def note(marginals: Any) -> None:
            """The clock, then the loss, whose own time is taken off the clock."""
            nonlocal start
            self.jax.block_until_ready([factor.values for factor in marginals.tables.values()])
            now = time.process_time()
            trail.seconds.append(now - start)
            trail.losses.append(float(loss_of(marginals)))
            start += time.process_time() - now
            if trail.seconds[-1] > PATIENCE and len(trail.seconds) > 1:
                raise Tired

        try:
            total = estimated_total(measurements)
            mbi.estimation.MirrorDescent().estimate(peers, asked, total, iters=ITERATIONS, callback_fn=note)
        except Tired:
            pass
        return trail

    def fit_queries(self, domain: Domain, measured: Noisy, total: float, iterations: int) -> tuple[Any, float, float]:
        """A model of linear queries, the CPU seconds it took, and those of as many iterations without compilation."""
        mbi, jnp = self.mbi, self.jax.numpy
        peers = mbi.Domain(list(domain.names), [attribute.size for attribute in domain])
        matrix = jnp.asarray(measured.rows().toarray())
        asked = mbi.LinearMeasurement(
            measured.values, measured.columns, float(measured.std), query=lambda factor: matrix @ factor.datavector()
        )
        times: list[float] = []

        def note(marginals: Any) -> None:
            self.jax.block_until_ready([factor.values for factor in marginals.tables.values()])
            times.append(time.process_time())

        start = time.process_time()
        model = mbi.estimation.MirrorDescent().estimate(peers, [asked], total, iters=iterations, callback_fn=note)
        found = np.asarray(model.project(measured.columns).datavector())
        cold = time.process_time() - start
        pace = statistics.median(after - before for before, after in itertools.pairwise(times))
        return found, cold, pace * len(times)

    def answer(self, model: Any, marginals: Sequence[Marginal]) -> None:
        answers = self.mbi.marginal_oracles.bulk_variable_elimination(model.potentials, list(marginals), model.total)
        self.jax.block_until_ready([factor.values for factor in answers.tables.values()])

    def copy(self, model: GraphicalModel) -> Any:
        """The peer's model with our potentials."""
        mbi, domain = self.mbi, model.domain
        peers = mbi.Domain(list(domain.names), [attribute.size for attribute in domain])
        tables = {
            clique: mbi.Factor(peers.project(clique), self.jax.numpy.asarray(model.potential(clique)))
            for clique in model.cliques
        }
        potentials = mbi.CliqueVector(peers, list(tables), tables)
        marginals = mbi.marginal_oracles.message_passing_stable(potentials, model.total)
        return mbi.MarkovRandomField(potentials=potentials, marginals=marginals, total=model.total)


def compare_fits(name: str, sigma: float) -> Row:
    asked = problem(name)
    measurements = asked.measurements(sigma)
    trail = Peer().fit(asked.domain, measurements)
    same, _ = timed(lambda: race(asked.domain, measurements, trail.target))
    converged, model = timed(lambda: fit(asked.domain, measurements))
    return {
        "problem": f"{name}, σ = {sigma:g}",
        "peer's iterations": BLOCK * len(trail.losses),
        "peer's loss": round(trail.losses[-1], 1),
        "our loss": round(loss(model, measurements), 1),
        "peer cold s": trail.cold,
        "peer warm s": trail.warm,
        "ours to its loss s": same,
        "ours converged s": converged,
        "× cold": trail.cold / same,
        "× warm": trail.warm / same,
    }


def linear_problem(kind: str) -> tuple[Domain, Noisy]:
    """Prefixes or ranges of a column of 100 values, over 10,000 made-up rows, each with noise of its own."""
    rng = np.random.default_rng(0)
    attribute = Attribute("x", 100, 100)
    matrix = Asked(kind).matrix(attribute)
    counts = rng.multinomial(10_000, rng.dirichlet(np.ones(100)))
    return Domain([attribute]), hr.noisy(
        "x", matrix @ counts + rng.normal(0, LINEAR_STD, len(matrix)), LINEAR_STD, matrix
    )


def least_loss(measured: Noisy, total: float) -> float:
    """Of any counts that are not negative and add up to the total, which is held all but exactly."""
    from scipy.optimize import nnls

    matrix = measured.rows().toarray() / LINEAR_STD
    held = np.vstack([matrix, np.full(matrix.shape[1], HELD)])
    counts, _ = nnls(held, np.append(measured.values / LINEAR_STD, HELD * total), maxiter=100 * matrix.shape[1])
    return float(((matrix @ counts - measured.values / LINEAR_STD) ** 2).sum() / 2)


def compare_linear(kind: str, iterations: int) -> Row:
    """Linear queries of one column: no tree to plan, so what is compared is the search alone."""
    domain, measured = linear_problem(kind)
    ours, model = timed(lambda: hr.fit({"x": 100}, [measured], total=10_000))
    found, cold, warm = Peer().fit_queries(domain, measured, 10_000, iterations)
    theirs = float((((measured.rows() @ found - measured.values) / LINEAR_STD) ** 2).sum() / 2)
    return {
        "problem": f"{len(measured.values):,} {kind} of a column of 100 values",
        "best loss": f"{least_loss(measured, 10_000):,.2f}",
        "peer's iterations": iterations,
        "peer's loss": f"{theirs:,.2f}",
        "our loss": f"{model.loss:,.2f}",
        "peer cold s": cold,
        "peer warm s": warm,
        "ours converged s": ours,
    }


def compare_rows(rows: int = 1_000_000) -> Row:
    asked, peer = problem("adult-tree"), Peer()
    model = fit(asked.domain, asked.measurements(15.0))
    theirs = peer.copy(model)
    theirs.synthetic_data(rows=1000)
    slow, _ = timed(lambda: theirs.synthetic_data(rows=rows))
    fast, _ = timed(lambda: model.draw(rows, np.random.default_rng(0)))
    return {
        "problem": f"rows of adult's tree ({rows:,} drawn)",
        "peer M rows/s": rows / slow / 1e6,
        "ours M rows/s": rows / fast / 1e6,
        "× warm": slow / fast,
    }


def compare_triples() -> Row:
    """All three-way marginals of adult. The cliques are narrow enough for the peer's tables to fit into memory."""
    domain, table = load("adult")
    cliques = random_cliques(domain, 30, 2, 20_000, 10)
    model = fit(domain, measure(domain, table, cliques, 15.0))
    triples = list(domain.marginals(3))
    fast, _ = timed(lambda: [model.marginal(triple) for triple in triples])
    peer = Peer()
    theirs = peer.copy(model)
    cold, _ = timed(lambda: peer.answer(theirs, triples))
    warm, _ = timed(lambda: peer.answer(theirs, triples))
    return {
        "problem": f"all {len(triples)} triples of a 30-clique model of adult",
        "peer cold s": cold,
        "peer warm s": warm,
        "ours s": fast,
        "× cold": cold / fast,
        "× warm": warm / fast,
    }


LINEAR = tuple(f"{kind}:{iterations}" for kind in ("prefixes", "ranges") for iterations in (1000, 10_000))
"""Linear queries, and how many iterations the peer has."""
COMPARISONS = (
    "rows",
    "triples",
    *LINEAR,
    *(f"adult-tree@{sigma:g}" for sigma in SIGMAS),
    "loans-tree@15",
    "acs-40@15",
    "adult-30@15",
)
"""What `make bench` runs; a fit is a problem at a σ, and any other σ can be named too."""


def compare(name: str) -> Row:
    """One comparison by its name."""
    if name in ("rows", "triples"):
        return {"rows": compare_rows, "triples": compare_triples}[name]()
    if ":" in name:
        kind, iterations = name.split(":")
        return compare_linear(kind, int(iterations))
    fitted, sigma = name.split("@")
    return compare_fits(fitted, float(sigma))


def apart(work: Callable[[Any], Row], amounts: Sequence[Any]) -> list[Row]:
    """Each in a fresh process; rows are shown as they come."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        rows = []
        for row in pool.imap(work, amounts, chunksize=1):
            print(row, file=sys.stderr, flush=True)
            rows.append(row)
        return rows


def run(names: Sequence[str] = COMPARISONS) -> list[Row]:
    """The comparisons that are named; by default all of them."""
    if not set(names) <= set(LINEAR) and not at_hand("adult", "acs-temporal", "loans"):
        return [{"problem": "skipped: the field's tables are not at hand; set HEDGEROW_DATA"}]
    return apart(compare, names)
