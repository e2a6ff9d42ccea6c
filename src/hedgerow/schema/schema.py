"""The schema: what the publisher declares about a table, independently of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from hedgerow.errors import Fault, OptionError, SchemaError, TableError, listing, suggestion
from hedgerow.markup import joined, listed, tag
from hedgerow.schema.calendar import DAY, CalendarColumn
from hedgerow.schema.column import Column, plain_value
from hedgerow.schema.contest import is_parameters, schema_of
from hedgerow.schema.document import Flow, read_json, read_yaml, write_yaml
from hedgerow.schema.editor import editor_schema
from hedgerow.schema.encoding import Encoding
from hedgerow.schema.explain import key_error, located, schema_error
from hedgerow.schema.file import Cleaning, File, Written, plain_file
from hedgerow.schema.group import Group, GroupEncoding, combinations_in
from hedgerow.schema.header import quoted, refuse_lacking, refuse_twice, undeclared
from hedgerow.schema.invented import INVENTED, Invented, plain_invented, split
from hedgerow.schema.kinds import KINDS, AnyColumn, made, name_of
from hedgerow.schema.leaves import Leaf, alike, drawable, parted
from hedgerow.schema.links import Link, Tables, declared_links, flattened, generated, histories, two_tables
from hedgerow.schema.listed import Category
from hedgerow.schema.named import NamedTables, Paths
from hedgerow.schema.numeric import Integer, Number
from hedgerow.schema.presets import find
from hedgerow.schema.probing import Cuttable
from hedgerow.schema.reading import Real, Text, Whole, as_text
from hedgerow.schema.rules import Rule, Rules
from hedgerow.schema.rules.boundaries import boundaries
from hedgerow.schema.rules.declared import MOST_RULES, with_lookups
from hedgerow.schema.rules.lookup import Listed, joint, listed_leaves
from hedgerow.schema.rules.satisfying import satisfied
from hedgerow.schema.subgroups import MOST as MOST_SUBGROUPS
from hedgerow.schema.totals import Table, Total, tables, with_tables
from hedgerow.schema.weight import Weight, with_weight

TODO = "TODO"
STAND_INS = 20
"""Values or cells that stand in for a domain that is not yet discovered."""
ACCEPTABLE = ("columns", "pairs", "worst_pair", "workload", "worst_subgroup")
"""Distances that `accept` may bound: means over columns, pairs and a workload's marginals, and those of the worst pair
and of the worst subgroup."""
MOST_CODES = 1 << 26
"""Values and bins of all columns together."""
MOST_SHOWN = 200
"""Columns in a notebook."""
MOST_LETTERS = 160
"""Of a declaration in a notebook."""


class Schema(BaseModel):
    """Columns with their domains, who a person is, and what is left out.

    It is the publisher's assertion that nothing here was read off the private rows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: Text | None = None
    file: File = File()
    person: Text | None = None
    max_rows_per_person: Whole = 1
    keep: Literal["person"] | None = None
    person_columns: list[Text] = []
    order: Text | None = None
    ignore: list[Text] = []
    max_misfits: Real = 0.2
    accept: dict[Text, Real] = {}
    subgroups: list[Text] = []
    columns: dict[Text, AnyColumn]
    groups: list[Group] = []
    derive: dict[Text, Text] = {}
    rules: list[Rule] = []
    weight: Weight | None = None
    totals: list[Total] = []
    tables: dict[Text, Link] = {}

    _files: Paths = PrivateAttr(default=Paths())
    _invented: dict[str, Invented] = PrivateAttr(default_factory=dict)
    _names: tuple[str, ...] = PrivateAttr(default=())
    _hours_unsaid: bool = PrivateAttr(default=False)
    """Whether it is that of a release whose moments are in hours because no step is written (`release.editions`)."""

    def __init__(self, **data: Any):
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise schema_error(error, {**KINDS, **INVENTED}, Schema) from None

    @classmethod
    def load(
        cls, path: str | Path | Sequence[str | Path], before_reading: Callable[[Path], None] | None = None
    ) -> Schema:
        """Read a .yaml, .yml or .json file; a `*-domain.json` object such as {"age": 85} is a schema too, and so is
        the `parameters.json` of a contest (`hedgerow.schema.contest`).

        `preset:NAME`, or a file of that form, is the schema of a preset (`hedgerow.schema.presets`); of several names
        the first says what the columns hold, and presets after it give it structure.
        """
        preset = find(path)
        if preset is not None:
            return preset.schema
        if not isinstance(path, str | Path):
            return cls.load(path[0], before_reading)  # the only one
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise SchemaError("no-such-schema", f'the schema file "{path}" does not exist.') from None
        except UnicodeDecodeError:
            raise SchemaError("not-utf8", f'the schema file "{path}" is not UTF-8 text.') from None
        except OSError as error:
            raise SchemaError("cannot-read", f'the schema file "{path}" cannot be read ({error.strerror}).') from None
        return cls.parse(text, path.name, path.parent, before_reading)

    @classmethod
    def parse(
        cls,
        text: str,
        name: str = "schema",
        folder: Path | None = None,
        before_reading: Callable[[Path], None] | None = None,
    ) -> Schema:
        """Read YAML, or JSON if the name ends so. Errors name the line.

        Paths of public tables are from `folder`; `before_reading` is called with each before it is opened.
        """
        data, lines = (read_json if name.lower().endswith(".json") else read_yaml)(text, name)
        named = NamedTables(folder or Path(), before_reading)
        try:
            for key, read in (("rules", with_lookups), ("totals", with_tables)):
                if isinstance(data, dict) and key in data:
                    data[key] = read(data[key], named)
            schema = cls.from_dict(data)
            schema._files = Paths(named.paths)
            return schema
        except SchemaError as error:
            raise located(error, name, lines) from None

    @classmethod
    def from_dict(cls, data: Any) -> Schema:
        """From plain values, as JSON holds them."""
        if not isinstance(data, Mapping) or not data:
            raise SchemaError(
                "not-a-schema", "a schema is a mapping with the key `columns`, or a mapping from column to size."
            )
        if is_parameters(data):
            data = schema_of(data)
        if not isinstance(data.get("columns"), Mapping) and all(map(_is_size, data.values())):
            data = {"columns": {name: {"type": "code", "size": size} for name, size in data.items()}}
        return cls(**{str(key): value for key, value in data.items()})

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Schema]) -> Schema:
        """What is invented is told apart before anything is checked, and no part of `columns`: nothing reads it."""
        if isinstance(data, Mapping) and data.get("keep") is not None and not data.get("tables"):
            data = two_tables(data)
        if isinstance(data, Mapping) and data.get("tables") and "columns" not in data:
            data = flattened(data)
        if not isinstance(data, Mapping) or not isinstance(data.get("columns"), Mapping):
            return handler(cls._expanded(data))
        _refuse_todo(data)
        if data.get("tables"):
            data = {**data, **declared_links(data)}
        data = with_weight(data)
        learnt, invented = split(data["columns"])
        if invented and not learnt:
            raise key_error("all-invented", ("columns",), "all of them are invented; a table needs one that is learnt.")
        schema = handler(cls._expanded({**data, "columns": learnt}))
        listed = listed_leaves(schema.kept_rules)
        if listed:
            cut = {name: {**_column_dict(schema.columns[name]), **own} for name, own in listed}
            schema = handler(cls._expanded({**data, "columns": {**learnt, **cut}}))
        added = generated(schema)
        if added:
            data = {**data, "columns": {**data["columns"], **added}}
            schema = handler(cls._expanded({**data, "columns": {**learnt, **added}}))
        schema._invented = invented
        schema._names = tuple(as_text(name) for name in data["columns"])
        return schema

    def _check_invented(self) -> None:
        for name in self.invented:
            if any(name in group.columns for group in self.groups):
                raise key_error("invented-in-group", ("groups",), f'"{name}" is invented, so no group can hold it.')

    @classmethod
    def _expanded(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        _refuse_todo(data)
        if not isinstance(data.get("file", {}), Mapping | File):
            raise key_error("not-a-mapping", ("file",), 'must be a mapping such as {delimiter: ";", decimal: ","}.')
        plain = {key: value for key, value in data.items() if key != "codelists"}
        if isinstance(data.get("columns"), Mapping):
            codelists = _codelists(data.get("codelists", {}))
            plain["columns"] = made(
                {name: _expand_codelist(str(name), column, codelists) for name, column in data["columns"].items()}
            )
        return plain

    @model_validator(mode="after")
    def _check(self) -> Schema:
        if not self.columns:
            raise Fault("no-columns", "columns: the list is empty")
        if self.max_rows_per_person < 1:
            raise Fault("bad-row-bound", f"max_rows_per_person: must be at least 1, got {self.max_rows_per_person}")
        if not 0 < self.max_misfits <= 1:
            raise Fault("bad-misfit-share", f"max_misfits: must be above 0 and at most 1, got {self.max_misfits}")
        for key, bound in self.accept.items():
            if key not in ACCEPTABLE:
                raise key_error(
                    "unknown-criterion",
                    ("accept", key),
                    f'"{key}" is no criterion; criteria: {listing(ACCEPTABLE)}.{suggestion(key, ACCEPTABLE)}',
                )
            if not 0 < bound <= 1:
                raise key_error("bad-criterion", ("accept", key), f"must be above 0 and at most 1, got {bound}.")
        for key in ("person_columns", "order"):
            if getattr(self, key):
                raise Fault("only-with-keep", f"{key}: is said of a table whose persons are kept (`keep: person`)")
        if self.person is None and self.max_rows_per_person > 1:
            raise Fault(
                "row-bound-without-person", "max_rows_per_person: needs `person`, the column that names a person"
            )
        if self.person is not None and self.person in (*self.columns, *self.ignore):
            raise Fault(
                "person-is-a-column", f'person: "{self.person}" names a person, so it is neither a column nor ignored'
            )
        both = [name for name in self.ignore if name in self.columns or name in self.invented]
        if both:
            raise Fault("ignored-and-declared", f'ignore: "{both[0]}" is also one of the columns')
        attributes: list[str] = []
        codes = 0
        for name, column in self.columns.items():
            attributes += _coded_names(name, column)
            codes += column.layout.size
            if codes > MOST_CODES:
                raise Fault(
                    "too-many-codes", f"columns: together they have more than {MOST_CODES:,} values and bins; use fewer"
                )
        twice = [name for name, count in Counter(attributes).items() if count > 1]
        if twice:
            raise Fault(
                "duplicate-attribute", f'columns: the coded name "{twice[0]}" stands for two things; rename a column'
            )
        for name, cleaning in self.written.columns.items():
            if cleaning.decimal in cleaning.strip:
                where = ("columns", name, "strip") if self.columns[name].strip else ("file", "strip")
                raise key_error(
                    "strips-decimal", where, f'"{cleaning.decimal}" is the decimal sign, which cannot be taken off.'
                )
        self._check_invented()
        self._check_groups()
        self._check_subgroups()
        self._check_rules()
        self._check_weight()
        self._check_totals()
        return self

    def _check_subgroups(self) -> None:
        values = 0
        for number, name in enumerate(self.subgroups):
            where = ("subgroups", number)
            if name not in self.columns:
                raise key_error("unknown-column", where, f'"{name}" is no column.{suggestion(name, self.columns)}')
            column = self.columns[name]
            if column.discovery is not None or len(column.attributes(name)) > 1:
                raise key_error(
                    "bad-subgroup", where, f'the values of "{name}" are not declared one by one, so they name no rows.'
                )
            values += column.layout.values
        if values > MOST_SUBGROUPS:
            raise key_error(
                "too-many-subgroups",
                ("subgroups",),
                f"{values:,} values are more subgroups than can be told apart; at most {MOST_SUBGROUPS:,}.",
            )

    def _check_weight(self) -> None:
        if self.weight is not None:
            taken = {name: "belongs to a group" for group in self.groups for name in group.columns}
            taken |= dict.fromkeys(self.invented, "is invented") | dict.fromkeys(self.ignore, "is ignored")
            taken |= {} if self.person is None else {self.person: "names a person"}
            self.weight.check(self.columns, taken)
        if self.weight is not None and self.weight.draw == "population":
            kept = self.kept_rules
            parts = [*kept.conditions, *kept.derived.values()]
            if any(self.weight.column in each.columns for each in parts):
                raise key_error(
                    "rules-of-weights",
                    ("weight", "draw"),
                    f'a rule or a derived column speaks of "{self.weight.column}", which is 1 in every row of a '
                    "population. Hint: draw: sample, or leave the weight out of `rules` and `derive`.",
                )

    def _check_totals(self) -> None:
        if self.totals and self.weight is not None and self.weight.draw == "population":
            raise key_error(
                "totals-of-population", ("totals",), "they count rows, and with `draw: population` rows are weighted."
            )
        if any(table.attributes for table in self.published):
            self._check_totals_by_rules()

    def _check_totals_by_rules(self) -> None:
        for index, total in enumerate(self.totals):
            counted = [row for row in total.table if row[-1]]
            table = pa.table({name: [str(row[at]) or None for row in counted] for at, name in enumerate(total.columns)})
            for each in self.kept_rules.kept:
                within = set(each.condition.columns) <= set(total.columns)
                if within and each.condition.truth(table).false.any():
                    raise key_error("totals-break-rule", ("totals", index), f"it counts rows that break {each}.")

    @cached_property
    def published(self) -> list[Table]:
        """The totals as counts of codes, in the order of a junction tree."""
        grouped = [name for group in self.joint for name in group.columns]
        return tables(self.totals, self.columns, grouped) if self.totals else []

    @property
    def files(self) -> tuple[Path, ...]:
        """The public tables that were read with the schema file."""
        return self._files

    def _check_groups(self) -> None:
        taken: set[str] = set()
        for index, group in enumerate(self.groups):
            for name in group.columns:
                self._check_member(("groups", index, "columns"), name, taken)
            if group.allowed != "public":
                try:
                    GroupEncoding(group, [self.columns[name] for name in group.columns])
                except Fault as error:
                    raise key_error(
                        error.code, ("groups", index, "allowed"), f"{str(error).partition(': ')[2]}."
                    ) from None

    def _check_rules(self) -> None:
        for name in self.derive:
            if name in (*self.columns, *self.ignore, self.person):
                raise key_error(
                    "derived-and-declared",
                    ("derive", name),
                    "it is computed from other columns, so it is neither declared under `columns` nor ignored.",
                )
        if len(self.rules) > MOST_RULES:
            raise key_error(
                "huge-rules", ("rules",), f"there are {len(self.rules):,} rules; at most {MOST_RULES:,} are kept."
            )
        _ = self.kept_rules

    @cached_property
    def kept_rules(self) -> Rules:
        """The rules as conditions over the columns, and derived columns as expressions."""
        if self.linked is None:
            return Rules(self.columns, self.derive, self.rules)
        declared = {name: column for name, column in self.columns.items() if name not in self.generated}
        found = Rules(declared, self.derive, self.rules, linked=True)
        for each in found.kept:
            self.linked.check_line(each.condition.columns, ("rules", each.number - 1))
        return found

    @cached_property
    def joint(self) -> list[Group]:
        """Columns that are coded together: the groups, and public tables in which every column tells all others."""
        taken = {name for group in self.groups for name in group.columns}
        found = list(self.groups)
        if self.linked is not None:
            return found
        for condition in self.kept_rules.conditions:
            if isinstance(condition, Listed) and joint(condition) and taken.isdisjoint(condition.columns):
                found.append(Group(columns=condition.columns, allowed=condition.rows))
                taken |= set(condition.columns)
        return found

    @cached_property
    def linked(self) -> Tables | None:
        """The tables, where there are several that are linked."""
        return Tables(self.tables, self.keep is not None) if self.tables else None

    @property
    def several(self) -> tuple[str, ...]:
        """The tables that are read and come back, each by itself; none where there is one alone."""
        return () if self.linked is None or self.linked.kept else self.linked.names

    @cached_property
    def alone(self) -> Schema:
        """Of one table whose persons are kept, its columns under their own names; any other as it is."""
        if self.keep is None:
            return self
        data = self.to_dict()
        own = {name: data["columns"][name] for name in self.names if name not in self.generated}
        plain = {name.partition(".")[2]: declared for name, declared in own.items()}
        return Schema.from_dict({"columns": plain, **({"file": data["file"]} if "file" in data else {})})

    @property
    def generated(self) -> frozenset[str]:
        """Columns of linked tables that nobody declared: they say how rows hang together."""
        return frozenset() if self.linked is None else frozenset(self.columns) & self.linked.generated(self.columns)

    def unlinked(self, what: str) -> Schema:
        """This schema, where it is of one table; something that is not there for several is refused."""
        if self.linked is not None:
            raise SchemaError(
                "not-for-linked-tables",
                f"{what} is not there for linked tables, and where persons are kept, yet; synth, sample, verify, "
                "evaluate and publish are.",
            )
        return self

    def with_histories(self) -> Schema:
        """The schema of linked tables with what the row before holds beside each column; any other as it is."""
        found = histories(self)
        if not found:
            return self
        data = self.to_dict()
        return Schema.from_dict({**data, "columns": {**data["columns"], **found}})

    def table(self, name: str) -> Schema:
        """One of the tables by itself, its columns under their own names."""
        data = self.to_dict()
        own = {
            column.partition(".")[2]: declared
            for column, declared in data["columns"].items()
            if column.partition(".")[0] == name and column not in self.generated
        }
        if not own:
            return Schema.model_construct(columns={})  # a root of which nothing but the key is there
        return Schema.from_dict({"columns": own, **({"file": data["file"]} if "file" in data else {})})

    def _check_member(self, path: tuple[str | int, ...], name: str, taken: set[str]) -> None:
        if name not in self.columns:
            raise key_error("unknown-column", path, f'"{name}" is not a column.{suggestion(name, self.columns)}')
        if name in taken:
            raise key_error("column-in-two-groups", path, f'"{name}" already belongs to a group.')
        column = self.columns[name]
        if column.discovery is not None or len(column.attributes(name)) > 1:
            raise key_error(
                "column-cannot-group", path, f'"{name}" has private values or heaps, which a group cannot hold.'
            )
        taken.add(name)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` gives the same schema again."""
        data = {
            "dataset": self.dataset,
            "file": plain_file(self.file),
            "person": None if self.tables else self.person,
            "max_rows_per_person": None if self.tables or self.max_rows_per_person == 1 else self.max_rows_per_person,
            "keep": self.keep,
            "ignore": list(self.ignore),
            "max_misfits": None if self.max_misfits == 0.2 else self.max_misfits,
            "accept": dict(self.accept),
            "subgroups": list(self.subgroups),
            "columns": {
                name: _column_dict(self.columns[name]) if name in self.columns else plain_invented(self.invented[name])
                for name in self.names
            },
            "groups": [{key: plain_value(value) for key, value in group if value is not None} for group in self.groups],
            "derive": dict(self.derive),
            "rules": [rule.plain() for rule in self.rules],
            "weight": self.weight and self.weight.model_dump(exclude_defaults=True),
            "totals": [total.plain() for total in self.totals],
            "tables": {name: link.plain() for name, link in self.tables.items()},
        }
        return {key: value for key, value in data.items() if value not in (None, [], {})}

    def to_yaml(self) -> str:
        """The schema as a file that `parse` reads back as the same schema."""
        data = self.to_dict()
        data["columns"] = {name: Flow(column) for name, column in data["columns"].items()}
        data["tables"] = {name: Flow(link) for name, link in data.get("tables", {}).items()}
        if not data["tables"]:
            del data["tables"]
        for key in ("file", "accept", "weight"):
            if key in data:
                data[key] = Flow(data[key])
        for key in ("groups", "rules", "totals"):
            if key in data:
                data[key] = [Flow(each) if isinstance(each, dict) else each for each in data[key]]
        return write_yaml(data)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """A JSON Schema of the format, for editors."""
        return editor_schema(cls.model_json_schema(), [kind.model_json_schema() for kind in INVENTED.values()])

    def _repr_html_(self) -> str:
        """For notebooks: what is declared of each column."""
        declared = self.to_dict()
        shown = [(name, *_shown(declared["columns"][name])) for name in self.names[:MOST_SHOWN]]
        rest = len(self.names) - len(shown)
        about = [f"{key}: {declared[key]}" for key in ("dataset", "person", "max_rows_per_person") if key in declared]
        about += [f"and {rest:,} columns more"] if rest else []
        return joined(tag("p", "; ".join(about)), listed(("column", "type", "may hold"), shown))

    @property
    def names(self) -> tuple[str, ...]:
        """All that `columns` declares, in order, invented columns among them."""
        return self._names

    @property
    def invented(self) -> Mapping[str, Invented]:
        """Columns of the output that are never read and never learnt."""
        return self._invented

    @property
    def written(self) -> Written:
        """How the table is written that is to be read."""
        cleanings = {}
        for name, column in self.columns.items():
            numeric = isinstance(column, Integer | Number)
            strip = (*column.strip, *(self.file.strip if numeric else ()))
            if strip or (numeric and self.file.decimal != "."):
                cleanings[name] = Cleaning(strip, self.file.decimal if numeric else None)
        return Written(self.file, cleanings, self.kept_rules.derived)

    def with_file(self, given: Mapping[str, Any]) -> Schema:
        """The schema with what is said elsewhere about the table's file; that wins over what it says itself."""
        return self if not given else Schema.from_dict({**self.to_dict(), "file": {**plain_file(self.file), **given}})

    @property
    def discoveries(self) -> list[tuple[str, str]]:
        """Columns whose domain must be bought with budget: (column, "values" or "cuts")."""
        found = ((name, column.discovery) for name, column in self.columns.items())
        return [(name, discovery) for name, discovery in found if discovery is not None]

    @property
    def discovered(self) -> list[str]:
        """Columns whose domain was bought with budget."""
        return [name for name, column in self.columns.items() if getattr(column, "discovered", False)]

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What the schema takes from elsewhere, and the guarantee does not speak of."""
        weights = [] if self.weight is None else [self.weight.unprotected]
        totals = [
            f"the totals of {total.said} are matched exactly; that they are public is the publisher's word"
            for total in self.totals
        ]
        return (*weights, *totals)

    @property
    def public_groups(self) -> list[int]:
        """Groups that wait for a public table to say which combinations can occur."""
        return [index for index, group in enumerate(self.groups) if group.allowed == "public"]

    def with_values(self, column: str, values: Iterable[str]) -> Schema:
        """The schema with an open category closed; everything not among the values becomes "other"."""
        return self._with_columns({column: self._closed(column, values)})

    def _closed(self, column: str, values: Iterable[str]) -> dict[str, Any]:
        found = _column_dict(self._waiting(column, "values"))
        return {**found, "values": list(values), "other": True, "discovered": True}

    def with_cuts(
        self,
        columns: Mapping[str, Mapping[str, Sequence[Sequence[Leaf]]]],
        endings: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Schema:
        """The schema with the lines of some columns cut into cells, by the suffix of each line's attribute.

        Leaves that hold nothing but values with a cell of their own are left out. `endings` are the habits of last
        digits inside leaves.
        """
        likely = endings or {}
        return self._with_columns({name: self._cut(name, cells, likely.get(name)) for name, cells in columns.items()})

    def _cut(
        self, column: str, cells: Mapping[str, Sequence[Sequence[Leaf]]], endings: Mapping[str, float] | None = None
    ) -> dict[str, Any]:
        found = self.waiting(column)
        own = found.elsewhere()
        held = {line: drawable(parts, own.get(line, ())) for line, parts in cells.items()}
        held[""] = drawable(parted(held[""], self._rule_starts(column)), own.get("", ()))
        cut = {**_column_dict(self.columns[column]), **found.cut(held), "discovered": True}
        if endings and cut.get("leaves"):
            cut["endings"] = dict(endings)
        return {key: value for key, value in cut.items() if value is not None}

    def with_bought(self, earlier: Schema) -> Schema:
        """The schema with the domains that an earlier release bought, where nothing else that is declared differs."""
        found = {}
        for name, _ in self.discoveries:
            known = earlier.columns.get(name)
            if getattr(known, "discovered", False):
                waits, bought = _column_dict(self.columns[name]), _column_dict(cast("Column", known))
                if all(bought.get(key) == value for key, value in waits.items()):
                    found[name] = {key: bought[key] for key in bought if key != "discovered"}
        return self._with_columns(found) if found else self

    def _rule_starts(self, column: str) -> list[int]:
        """The steps of a column's first line at which rules tell its numbers apart."""
        starts = boundaries(self.kept_rules.conditions, column)
        return [-(-start // DAY) for start in starts] if isinstance(self.columns[column], CalendarColumn) else starts

    def with_stand_ins(self, cells: int = STAND_INS) -> Schema:
        """The schema with some values or cells wherever a domain is still to be discovered."""
        found = {}
        for column, kind in self.discoveries:
            if kind == "values":
                found[column] = self._closed(column, [f"value {number}" for number in range(cells)])
            else:
                lines = self.waiting(column).trees().items()
                found[column] = self._cut(column, {line: alike(tree.low, tree.high, cells) for line, tree in lines})
        return self._with_columns(found) if found else self

    def settled(self) -> Schema:
        """The schema with what still waits for discovery filled in by one cell: its bounds count, its cells do not."""
        return self._settled

    @cached_property
    def _settled(self) -> Schema:
        data = self.with_stand_ins(1).to_dict()
        if "groups" in data:
            data["groups"] = [group for group in data["groups"] if group["allowed"] != "public"]
        return Schema.from_dict(data)

    def with_allowed(self, group: int, combinations: Iterable[Sequence[str | int | None]]) -> Schema:
        """The schema with a group's combinations filled in, e.g. from a public table; repetitions are dropped."""
        data = self.to_dict()
        data["groups"][group]["allowed"] = [list(row) for row in dict.fromkeys(map(tuple, combinations))]
        return Schema.from_dict(data)

    def with_allowed_in(self, group: int, batches: Iterable[pa.RecordBatch]) -> Schema:
        """The schema with a group's combinations taken from the rows of a public table.

        Rows with a value that is not declared are passed over.
        """
        declared = self.groups[group]
        found = combinations_in([self.columns[name] for name in declared.columns], declared.columns, batches)
        if not found:
            raise TableError(
                "no-combination", f"the public table has no declared combination of {', '.join(declared.columns)}."
            )
        return self.with_allowed(group, found)

    def open_values(self, column: str, array: pa.Array) -> pa.Array:
        """The values of an open category as text, null where missing: what a private discovery counts."""
        found = self._waiting(column, "values")
        assert isinstance(found, Category)
        return found.open_values(array)

    def check_rules(self) -> None:
        """Refuse rules that no row can obey, or of which that cannot be decided. Reads the declaration alone."""
        if self.rules:
            satisfied(self.settled().kept_rules)

    def check_header(self, header: Sequence[str], what: str = "the table") -> None:
        """Refuses a table whose column names do not match the schema. Reads names only."""
        refuse_twice(header, what)
        read = [name for name in self.columns if name not in self.generated]
        needed = [*read, *([self.person] if self.linked is None and self.person else [])]
        if self.keep is not None and self.linked is not None:
            needed = [*self.linked.ids(self.linked.root), *(name.partition(".")[2] for name in read)]
        elif self.linked is not None:
            needed += [f"{table}.{name}" for table in self.linked.names for name in self.linked.ids(table)]
        ignored = [
            name if self.keep else f"{table}.{name}" for table, link in self.tables.items() for name in link.ignore
        ]
        invented = [name.partition(".")[2] if self.keep else name for name in self.invented]
        declared = [*needed, *invented, *self.derive, *self.ignore, *ignored]
        refuse_lacking(header, needed, declared, what)
        strange = undeclared(header, declared)
        if strange is not None:
            raise SchemaError(
                "undeclared-column",
                f"of {what} the schema says nothing about {strange} Declare what is there under `columns`, or list it "
                "under `ignore`.",
            )

    def encoding(self) -> Encoding:
        """How rows become codes and codes rows; refused while a domain is still open."""
        if self.discoveries:
            names = quoted([name for name, _ in self.discoveries])
            raise SchemaError(
                "undiscovered-domain", f"the domain of {names} is private and has not been discovered yet."
            )
        if self.public_groups:
            columns = ", ".join(self.groups[self.public_groups[0]].columns)
            raise SchemaError(
                "needs-public-table",
                f"the group of {columns} has `allowed: public`; give a public table (--public), or list combinations.",
            )
        return Encoding(self)

    def waiting(self, column: str) -> Cuttable:
        """A column that waits to be cut."""
        return cast("Cuttable", self._waiting(column, "cuts"))

    def _waiting(self, column: str, discovery: Literal["values", "cuts"]) -> Column:
        if column not in self.columns:
            raise OptionError("unknown-column", f'unknown column "{column}".{suggestion(column, self.columns)}')
        found = self.columns[column]
        if found.discovery != discovery:
            raise OptionError("nothing-to-discover", f'the column "{column}" has no private {discovery} to discover.')
        return found

    def _with_columns(self, declarations: Mapping[str, dict[str, Any]]) -> Schema:
        data = self.to_dict()
        data["columns"].update(declarations)
        return Schema.from_dict(data)


def _coded_names(name: str, column: Column) -> list[str]:
    """What a column's attributes are called, also while it is looked at to be cut."""
    looks = [f"{name}{line}" for line in cast("Cuttable", column).trees()] if column.discovery == "cuts" else []
    return list(dict.fromkeys([*(each.name for each in column.attributes(name)), *looks]))


def declared_file(given: Mapping[str, Any]) -> File:
    """What is said about a table's file, checked."""
    try:
        return File(**given)
    except ValidationError as error:
        raise schema_error(error, {}, File, ("file",)) from None


def _column_dict(column: Column) -> dict[str, Any]:
    """The keys that say more than none would, the kind first and the common keys last."""
    fields = type(column).model_fields
    own = [name for name in fields if name not in Column.model_fields and name != "type"]
    data: dict[str, Any] = {"type": name_of(column)}
    for name in (*own, *Column.model_fields):
        value = getattr(column, name)
        if fields[name].is_required() or value != column.unsaid(name):
            data[name] = plain_value(value)
    return data


def _shown(declared: Mapping[str, Any]) -> tuple[str, str]:
    """A column's type and the rest of its declaration, in a line."""
    said = ", ".join(f"{key}: {value}" for key, value in declared.items() if key != "type")
    return str(declared["type"]), said if len(said) <= MOST_LETTERS else f"{said[:MOST_LETTERS]} …"


def _is_size(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value.isdigit())


def _refuse_todo(data: Mapping[Any, Any]) -> None:
    """A draft leaves TODO where a person must decide; name all such places at once."""
    open_keys: list[tuple[Any, ...]] = [(key,) for key, value in data.items() if value == TODO]
    columns = data.get("columns")
    if isinstance(columns, Mapping):
        for name, column in columns.items():
            if column == TODO:
                open_keys.append(("columns", name))
            elif isinstance(column, Mapping):
                open_keys += [("columns", name, key) for key, value in column.items() if value == TODO]
    if open_keys:
        named = listing(".".join(map(str, path)) for path in open_keys)
        raise key_error("todo-left", open_keys[0], f"{TODO} is left for you to fill in at {named}.")


def _codelists(declared: Any) -> dict[str, Any]:
    if not isinstance(declared, Mapping):
        raise key_error("bad-codelists", ("codelists",), "must be a mapping from a name to a list of values.")
    return {as_text(name): values for name, values in declared.items()}


def _expand_codelist(name: str, column: Any, codelists: Mapping[str, Any]) -> Any:
    """`codelist: yesno` is a category with the values of that list."""
    if not isinstance(column, Mapping) or "codelist" not in column:
        return column
    path = ("columns", name, "codelist")
    listed = column["codelist"]
    if "values" in column or column.get("type", "category") != "category":
        raise key_error(
            "codelist-column", path, "is a category with listed values; leave out `values` and any other type."
        )
    if not isinstance(listed, str) or listed not in codelists:
        raise key_error(
            "unknown-codelist",
            path,
            f'unknown codelist "{listed}"; codelists: {listing(codelists)}.{suggestion(str(listed), codelists)}',
        )
    rest = {key: value for key, value in column.items() if key not in ("codelist", "type")}
    return {"type": "category", "values": codelists[listed], **rest}
