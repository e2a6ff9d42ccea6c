"""`check_model`: the laws that every model must keep, for our own and for those made elsewhere."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.audit.replay import Violation
from hedgerow.coded.domain import CodedTable, Counts, Domain, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import HedgerowError
from hedgerow.models import load
from hedgerow.models.model import Model, State, block_rng

ROWS = 20_000
"""Rows that are drawn to compare them with the model's own counts."""
DEVIATIONS = 6.0
"""How many times the distance of independent rows drawn ones may lie from the model: false alarms are below 1e-6."""
BRUTE_FORCE = 1 << 16
"""Up to so many cells the whole joint distribution is asked for, and everything else is summed from it."""
MOST_TAMPERED = 150
"""States that are tampered with; where there are more ways, they are taken at even steps."""
MARGINALS = 12
"""Single attributes, and pairs, that are looked at."""


def check_model(made: Model | Callable[[], Model]) -> None:
    """Raise Violation unless a model (or what a factory makes) keeps every law.

    Its counts are never negative, sum to its total and agree with each other, and with the whole joint where that is
    small; it answers queries as its marginals say; rows fit the domain, come in random order, follow the marginals as
    closely as independent rows would, and are the same for the same generator; its state is plain data that reads back
    as the same model; and a state that was tampered with is refused, or still draws rows of the domain.
    """
    model: Model = made() if callable(made) else made
    counts = {marginal: model.marginal(marginal) for marginal in _marginals(model.domain)}
    _check_counts(model, counts)
    _check_answers(model, counts)
    _check_rows(model, counts)
    state = model.state()
    _check_state(model, state)
    altered = list(tampered(state))
    for each in altered[:: math.ceil(len(altered) / MOST_TAMPERED)]:
        _check_tampered(model.domain, each)


def _check_counts(model: Model, asked: Mapping[Marginal, Counts]) -> None:
    domain, total = model.domain, model.total
    _hold(math.isfinite(total) and total >= 1, "its total is a number of at least 1")
    joint = model.marginal(domain.names) if domain.cells(domain.names) <= BRUTE_FORCE else None
    for marginal, counts in asked.items():
        shaped = counts.shape == domain.shape(marginal)
        _hold(shaped, "a marginal has the shape of its attributes")
        _hold(bool(np.isfinite(counts).all()) and counts.min() >= -1e-6 * total, "counts are not negative")
        _hold(bool(np.isclose(counts.sum(), total, rtol=1e-4)), "every marginal sums to the total")
        for axis, name in enumerate(marginal):
            others = tuple(other for other in range(len(marginal)) if other != axis)
            agree = np.allclose(counts.sum(axis=others), asked[(name,)], atol=1e-4 * total)
            _hold(agree, "marginals agree on what they share")
        if joint is not None:
            left_out = tuple(axis for axis, name in enumerate(domain.names) if name not in marginal)
            _hold(np.allclose(joint.sum(axis=left_out), counts, atol=1e-4 * total), "marginals are sums of the joint")


def _check_answers(model: Model, asked: Mapping[Marginal, Counts]) -> None:
    domain = model.domain
    queries = [MarginalQuery(domain, marginal) for marginal in asked]
    for marginal in [*asked][-4:]:
        cells = domain.cells(marginal)
        queries.append(MarginalQuery(domain, marginal, blocks=np.arange(cells) % 4 - (cells > 1)))
        if marginal:
            halves = {marginal[0]: np.arange(domain[marginal[0]].size) // 2}
            queries.append(MarginalQuery(domain, marginal, levels=halves))
    answers = list(model.answers(queries))
    _hold(len(answers) == len(queries), "there is one answer for each query")
    for query, answer in zip(queries, answers, strict=True):
        expected = query.aggregate(asked[query.attributes])
        same = answer.shape == expected.shape and np.allclose(answer, expected, atol=1e-6 * model.total)
        _hold(same, "queries are answered as the marginals say, in order")


def _check_rows(model: Model, asked: Mapping[Marginal, Counts]) -> None:
    domain = model.domain
    for rows in (0, 1, 700):
        _check_fits(domain, model.draw(rows, block_rng(1, 0)), rows)
    drawn = model.draw(ROWS, block_rng(1, 0))
    again = model.draw(ROWS, block_rng(1, 0))
    _hold(_same_rows(domain, drawn, again), "the same generator draws the same rows")
    half = {name: codes[: ROWS // 2] for name, codes in drawn.items()}
    for marginal, counts in asked.items():
        shares = counts / model.total
        known_from = min(ROWS, max(1.0, model.total))  # a model may know itself from rows that were drawn once
        apart = np.abs(_shares(domain, drawn, marginal) - shares).sum()
        _hold(bool(apart <= DEVIATIONS * _distance(shares, known_from)), "drawn rows follow the marginals")
        apart = np.abs(_shares(domain, half, marginal) - _shares(domain, drawn, marginal)).sum()
        _hold(bool(apart <= DEVIATIONS * _distance(shares, ROWS // 2)), "rows come in random order")


def _distance(shares: Counts, rows: float) -> float:
    """The expected L1 distance of independent rows from their distribution, and one cell's worth of rounding."""
    return float(np.sqrt(np.maximum(shares, 0) * 2 / math.pi / rows).sum()) + shares.size / rows


def _check_state(model: Model, state: State) -> None:
    domain = model.domain
    _hold(state.kind == type(model).kind == model.kind, "a state names the kind of its model")
    for array in state.arrays.values():
        _hold(array.dtype.kind in "buif", "arrays of a state hold numbers")
    try:
        written = State(state.kind, json.loads(json.dumps(state.values, allow_nan=False)), _filed(state.arrays))
    except (TypeError, ValueError):
        raise Violation("this model breaks a law: the values of a state are plain JSON.") from None
    _hold(written.values == state.values, "the values of a state are plain JSON")
    try:
        loaded = read(domain, written)
    except HedgerowError as problem:
        raise Violation(f"the state of a model does not read back: {problem}") from None
    _hold(loaded.total == model.total and loaded.domain == domain, "a state holds the total")
    _hold(_same_states(loaded.state(), state), "a model that was read back writes the same state")
    same = _same_rows(domain, loaded.draw(700, block_rng(1, 0)), model.draw(700, block_rng(1, 0)))
    _hold(same, "a model that was read back draws the same rows")


def read(domain: Domain, state: State) -> Model:
    """The model of a state, its own class allowed."""
    return load(domain, state, models=[state.kind])


def tampered(state: State) -> Iterator[State]:
    """A state with one thing changed at a time: left out, of another type, out of range, too short, too long."""
    for name, value in state.values.items():
        yield State(state.kind, {key: held for key, held in state.values.items() if key != name}, dict(state.arrays))
        for other in _other_values(value):
            yield State(state.kind, {**state.values, name: other}, dict(state.arrays))
    yield State(state.kind, {**state.values, "beside": 1}, dict(state.arrays))
    for name, array in state.arrays.items():
        yield State(state.kind, state.values, {key: held for key, held in state.arrays.items() if key != name})
        for changed in _other_arrays(array):
            yield State(state.kind, state.values, {**state.arrays, name: changed})
    yield State(state.kind, state.values, {**state.arrays, "beside": np.zeros(1)})


def _other_values(value: Any) -> Iterator[Any]:
    yield from (None, True, -1, 0, 2**70, -1.5, 1e308, "beside", [], [[]], {}, [["beside"]])
    if isinstance(value, list) and value:
        yield value[1:]
        yield [*value, value[0]]
        yield value[::-1]


def _other_arrays(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    yield array[:0]
    yield array[1:]
    yield np.concatenate([array, array])
    yield array.reshape(-1, 1)
    yield array.astype(np.complex128)
    yield array.astype(np.str_)
    for value in (-1, 2**31, math.nan, math.inf, -1e308):
        changed = array.astype(np.float64).copy()
        changed.reshape(-1)[:1] = value
        yield changed
        if math.isfinite(value) and abs(value) < 2**40:
            yield changed.astype(np.int64)
    if array.dtype.kind in "ui":
        largest = array.copy()
        largest.reshape(-1)[-1:] = np.iinfo(array.dtype).max
        yield largest


def _check_tampered(domain: Domain, state: State) -> None:
    """Refused with a sentence of ours, or a model like any other."""
    try:
        model = read(domain, state)
    except HedgerowError:
        return
    except Exception as problem:
        raise Violation(
            f"a state that was tampered with raised {type(problem).__name__}, not a ReleaseError."
        ) from None
    _check_fits(domain, model.draw(50, block_rng(2, 0)), 50)
    _hold(math.isfinite(model.total) and model.total >= 1, "its total is a number of at least 1")


def _check_fits(domain: Domain, drawn: CodedTable, rows: int) -> None:
    _hold(tuple(drawn) == domain.names, "rows have every attribute, in the domain's order")
    for attribute in domain:
        codes = drawn[attribute.name]
        fits = codes.dtype == attribute.dtype and codes.shape == (rows,) and int(codes.max(initial=0)) < attribute.size
        _hold(fits, "drawn rows fit the domain")


def _marginals(domain: Domain) -> list[Marginal]:
    """The total, single attributes, pairs and a triple."""
    names = domain.names[:MARGINALS]
    pairs = list(combinations(names, 2))[:MARGINALS]
    wide = [names[:3]] if len(names) > 2 and domain.cells(names[:3]) <= BRUTE_FORCE else []
    return [(), *((name,) for name in names), *pairs, *wide]


def _shares(domain: Domain, rows: CodedTable, marginal: Marginal) -> Counts:
    cells = np.zeros(len(rows[domain.names[0]]), dtype=np.int64)
    for name in marginal:
        cells = cells * domain[name].size + rows[name]
    counted = np.bincount(cells, minlength=domain.cells(marginal)).reshape(domain.shape(marginal))
    shares: Counts = counted / len(cells)
    return shares


def _same_rows(domain: Domain, first: CodedTable, second: CodedTable) -> bool:
    return all(np.array_equal(first[name], second[name]) for name in domain.names)


def _same_states(first: State, second: State) -> bool:
    return (
        first.kind == second.kind
        and first.values == second.values
        and first.arrays.keys() == second.arrays.keys()
        and all(np.array_equal(array, second.arrays[name]) for name, array in first.arrays.items())
        and all(array.dtype == second.arrays[name].dtype for name, array in first.arrays.items())
    )


def _filed(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays as a file gives them back."""
    found = {}
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, array, allow_pickle=False)
        file.seek(0)
        found[name] = np.load(file, allow_pickle=False)
    return found


def _hold(kept: bool, law: str) -> None:
    if not kept:
        raise Violation(f"this model breaks a law: {law}.")
