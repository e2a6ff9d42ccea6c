"""Tables that are linked: which row belongs to which, and the one wide table of columns that a run is about.

Under `tables` each table has its columns, and each but one, the root, a parent that its rows link to. For a run they
are columns of one schema, each named TABLE.COLUMN, with some that nobody wrote down:

| column                  | of a row of TABLE                                                     |
|-------------------------|-----------------------------------------------------------------------|
| TABLE.rows(CHILD)       | how many rows of CHILD link to it                                     |
| TABLE.start(CHILD)      | what `order` is in the first of them; null where there is none       |
| TABLE.left()            | how many rows of the same parent come after it                        |
| TABLE.step()            | how many steps its `order` lies after that of the row before it; first: null |
| TABLE.before(COLUMN)    | what COLUMN was in the row before it; first: null                     |

Beside them a first look counts units of which rows are left out: TABLE.orphans(), TABLE.duplicates(), TABLE.beyond().

Steps are whole numbers, days, or where moments are not cut what `step` says. The time of the day, where it is cut, does
not follow from them: it is drawn like any other attribute, and a start is a day then.

One table whose persons are kept (`keep: person`) is two that are linked, `person` and `row`: what is the same in all
rows of a person, and the rest. It is read as one table and comes back as one.

A question is about the columns of one table, and of those above it: about its *view*. In every view the rows of one
unit (a key of the root and all that hangs on it) weigh `parts` together at most, so that is what one unit moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from hedgerow.coded.domain import Marginal
from hedgerow.errors import listing, suggestion
from hedgerow.schema.calendar import TIME, Date, Datetime
from hedgerow.schema.explain import key_error, schema_error
from hedgerow.schema.numeric import Integer
from hedgerow.schema.reading import Text, Whole, as_text

if TYPE_CHECKING:
    from hedgerow.schema.schema import Schema

LEAST_PARTS = 2520
"""Of a unit, at least: shares of up to ten rows are whole."""
PARTS_A_ROW = 16
"""Of the unit with most rows: rounding down then loses at most a sixteenth."""
MOST_ROWS = 1 << 20
"""Rows of a table that may hang on one unit."""
OWN_KEYS = ("key", "parent", "link", "order", "max_per_parent", "ignore")
BESIDE = ("dataset", "file", "max_misfits", "codelists", "rules")
"""What a schema of linked tables may say beside them."""
KEPT_KEYS = ("keep", "person", "max_rows_per_person", "person_columns", "order", "ignore", "columns")
PERSON, ROW = "person", "row"
"""The two tables of one whose persons are kept."""


class Link(BaseModel):
    """How a table hangs together with others; the root has neither parent nor link."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Text | None = None
    parent: Text | None = None
    link: Text | None = None
    order: Text | None = None
    max_per_parent: Whole = 0
    ignore: tuple[Text, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The keys that say something, as JSON holds them."""
        given = self.model_dump(exclude_defaults=True)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


def flattened(data: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with columns under `tables` as one of columns that are named TABLE.COLUMN."""
    tables = data["tables"]
    if not isinstance(tables, Mapping) or not tables:
        raise key_error("bad-tables", ("tables",), "must be a mapping from each table to its key, links and columns.")
    _refuse_beside(data, ("tables",), "`tables`")
    columns: dict[str, Any] = {}
    links: dict[str, Any] = {}
    for name, table in tables.items():
        path = ("tables", name)
        if not isinstance(table, Mapping) or not isinstance(table.get("columns"), Mapping) or not table["columns"]:
            raise key_error("table-without-columns", path, "needs `columns`, a mapping from names to declarations.")
        if "." in as_text(name) or not as_text(name):
            raise key_error("bad-table-name", path, "the name of a table holds no point.")
        strange = [key for key in table if key not in (*OWN_KEYS, "columns")]
        if strange:
            known = [*OWN_KEYS, "columns"]
            raise key_error(
                "unknown-key",
                (*path, strange[0]),
                f'unknown key "{strange[0]}"; keys: {listing(known)}.{suggestion(str(strange[0]), known)}',
            )
        for key in ("parent", "link"):
            if isinstance(table.get(key), list | tuple | Mapping):
                raise key_error(
                    "second-link",
                    (*path, key),
                    "a table has one parent and one link to it: with two, two units would own its rows.",
                )
        links[as_text(name)] = {key: table[key] for key in OWN_KEYS if key in table}
        columns |= {f"{name}.{column}": declared for column, declared in table["columns"].items()}
    return {**data, "tables": links, "columns": columns}


def two_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of one table whose persons are kept, as one of two that are linked: persons, and their rows."""
    if data["keep"] != "person":
        raise key_error("bad-keep", ("keep",), f'"{data["keep"]}" cannot be kept; what can be is `person`.')
    _refuse_beside(data, KEPT_KEYS, "`keep: person`")
    columns, fixed = data.get("columns"), data.get("person_columns", [])
    if not isinstance(columns, Mapping) or not columns:
        raise key_error("no-columns", ("columns",), "must be a mapping from names to declarations.")
    if data.get("person") is None:
        raise key_error("keep-without-person", ("keep",), "needs `person`, the column that names a person.")
    if not isinstance(fixed, list | tuple):
        raise key_error("bad-person-columns", ("person_columns",), "must be a list of columns.")
    names, fixed, order = [as_text(name) for name in columns], [as_text(name) for name in fixed], data.get("order")
    for number, name in enumerate(fixed):
        if name not in names:
            raise key_error(
                "unknown-column", ("person_columns", number), f'"{name}" is not a column.{suggestion(name, names)}'
            )
    if set(names) <= set(fixed):
        raise key_error(
            "all-person-columns", ("person_columns",), "a column is needed that may differ from row to row of a person."
        )
    if as_text(data["person"]) in names:
        raise key_error(
            "person-is-a-column",
            ("person",),
            "it names a person and comes back as a new number, so it is not one of the columns.",
        )
    if order is not None and as_text(order) not in set(names) - set(fixed):
        raise key_error(
            "bad-order", ("order",), f'"{order}" must be a column that may differ from row to row of a person.'
        )
    rows = {"parent": PERSON, "link": data["person"], "order": order, "ignore": data.get("ignore")}
    rows["max_per_parent"] = data.get("max_rows_per_person", 1)
    return {
        **{key: value for key, value in data.items() if key in (*BESIDE, "keep")},
        "tables": {
            PERSON: {"key": data["person"]},
            ROW: {key: value for key, value in rows.items() if value is not None},
        },
        "columns": {
            f"{PERSON if as_text(name) in fixed else ROW}.{name}": declared for name, declared in columns.items()
        },
    }


def _refuse_beside(data: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    beside = [key for key in data if key not in (*BESIDE, *known)]
    if beside:
        raise key_error(
            "not-with-tables", (beside[0],), f"`{beside[0]}` cannot be used with {what} yet. Hint: leave it out."
        )


def declared_links(data: Mapping[str, Any]) -> dict[str, Any]:
    """The links, checked, and who a person is by them: what `Schema` holds beside the columns."""
    links = {}
    for name, declared in data["tables"].items():
        try:
            links[as_text(name)] = declared if isinstance(declared, Link) else Link(**declared)
        except (ValidationError, TypeError) as error:
            if isinstance(error, TypeError):
                raise key_error("bad-tables", ("tables", name), "must be a mapping.") from None
            raise schema_error(error, {}, Link, ("tables", name)) from None
    found = Tables(links, data.get("keep") is not None)
    return {"tables": links, "person": found.unit, "max_rows_per_person": found.parts}


def generated(schema: Schema) -> dict[str, Any]:
    """Declarations of the columns that nobody wrote down, as far as the schema lacks them; checks those it has."""
    tables = schema.linked
    if tables is None:
        return {}
    for name in tables.names:
        _check_columns(schema, tables, name)
    added: dict[str, Any] = {}
    for name in tables.names:
        for child in tables.children(name):
            most = tables.links[child].max_per_parent
            added[rows_of(name, child)] = {"type": "integer", "min": int(tables.kept), "max": most}
        if name == tables.root:
            continue
        added[left_of(name)] = {"type": "integer", "min": 0, "max": tables.links[name].max_per_parent - 1}
        if tables.links[name].order is not None:
            added[step_of(name)] = {"type": "integer", "min": 0, "max": _span(schema, name), "missing": True}
    return {name: declared for name, declared in added.items() if name not in schema.columns}


def histories(schema: Schema) -> dict[str, Any]:
    """Declarations of what the row before holds, of every column of a table whose rows have one before them, and of
    where orders begin. They are cut as the columns are that they repeat.
    """
    tables = schema.linked
    if tables is None:
        return {}
    data, found = schema.to_dict()["columns"], {}
    for column in schema.columns:
        table, _, own = column.partition(".")
        if table == tables.root or column in schema.generated:
            continue
        missing = data[column].get("missing", False)
        none = {**missing, "": missing.get("", "missing")} if isinstance(missing, Mapping) else True
        name = start_of(tables.parent(table), table) if own == tables.links[table].order else before(column)
        found[name] = {key: value for key, value in data[column].items() if key != "discovered"}
        found[name]["missing"] = none
        if name != before(column) and time_of(schema.columns, column) is not None:
            ends = {key: str(found[name][key])[: len("2020-01-01")] for key in ("min", "max")}
            found[name] |= {"type": "date", "step": "day", **ends}
            for key in ("times", "endings"):
                found[name].pop(key, None)
    return {name: declared for name, declared in found.items() if name not in schema.columns}


def _check_columns(schema: Schema, tables: Tables, name: str) -> None:
    link = tables.links[name]
    own = [column.partition(".")[2] for column in schema.columns if column.partition(".")[0] == name]
    for each in tables.ids(name):
        if each in own:
            raise key_error(
                "id-is-a-column", ("tables", name), f'"{each}" names rows, so it is not one of the columns.'
            )
    for column in own:
        if f"{name}.{column}" not in schema.generated and schema.columns[f"{name}.{column}"].discovery == "values":
            raise key_error(
                "open-category-with-tables",
                ("tables", name, "columns", column),
                "`values: private` cannot be used with `tables` yet. Hint: list the values, with `other: true`.",
            )
    if link.order is not None and not isinstance(schema.columns.get(f"{name}.{link.order}"), Integer | Date | Datetime):
        raise key_error(
            "bad-order",
            ("tables", name, "order"),
            f'"{link.order}" must be one of the columns of "{name}", a date, a datetime or an integer.',
        )


def _span(schema: Schema, name: str) -> int:
    """The longest step that there can be."""
    column = schema.columns[f"{name}.{schema.tables[name].order}"]
    assert isinstance(column, Integer | Date | Datetime)
    if isinstance(column, Integer):
        return int(column.max - column.min)
    if isinstance(column, Date):
        return int((column.max - column.min).days)
    return int((column.max - column.min).total_seconds()) // pace_of(column) + 1


def pace_of(column: object) -> int:
    """How much a step is, in the numbers of the column that orders rows."""
    return column.pace if isinstance(column, Datetime) else 1


def time_of(columns: Mapping[str, object], name: str) -> str | None:
    """The attribute of a column that says which time of the day it was, where that is one of its own."""
    column = columns[name]
    return f"{name}{TIME}" if isinstance(column, Datetime) and column.has_times else None


class Misfit(NamedTuple):
    """Units of which some rows are left out: which ones, what became of the rows, and whether it is a mistake."""

    what: str
    fate: str
    mistaken: bool = True


class Tables:
    """The tables of a schema, the root first and every table after its parent.

    `kept`: they are one table whose persons are kept, so every unit has a row of the child, and none is an orphan.
    """

    def __init__(self, links: Mapping[str, Link], kept: bool = False):
        self.links, self.kept = dict(links), kept
        roots = [name for name, link in links.items() if link.parent is None]
        for name, link in links.items():
            self._check(name, link)
        if kept and (set(links) != {PERSON, ROW} or roots != [PERSON]):
            raise key_error("bad-keep", ("keep",), "`tables` are linked; persons are kept of one table alone.")
        if len(roots) != 1:
            said = listing(roots) if roots else "none has none, so links go round in a circle"
            raise key_error("no-root", ("tables",), f"one table, the root, has no parent; here: {said}.")
        self.root = roots[0]
        self.names = tuple(self._after(self.root))
        lost = [name for name in links if name not in self.names]
        if lost:
            raise key_error(
                "cyclic-links", ("tables", lost[0], "parent"), f'from "{lost[0]}" no parent leads to "{self.root}".'
            )
        self.most_rows = {self.root: 1}
        """Rows of each table that one unit can have."""
        for name in self.names[1:]:
            self.most_rows[name] = self.most_rows[self.parent(name)] * self.links[name].max_per_parent
            if self.most_rows[name] > MOST_ROWS:
                raise key_error(
                    "too-many-children",
                    ("tables", name, "max_per_parent"),
                    f"one unit could have {self.most_rows[name]:,} rows of it; at most {MOST_ROWS:,} are possible.",
                )
        self.parts = max(LEAST_PARTS, PARTS_A_ROW * max(self.most_rows.values()))
        """What the rows of one unit weigh together, at most."""

    def _check(self, name: str, link: Link) -> None:
        path = ("tables", name)
        if link.parent is None:
            for key in ("link", "order", "max_per_parent"):
                if getattr(link, key):
                    raise key_error(
                        "root-with-link", (*path, key), "a table without `parent` is the root, which has none."
                    )
        else:
            if link.parent not in self.links:
                raise key_error(
                    "unknown-parent",
                    (*path, "parent"),
                    f'"{link.parent}" is no table; tables: {listing(self.links)}.{suggestion(link.parent, self.links)}',
                )
            if link.link is None:
                raise key_error(
                    "missing-link", path, f'needs `link`, the column that names its row of "{link.parent}".'
                )
            if link.max_per_parent < 1:
                raise key_error(
                    "missing-bound",
                    path,
                    f'needs `max_per_parent`, how many rows of one row of "{link.parent}" count at most.',
                )
        if link.key is None and (link.parent is None or any(each.parent == name for each in self.links.values())):
            raise key_error("missing-key", path, "needs `key`, the column that other tables link to.")

    def _after(self, name: str) -> Iterator[str]:
        yield name
        for child in self.children(name):
            yield from self._after(child)

    def children(self, name: str) -> list[str]:
        return [other for other, link in self.links.items() if link.parent == name]

    def line(self, name: str) -> list[str]:
        """A table and those above it, the root first."""
        parent = self.links[name].parent
        return [*([] if parent is None else self.line(parent)), name]

    def parent(self, name: str) -> str:
        parent = self.links[name].parent
        assert parent is not None
        return parent

    @property
    def unit(self) -> str:
        """The column that names a unit."""
        key = str(self.links[self.root].key)
        return key if self.kept else f"{self.root}.{key}"

    @property
    def misfits(self) -> dict[str, Misfit]:
        """What may be wrong with the rows of a unit, by the names under which a look counts such units.

        A row that names no row of a table further down has no unit that it could count in, and is not among them.
        """
        if self.kept:
            (row,) = self.names[1:]
            return {
                duplicates_of(self.root): Misfit(
                    "persons whose person_columns differ from row to row", "those of one of the rows stayed"
                ),
                beyond(row): Misfit(
                    "persons with more rows than max_rows_per_person", "the others were left out", mistaken=False
                ),
            }
        found = {}
        for name, link in self.links.items():
            if link.parent == self.root:
                found[orphans_of(name)] = Misfit(
                    f"units that {name} names and {self.root} lacks", "their rows were left out"
                )
            if link.key is not None:
                found[duplicates_of(name)] = Misfit(
                    f"units with a key of {name} more than once", "one row of each such key stayed"
                )
            if link.parent is not None:
                found[beyond(name)] = Misfit(
                    f"units with more rows of {name} than max_per_parent", "the others were left out", mistaken=False
                )
        return found

    def ids(self, name: str) -> list[str]:
        """The columns of a table that name rows: they are read, never learnt, and made anew."""
        link = self.links[name]
        return list(dict.fromkeys(each for each in (link.key, link.link) if each is not None))

    def generated(self, columns: Iterable[str]) -> frozenset[str]:
        """The names of all columns that nobody declares."""
        shared = [
            each(name, child) for name in self.names for child in self.children(name) for each in (rows_of, start_of)
        ]
        shared += [name(table) for table in self.names[1:] for name in (left_of, step_of)]
        return frozenset([*shared, *map(before, columns)])

    def check_line(self, columns: Iterable[str], path: tuple[str | int, ...]) -> None:
        """Refuses columns of tables of which none hangs on all others."""
        owners = {name.partition(".")[0] for name in columns}
        last = max(owners, key=self.names.index, default=self.root)
        if not owners <= {*self.line(last)}:
            raise key_error(
                "rule-across-tables",
                path,
                f"no row has values of {listing(sorted(owners))}: a rule speaks of one table and those above it.",
            )

    def view(self, names: Mapping[str, object] | tuple[str, ...]) -> str:
        """The table whose view holds these columns: the one that comes last."""
        owners = {name.partition(".")[0] for name in names}
        last = max(owners, key=self.names.index, default=self.root)
        assert owners <= {*self.line(last)}
        return last


@dataclass(frozen=True)
class View:
    """The attributes that a row of a table is drawn with."""

    own: Marginal
    """Its own that are drawn; how far it lies from the row before comes first. The time of the day that it is ordered
    by, where that is an attribute, is among them.
    """
    order: Marginal
    """Its own that follow from how far it lies from the row before."""
    given: Marginal
    """Those of the tables above it."""
    left: str | None
    """How many rows follow."""
    earlier: Mapping[str, str]
    """For some of its own, the attribute that holds what it was in the row before."""
    step: str | None = None

    @classmethod
    def of(cls, tables: Tables, name: str, columns: Mapping[str, Marginal]) -> View:
        aside = frozenset(map(before, columns))

        def held(owner: str) -> list[str]:
            own = [column for column in columns if column.partition(".")[0] == owner]
            begins = {start_of(owner, child) for child in tables.children(owner)}
            return [column for column in own if column not in aside | begins | {left_of(owner)}]

        if name == tables.root:
            return cls(_attributes(held(name), columns), (), (), None, {})
        parent, order, step = tables.parent(name), f"{name}.{tables.links[name].order}", step_of(name)
        own = [column for column in held(name) if column not in (order, step)]
        line = tables.line(name)[:-1]
        above = [column for owner in line for column in held(owner) if column != step_of(owner)]
        above += [column for column in [start_of(parent, name)] if column in columns]
        earlier = {
            now: then
            for column in own
            if before(column) in columns
            for now, then in zip(columns[column], columns[before(column)], strict=True)
        }
        (left,) = columns[left_of(name)]
        first = columns.get(step, ())
        times = tuple(each for each in columns.get(order, ()) if each == f"{order}{TIME}")
        return cls(
            (*first, *times, *_attributes(own, columns)),
            tuple(each for each in columns.get(order, ()) if each not in times),
            _attributes(above, columns),
            left,
            earlier,
            first[0] if first else None,
        )

    @property
    def attributes(self) -> Marginal:
        left = () if self.left is None else (self.left,)
        return (*self.own, *self.order, *left, *self.earlier.values(), *self.given)


def _attributes(names: list[str], columns: Mapping[str, Marginal]) -> Marginal:
    return tuple(attribute for name in names for attribute in columns[name])


def rows_of(table: str, child: str) -> str:
    return f"{table}.rows({child})"


def start_of(table: str, child: str) -> str:
    return f"{table}.start({child})"


def left_of(table: str) -> str:
    return f"{table}.left()"


def step_of(table: str) -> str:
    return f"{table}.step()"


def orphans_of(table: str) -> str:
    return f"{table}.orphans()"


def duplicates_of(table: str) -> str:
    return f"{table}.duplicates()"


def beyond(table: str) -> str:
    return f"{table}.beyond()"


def before(column: str) -> str:
    table, _, own = column.partition(".")
    return f"{table}.before({own})"
