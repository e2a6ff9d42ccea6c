"""Linked tables: the root by the method itself, every other table as a chain of small models.

A row of a child table is drawn attribute by attribute. Each is given up to four others, the best of their kinds: what
it was in the row before, how many rows of the same parent follow, an attribute of the same row that is drawn already,
and one of the parent. Which attributes those are is read off noisy scores: the L1 distance of every pair that is
possible from independence, for one amount. All pairs among an attribute and its four are then measured, all of a
table's in one stack, and a small model is fitted to them. Pairs of what is *given* are among them: left out, they would
be taken for independent, and what both say of the attribute be counted twice.

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

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Domain, Marginal
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import INDEPENDENCE, Candidate, Curator, Part, Scope
from hedgerow.errors import OptionError
from hedgerow.methods.method import Method
from hedgerow.methods.shared.columns import Columns
from hedgerow.methods.shared.start import measure_one_ways
from hedgerow.models.graphical.estimation import fit_near
from hedgerow.models.linked import MOST_LOCAL_CELLS, Chain, LinkedModel, Local
from hedgerow.models.model import Model
from hedgerow.progress import Progress
from hedgerow.schema.links import Tables, View, start_of

CHILD_WEIGHT = 3
"""A child table gets so many times the budget of the root."""
START = 0.1
"""Of a child table's budget, for where its orders begin."""
ONE_WAYS, SCORES = 0.1, 0.1
"""Of a table's budget, for its columns and for the scores of pairs; the rest measures pairs."""
PAIRS_EACH = 6
"""Pairs that an attribute is expected to need, beside those that it shares."""
NOISE = 0.25
"""Expected noise of a pair as a part of the rows, at most: codes are merged until that is so."""
FINEST, COARSEST = 20.0, 4.0
"""Codes that an attribute is merged into, about, at most and at least."""
MOST_OF_PARENT = 2
"""Attributes of the parent that one may be given, where it is given little else."""
CERTAIN = 4.0
"""A score is believed that exceeds its noise so many times."""


def refuse_unlinked(method: Method) -> None:
    """Refuses a method that does not say how many relations a child's attribute may have."""
    if getattr(method, "relations", None) is None:
        raise OptionError(
            "method-without-links",
            f"{method.about.name} cannot make linked tables; methods that can: hedge, mst, independent.",
        )


def run(method: Method, tables: Tables, columns: Mapping[str, Marginal], curator: Curator, progress: Progress) -> Model:
    """The model of linked tables; `columns` are those of the schema, with the attributes that code each."""
    refuse_unlinked(method)
    views = {name: View.of(tables, name, columns) for name in tables.names}
    whole = curator.remaining
    parts = 1 + CHILD_WEIGHT * (len(tables.names) - 1)
    root = method.run(Scope(Part(curator, whole - whole.share(1 / parts)), views[tables.root].own), progress)
    chains: dict[str, Chain] = {}
    children = tables.names[1:]
    relations: int = method.relations  # type: ignore[attr-defined]
    for number, name in enumerate(children):
        spend = curator.remaining.share(1 / (len(children) - number))
        with progress.phase(f"measure {name}"):
            parent = tables.parent(name)
            start = columns.get(start_of(parent, name))
            if start is not None:
                begins = View(start, (), views[parent].own, None, {})
                asked = spend.share(START)
                chains[start_of(parent, name)] = learnt(begins, curator, asked, relations, progress)
                spend -= asked
            chains[name] = learnt(views[name], curator, spend, relations, progress)
    return LinkedModel(curator.domain, root, chains)


def learnt(view: View, curator: Curator, spend: Amount, relations: int, progress: Progress) -> Chain:
    """Measure the columns of a view, score its pairs, measure those that are chosen, and fit."""
    curator = Scope(curator, view.attributes)
    alone = spend.share(ONE_WAYS) if relations else spend
    asked = curator if relations else Scope(curator, view.own)
    one_ways = measure_one_ways(asked, alone)
    columns = Columns.known_from(asked.domain, one_ways, estimated_total(one_ways))
    if not relations:
        nothing = Recoding(asked.domain, {})
        return Chain(asked.domain, [_local(columns, nothing, name, (), {}, progress) for name in view.own], nothing, {})
    scoring = spend.share(SCORES)
    rest = spend - alone - scoring
    noise = curator.noise(rest, [1.0] * PAIRS_EACH * len(view.own))[0].mean_absolute
    finest = min(FINEST, max(COARSEST, math.sqrt(NOISE * columns.total / noise)))
    recoding = columns.coarsening(finest)
    coarse = curator.recode(recoding)
    scores = scored(view, coarse, scoring)
    given = chosen(view, coarse.domain, scores, relations)
    pairs = sorted({pair for name, others in given.items() for pair in _pairs(coarse.domain, (name, *others))})
    measured: dict[Marginal, Measurement] = {}
    if pairs:
        answers = coarse.measure([MarginalQuery(coarse.domain, pair) for pair in pairs], spend=rest)
        measured = dict(zip(pairs, answers, strict=True))
    else:
        measure_one_ways(curator, rest)  # nothing is related; the budget is spent all the same
    locals_ = []
    for name, others in given.items():
        held = {pair: measured[pair] for pair in _pairs(coarse.domain, (name, *others))}
        locals_.append(_local(columns, recoding, name, others, held, progress))
    return Chain(curator.domain, locals_, recoding, {name: columns.of[name].counts for name in recoding.maps})


def _pairs(domain: Domain, names: Marginal) -> list[Marginal]:
    return [domain.marginal(pair) for pair in combinations(names, 2)]


def scored(view: View, curator: Curator, spend: Amount) -> dict[Marginal, float]:
    """How far each pair that may matter is from independence, in noise of the score; at least 0."""
    domain = curator.domain
    pairs = [domain.marginal(pair) for pair in combinations(view.own, 2)]
    for name in view.own:
        known = () if name == view.step else view.order
        others = [*known, *view.given, *filter(None, [view.left, view.earlier.get(name)])]
        pairs += [domain.marginal((name, other)) for other in others]
    candidates = [Candidate(MarginalQuery(domain, pair)) for pair in pairs]
    noise = curator.noise(spend, [2.0] * len(pairs))[0].scale * 2
    found = curator.score(candidates, against=INDEPENDENCE, spend=spend)
    return {pair: max(0.0, score / noise) for pair, score in zip(pairs, found, strict=True)}


def chosen(view: View, domain: Domain, scores: Mapping[Marginal, float], relations: int) -> dict[str, Marginal]:
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
        kinds = [
            [view.earlier[name]] if name in view.earlier else [],
            [] if view.left is None else [view.left],
            [] if name == view.step else [*view.order, *order[:number]],
        ]
        best_of = [max(kind, key=lambda other: score(name, other)) for kind in kinds if kind]
        room = min(MOST_OF_PARENT, relations - len(best_of))
        best_of += sorted(view.given, key=lambda other: -score(name, other))[: max(1, room)]
        certain = [other for other in best_of if score(name, other) > CERTAIN]
        kept = sorted(certain, key=lambda other: -score(name, other))[:relations]
        while domain.cells((name, *kept)) > MOST_LOCAL_CELLS:  # without how many follow, units would weigh alike
            kept.remove(next((other for other in reversed(kept) if other != view.left), kept[-1]))
        given[name] = tuple(kept)
    return given


def _local(
    columns: Columns,
    recoding: Recoding,
    name: str,
    given: Marginal,
    measured: Mapping[Marginal, Measurement],
    progress: Progress,
) -> Local:
    """The small model of an attribute and those that it is given."""
    domain = columns.domain
    fine = Domain(domain[each] for each in domain.marginal((name, *given)))
    few = Columns(fine, columns.of, columns.total)
    merging = Recoding(fine, {each: recoding.maps[each] for each in fine.names if each in recoding.maps})
    prior = few.model(merging)
    target = merging.target()
    pairs = [
        Measurement(MarginalQuery(target, pair), np.asarray(answer.values), answer.noise)
        for pair, answer in measured.items()
    ]
    known = [*few.measurements(merging), *pairs]
    model = fit_near(prior, known, limits=progress.limits) if pairs else prior
    return Local(name, given, model)
