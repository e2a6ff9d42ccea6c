"""The little Markdown that our documents are written in, and the same as a page.

Headings, paragraphs, lists, tables and code blocks; `code`, **bold** and [links](file) inside. What comes from a schema
or from a publisher is escaped before it gets here, so it is text in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hedgerow.errors import visible
from hedgerow.markup import Markup, joined, tag
from hedgerow.pages.shell import table

_SIGNS = re.compile(r"([\\`*_\[\]<>|~&])")
_LEADING = re.compile(r"^(\s*)([-+#])")
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)|\\(.)|([^`*\[\\]+|.)", re.DOTALL)
_LINK = re.compile(r"https?://|[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$|#")
_RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+")


def escaped(text: str) -> str:
    """Text that says in Markdown what it says by itself."""
    return _LEADING.sub(r"\1\\\2", _SIGNS.sub(r"\\\1", visible(text)))


def page_body(text: str) -> Markup:
    """The document as HTML."""
    return joined(_blocks(text.splitlines()))


def title(text: str) -> str:
    """The first heading, as plain text."""
    first = next((line for line in text.splitlines() if line.startswith("# ")), "# ")
    return re.sub(r"\\(.)", r"\1", first[2:])


def _blocks(lines: list[str]) -> Iterator[Markup]:
    index = 0
    while index < len(lines):
        line = lines[index]
        end = index + 1
        heading = re.match(r"(#{1,4}) ", line)
        if heading:
            yield tag(f"h{len(heading[1])}", _inline(line[len(heading[0]) :]))
        elif line.startswith("```"):
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            yield tag("pre", tag("code", "\n".join(lines[index + 1 : end])))
            end += 1
        elif line.startswith("|"):
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            header, *rows = [_cells(each) for each in lines[index:end] if not _RULE.fullmatch(each)]
            yield table(header, rows)
        elif line.startswith("- "):
            while end < len(lines) and re.match(r"- |  \S", lines[end]):
                end += 1
            yield tag("ul", [tag("li", _inline(item)) for item in _items(lines[index:end])])
        elif line.strip():
            while end < len(lines) and lines[end].strip() and not re.match(r"#{1,4} |- |\||```", lines[end]):
                end += 1
            yield tag("p", _inline(" ".join(lines[index:end])))
        index = end


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if line.startswith("- "):
            items.append(line[2:])
        else:
            items[-1] += f" {line.strip()}"
    return items


def _cells(line: str) -> list[Markup]:
    return [_inline(cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _inline(text: str) -> Markup:
    pieces: list[Markup] = []
    for code, bold, words, link, sign, plain in _INLINE.findall(text):
        if code:
            pieces.append(tag("code", code))
        elif bold:
            pieces.append(tag("b", _inline(bold)))
        elif words and _LINK.match(link):
            pieces.append(tag("a", _inline(words), href=link))
        else:
            pieces.append(joined(words or sign or plain))
    return joined(pieces)
