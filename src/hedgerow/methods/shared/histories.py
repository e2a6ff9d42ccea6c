"""Linked tables: the root by the method itself, every other table as a chain of log-linear models.

A row of a child table is drawn attribute by attribute, each given others: what it was in the row before, how many rows
of the same parent there are and follow, the order, attributes of the same row that are drawn already, and those of the
parent. Which attributes those are is read off noisy scores: the L1 distance of every pair that is possible from
independence, for one amount, less what chance alone makes of a table of so many cells. Each of them is then measured
with the attribute, all pairs of a table in one stack; an attribute that nothing tells of is measured again.

An attribute's model is fitted to its pairs given what it is given, and nobody measures how these hang together: some
units are drawn, table after table and attribute after attribute as a release is drawn, and the model of each attribute
is the one whose pairs with the codes that were drawn before it come out as measured. What went astray before is so not
handed on: where earlier attributes are a little off, the pairs with them are still the measured ones. Where an
attribute is given what it was in the row before, its own codes are among what it is given, so it is fitted and drawn in
turn, a few times.

Where a table has an order, how far a row lies from the one before is drawn first, and its order follows; where orders
begin is an attribute that is drawn for each parent.

Everything is asked of views in which the rows of a unit weigh `parts` together (`hedgerow.schema.links`), so every
sensitivity is that of any other run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, Domain, IntArray, Marginal
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import INDEPENDENCE, Candidate, Curator, Part, Scope
from hedgerow.errors import OptionError
from hedgerow.methods.method import Method
from hedgerow.methods.shared.columns import LEAST_STD_SHARE, Columns
from hedgerow.methods.shared.start import measure_one_ways, one_way_share
from hedgerow.models.families import Children, Coding, Rows
from hedgerow.models.graphical.estimation import TRUST
from hedgerow.models.linked import STRONGEST, Chain, LinkedModel, Local
from hedgerow.models.model import Model, block_rng
from hedgerow.progress import Progress
from hedgerow.schema import Encoding
from hedgerow.schema.links import Tables, View, start_of

CHILD_WEIGHT = 3
"""A child table gets so many times the budget of the root."""
START = 0.1
"""Of a child table's budget, for where its orders begin."""
ONE_WAYS, SCORES = 0.1, 0.1
"""Of a table's budget, at least for its columns, and for the scores of pairs; the rest measures pairs."""
SCARCE = 3
"""Where budget is scarce columns get more: a part of what they would deserve of a single table, one in so many. Set on
players and batting seasons, where a tenth is far too little at ε = 1, and three tenths too much from ε = 4 on."""
PAIRS_EACH = 6
"""Pairs that an attribute is expected to need."""
NOISE = 0.25
"""Expected noise of a pair as a part of the rows, at most: codes are merged until that is so."""
FINEST, COARSEST = 20.0, 4.0
"""Codes that an attribute is merged into, about, at most and at least."""
MOST_OF_ROW = 2
"""Attributes of the same row that one may be given."""
CERTAIN = 3.0
"""A score is believed that exceeds its noise so many times, beyond what chance explains."""
UNITS, ROWS = 4096, 1 << 15
"""Units and rows of a table that are drawn while it is learnt, at most."""
PASSES = 3
"""Times that an attribute is fitted and drawn that is given itself."""
STEPS, CONVERGED = 60, 1e-6
"""Steps of a search, at most, and by how little of the loss the last one lowers it."""
LEAST_STEPS = 5
"""Steps of a search where no time is left: every attribute is drawn in the light of what was measured."""
NANOSECONDS = 10.0
"""A step takes for a row, a code of the attribute and each attribute that it is given, about."""
SEED = 0


def refuse_unlinked(method: Method) -> None:
    """Refuses a method that does not say how many relations a child's attribute may have."""
    if getattr(method, "relations", None) is None:
        raise OptionError(
            "method-without-links",
            f"{method.about.name} cannot make linked tables; methods that can: hedge, mst, independent.",
        )


def run(method: Method, tables: Tables, encoding: Encoding, curator: Curator, progress: Progress) -> Model:
    """The model of linked tables; `encoding` is that of all their columns."""
    refuse_unlinked(method)
    columns = {column: encoding.attributes_of(column) for column in encoding.columns}
    views = {name: View.of(tables, name, columns) for name in tables.names}
    whole = curator.remaining
    parts = 1 + CHILD_WEIGHT * (len(tables.names) - 1)
    with progress.keeping(1 - 1 / len(tables.names)):
        root = method.run(Scope(Part(curator, whole - whole.share(1 / parts)), views[tables.root].own), progress)
    chains: dict[str, Chain] = {}
    children = tables.names[1:]
    relations: int = method.relations  # type: ignore[attr-defined]
    coding = Coding(encoding, block_rng(SEED, 0))

    def learning(view: View) -> Learning:
        return Learning(view, curator, relations, tables.parts, root.total, progress)

    units = max(1, min(UNITS, round(root.total / tables.parts)))
    drawn = {tables.root: Rows.of_root(coding, tables, root.draw(units, coding.rng))}
    for number, name in enumerate(children):
        spend = curator.remaining.share(1 / (len(children) - number))
        with progress.phase(f"measure {name}"):
            parent = tables.parent(name)
            start = start_of(parent, name)
            if start in columns:
                begins = View(columns[start], (), views[parent].own, None, {})
                asked = spend.share(START)
                chains[start] = learning(begins).of_parents(asked, drawn[parent])
                spend -= asked
            rows = Children(coding, tables, name, _few(drawn[parent], name))
            if start in columns:
                rows.begin(chains[start])
            chains[name] = learning(views[name]).of_children(spend, rows)
            drawn[name] = rows.rows()
    return LinkedModel(curator.domain, root, chains)


def _few(parents: Rows, name: str) -> Rows:
    """The same parents, without what is beyond so many rows of a child table."""
    counts = parents.counts[name]
    room = np.maximum(0, ROWS - (np.cumsum(counts) - counts))
    few = {name: np.minimum(counts, room)}
    return Rows(dict(parents.codes), parents.parent, parents.unit, few, above=parents.above)


class Learning:
    """The chain of one view: what is asked, and the models that are fitted to it."""

    def __init__(self, view: View, curator: Curator, relations: int, unit: float, total: float, progress: Progress):
        self._view, self._relations, self._unit, self._total = view, relations, unit, max(1.0, total)
        self._progress = progress
        self._curator = Scope(curator, view.attributes)
        self._columns: Columns
        self._measured: dict[Marginal, Measurement] = {}
        self._given: dict[str, Marginal] = {}
        self._known: Chain

    def of_parents(self, spend: Amount, rows: Rows) -> Chain:
        """A chain of attributes that a row has itself."""
        self._ask(spend)
        found = []
        codes = dict(rows.codes)
        weights = _shared(rows.unit)
        for name, others in self._given.items():
            given = {each: self._known.merged(each, codes[each]) for each in others}
            found.append(self._fit(name, given, weights))
            codes[name] = self._known.draw(found[-1], codes, len(rows), block_rng(SEED, len(found)))
        return self._chain(found)

    def of_children(self, spend: Amount, rows: Children) -> Chain:
        """A chain of the attributes of a child table; the rows have them afterwards."""
        self._ask(spend)
        found = []
        weights = _shared(rows.unit)
        every = np.arange(len(rows))
        for name, others in self._given.items():
            earlier = self._view.earlier.get(name)
            among = np.flatnonzero(rows.place > 0) if name == self._view.step else every
            static = {each: self._known.merged(each, rows.known(each, among)) for each in others if each != earlier}
            local = None
            if earlier in others:
                rows.draw(self._known, self._fit(name, static, weights[among]))
            for number in range(PASSES if earlier in others else 1):
                if number and self._progress.out_of_time():
                    break
                given = {
                    each: static[each] if each in static else self._known.merged(each, rows.known(each, among))
                    for each in others
                }
                absent = rows.absent if name == self._view.step else None
                local = self._fit(name, given, weights[among], local, absent)
                rows.draw(self._known, local)
            assert local is not None
            found.append(local)
        return self._chain(found)

    def _chain(self, found: list[Local]) -> Chain:
        return Chain(self._known.domain, found, self._known.recoding, self._known.fill)

    def _ask(self, spend: Amount) -> None:
        """Measure the columns, score the pairs, measure those that are chosen, and again what nothing else tells of."""
        curator, view, relations = self._curator, self._view, self._relations
        alone = spend
        if relations:
            alone = spend.share(max(ONE_WAYS, one_way_share(curator, spend, self._total) / SCARCE))
        asked = curator if relations else Scope(curator, view.own)
        one_ways = measure_one_ways(asked, alone)
        columns = self._columns = Columns.known_from(asked.domain, one_ways, estimated_total(one_ways))
        if not relations:
            self._given = dict.fromkeys(view.own, ())
            self._known = Chain(asked.domain, [], Recoding(asked.domain, {}), {})
            return
        scoring = spend.share(SCORES)
        rest = spend - alone - scoring
        noise = curator.noise(rest, [1.0] * PAIRS_EACH * len(view.own))[0].mean_absolute
        finest = min(FINEST, max(COARSEST, math.sqrt(NOISE * columns.total / noise)))
        fine, rough = (columns.coarsening(each) for each in (finest, max(COARSEST, finest / 2)))
        shared = {*view.given, *view.order, *filter(None, [view.left])}
        maps = {name: (rough if name in shared else fine).maps.get(name) for name in columns.domain.names}
        recoding = Recoding(columns.domain, {name: each for name, each in maps.items() if each is not None})
        coarse = curator.recode(recoding)
        first = {held[0] for held in curator.columns.values() if held}
        scores = scored(view, coarse, scoring, self._by_chance(recoding))
        self._given = chosen(view, coarse.domain, scores, relations, first)
        pairs = [coarse.domain.marginal((name, other)) for name, others in self._given.items() for other in others]
        asked_of = [*pairs, *((name,) for name, others in self._given.items() if not others)]
        answers = coarse.measure([MarginalQuery(coarse.domain, each) for each in asked_of], spend=rest)
        self._measured = dict(zip(asked_of, answers, strict=True))
        fill = {name: columns.of[name].counts for name in recoding.maps}
        self._known = Chain(asked.domain, [], recoding, fill)

    def _by_chance(self, recoding: Recoding) -> dict[str, float]:
        """For each attribute a factor; those of two say how far they are from independence by chance alone.

        A cell that units of one weight fall into by chance strays by √(2/π · weight · p (1 − p) q (1 − q) · total) or
        so, and the distance is the sum over all cells.
        """
        found = {}
        scale = (2 / math.pi * self._unit * self._columns.total) ** 0.25
        for attribute in recoding.target():
            counts = self._columns.of[attribute.name].counts
            mapping = recoding.maps.get(attribute.name)
            if mapping is not None:
                counts = np.bincount(mapping, weights=counts).astype(np.float64)
            shares = np.clip(counts / max(1e-9, counts.sum()), 0.0, 1.0)
            found[attribute.name] = scale * float(np.sqrt(shares * (1 - shares)).sum())
        return found

    def _fit(
        self,
        name: str,
        given: Mapping[str, IntArray],
        weights: Counts,
        start: Local | None = None,
        absent: int | None = None,
    ) -> Local:
        """The model of an attribute whose pairs with codes of others come out as measured, as far as noise allows.

        `absent` is a code that none of the rows has.
        """
        column = self._columns.of[name]
        mapping = self._known.recoding.maps.get(name)
        counts, std = column.counts, column.std
        if mapping is not None:
            counts = np.bincount(mapping, weights=counts).astype(np.float64)
            std *= math.sqrt(len(mapping) / len(counts))
        again = self._measured.get((name,))  # where nothing else tells of it
        if again is not None:
            known = std**2 / (std**2 + again.std**2)
            counts, std = (1 - known) * counts + known * again.dense(), math.sqrt(known) * again.std
        possible = np.ones(len(counts), dtype=bool)
        if absent is not None and (mapping is None or (mapping == mapping[absent]).sum() == 1):
            possible[absent if mapping is None else mapping[absent]] = False
        counts = np.where(possible, np.maximum(counts, LEAST_STD_SHARE * std), 0.0)
        alone = np.where(possible, np.log(np.maximum(counts, 1e-300)), -STRONGEST)
        measured = {other: self._pair(name, other) for other in given}
        if not measured or not len(weights):
            return Local(name, tuple(given), alone, tuple(np.zeros(each[0].shape) for each in measured.values()))
        shares = counts / counts.sum()
        total = float(counts.sum())
        fit = _Fit(alone, shares, total * weights / weights.sum())
        for other, (values, noise) in measured.items():
            fit.add(given[other], np.where(possible, values, 0.0), noise)
        each = NANOSECONDS * len(weights) * len(counts) * (1 + len(given))
        factors, steps = fit.fitted(start, self._progress.affords(STEPS, each, LEAST_STEPS))
        self._progress.worked(each * steps)
        return Local(name, tuple(given), alone, factors)

    def _pair(self, name: str, other: str) -> tuple[Counts, float]:
        """Noisy counts of an attribute, a line for each code of another one, and their standard error; none below 0.

        Where there is hardly any noise it is taken for what one unit weighs: a relation does not rest on one.
        """
        measurement = self._measured[self._curator.domain.marginal((name, other))]
        names = measurement.query.attributes
        values = measurement.dense().reshape(measurement.query.shape)
        values = _projected(values.reshape(-1).astype(np.float64)).reshape(values.shape)
        return (values if names == (other, name) else values.T), max(measurement.std, self._unit)


def _shared(unit: IntArray) -> Counts:
    """The weight of rows that share that of their unit."""
    return 1.0 / np.maximum(1, np.bincount(unit)[unit]) if len(unit) else np.zeros(0)


def _projected(values: Counts) -> Counts:
    """The nearest counts that none is below 0 of, with the same sum."""
    whole = max(0.0, float(values.sum()))
    order = np.sort(values)[::-1]
    over = (np.cumsum(order) - whole) / np.arange(1, len(order) + 1)
    return np.maximum(0.0, values - over[np.flatnonzero(order > over)[-1]]) if whole else np.zeros(len(values))


class _Fit:
    """Multinomial logistic regression on weighted rows, told what should come out instead of what does.

    Among all distributions of the attribute given the others it finds that of least Σ ‖pairs − told‖² / 2λ, plus the
    Kullback–Leibler divergence from the start: its dual is a sum of logarithms with the penalty ½ Σ λ ‖θ‖², whose
    minimum is unique.
    """

    def __init__(self, alone: Counts, shares: Counts, weights: Counts):
        self._alone, self._shares, self._weights = alone, shares, weights
        self._codes: list[IntArray] = []
        self._told: list[Counts] = []
        self._held: list[Counts] = []
        self._penalties: list[float] = []

    def add(self, codes: IntArray, told: Counts, noise: float) -> None:
        """A pair; what it says of the other attribute alone is replaced by what the rows have."""
        held: Counts = np.bincount(codes, weights=self._weights, minlength=len(told)).astype(np.float64)
        self._codes.append(codes)
        sums = told.sum(axis=1)
        scale = np.clip(held / np.maximum(sums, 1e-9), 0.5, 2.0)
        scale = np.where(sums > 3 * noise * math.sqrt(len(self._shares)), scale, 1.0)
        told = told * scale[:, None]
        self._told.append(told + np.outer(held - told.sum(axis=1), self._shares))
        self._held.append(held)
        self._penalties.append(noise / TRUST)

    def fitted(self, start: Local | None, steps: int) -> tuple[tuple[Counts, ...], int]:
        """For each pair, what is added to the logarithms of weights; and how many steps it took."""
        sizes = [len(told) for told in self._told]
        ends = np.cumsum(sizes)
        rows = len(self._weights)
        places = np.stack([codes + end - size for codes, size, end in zip(self._codes, sizes, ends, strict=True)], 1)
        every = csr_array(
            (np.ones(places.size), places.reshape(-1), np.arange(0, places.size + 1, len(sizes))),
            shape=(rows, int(ends[-1])),
        )
        back = every.T.tocsr()
        told = np.concatenate(self._told)
        penalty = np.repeat(self._penalties, sizes)[:, None]
        scale = 1 / np.sqrt(np.outer(np.concatenate(self._held), self._shares) + penalty)
        whole = float(self._weights.sum())

        def loss(flat: Counts) -> tuple[float, Counts]:
            theta = flat.reshape(scale.shape) * scale
            logs = every @ theta + self._alone
            highest = logs.max(axis=1, keepdims=True)
            likely = np.exp(logs - highest)
            sums = likely.sum(axis=1, keepdims=True)
            value = float(self._weights @ (np.log(sums) + highest)[:, 0]) - float((theta * told).sum())
            value += 0.5 * float((penalty * theta**2).sum())
            slope = back @ (likely * (self._weights[:, None] / sums)) - told + penalty * theta
            return value / whole, (slope * scale).reshape(-1) / whole

        first = np.zeros(scale.shape)
        if start is not None:
            first = np.concatenate(start.factors) / scale
        found = minimize(
            loss,
            first.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "gtol": 0.0, "ftol": CONVERGED},
        )
        theta = np.clip(found.x.reshape(scale.shape) * scale, -STRONGEST / 100, STRONGEST / 100)
        return tuple(np.split(theta, ends[:-1])), int(found.nfev)


def scored(view: View, curator: Curator, spend: Amount, by_chance: Mapping[str, float]) -> dict[Marginal, float]:
    """How far each pair that may matter is from independence beyond chance, in noise of the score; at least 0."""
    domain = curator.domain
    pairs = [domain.marginal(pair) for pair in combinations(view.own, 2)]
    for name in view.own:
        known = () if name == view.step else view.order
        others = [*known, *view.given, *filter(None, [view.left, view.earlier.get(name)])]
        pairs += [domain.marginal((name, other)) for other in others]
    candidates = [Candidate(MarginalQuery(domain, pair)) for pair in pairs]
    noise = curator.noise(spend, [2.0] * len(pairs))[0].scale * 2
    found = curator.score(candidates, against=INDEPENDENCE, spend=spend)
    return {
        pair: max(0.0, score - by_chance[pair[0]] * by_chance[pair[1]]) / noise
        for pair, score in zip(pairs, found, strict=True)
    }


def chosen(
    view: View, domain: Domain, scores: Mapping[Marginal, float], relations: int, first: set[str]
) -> dict[str, Marginal]:
    """The attributes in the order of drawing, each with those that it is given."""

    def score(one: str, other: str) -> float:
        return scores.get(domain.marginal((one, other)), 0.0)

    order = [] if view.step is None else [view.step]
    waiting = [name for name in view.own if name not in order]
    drawn: list[str] = []
    while waiting:  # the one that tells most of the others, then whatever is closest to one that is drawn
        told = {name: [score(name, other) for other in drawn or waiting if other != name] for name in waiting}
        best = max(waiting, key=lambda name: max(told[name]) if drawn else sum(told[name]))
        drawn.append(best)
        waiting.remove(best)
    order += drawn
    given: dict[str, Marginal] = {}
    for number, name in enumerate(order):
        known = [*filter(None, [view.earlier.get(name), view.left]), *([] if name == view.step else view.order)]
        inside = sorted([] if name == view.step else order[:number], key=lambda other: -score(name, other))
        wanted = [
            other
            for other in (*known, *inside[:MOST_OF_ROW], *(each for each in view.given if each in first))
            if score(name, other) > CERTAIN
        ]
        given[name] = tuple(sorted(wanted, key=lambda other: -score(name, other))[:relations])
    return given
