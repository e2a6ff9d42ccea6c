"""A model's state out of a file: nothing in it is believed, and nothing is handed out unchecked.

Whoever reads a state names what it may hold: the type, the shape and the range of every array and number. Sizes are
Python integers, which do not wrap, and what a model takes is compared with what is allowed before it is made. What
nobody asked for is refused, so a state holds nothing beside its model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.errors import ReleaseError
from hedgerow.models.model import BLOCK_ROWS, HELD, State

MEMORY = 8 << 30
"""Bytes that a model may take while rows are drawn from it, beside those rows, where the reader names no other limit:
twice what a run is allowed by default."""
STEPS = 1 << 43
"""Elementary steps (a multiplication, a look-up) that reading a model and drawing 2²⁰ rows may take: a few hours."""
PYTHON_STEPS = 100
"""What a step of the interpreter counts for."""
DEEPEST = 8
"""Models inside models."""
MOST_AXES = 32
"""Attributes of one table of cells."""
MOST_CELLS = 1 << 62
"""Cells of a marginal of which only some are listed: their numbers must fit a machine's integers."""
MOST_ROWS = float(1 << 62)
"""The largest estimate of a number of rows."""
LARGEST = float(1 << 62)
"""The largest weight of a cell: sums of weights stay far from where numbers end."""
LEAST_MASS = 1e-100
"""The least sum of weights, likewise."""
NEAR = 1e-5
"""How far the sum of a distribution may lie from 1."""

Shape: TypeAlias = tuple[int | None, ...]
"""Of an array; None where any length will do."""


@dataclass
class Allowance:
    """What reading a release and drawing a block of rows may still take."""

    memory: int = MEMORY
    steps: int = STEPS
    models: frozenset[str] = frozenset()
    """Classes of models, `package.module:Class`, that the reader trusts."""
    _memory: int = field(init=False)

    def __post_init__(self) -> None:
        self._memory = self.memory

    def take(self, *, memory: int = 0, steps: int = 0) -> None:
        """Refused where that is more than is left. Nothing has been allocated yet."""
        self._memory -= memory
        self.steps -= steps
        if self._memory < 0:
            raise ReleaseError(
                "model-memory",
                f"drawing rows from the release takes {_bytes(self.memory - self._memory)} or more beside the rows; "
                f"{_bytes(self.memory)} are allowed. Nothing was allocated. Hint: a larger --max-memory, if you trust "
                "who made it.",
            )
        if self.steps < 0:
            raise ReleaseError(
                "model-steps", f"drawing a block of rows from the release takes more than {STEPS:.1g} steps."
            )


def _bytes(count: int) -> str:
    """A number of bytes in words; it may have thousands of digits."""
    return f"{count >> 20:,} MB" if count < 1 << 70 else "far more bytes than any machine has"


class Stored:
    """Checked access to a state. `from_state` of every model reads through this alone."""

    def __init__(self, state: State, allowance: Allowance | None = None, depth: int = 0):
        if not isinstance(state.kind, str) or not isinstance(state.values, dict):
            raise ReleaseError("model-written", "the model is not written as Hedgerow writes models.")
        if depth >= DEEPEST:
            raise ReleaseError("model-depth", f"more than {DEEPEST} models lie inside each other.")
        self.kind = state.kind
        self.allowance = allowance or Allowance()
        self._values = dict(state.values)
        self._arrays = dict(state.arrays)
        self._depth = depth

    # ------------------------------------------------------------ values

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from low to high."""
        value = self._value(name)
        if type(value) is not int or not low <= value <= high:
            self._refuse(name, f"a whole number from {low} to {high}")
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """A number from low to high."""
        return self._number(name, self._value(name), low, high)

    def numbers(self, name: str, count: int, low: float, high: float) -> list[float]:
        """So many numbers from low to high."""
        values = self._list(name, self._value(name))
        if len(values) != count:
            self._refuse(name, f"{count} numbers")
        return [self._number(name, value, low, high) for value in values]

    def total(self) -> float:
        """The estimated number of rows."""
        return self.number("total", 1.0, MOST_ROWS)

    def names(self, name: str, domain: Domain) -> Marginal:
        """Attributes of the domain, none of them twice."""
        return self._names(name, self._value(name), domain)

    def marginals(self, name: str, domain: Domain) -> list[Marginal]:
        """Sets of attributes of the domain, none of them empty, each in domain order."""
        found = [self._names(name, entry, domain) for entry in self._list(name, self._value(name))]
        for marginal in found:
            if not marginal or domain.marginal(marginal) != marginal:
                self._refuse(name, "attributes in the order of the schema")
        return found

    def lists_of_names(self, name: str, domain: Domain) -> list[Marginal]:
        """Lists of attributes of the domain in any order, none of them empty, none twice in one."""
        found = [self._names(name, entry, domain) for entry in self._list(name, self._value(name))]
        if not all(found):
            self._refuse(name, "lists of attributes")
        return found

    def texts(self, name: str) -> list[str]:
        """Texts, none of them twice."""
        found = self._list(name, self._value(name))
        if not all(isinstance(each, str) for each in found) or len(set(found)) != len(found):
            self._refuse(name, "distinct texts")
        return list(found)

    # ------------------------------------------------------------ arrays

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._arrays

    def floats(self, name: str, shape: Shape, low: float, high: float, *, zeros: bool = False) -> Counts:
        """Real numbers from low to high; with `zeros` also −∞, the logarithm of nothing."""
        array = self._array(name, shape, np.float64)
        inside = (array >= low) & (array <= high)
        if zeros:
            inside |= array == -np.inf
        if not inside.all():
            self._refuse(name, f"numbers from {low:g} to {high:g}")
        return array

    def integers(self, name: str, shape: Shape, low: int, high: int, *types: npt.DTypeLike) -> npt.NDArray[Any]:
        """Whole numbers from low to high, of one of the types (int64 where none is named)."""
        array = self._array(name, shape, *(types or (np.int64,)))
        if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
            self._refuse(name, f"whole numbers from {low} to {high}")
        return array

    def weights(self, name: str, shape: Shape) -> Counts:
        """Weights of cells: none below 0, and not all of them 0."""
        weights = self.floats(name, shape, 0.0, LARGEST)
        if not weights.sum() > LEAST_MASS:
            self._refuse(name, "weights that are not all 0")
        return weights

    def shares(self, name: str, domain: Domain, marginal: Marginal) -> Counts:
        """A distribution over the cells of a marginal, shaped by its attributes."""
        shares = self.floats(name, self.shape(domain, marginal), 0.0, 2.0)
        if not abs(float(shares.sum()) - 1.0) <= NEAR:
            self._refuse(name, "shares that add up to 1")
        return shares

    def shape(self, domain: Domain, marginal: Marginal) -> tuple[int, ...]:
        """The shape of a table over the marginal."""
        if len(marginal) > MOST_AXES:
            raise ReleaseError("model-axes", f"the model has a table over more than {MOST_AXES} attributes.")
        return domain.shape(marginal)

    # ------------------------------------------------------------ models inside

    def held(self, name: str = HELD, kind: str | None = None) -> Stored:
        """The state of a model inside this one; of a known kind where only its values were written."""
        about, prefix = self._value(name), f"{name}."
        if kind is None:
            if not isinstance(about, dict) or about.keys() != {"kind", "values"}:
                self._refuse(name, "a model's kind and values")
            kind, about = about["kind"], about["values"]
        arrays = {key: self._arrays.pop(key) for key in list(self._arrays) if key.startswith(prefix)}
        inside = {key.removeprefix(prefix): array for key, array in arrays.items()}
        return Stored(State(kind, about, inside), self.allowance, self._depth + 1)

    @property
    def is_held(self) -> bool:
        """Whether the state is that of a model inside another one."""
        return self._depth > 0

    def take(self, *, memory: int = 0, steps: int = 0, rows: int = 0, python: int = 0) -> None:
        """What the model takes beside its rows, what reading it takes, and the steps that each row takes.

        Called before anything is made, with whole numbers of any size; `python` counts steps of the interpreter.
        """
        self.allowance.take(memory=memory, steps=steps + rows * BLOCK_ROWS + python * PYTHON_STEPS)

    def finish(self) -> None:
        """Refuses a state that holds more than was asked for."""
        left = [*self._values, *self._arrays]
        if left:
            raise ReleaseError(
                "model-strange-entries",
                f'the "{self.kind}" model holds {len(left)} entries that such a model does not have.',
            )

    # ------------------------------------------------------------ inside

    def _value(self, name: str) -> Any:
        if name not in self._values:
            self._refuse(name, "there")
        return self._values.pop(name)

    def _number(self, name: str, value: Any, low: float, high: float) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            self._refuse(name, f"a number from {low:g} to {high:g}")
        return float(value)

    def _list(self, name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list):
            self._refuse(name, "a list")
        return value

    def _names(self, name: str, value: Any, domain: Domain) -> Marginal:
        names = self._list(name, value)
        known: Iterable[Any] = (each for each in names if isinstance(each, str) and each in domain)
        if len(set(known)) != len(names):
            self._refuse(name, "distinct attributes of the schema")
        return tuple(names)

    def _array(self, name: str, shape: Shape, *types: npt.DTypeLike) -> npt.NDArray[Any]:
        if name not in self._arrays:
            self._refuse(name, "there")
        array = self._arrays.pop(name)
        if not isinstance(array, np.ndarray) or array.dtype not in [np.dtype(each) for each in types]:
            self._refuse(name, f"of type {' or '.join(str(np.dtype(each)) for each in types)}")
        fits = array.ndim == len(shape) and all(
            wanted is None or wanted == found for wanted, found in zip(shape, array.shape, strict=True)
        )
        if not fits or not array.size:
            self._refuse(name, "of the shape that the model asks for")
        return np.ascontiguousarray(array)

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        raise ReleaseError(
            "model-entry", f'the "{self.kind}" model of the release is damaged: its "{name}" is not {wanted}.'
        )
