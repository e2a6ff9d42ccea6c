"""The frame of every page: one file, no network, a policy that lets nothing run but our own few lines.

A page is marked PRIVATE (it compares with real rows) or it is publishable; there is no third kind and no mixture.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

from hedgerow import __version__
from hedgerow.markup import Content, Markup, joined, tag

PRIVATE = "PRIVATE: computed from real rows, without noise. Do not publish."


def private_page(title: str, *body: Content) -> str:
    """A page that must stay with the table: marked at its top, on every printed page and in its metadata."""
    banner = tag("div", PRIVATE, class_="private", role="note")
    marks = [tag("meta", name="classification", content="PRIVATE"), tag("meta", name="robots", content="noindex")]
    return _page(f"PRIVATE: {title}", marks, [banner, *body])


def public_page(title: str, status: str, *body: Content) -> str:
    """A page that may be published; `status` says what the reader holds."""
    banner = tag("div", status, class_="public", role="note")
    return _page(title, [tag("meta", name="classification", content="publishable")], [banner, *body])


def section(name: str, title: str, *content: Content) -> Markup:
    """A part of a page that the list of contents can point to."""
    return tag("section", tag("h2", title), *content, id=name)


def contents(sections: Iterable[tuple[str, str]]) -> Markup:
    """Links to the sections."""
    return tag("nav", [tag("a", title, href=f"#{name}") for name, title in sections], aria_label="Contents")


def table(
    header: Sequence[str], rows: Iterable[Sequence[str | Markup]], *, caption: str = "", figures: Iterable[int] = ()
) -> Markup:
    """A table that scrolls by itself on a narrow screen; the columns in `figures` are aligned to the right."""
    right = set(figures)

    def cells(kind: str, row: Sequence[str | Markup]) -> Markup:
        return joined(
            tag(kind, cell, class_="figure" if index in right else None, scope="col" if kind == "th" else None)
            for index, cell in enumerate(row)
        )

    head = tag("thead", tag("tr", cells("th", header)))
    body = tag("tbody", [tag("tr", cells("td", row)) for row in rows])
    return tag("div", tag("table", tag("caption", caption) if caption else "", head, body), class_="wide")


def folded(summary: str, *content: Content) -> Markup:
    """Something that opens on a click, such as the table beside a picture."""
    return tag("details", tag("summary", summary), *content)


def tabs(panels: Sequence[tuple[str, Content]]) -> Markup:
    """Several views of which one is shown; on paper, and without the script, all of them."""
    buttons = [tag("button", name, type="button", data_show=name, aria_pressed="false") for name, _ in panels]
    shown = [tag("div", tag("h3", name), content, data_panel=name) for name, content in panels]
    return tag("div", tag("div", buttons, class_="tabs", role="group"), shown, data_tabs=True)


def picture(drawn: Markup) -> str:
    """An SVG as a file of its own, in the colours of the pages."""
    style = tag("style", Markup(resource("style.css")))
    opened, _, rest = drawn.removeprefix("<svg").partition(">")
    return f'<svg xmlns="http://www.w3.org/2000/svg"{opened}>{style}{rest}\n'


def _page(title: str, marks: Sequence[Markup], body: Iterable[Content]) -> str:
    style, script = resource("style.css"), resource("script.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"Hedgerow {__version__}"),
        *marks,
        tag("title", title),
        tag("style", Markup(style)),
    )
    tip = tag("div", "", id="tip", role="status", hidden=True)
    page = tag("html", head, tag("body", *body, tip, tag("script", Markup(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def policy() -> str:
    """What a page allows itself: its own style and its own few lines, told by their hashes."""
    style, script = _hash(resource("style.css")), _hash(resource("script.js"))
    return f"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"


@cache
def resource(name: str) -> str:
    """A file beside this one."""
    return resources.files("hedgerow.pages").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
