"""The other region of the made-up survey (`hedgerow.samples.acs`): the same columns, other people, meant as public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.samples import acs

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = acs.ROWS


def generate(rows: int = ROWS, seed: int = 0) -> pa.Table:
    """`rows` records of the region that is public."""
    return acs.generate(rows, seed, acs.PUBLIC)


def __getattr__(name: str) -> Any:
    """SCHEMA: that of the private region; the places of this one are not among its declared ones."""
    return getattr(acs, name)
