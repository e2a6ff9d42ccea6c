"""Templates: Markdown with the facts left open, so that a translation is another file and no code.

    {fact}              the fact, escaped; as it is between backticks
    ::if fact           the lines up to ::else or ::end, where there is such a fact
    ::each facts        the lines up to ::end for each of them, whose own facts come first

A template that asks for a fact that does not exist is refused: a sentence never stands there half filled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hedgerow.errors import OptionError
from hedgerow.publish.markdown import escaped

Facts = Mapping[str, Any]
_FACT = re.compile(r"\{([a-z_]+)\}")


def filled(template: str, facts: Facts, name: str) -> str:
    """The Markdown of a template with its facts."""
    lines = iter(enumerate(template.splitlines(), start=1))
    written = "\n".join(_lines(_parsed(lines, name, ()), facts, name))
    return re.sub(r"\n{3,}", "\n\n", written).strip() + "\n"


Node = str | tuple[str, str, list[Any], list[Any]]


def _parsed(lines: Iterator[tuple[int, str]], name: str, until: Sequence[str]) -> list[Node]:
    """Lines, and (kind, fact, lines, other lines) for what is repeated or left out."""
    found: list[Node] = []
    for number, line in lines:
        kind, _, fact = line.partition(" ")
        if not line.startswith("::"):
            found.append(line)
        elif kind in until:
            found.append(kind)
            return found
        elif kind in ("::if", "::each"):
            inside, other = _parsed(lines, name, ("::else", "::end") if kind == "::if" else ("::end",)), []
            if inside.pop() == "::else":
                other = _parsed(lines, name, ("::end",))[:-1]
            found.append((kind, fact.strip(), inside, other))
        else:
            raise OptionError("bad-template", f'{name}, line {number}: "{kind}" cannot stand here.')
    if until:
        raise OptionError("bad-template", f"{name}: an ::if or ::each has no ::end.")
    return found


def _lines(nodes: list[Node], facts: Facts, name: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield _line(node, facts, name)
            continue
        kind, fact, inside, other = node
        value = _fact(fact, facts, name)
        if kind == "::if":
            yield from _lines(inside if value else other, facts, name)
        else:
            for each in value:
                yield from _lines(inside, {**facts, **each}, name)


def _line(line: str, facts: Facts, name: str) -> str:
    """Every second piece between backticks is code, in which nothing is escaped."""
    pieces = line.split("`")

    def fill(piece: str, code: bool) -> str:
        return _FACT.sub(lambda found: _spelled(_fact(found[1], facts, name), code), piece)

    return "`".join(fill(piece, index % 2 == 1) for index, piece in enumerate(pieces))


def _spelled(value: Any, code: bool) -> str:
    text = " ".join(str(value).split())
    return text.replace("`", "'") if code else escaped(text)


def _fact(fact: str, facts: Facts, name: str) -> Any:
    if fact not in facts:
        raise OptionError("unknown-fact", f'{name} asks for "{fact}", which is no fact of a publication.')
    return facts[fact]
