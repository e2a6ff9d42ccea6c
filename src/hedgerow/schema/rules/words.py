"""What the rules of a schema say, and how each will be kept, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.schema.conditions import Condition
from hedgerow.schema.conditions.cells import judged
from hedgerow.schema.conditions.language import Comparison, Field
from hedgerow.schema.rules.kept import Kept
from hedgerow.schema.rules.zeros import MOST_CELLS

if TYPE_CHECKING:
    from hedgerow.schema.encoding import Encoding
    from hedgerow.schema.schema import Schema

AGAIN = "rows that break it are drawn again"
LENGTH = "; how far the two lie apart is learnt better as a column of its own, with the later one derived"


def explained(schema: Schema) -> list[str]:
    """A sentence for every derived column and every rule."""
    if not schema.derive and not schema.rules:
        return []
    encoding = schema.with_stand_ins().encoding()
    said = [f"{name}: computed as {text}; never read, never learnt" for name, text in schema.derive.items()]
    return [*said, *(f"{each}: {_way(each, encoding)}" for each in encoding.rules.kept)]


def _way(kept: Kept, encoding: Encoding) -> str:
    """How a rule is kept, and what would be better for an order of two columns that are cut."""
    return _kept(kept, encoding) + (LENGTH if _is_order(kept.condition) else "")


def _is_order(condition: Condition) -> bool:
    """Whether one of two columns with many values is never below the other."""
    return (
        isinstance(condition, Comparison)
        and condition.operator != "="
        and isinstance(condition.left, Field)
        and isinstance(condition.right, Field)
        and all(getattr(field.column, "discovered", False) for field in condition.fields.values())
    )


def _kept(kept: Kept, encoding: Encoding) -> str:
    blocks = {name: block for block in encoding.blocks for name in block.columns}
    held = {blocks[name].names for name in kept.condition.columns}
    if len(held) == 1 and len(kept.condition.columns) > 1:
        return "its columns are coded together, so nothing else can occur"
    found = judged(kept.condition, encoding.blocks, MOST_CELLS)
    if found is None:
        return f"it spans too many values to be learnt with; {AGAIN}"
    _, truth, untold = found
    impossible = truth.false & ~truth.true & ~truth.null & ~untold
    mixed = (truth.false & ~impossible & ~untold).any()
    if not impossible.any():
        return AGAIN if mixed else "whatever is declared obeys it"
    zeros = f"{int(impossible.sum()):,} of {impossible.size:,} combinations of cells cannot occur, as models know"
    return f"{zeros}; where a cell holds both, {AGAIN}" if mixed else zeros
