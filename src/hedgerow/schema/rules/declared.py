"""What a schema says under `rules`: a condition, `when` and `then`, or a public table of what goes together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from hedgerow.errors import Fault
from hedgerow.schema.named import NamedTables
from hedgerow.schema.reading import Text, as_text

MOST_RULES = 1_000
MOST_LISTED = 1_000_000
"""Rows of a lookup."""
QUOTED = "a condition with a comma is put in double quotes"


def _as_rows(value: Any) -> Any:
    if isinstance(value, str):
        raise Fault("lookup-path", f'lookup: "{value}" is a path, which is read with the schema file that names it')
    if not isinstance(value, list | tuple) or not all(isinstance(row, list | tuple) for row in value):
        raise Fault("bad-lookup", "lookup: must be the path of a CSV file, or a list of rows such as [[1, a], [2, b]]")
    return tuple(tuple("" if item is None else as_text(item) for item in row) for row in value)


class Rule(BaseModel):
    """One rule. It is broken by a row that makes it FALSE; NULL is no breach, as in SQL's CHECK."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: Text | None = None
    when: Text | None = None
    then: Text | None = None
    columns: tuple[Text, ...] | None = None
    lookup: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_as_rows)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"check": data}
        if isinstance(data, Mapping):
            strange = [str(key) for key in data if key not in ("check", "when", "then", "columns", "lookup")]
            if strange:
                raise Fault(
                    "unknown-key",
                    f'unknown key "{strange[0]}"; a rule is a condition, or has when and then, or columns and lookup; '
                    f"{QUOTED}",
                )
        return data

    @model_validator(mode="after")
    def _check(self) -> Rule:
        said = {name for name in Rule.model_fields if getattr(self, name) is not None}
        if said not in ({"check"}, {"when", "then"}, {"columns", "lookup"}):
            raise Fault("bad-rule", f"a rule is a condition, or has when and then, or columns and lookup; {QUOTED}")
        if self.columns is not None and self.lookup is not None:
            if not self.columns or len(set(self.columns)) != len(self.columns):
                raise Fault("bad-lookup", "columns: a lookup needs columns, each named once")
            if not self.lookup or len(self.lookup) > MOST_LISTED:
                raise Fault("bad-lookup", f"lookup: a table has 1 to {MOST_LISTED:,} rows")
            if any(len(row) != len(self.columns) for row in self.lookup):
                raise Fault("bad-lookup", f"lookup: every row needs {len(self.columns)} values, one for each column")
        return self

    def __str__(self) -> str:
        if self.check is not None:
            return self.check
        if self.when is not None:
            return f"when {self.when}, then {self.then}"
        assert self.columns is not None
        assert self.lookup is not None
        return f"{' × '.join(self.columns)} as in a table of {len(self.lookup):,} rows"

    def plain(self) -> Any:
        """As JSON holds it."""
        if self.check is not None:
            return self.check
        said = {name: getattr(self, name) for name in Rule.model_fields if getattr(self, name) is not None}
        return {name: _listed(value) for name, value in said.items()}


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def with_lookups(rules: Any, named: NamedTables) -> Any:
    """The rules of a schema file with the public tables that they name."""
    if not isinstance(rules, list):
        return rules
    return [_with_lookup(rule, named, index) for index, rule in enumerate(rules)]


def _with_lookup(rule: Any, named: NamedTables, index: int) -> Any:
    if not isinstance(rule, Mapping) or not isinstance(rule.get("lookup"), str):
        return rule
    columns = rule.get("columns")
    if not isinstance(columns, list):
        return rule
    rows = named.rows(rule["lookup"], [as_text(name) for name in columns], ("rules", index, "lookup"))
    return {**rule, "lookup": [list(row) for row in dict.fromkeys(map(tuple, rows))]}
