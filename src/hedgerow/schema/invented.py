"""Columns that are never read: identifiers, free text, names. What stands in them is invented, or they are left out.

They are no part of the coded domain, so nothing counts them, no model learns them, and what comes back says nothing of
anybody. Block b of a draw invents the same values under the same seed, whoever draws it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from hedgerow.errors import Fault, SchemaError
from hedgerow.schema.explain import key_error, schema_error
from hedgerow.schema.reading import Text, as_text

LONGEST = 200
"""Letters of a pattern or a constant: it stands in every row."""
POOL = 10_000
"""Different fakes in a block of rows at most; further rows repeat them."""
_LOCALE = re.compile(r"[a-z]{2,3}_[A-Z]{2}")
_RUN = re.compile("#+")


def _as_short(value: Any) -> str:
    text = as_text(value)
    if len(text) > LONGEST:
        raise Fault("text-too-long", f"must have at most {LONGEST} letters")
    return text


def _as_pattern(value: Any) -> str:
    text = _as_short(value)
    runs = _RUN.findall(text)
    if len(runs) != 1 or len(runs[0]) > 15:
        raise Fault("bad-pattern", 'must hold one run of # for the number, at most 15, such as "C-######"')
    return text


def _as_locale(value: Any) -> str:
    text = as_text(value)
    if not _LOCALE.fullmatch(text):
        raise Fault("unknown-locale", f'must be a language and a country such as de_DE, got "{text}"')
    return text


class Invented(BaseModel, ABC):
    """A column of the output that no private value goes into."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Text | None = None

    @property
    def comes_back(self) -> bool:
        """Whether the output has the column."""
        return True

    @property
    @abstractmethod
    def fate(self) -> str:
        """What stands in the column, in words."""

    @abstractmethod
    def values(self, rows: int, first: int, rng: np.random.Generator) -> pa.Array:
        """Texts for some rows of a table, the first of which has the number `first` in all of it."""

    def refuse_unready(self, name: str) -> None:
        """Raises where values could not be made here, so that it shows before anything is spent."""


class Id(Invented):
    """Fresh keys: random UUIDs, or the number of the row in a pattern."""

    type: Literal["id"] = "id"
    pattern: Annotated[str, BeforeValidator(_as_pattern)] | None = None

    @property
    def fate(self) -> str:
        return "fresh keys"

    def values(self, rows: int, first: int, rng: np.random.Generator) -> pa.Array:
        if self.pattern is None:
            return _uuids(rows, rng)
        before, run, after = re.split("(#+)", self.pattern)
        numbers = pc.cast(pa.array(np.arange(first + 1, first + 1 + rows)), pa.string())
        return pc.binary_join_element_wise(before, pc.ascii_lpad(numbers, len(run), "0"), after, "")


class FreeText(Invented):
    """Free text: left out, or the same words in every row."""

    type: Literal["text"] = "text"
    constant: Annotated[str, BeforeValidator(_as_short)] | None = None

    @property
    def comes_back(self) -> bool:
        return self.constant is not None

    @property
    def fate(self) -> str:
        return "left out" if self.constant is None else "the same words in every row"

    def values(self, rows: int, first: int, rng: np.random.Generator) -> pa.Array:
        return pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int8), pa.array([self.constant]))


class Fake(Invented):
    """Names, addresses and numbers that Faker invents: mail at example.com, telephones that films use (555-01…)."""

    type: Literal["fake"] = "fake"
    what: Literal["name", "first_name", "last_name", "email", "phone", "address", "city", "company"]
    locale: Annotated[str, BeforeValidator(_as_locale)] = "en_US"

    @property
    def fate(self) -> str:
        return f"invented ({self.what.replace('_', ' ')})"

    def values(self, rows: int, first: int, rng: np.random.Generator) -> pa.Array:
        faker = self._faker("")
        faker.seed_instance(int(rng.integers(1 << 62)))
        make = {
            "email": faker.safe_email,
            "phone": lambda: faker.numerify("(%##) 555-01##"),
            "address": lambda: " ".join(faker.address().split()),
        }.get(self.what) or getattr(faker, self.what)
        pool = min(rows, POOL)
        chosen = np.arange(rows) if rows == pool else rng.integers(pool, size=rows)
        made = pa.array([make() for _ in range(pool)], pa.string())
        return pa.DictionaryArray.from_arrays(chosen.astype(np.int32), made)

    def refuse_unready(self, name: str) -> None:
        self._faker(name)

    def _faker(self, name: str) -> Any:
        path = ("columns", name) if name else ("columns",)
        try:
            from faker import Faker
            from faker.config import AVAILABLE_LOCALES
        except ImportError:
            raise key_error(
                "missing-package", path, "type: fake needs Faker. Hint: pip install 'hedgerow[fake]'."
            ) from None
        if self.locale not in AVAILABLE_LOCALES:
            raise key_error("unknown-locale", (*path, "locale"), f'Faker knows no "{self.locale}".')
        return Faker(self.locale)


INVENTED: dict[str, type[Invented]] = {"id": Id, "text": FreeText, "fake": Fake}


def split(columns: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[str, Invented]]:
    """The declarations of columns that are learnt, and the columns that are invented."""
    learnt: dict[Any, Any] = {}
    invented: dict[str, Invented] = {}
    for name, declaration in columns.items():
        kind = declaration.get("type") if isinstance(declaration, Mapping) else None
        if isinstance(declaration, Invented):
            invented[_named(name)] = declaration
        elif isinstance(kind, str) and kind in INVENTED:
            try:
                invented[_named(name)] = INVENTED[kind].model_validate(declaration)
            except ValidationError as problem:
                raise schema_error(problem, {}, INVENTED[kind], ("columns", str(name))) from None
        else:
            learnt[name] = declaration
    return learnt, invented


def _named(name: Any) -> str:
    try:
        return as_text(name)
    except ValueError as problem:
        raise SchemaError("not-text", f"columns: a name {problem}.") from None


def plain_invented(column: Invented) -> dict[str, Any]:
    """The keys that differ from their defaults, the kind first, as JSON holds them."""
    fields = type(column).model_fields
    said = {name: getattr(column, name) for name in fields if name not in ("type", "source")}
    kept = {name: value for name, value in said.items() if fields[name].is_required() or value != fields[name].default}
    return {"type": column.type, **kept, **({"source": column.source} if column.source is not None else {})}  # type: ignore[attr-defined]


def _uuids(rows: int, rng: np.random.Generator) -> pa.Array:
    """Version 4 of RFC 9562: random but for six bits that say so."""
    drawn = rng.integers(0, 256, size=(rows, 16), dtype=np.uint8)
    drawn[:, 6] = drawn[:, 6] & 0x0F | 0x40
    drawn[:, 8] = drawn[:, 8] & 0x3F | 0x80
    letters = np.frombuffer(drawn.tobytes().hex().encode(), dtype=np.uint8).reshape(rows, 32)
    spelled = np.full((rows, 36), ord("-"), dtype=np.uint8)
    for begin, end, shift in ((0, 8, 0), (8, 12, 1), (12, 16, 2), (16, 20, 3), (20, 32, 4)):
        spelled[:, begin + shift : end + shift] = letters[:, begin:end]
    offsets = np.arange(0, 36 * rows + 1, 36, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(spelled)])
