"""HTML and SVG by construction: text is escaped wherever it is put in, so no name or value can become markup.

Nor can one turn the letters after it about, or hide: what cannot be seen is spelled out.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from hedgerow.errors import visible


class Markup(str):
    """Text that is HTML already. Only `tag` and `joined` make it."""

    def __html__(self) -> str:
        """For templates, which escape everything else."""
        return str(self)


Content: TypeAlias = str | Markup | Iterable["str | Markup"]


def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """An element. Plain text inside is escaped; `_` in an attribute's name stands for `-`; None leaves it out."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    inside = joined(*content)
    if not inside and name in _EMPTY:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{inside}</{name}>")


def joined(*content: Content) -> Markup:
    """Pieces one after the other, each escaped unless it is markup already."""
    return Markup("".join(_escaped(piece) for piece in content))


def listed(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """A plain table, as a notebook shows it."""
    top = tag("tr", *(tag("th", each) for each in head))
    body = (tag("tr", *(tag("td", str(each)) for each in row)) for row in rows)
    return tag("table", tag("caption", caption) if caption else "", tag("thead", top), tag("tbody", *body))


def number(value: float, digits: int = 1) -> str:
    """A coordinate: short, and never a word such as nan."""
    return f"{value if math.isfinite(value) else 0.0:.{digits}f}".removesuffix(".0")


_EMPTY = {"meta", "br", "hr", "link"}


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    key = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {key}"
    text = number(value, 2) if isinstance(value, float) else str(value)
    return f' {key}="{_plain(text)}"'


def _escaped(piece: Content) -> str:
    if isinstance(piece, Markup):
        return piece
    if isinstance(piece, str):
        return _plain(piece)
    return "".join(_escaped(each) for each in piece)


def _plain(text: str) -> str:
    return html.escape(visible(text, keep="\n\t"))
