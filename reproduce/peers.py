"""MST and AIM on private-pgm (mbi), as a program of its own: reads a coded table, writes a synthetic one.

    python reproduce/peers.py mst TABLE.parquet DOMAIN.json EPSILON DELTA SEED OUT.parquet
    python reproduce/peers.py aim@1 …      (with a model of 1 MB, where the paper allows 80)

It is run by an environment that has `mbi` (2.0 or later) and `pyarrow`, and imports nothing of Hedgerow: estimation,
junction trees and sampling are mbi's, budgets, choices and noise are written here after the papers and the scripts that
come with private-pgm. The noise is NumPy's, seeded: for public tables alone.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import jax
import mbi
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mbi.clique_utils import downward_closure
from mbi.junction_tree import hypothetical_model_size

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
Clique = tuple[str, ...]
ITERATIONS, LAST = 1000, 2500


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ whose zCDP is (ε, δ)-DP (Canonne, Kamath, Steinke 2020, Proposition 7)."""

    def reached(rho: float) -> float:
        orders = 1 + np.logspace(-4, 4, 4001)
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(np.exp(logs.min()))

    low, high = 0.0, epsilon + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) <= delta else (low, middle)
    return low


def counts(data: mbi.Dataset, clique: Clique) -> Any:
    return np.asarray(data.project(clique).datavector())


def measured(data: mbi.Dataset, clique: Clique, std: float, rng: np.random.Generator) -> mbi.LinearMeasurement:
    exact = counts(data, clique)
    return mbi.LinearMeasurement(exact + rng.normal(0, std, exact.size), clique, std)


def chosen(scores: Sequence[float], epsilon: float, sensitivity: float, rng: np.random.Generator) -> int:
    """The exponential mechanism, by Gumbel noise."""
    noisy = 0.5 * epsilon / sensitivity * np.asarray(scores) + rng.gumbel(size=len(scores))
    return int(noisy.argmax())


def estimate(domain: mbi.Domain, answers: Sequence[mbi.LinearMeasurement], model: Any, iterations: int) -> Any:
    return mbi.estimation.MirrorDescent().estimate(domain, list(answers), iters=iterations, warm_start=model)


def mst(data: mbi.Dataset, rho: float, rng: np.random.Generator) -> mbi.Dataset:
    """A third for columns, a third for the choice of a tree, a third for its pairs."""
    small, known, merged = mst_answers(data, rho, rng)
    made = estimate(small, known, None, LAST).synthetic_data()
    return made.decompress(merged)


def mst_answers(
    data: mbi.Dataset, rho: float, rng: np.random.Generator
) -> tuple[mbi.Domain, list[mbi.LinearMeasurement], dict[str, Any]]:
    """What MST asks, answered: the merged domain, the noisy answers in it, and how values were merged."""
    domain = data.domain
    std = math.sqrt(3 * len(domain) / (2 * rho))
    columns = [measured(data, (name,), std, rng) for name in domain.attributes]
    merged: dict[str, Any] = {}
    for answer in columns:
        frequent = np.asarray(answer.noisy_measurement) >= 3 * std
        if (~frequent).sum() > 1:
            merged[answer.clique[0]] = np.where(frequent, np.cumsum(frequent) - 1, frequent.sum())
    small = data.compress(merged)
    known = [answer.compress(merged, domain) for answer in columns]
    model = estimate(small.domain, known, None, ITERATIONS)
    alone = {name: np.asarray(model.project((name,)).datavector()) for name in small.domain.attributes}
    pairs = list(combinations(small.domain.attributes, 2))
    far = {}
    for first, second in pairs:  # a model of columns alone: mbi would compile a program for every pair
        product = np.outer(alone[first], alone[second]).reshape(-1) / float(model.total)
        far[first, second] = np.abs(counts(small, (first, second)) - product).sum()
    part = {name: number for number, name in enumerate(small.domain.attributes)}
    edges = len(part) - 1
    std = math.sqrt(3 * edges / (2 * rho))
    for _ in range(edges):
        left = [pair for pair in pairs if part[pair[0]] != part[pair[1]]]
        pair = left[chosen([far[each] for each in left], math.sqrt(8 * rho / 3 / edges), 1.0, rng)]
        old, new = part[pair[0]], part[pair[1]]
        part = {name: new if number == old else number for name, number in part.items()}
        known.append(measured(small, pair, std, rng))
    return small.domain, known, merged


def aim(data: mbi.Dataset, rho: float, rng: np.random.Generator, megabytes: float = 80) -> mbi.Dataset:
    """Rounds of choosing and measuring, with annealing, for all triples."""
    domain = data.domain
    workload = list(combinations(domain.attributes, 3))
    weights = {
        clique: float(sum(len(set(clique) & set(other)) for other in workload)) for clique in downward_closure(workload)
    }
    exact = {clique: counts(data, clique) for clique in weights}
    rounds = 16 * len(domain)
    std, epsilon = math.sqrt(rounds / (1.8 * rho)), math.sqrt(0.8 * rho / rounds)
    known = [measured(data, clique, std, rng) for clique in weights if len(clique) == 1]
    used = len(known) * 0.5 / std**2
    model = estimate(domain, known, None, ITERATIONS)
    last = False
    while not last:
        if rho - used < 2 * (0.5 / std**2 + epsilon**2 / 8):
            std, epsilon, last = math.sqrt(1 / (1.8 * (rho - used))), math.sqrt(0.8 * (rho - used)), True
        used += 0.5 / std**2 + epsilon**2 / 8
        clique = worst(domain, weights, exact, model, megabytes * used / rho, std, epsilon, rng)
        [before] = projections(model, [clique])
        known.append(measured(data, clique, std, rng))
        model = estimate(domain, known, model, ITERATIONS)
        [after] = projections(model, [clique])
        if np.abs(after - before).sum() <= std * math.sqrt(2 / math.pi) * domain.size(clique):
            std, epsilon = std / 2, epsilon * 2
    return estimate(domain, known, model, LAST).synthetic_data()


def worst(
    domain: mbi.Domain,
    weights: Mapping[Clique, float],
    exact: Mapping[Clique, Any],
    model: Any,
    megabytes: float,
    std: float,
    epsilon: float,
    rng: np.random.Generator,
) -> Clique:
    """The marginal that the model gets most wrong, roughly, of those that it has room for."""
    held = set(downward_closure(model.potentials.cliques))
    small = [
        clique
        for clique in weights
        if clique in held or hypothetical_model_size(domain, [*model.potentials.cliques, clique]) <= megabytes
    ]
    scores = []
    for clique, expected in zip(small, projections(model, small), strict=True):
        far = np.abs(exact[clique] - expected).sum()
        scores.append(weights[clique] * (far - math.sqrt(2 / math.pi) * std * domain.size(clique)))
    return small[chosen(scores, epsilon, max(weights[clique] for clique in small), rng)]


def projections(model: Any, cliques: Sequence[Clique]) -> Iterator[Any]:
    """What the model says of each clique: sums of its factors' product, without a program compiled for every one."""
    import opt_einsum

    domain, letters = model.potentials.domain, dict[str, str]()
    for name in domain.attributes:
        letters[name] = opt_einsum.get_symbol(len(letters))
    tables = {clique: np.asarray(model.potentials[clique].values) for clique in model.potentials.cliques}
    factors = [
        ("".join(letters[name] for name in clique), np.exp(table - table.max())) for clique, table in tables.items()
    ]
    factors += [(letters[name], np.ones(domain.size((name,)))) for name in domain.attributes]
    inputs = ",".join(axes for axes, _ in factors)
    arrays = [table for _, table in factors]
    for clique in cliques:
        asked = f"{inputs}->{''.join(letters[name] for name in clique)}"
        found = opt_einsum.contract(asked, *arrays, optimize="greedy").reshape(-1)
        yield float(model.total) * found / found.sum()


def main() -> None:
    name, table, sizes, epsilon, delta, seed, out = sys.argv[1:]
    with open(sizes, encoding="utf-8") as file:
        domain = mbi.Domain.fromdict(json.load(file))
    read = pq.read_table(table, columns=list(domain.attributes))
    data = mbi.Dataset({column: read[column].to_numpy() for column in domain.attributes}, domain)
    np.random.seed(int(seed))  # noqa: NPY002 (mbi draws rows with it)
    rng = np.random.default_rng(int(seed))
    rho = rho_of(float(epsilon), float(delta))
    made = mst(data, rho, rng) if name == "mst" else aim(data, rho, rng, float(name.partition("@")[2] or 80))
    rows = made.to_dict()
    pq.write_table(pa.table({column: np.asarray(rows[column]) for column in domain.attributes}), out)


if __name__ == "__main__":
    main()
