"""--allow-column: the user's word that a class made elsewhere may be imported, whichever schema names it."""

from __future__ import annotations

from typing import Annotated

import typer


def _allow(names: list[str] | None) -> list[str] | None:
    if names:
        from hedgerow.schema import allow

        allow(*names)
    return names


AllowColumn = Annotated[
    list[str] | None,
    typer.Option(
        callback=_allow,
        help="package.module:Class of a column kind made elsewhere that you trust: its code is run; repeatable.",
    ),
]
