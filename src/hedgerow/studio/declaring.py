"""The schema as the steward is writing it: a document that may still hold TODO, column by column.

What a declaration means, and what is wrong with it, the schema itself says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hedgerow.errors import OptionError, SchemaError, listing
from hedgerow.schema.document import Block, Flow, read_yaml, write_yaml
from hedgerow.schema.schema import TODO, Schema

if TYPE_CHECKING:
    from hedgerow.studio.app import Form
    from hedgerow.studio.project import Project

IGNORED = "left out"
WHOLE = ("min", "max", "bins", "size", "decimals", "max_rows_per_person", "max_per_parent")
TRUTHS = {"true": True, "false": False}
KINDS = {
    "category": "listed values",
    "integer": "whole numbers",
    "number": "numbers with a fraction",
    "boolean": "yes or no",
    "date": "days",
    "datetime": "moments",
    "code": "codes 0, 1, 2, …",
    "id": "never read: fresh keys",
    "text": "never read: blank, or the same words",
    "fake": "never read: invented names, mail, telephones",
    IGNORED: "not in the synthetic table",
}
_BOUNDED = ("integer", "number", "date", "datetime")


class Field(NamedTuple):
    """A key of one text: what is asked, which types have it, and what it does."""

    asked: str
    kinds: tuple[str, ...]
    hint: str
    suggested: tuple[tuple[str, str], ...] = ()
    """What is often typed, and what it means."""


FIELDS = {
    "min": Field(
        "Smallest",
        _BOUNDED,
        "What lies below is moved up to it, or to the place for all else.",
    ),
    "max": Field(
        "Largest",
        _BOUNDED,
        "What lies above is moved down to it, or to the place for all else.",
    ),
    "decimals": Field("Digits after the point", ("number",), "Further digits are rounded."),
    "bins": Field(
        "Bins of equal width", ("integer", "number"), "Leave it empty: cuts are then found with noise, where rows are."
    ),
    "step": Field(
        "Step",
        ("date", "datetime"),
        "day, week, month, quarter or year; of moments also second, minute, hour.",
        tuple((step, "") for step in ("day", "week", "month", "quarter", "year", "second", "minute", "hour")),
    ),
    "format": Field(
        "Format",
        ("date", "datetime"),
        "For example %d.%m.%Y or DD.MM.YYYY, where the file has no 2026-03-31.",
        (
            ("%d.%m.%Y", "31.03.2026"),
            ("%d/%m/%Y", "31/03/2026"),
            ("%m/%d/%Y", "03/31/2026"),
            ("%Y%m%d", "20260331"),
            ("%d.%m.%Y %H:%M", "31.03.2026 23:59"),
        ),
    ),
    "size": Field("How many codes", ("code",), "Codes are 0, 1, 2 and so on, to one less than this."),
    "pattern": Field("Pattern", ("id",), "What fresh keys look like, for example C-######; empty for random ones."),
    "constant": Field("The same words in every row", ("text",), "Empty for a blank column."),
    "what": Field("What is invented", ("fake",), "For example name or email."),
    "locale": Field("Language and land", ("fake",), "For example de_DE."),
}
NEEDS_YOU = "needs you"
_DAY = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})((?:[ T]\d{2}:\d{2}(?::\d{2})?)?)")
_PARTS = {"yyyy": "%Y", "dd": "%d", "hh": "%H", "ss": "%S"}
_PART = re.compile("(?i)yyyy|dd|hh|ss|mm")
_GROUPED = re.compile("([+-]?\\d{1,3})((?:([.,' \u00a0\u202f])\\d{3})(?:\\3\\d{3})*)([.,]\\d+)?")
_COMMA = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")


class Place(NamedTuple):
    """Where a column is declared: in the schema itself, or in one of its linked tables."""

    table: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.table is None else f"{self.table}.{self.name}"


class Document:
    """A schema file as plain values."""

    def __init__(self, data: dict[str, Any]):
        self.data = data

    @classmethod
    def read(cls, project: Project) -> Document:
        try:
            text = project.schema.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise OptionError(
                "no-such-schema", "there is no schema yet. Hint: begin with the step Table, which writes one."
            ) from None
        return cls.parse(text, project.schema.name)

    @classmethod
    def parse(cls, text: str, name: str) -> Document:
        data, _ = read_yaml(text, name)
        parts = data.get("tables") if isinstance(data, dict) else None
        held = list(parts.values()) if isinstance(parts, dict) else [data]
        if not all(isinstance(each, dict) and isinstance(each.get("columns"), dict) for each in held):
            raise SchemaError("not-a-schema", f"{name}: a schema has `columns`, or `tables` that have them.")
        return cls(data)

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """The linked tables, where there are any."""
        found: dict[str, dict[str, Any]] = self.data.get("tables", {})
        return found

    @property
    def linked(self) -> bool:
        return bool(self.tables)

    def places(self, header: Sequence[str] = ()) -> list[Place]:
        """All columns that are declared or left out, in the order of the header."""
        found = [Place(table, name) for table, part in self._parts() for name in (*part["columns"], *_ignored(part))]
        order = {name: number for number, name in enumerate(header)}
        return sorted(found, key=lambda place: order.get(str(place), len(order))) if order else found

    def declared(self, place: Place) -> dict[str, Any]:
        """What is said of a column so far; {"type": IGNORED} where it is left out."""
        part = self._part(place.table)
        if place.name in _ignored(part):
            return {"type": IGNORED}
        found = part["columns"][place.name]
        return dict(found) if isinstance(found, Mapping) else {"type": found}

    def declare(self, place: Place, declaration: Mapping[str, Any]) -> None:
        part = self._part(place.table)
        kept = [name for name in _ignored(part) if name != place.name]
        if declaration.get("type") == IGNORED:
            part["columns"].pop(place.name, None)
            kept.append(place.name)
        else:
            part["columns"][place.name] = dict(declaration)
        part.pop("ignore", None)
        if kept:
            part["ignore"] = kept

    def fault(self, place: Place) -> str | None:
        """What is wrong with a declaration, in words; the schema's own."""
        declaration = self.declared(place)
        if declaration == {"type": IGNORED}:
            return None
        if is_open(declaration):
            return NEEDS_YOU
        lists = {"codelists": self.data["codelists"]} if "codelists" in self.data else {}
        beside = {"beside it": {"type": "boolean"}}  # a table needs a column that is learnt
        try:
            Schema.from_dict({"columns": {place.name: declaration, **beside}, **lists})
        except SchemaError as problem:
            said = str(problem).replace(f"columns.{place.name}.", "").replace(f"columns.{place.name}: ", "")
            key, mark, after = said.partition(": ")
            return f"{FIELDS[key].asked}{mark}{after}" if key in FIELDS else said
        return None

    def set_person(self, person: str, most: str) -> None:
        """Who a person is, which is then no column; who was one becomes a column again, to be declared."""
        before = self.data.pop("person", None)
        self.data.pop("max_rows_per_person", None)
        if before is not None and before != person:
            self.data["columns"].setdefault(before, TODO)
        if person:
            self.data["columns"].pop(person, None)
            if person in _ignored(self.data):
                self.data["ignore"] = [name for name in self.data["ignore"] if name != person]
            self.data["person"] = person
            self.data["max_rows_per_person"] = most or "1"

    def set_link(self, table: str, given: Mapping[str, str]) -> None:
        """How a linked table hangs on another; its key and its link are no columns of it."""
        part = self.tables[table]
        for key, value in given.items():
            before = part.pop(key, None)
            if key in ("key", "link") and before and before != value:
                part["columns"].setdefault(before, TODO)
            if value:
                part[key] = value
        for key in ("key", "link"):
            part["columns"].pop(part.get(key), None)

    @property
    def text(self) -> str:
        """The file, a line for each column."""
        data = {key: _flow(key, value) for key, value in _typed(self.data).items()}
        for part in data.get("tables", {}).values():
            part["columns"] = _lines(part["columns"])
        if "columns" in data:
            data["columns"] = _lines(data["columns"])
        order = sorted(data, key=lambda key: key in ("columns", "tables", "groups", "derive", "rules", "totals"))
        return write_yaml({key: data[key] for key in order}, width=1 << 30)

    def _parts(self) -> Iterator[tuple[str | None, dict[str, Any]]]:
        if self.linked:
            yield from self.tables.items()
        else:
            yield None, self.data

    def _part(self, table: str | None) -> dict[str, Any]:
        return self.data if table is None else self.tables[table]


def skeleton(dataset: str, headers: Mapping[str, Sequence[str]]) -> Document:
    """Linked tables of which nothing but their headers is known."""
    tables = {name: {"columns": dict.fromkeys(header, TODO)} for name, header in headers.items()}
    return Document({"dataset": dataset, "tables": tables})


def is_open(declaration: Mapping[str, Any]) -> bool:
    """Whether a person must still decide something."""
    return TODO in declaration.values()


def in_words(declaration: Mapping[str, Any]) -> str:
    """A declaration in a few words."""
    kind = str(declaration.get("type", "category"))
    if kind == TODO:
        return ""
    said = [kind]
    if isinstance(declaration.get("values"), list):
        held = (f"“{value}”" if "," in str(value) else str(value) for value in declaration["values"])
        said.append(listing(held, 5))
    elif declaration.get("values") == "private":
        said.append("found with noise")
    elif "values" in declaration:
        said.append(f"values: {declaration['values']}")
    if "min" in declaration or "max" in declaration:
        said.append(" to ".join(_figure(declaration.get(bound, TODO)) for bound in ("min", "max")))
    said += [
        f"{key}: {declaration[key]}" for key in ("decimals", "codelist", "size", "bins", "step") if key in declaration
    ]
    said += [f"written {declaration['format']}"] if "format" in declaration else []
    said += [
        told
        for key, told in (("missing", "or no value"), ("other", "or anything else"))
        if declaration.get(key) not in (None, False, "false")
    ]
    return ", ".join(said)


def _figure(bound: Any) -> str:
    text = str(bound)
    if text == TODO:
        return "…"
    return f"{int(text):,}" if len(text) > 4 and text.isdecimal() else text


def typed(form: Form, before: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration that a form holds; what no field of it speaks of stays while the type stays."""
    kind = form["type"]
    if kind not in KINDS:
        raise OptionError("no-such-type", "choose what the column holds. Nothing was saved.")
    if kind == IGNORED:
        return {"type": IGNORED}
    found: dict[str, Any] = {"type": kind}
    if kind == "category":
        if form["private"]:
            found["values"] = "private"
        elif form.lines("values"):
            found["values"] = one_each(form.lines("values"))
        elif "codelist" not in before:
            found["values"] = TODO
        if form["ordered"]:
            found["ordered"] = "true"
    found |= {key: _spelled(key, kind, form[key]) for key, field in FIELDS.items() if form[key] and kind in field.kinds}
    needed = {"integer": ("min", "max"), "number": ("min", "max"), "date": ("min", "max"), "datetime": ("min", "max")}
    found |= {key: TODO for key in (*needed.get(kind, ()), *(("size",) if kind == "code" else ())) if key not in found}
    if kind not in ("id", "text", "fake"):
        marks = [line.partition("=") for line in form.lines("marks")]
        if marks:
            found["missing"] = {mark.strip(): meaning.strip() or mark.strip() for mark, _, meaning in marks}
        elif form["missing"]:
            found["missing"] = "true"
        if form["other"]:
            found["other"] = "true"
    spoken = {"type", "values", "ordered", "missing", "other", *FIELDS}
    if before.get("type", "category") == kind:
        found |= {key: value for key, value in before.items() if key not in spoken}
    return found


def _spelled(key: str, kind: str, text: str) -> str:
    """What a schema understands of a number or a format as people write them."""
    if key == "format" and "%" not in text:
        return time_format(text)
    if key in ("min", "max") and kind in ("date", "datetime"):
        return plain_day(text)
    return plain_number(text) if key in ("min", "max") and kind in ("integer", "number") else text


def one_each(lines: list[str]) -> list[str]:
    """Values on lines of their own; those on a single line are told apart by its semicolons or commas."""
    sign = next((sign for sign in ";," if sign in lines[0]), None) if len(lines) == 1 else None
    return lines if sign is None else list(dict.fromkeys(part.strip() for part in lines[0].split(sign) if part.strip()))


def plain_day(text: str) -> str:
    """`31.03.2026`, with a time behind it or not, as 2026-03-31; slashes could mean days or months first."""
    found = _DAY.fullmatch(text)
    return text if found is None else f"{found[3]}-{int(found[2]):02}-{int(found[1]):02}{found[4]}"


def time_format(text: str) -> str:
    """`DD.MM.YYYY` as `%d.%m.%Y`; MM next to hours are minutes."""

    def meant(part: re.Match[str]) -> str:
        minutes = text[: part.start()].lower()[-3:-1] == "hh"
        return _PARTS.get(part[0].lower()) or ("%M" if minutes else "%m")

    return _PART.sub(meant, text)


def plain_number(text: str) -> str:
    """`250,5`, `1.000.000` and `1 000,50` as they are meant; what could mean two things stays as it is."""
    found = _GROUPED.fullmatch(text)
    if found is None:
        return text.replace(",", ".") if _COMMA.fullmatch(text) else text
    first, groups, sign, fraction = found[1], found[2], found[3], found[4] or ""
    if fraction.startswith(sign) or (sign in ".," and not fraction and groups.count(sign) == 1):
        return text
    return first + groups.replace(sign, "") + fraction.replace(",", ".")


def _ignored(part: Mapping[str, Any]) -> list[str]:
    found = part.get("ignore", [])
    return list(found) if isinstance(found, list) else []


def _lines(columns: Mapping[str, Any]) -> Block:
    return Block({name: Flow(each) if isinstance(each, Mapping) else each for name, each in columns.items()})


def _flow(key: str, value: Any) -> Any:
    if key in ("file", "accept", "weight"):
        return Flow(value)
    if key in ("groups", "rules", "totals"):
        return [Flow(each) if isinstance(each, Mapping) else each for each in value]
    return value


def _typed(value: Any, key: str = "") -> Any:
    """Text that is a number or a truth where one is meant, so that it is written without quotes."""
    if isinstance(value, Mapping):
        return {name: _typed(each, str(name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    if key in WHOLE and isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value) if str(int(value)) == value else value
    if key in ("missing", "other", "ordered"):
        return TRUTHS.get(value, value)
    return value
