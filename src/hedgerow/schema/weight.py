"""Survey weights: the column that says how many of a population a row stands for.

A weight is a column like any other: learnt together with the rest, at no further sensitivity, cut privately between 0
and its bound. What is beyond the bound does not fit, and counts as its bound. A table may be drawn as the sample that
it is, weights beside the rows, or as the population: rows as often as their weights say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from hedgerow.errors import Fault
from hedgerow.schema.column import Column
from hedgerow.schema.explain import key_error
from hedgerow.schema.numeric import Integer, Number
from hedgerow.schema.reading import Real, Text, Whole


class Weight(BaseModel):
    """The declaration: which column, its bound, and what is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Text
    max: Real
    decimals: Whole = 0
    draw: Literal["sample", "population"] = "sample"

    @model_validator(mode="after")
    def _check(self) -> Weight:
        if self.max <= 0 or (self.decimals == 0 and self.max != int(self.max)):
            raise Fault("bad-weight-bound", f"max: must be a number above 0, whole without `decimals`, got {self.max}")
        return self

    @property
    def declaration(self) -> dict[str, Any]:
        """The column, where the schema does not declare it itself."""
        if self.decimals == 0:
            return {"type": "integer", "min": 0, "max": int(self.max)}
        return {"type": "number", "min": 0, "max": self.max, "decimals": self.decimals}

    @property
    def unprotected(self) -> str:
        """What the guarantee does not speak of."""
        return (
            f'the weights in "{self.column}" are taken as fixed for each person: where they were calibrated on all '
            "rows, what one person's row did to the weights of others is not covered"
        )

    def check(self, columns: Mapping[str, Column], taken: Mapping[str, str]) -> None:
        """Refuse a column that cannot weigh rows; `taken` says what else a column is."""
        column = columns.get(self.column)
        if self.column in taken:
            raise key_error("bad-weight-column", ("weight", "column"), f'"{self.column}" {taken[self.column]}.')
        if not isinstance(column, Integer | Number) or column.min < 0 or column.max != self.max:
            raise key_error(
                "bad-weight-column",
                ("weight", "column"),
                f'"{self.column}" is declared under `columns`, but not as a number from 0 or more to {self.max:g}. '
                "Hint: leave it out there, or give it the same max.",
            )


def with_weight(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema's plain values with the column of its weights among the columns."""
    said = data.get("weight")
    if isinstance(said, Weight):
        said = said.model_dump()
    columns = data["columns"]
    if not isinstance(said, Mapping) or said.get("column") in (None, *columns):
        return data
    known = {key: value for key, value in said.items() if key in Weight.model_fields}
    try:
        weight = Weight(**known)
    except ValueError:
        return data  # the whole is refused with better words than a part
    return {**data, "columns": {**columns, weight.column: weight.declaration}}
