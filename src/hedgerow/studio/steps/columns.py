"""Columns: what each may hold, checked as it is typed; nothing comes from private rows, unless a private look is asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, OptionError, visible
from hedgerow.private.sources.source import described
from hedgerow.schema.schema import TODO, Schema
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio
from hedgerow.studio.declaring import FIELDS, KINDS, NEEDS_YOU, Document, Place, in_words, typed
from hedgerow.studio.steps.private import Room
from hedgerow.studio.steps.table import draft, names

if TYPE_CHECKING:
    from hedgerow.studio.project import Project

PAGE = 250
"""Columns on one page of the list."""


def declared(project: Project, header: list[str] | None = None) -> Schema:
    """The schema, with all that can be refused without a row refused."""
    schema = Schema.load(project.schema)
    schema.check_rules()
    found = names(project, Document.read(project)) if header is None else header
    if found:
        schema.check_header(found, described(project.table))
    return schema


def show(studio: Studio, form: Form) -> Any:
    project = studio.project
    document = Document.read(project)
    header = names(project, document)
    places = document.places(header)
    page = int(form["page"]) if form["page"].isdecimal() and len(form["page"]) < 9 else 1
    pages = max(1, -(-len(places) // PAGE))
    page = min(max(1, page), pages)
    first = (page - 1) * PAGE
    listed = [
        (first + number, str(place), in_words(document.declared(place)), document.fault(place))
        for number, place in enumerate(places[first : first + PAGE])
    ]
    try:
        declared(project, header)
        fault = None
    except HedgerowError as problem:
        fault = str(problem)
    rules = document.data.get("rules", [])
    return studio.page(
        "columns",
        "columns",
        listed=listed,
        count=len(places),
        page=page,
        pages=pages,
        fault=fault,
        linked=document.linked,
        rules=rules if all(isinstance(rule, str) for rule in rules) else None,
        command=commands.check(project),
    )


def show_column(studio: Studio, form: Form) -> Any:
    document, place, number = _place(studio, form)
    return _column(studio, document, place, number, document.fault(place))


def _column(studio: Studio, document: Document, place: Place, number: int, fault: str | None) -> Any:
    return studio.page(
        "column",
        "columns",
        column=str(place),
        number=number,
        formed=document.declared(place).get("type", "category") in (*KINDS, TODO),
        kinds=KINDS,
        fields=FIELDS,
        declared={"type": "category", **document.declared(place)},
        fault=None if fault == NEEDS_YOU else fault,
        command=commands.check(studio.project),
    )


def save_column(studio: Studio, form: Form) -> Any:
    """Save a declaration; one that cannot be used is kept as it was typed, and said to be wrong."""
    project = studio.project
    document, place, number = _place(studio, form)
    document.declare(place, typed(form, document.declared(place)))
    project.write(project.schema, document.text)
    project.save()
    places = document.places(names(project, document))
    if document.fault(place) is not None:
        return studio.go(f"/columns/{places.index(place)}")
    others = [*range(number + 1, len(places)), *range(number)] if form["next"] else []
    waiting = next((at for at in others if document.fault(places[at]) is not None), None)
    return studio.go("/columns" if waiting is None else f"/columns/{waiting}")


def check_column(studio: Studio, form: Form) -> Any:
    """What the schema would say of what is typed; nothing is saved."""
    from starlette.responses import PlainTextResponse

    document, place, _ = _place(studio, form)
    document.declare(place, typed(form, document.declared(place)))
    fault = document.fault(place)
    said = {None: "This can be used.", NEEDS_YOU: "Something is still to be filled in."}.get(fault, fault)
    return PlainTextResponse(visible(said or ""))


def save_rules(studio: Studio, form: Form) -> Any:
    project = studio.project
    document = Document.read(project)
    document.data.pop("rules", None)
    if form.lines("rules"):
        document.data["rules"] = form.lines("rules")
    project.write(project.schema, document.text)
    project.save()
    return studio.go("/columns")


def import_sources(studio: Studio, form: Form) -> Any:
    """Draft the schema again, from public sources."""
    draft(studio, form.lines("sources"))
    studio.project.save()
    return studio.go("/columns")


def show_text(studio: Studio, form: Form) -> Any:
    project = studio.project
    text = project.schema.read_text(encoding="utf-8") if project.schema.exists() else ""
    return studio.page("text", "columns", text=text, command=commands.check(project))


def save_text(studio: Studio, form: Form) -> Any:
    """The whole schema as text; what is no schema at all is refused, what still lacks something is kept."""
    project = studio.project
    Document.parse(form["text"], project.schema.name)
    project.write(project.schema, form["text"] + "\n")
    project.save()
    return studio.go("/columns")


def _place(studio: Studio, form: Form) -> tuple[Document, Place, int]:
    document = Document.read(studio.project)
    places = document.places(names(studio.project, document))
    number = int(form.path["number"])
    if number >= len(places):
        raise OptionError("unknown-column", "there is no such column.")
    return document, places[number], number


def _misfits(studio: Studio) -> list[str]:
    declared(studio.project).unlinked("schema check --private")
    return commands.misfits(studio.project)


MISFITS = Room(
    "/columns/private",
    "What does not fit",
    "How many values of each column fit nothing that you declared, counted exactly in the real rows.",
    "Count in the real rows",
    lambda studio: studio.project.misfits,
    _misfits,
)
ROUTES = [
    Step("/columns", show),
    Step("/columns/rules", None, save_rules),
    Step("/columns/sources", None, import_sources),
    Step("/columns/text", show_text, save_text),
    *MISFITS.steps,
    Step("/columns/{number:int}", show_column, save_column),
    Step("/columns/{number:int}/check", None, check_column, stale=True),
]
