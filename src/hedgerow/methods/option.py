"""Options of methods: each is declared once, with its default, its help and its own check.

    rounds: float = option(16.0, "planned rounds per attribute", above=0)

The command line, the documentation and `hedgerow.methods.build` read the same declaration.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

from hedgerow.errors import OptionError, listing, suggestion

T = TypeVar("T")
_KEY = "option"
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Option:
    """What an option may be: text, a truth, a number within bounds, one of some words, or what `read` makes of it."""

    default: Any
    help: str = ""
    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] = ()
    read: Callable[[Any], Any] | None = None

    @property
    def wanted(self) -> str:
        """What it takes, in words: `a number above 0 and below 1`."""
        if self.one_of:
            return f"one of {listing(self.one_of)}"
        if isinstance(self.default, bool):
            return "true or false"
        if not isinstance(self.default, int | float):
            return "text" if isinstance(self.default, str) else "a list"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        bounds = [
            f"{word} {bound:,}"
            for word, bound in (
                ("above", self.above),
                ("of at least", self.at_least),
                ("below", self.below),
                ("at most", self.at_most),
            )
            if bound is not None
        ]
        return " ".join([kind, " and ".join(bounds)]).strip()

    @property
    def shown(self) -> str:
        """The default as a page shows it; nothing where nothing is given."""
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        if isinstance(self.default, int | float):
            return f"{self.default:,}" if isinstance(self.default, int) else f"{self.default:g}"
        return str(self.default or "")

    def allows(self, value: Any) -> bool:
        """Whether a value is of the option's kind and within its bounds."""
        if self.read is not None:
            return True  # what it is made from was checked as it was read
        if self.one_of:
            return value in self.one_of
        if isinstance(self.default, bool | str | tuple):
            return isinstance(value, type(self.default))
        if not isinstance(self.default, int | float):
            return True
        return _is_number(value, whole=isinstance(self.default, int)) and (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def parsed(self, value: Any) -> Any:
        """Text, or plain data, as the option's value; what cannot be one stays as it is, and is refused by `allows`."""
        if self.read is not None:
            return self.read(value)
        try:
            if isinstance(self.default, bool):
                return _TRUTHS.get(value.lower(), value) if isinstance(value, str) else value
            if isinstance(self.default, int):
                return int(value) if isinstance(value, str) or value == int(value) else value
            return type(self.default)(value) if isinstance(self.default, float | str) else value
        except (TypeError, ValueError, OverflowError):
            return value


def option(
    default: T,
    help: str,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    one_of: tuple[str, ...] = (),
    read: Callable[[Any], Any] | None = None,
) -> T:
    """A field of a method: its type is that of the default, and a value outside the bounds is refused.

    `read` makes the value out of text (the command line) or of plain data (a preset), and refuses what it cannot.
    """
    about = Option(default, help, above, below, at_least, at_most, one_of, read)
    return dataclasses.field(default=default, metadata={_KEY: about})


class Options:
    """A frozen dataclass that checks its options when it is made: what a method derives from."""

    def __post_init__(self) -> None:
        for name, known in declared(type(self)).items():
            value = getattr(self, name)
            if known.read is not None and not isinstance(value, type(known.default)):
                object.__setattr__(self, name, known.read(value))  # handed in as plain data
        about = getattr(self, "about", None)
        check(type(self), about.name if about else type(self).__name__, values(self))


def declared(kind: type[Any]) -> dict[str, Option]:
    """The options of a method by name. A plain field without `option` has the kind of its default, and no bounds."""
    return {
        each.name: each.metadata.get(_KEY) or Option(each.default, each.metadata.get("help", ""))
        for each in dataclasses.fields(kind)
    }


def values(method: Any) -> dict[str, Any]:
    """The options of a method as plain values."""
    return {each.name: getattr(method, each.name) for each in dataclasses.fields(method)}


def check(kind: type[Any], name: str, given: Mapping[str, Any]) -> None:
    """Refuse the first value that its option does not allow."""
    known = declared(kind)
    for each, value in given.items():
        if not known[each].allows(value):
            raise refusal(name, each, known[each], value)


def refusal(method: str, name: str, about: Option, value: Any) -> OptionError:
    """What was asked of which option, what it takes, and the nearest word."""
    shown = f'"{value}"' if isinstance(value, str) else f"{value}"
    near = suggestion(value, about.one_of) if isinstance(value, str) else ""
    return OptionError("bad-option", f'{method}: option "{name}" must be {about.wanted}, got {shown}.{near}')


def _is_number(value: Any, whole: bool) -> bool:
    """A finite number; a truth is none."""
    return not isinstance(value, bool) and isinstance(value, Integral if whole else Real) and math.isfinite(value)
