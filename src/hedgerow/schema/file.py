"""How a table is written: what separates its fields, how numbers are spelled, in which letters.

All of it is declared, in the schema's `file:` or by --file; nothing is guessed from rows. It changes what is read from
a private or a public table alone: what we write is plain, and is read as such.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, ConfigDict

from hedgerow.errors import Fault
from hedgerow.schema.arrays import is_text
from hedgerow.schema.reading import as_text, as_whole

if TYPE_CHECKING:
    from hedgerow.schema.conditions.language import Expression

_WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " ", "point": ".", "dot": "."}
_CODECS = re.compile(
    r"ascii|utf-(8|16|32)(-[lb]e)?|utf-8-sig|iso8859-\d+|cp(125\d|437|85\d|932|949)|mac-roman|koi8-[ru]|"
    r"gb18030|gbk|gb2312|big5|shift_jis|euc_(jp|kr)"
)
MOST_SKIPPED = 1_000
_SPACES = (" ", "\u00a0", "\u202f", "\u2009")
"""What stands between thousands, in letters that look alike: a plain space, and those at which no line breaks."""
_NUMBER = r"^\s*[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?\s*$"


def as_delimiter(value: Any) -> str:
    """One sign, or its name: tab, comma, semicolon, pipe, space."""
    text = as_text(value)
    sign = _WORDS.get(text.lower(), text)
    if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0':
        raise Fault(
            "bad-delimiter", f'must be one sign such as ";", or tab, comma, semicolon, pipe, space, got "{text}"'
        )
    return sign


def as_decimal(value: Any) -> str:
    """The sign before the fraction."""
    text = as_text(value)
    sign = _WORDS.get(text.lower(), text)
    if sign not in (".", ","):
        raise Fault("bad-decimal", f'must be "." or "," (point or comma), got "{text}"')
    return sign


def as_encoding(value: Any) -> str:
    """The name of an encoding in which tables are written; those that are meant for anything else are refused."""
    text = as_text(value)
    try:
        known = bool(_CODECS.fullmatch(codecs.lookup(text).name))
    except (LookupError, ValueError):
        known = False
    if not known:
        raise Fault(
            "unknown-encoding", f'must be an encoding such as utf-8, utf-16, latin-1 or windows-1252, got "{text}"'
        )
    return text


def as_signs(value: Any) -> Any:
    """Texts to take off numbers: one, or a list."""
    listed = value if isinstance(value, list | tuple) else [value]
    signs = tuple(as_text(each) for each in listed)
    for sign in signs:
        if not sign or re.search(r"[\d+-]", sign):
            raise Fault("bad-strip", "must be texts without digits and without + or -, such as € or %")
    return signs


def as_skipped(value: Any) -> int:
    """How many lines are left out."""
    count = as_whole(value)
    if not 0 <= count <= MOST_SKIPPED:
        raise Fault("bad-skip", f"must be a number of lines between 0 and {MOST_SKIPPED:,}, got {count}")
    return count


Signs = Annotated[tuple[str, ...], BeforeValidator(as_signs)]


class File(BaseModel):
    """What is declared about a table's file. What is left out follows from the file's name, or is usual."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    delimiter: Annotated[str, BeforeValidator(as_delimiter)] | None = None
    decimal: Annotated[str, BeforeValidator(as_decimal)] = "."
    encoding: Annotated[str, BeforeValidator(as_encoding)] | None = None
    sheet: Annotated[str, BeforeValidator(as_text)] | None = None
    skip: Annotated[int, BeforeValidator(as_skipped)] = 0
    """Lines above the header, such as a title, blank ones counted."""
    strip: Signs = ()


@dataclass(frozen=True)
class Cleaning:
    """What makes plain text of the values of one column."""

    strip: tuple[str, ...] = ()
    decimal: str | None = None
    """The sign before the fraction where the column holds numbers; None where it holds anything else."""

    def __call__(self, array: pa.Array) -> pa.Array:
        """Signs are taken off text; in a column of numbers only where a number is left, so marks stay as they are.

        A number with the other decimal sign is made unreadable rather than read as another number. What is no text is
        left alone, and each value is cleaned by itself.
        """
        if pa.types.is_dictionary(array.type):
            return pa.DictionaryArray.from_arrays(array.indices, self(array.dictionary), safe=False)
        if pa.types.is_string_view(array.type):
            array = pc.cast(array, pa.large_string())
        if not is_text(array.type):
            return array
        bare = array
        for sign in self.strip:
            for each in _SPACES if sign == " " else (sign,):
                bare = pc.replace_substring(bare, each, "")
        if self.decimal is None:
            return bare
        number = pc.match_substring_regex(bare, _NUMBER)
        if self.decimal == ",":
            bare = pc.replace_substring(pc.replace_substring(bare, ".", "·"), ",", ".")
        return pc.if_else(number, bare, array)


@dataclass(frozen=True)
class Written:
    """How a whole table is written: its file, the columns that need cleaning, and what derived ones are the sum of."""

    file: File = field(default_factory=File)
    columns: Mapping[str, Cleaning] = field(default_factory=dict)
    derived: Mapping[str, Expression] = field(default_factory=dict)


def plain_file(file: File) -> dict[str, Any]:
    """What is declared, as JSON holds it."""
    said = {name: getattr(file, name) for name in File.model_fields if getattr(file, name) != _DEFAULTS[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


_DEFAULTS: dict[str, Any] = {name: about.default for name, about in File.model_fields.items()}
