"""`check_method`: the laws that every method must keep, for our own and for those made elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.audit.model import check_model
from hedgerow.audit.noise import cumulative
from hedgerow.audit.replay import Call, Recorder, Replayed, Violation, replay
from hedgerow.budget.amounts import Budget
from hedgerow.coded.domain import Counts
from hedgerow.errors import ReleaseError
from hedgerow.methods.method import Method
from hedgerow.private.engines import open_engine
from hedgerow.private.mechanisms import Randomizer
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release, verify
from hedgerow.run import Run
from hedgerow.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.run.prior import Prior

SCHEMA = """
dataset: audit
person: id
max_rows_per_person: 3
max_misfits: 1 # pairs hold values that nothing declares: at a large ε the look would see them, and end the run
columns:
  grade: {type: category, values: [low, mid, high], ordered: true}
  site:  {type: code, size: 5}
  age:   {type: integer, min: 0, max: 9}
  flag:  {type: category, values: ["yes", "no"], other: true, missing: true}
"""
COLUMNS = ("id", "grade", "site", "age", "flag")
BUDGETS = (Budget(1.0, 1e-9), Budget(1.0, 0.0))
KINDS = ("last row", "new category", "many rows", "null", "out of range", "empty table")
_CANARY = 10**9


@dataclass(frozen=True, eq=False)
class Pair:
    """A table, and the same table without one person."""

    kind: str
    table: pa.Table
    neighbour: pa.Table


def pairs(count: int, seed: int = 0, people: int = 40) -> Iterator[Pair]:
    """`count` neighbouring pairs, the kinds in turn; so are the types that persons are named by."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        yield _pair(KINDS[number % len(KINDS)], rng, people, number)


def _pair(kind: str, rng: np.random.Generator, people: int, number: int) -> Pair:
    persons = 0 if kind == "empty table" else int(rng.integers(2, people))
    # up to five rows each, so that other people are truncated too
    rows = [_row(person, rng) for person in range(persons) for _ in range(rng.integers(1, 6))]
    extra = [_row(_CANARY, rng) for _ in range({"many rows": 8, "empty table": 3}.get(kind, 1))]
    if kind in ("many rows", "empty table"):
        extra = [extra[0]] * len(extra)  # all in one cell: the worst that one person can do
    if kind == "new category":
        extra = [(_CANARY, "unheard-of", 2, 4, "neither")]
    if kind == "null":
        extra = [(_CANARY, None, None, None, None)]
    if kind == "out of range":
        extra = [(_CANARY, "low", 10**6, -(10**9), "yes")]
    mixed = rows + extra
    order = rng.permutation(len(mixed))
    mixed = [mixed[index] for index in order]
    if kind == "null":
        mixed += [(None, "low", 1, 3, "yes")] * 20  # of whomever: rows that name nobody
    return Pair(kind, _table(mixed, number), _table(rows, number))


def _row(person: int, rng: np.random.Generator) -> tuple[Any, ...]:
    grade = ("low", "mid", "high")[rng.choice(3, p=[0.6, 0.3, 0.1])]
    flag = ("yes", "no", None)[rng.choice(3, p=[0.5, 0.4, 0.1])]
    return person, grade, int(rng.integers(0, 5)), int(min(9, rng.poisson(3))), flag


def _table(rows: Sequence[tuple[Any, ...]], number: int) -> pa.Table:
    import pyarrow as pa

    types = (pa.string(), pa.int64(), pa.int64(), pa.string())
    persons, *columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(list(column), type=kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(COLUMNS, [_ids(persons, number), *arrays], strict=True)))


def _ids(persons: Sequence[int | None], number: int) -> pa.Array:
    """Persons under ids of the pair's type: their number tells which."""
    import pyarrow as pa

    kinds: tuple[tuple[pa.DataType, Callable[[int], Any]], ...] = (
        (pa.string(), "p{}".format),
        (pa.decimal128(20, 2), lambda person: Decimal(person) / 4),
        (pa.binary(), lambda person: b"\xff" + person.to_bytes(4, "big")),
        (pa.int64(), lambda person: 2**60 + person),
        (pa.timestamp("us", "Europe/Berlin"), lambda person: person),
    )
    kind, name = kinds[number % len(kinds)]
    return pa.array([None if person is None else name(person) for person in persons], kind)


def check_method(method: Method, count: int = len(KINDS), seed: int = 0, *, public: Any = None) -> None:
    """Raise Violation unless the method keeps every law, under δ > 0 and under δ = 0.

    It spends its budget to the last unit; what it returns is a model (marginals, rows, a state that reads back);
    its release verifies; the noise that it got is the noise that it was charged for; and `count` replays on
    neighbouring tables, the kinds in turn, find no difference, at least one of them attaining the sensitivity. A method
    that learns from a public table is checked with one, of the columns of `SCHEMA`.
    """
    for budget in BUDGETS:
        replays = [replay_pair(method, budget, pair, public=public) for pair in pairs(count, seed)]
        check_release(replays[0].release)
        check_drawn_noise([call for replayed in replays for call in replayed.recorded])
        if max(ratio for replayed in replays for ratio in _attained(replayed)) < 0.999:
            raise Violation("no pair of neighbours reached the declared sensitivity; the replay may be blind.")


def replay_pair(
    method: Method,
    budget: Budget,
    pair: Pair,
    schema: str = SCHEMA,
    *,
    public: Any = None,
    prior: Prior | None = None,
) -> Replayed:
    """Replay one pair. Both runs bound contributions with one key, as one person's rows must not move another's."""
    parsed = Schema.parse(schema)
    key = b"the same key for both neighbours"

    def on(table: pa.Table) -> Any:
        def run(mechanisms: Randomizer) -> Release:
            engine = open_engine(table, bounding_key=key)
            return Run(parsed, budget, method, 0, Progress(), public, prior=prior).release(engine, mechanisms)

        return run

    return replay(on(pair.table), on(pair.neighbour))


def _attained(replayed: Replayed) -> list[float]:
    charges = replayed.release.certificate.charges
    return [ratio for ratio, charge in zip(replayed.ratios, charges, strict=True) if charge.purpose == "measure"]


def check_release(release: Release) -> None:
    """The books close, the file reads back and verifies, and the model keeps the laws of models."""
    certificate = release.certificate
    if certificate.spent != certificate.whole:
        raise Violation("the charges do not add up to the budget to the last unit.")
    check_model(release.model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checked.release"
        release.save(path)
        try:
            loaded, _ = verify(path, **release.trust._asdict())
        except ReleaseError as problem:
            raise Violation(f"the release does not verify: {problem}") from None
    if not loaded.sample(500, seed=3).equals(release.sample(500, seed=3)):
        raise Violation("a release that was read back draws other rows: something that it needs was not saved.")


def check_drawn_noise(calls: Sequence[Call]) -> None:
    """The noise that was drawn follows the law that was charged for, cell by cell, and never repeats.

    Each residual is put through its own cumulative distribution (with a coin for the mass of its integer, and given
    that its cell survived a threshold where there is one), which makes it uniform; χ² on 16 bins, and on products of
    neighbours for dependence. The number of survivors is held to its expectation by Chernoff's bound. False alarms are
    below 1e-9 each.
    """
    from scipy.stats import chi2

    rng = np.random.default_rng(0)
    levels: list[Counts] = []
    seen: set[bytes] = set()
    survived, expected = 0, 0.0
    for call in calls:
        if call.asked[0] == "counts":
            _, cells, noise = call.asked
            exact = np.zeros(cells, dtype=np.int64)
            exact[list(call.exact)] = list(call.exact.values())
            residuals = call.answer - exact
            missing = np.zeros(cells)
        elif call.asked[0] == "survivors":
            _, cells, noise, threshold = call.asked
            kept, values = call.answer
            missed = [cell for cell, count in call.exact.items() if count > threshold + 40 * noise.scale]
            if not set(missed) <= set(kept.tolist()):
                raise Violation("a cell far above its threshold did not survive.")
            counts = np.array([call.exact.get(cell, 0) for cell in kept.tolist()], dtype=np.float64)
            residuals = values - counts
            missing = cumulative(noise, np.ceil(threshold) - counts - 1)  # what would not have survived
            occupied = np.array([*call.exact.values(), 0.0])
            chances = 1 - cumulative(noise, np.ceil(threshold) - occupied - 1)
            survived += len(kept)
            expected += float(chances[:-1].sum() + (cells - len(call.exact)) * chances[-1])
        else:
            continue
        if len(residuals) >= 16 and noise.scale > 2:
            if residuals.tobytes() in seen:
                raise Violation("the same noise was drawn twice.")
            seen.add(residuals.tobytes())
        below, upto = cumulative(noise, residuals - 1.0), cumulative(noise, residuals.astype(np.float64))
        level = below + (upto - below) * rng.random(len(residuals))
        levels.append((level - missing) / (1 - missing))
    if expected and survived * np.log(max(survived, 1) / expected) - survived + expected > np.log(2e9):
        raise Violation("the noise drawn is not the noise charged for: too few or too many cells survive.")
    if not levels:
        return
    uniform = np.concatenate(levels)
    repeats = 16 * (uniform[1:] - uniform[:-1]) % 16  # independent uniforms differ by a uniform, modulo 1
    for sample in (16 * uniform, repeats):
        found = np.bincount(np.minimum(sample.astype(np.int64), 15), minlength=16)
        statistic = float(((found - len(sample) / 16) ** 2).sum() / (len(sample) / 16))
        if statistic > chi2.isf(1e-9, 15):
            raise Violation("the noise drawn is not the noise charged for.")


__all__ = [
    "BUDGETS",
    "KINDS",
    "Pair",
    "Recorder",
    "check_drawn_noise",
    "check_method",
    "check_release",
    "pairs",
]
