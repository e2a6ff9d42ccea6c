"""Columns: what each may hold, checked as it is typed; nothing comes from private rows, unless a private look is asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, OptionError, SchemaError
from hedgerow.private.sources.source import described
from hedgerow.schema.schema import Schema
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio, framed
from hedgerow.studio.declaring import FIELDS, KINDS, Document, Place, in_words, typed
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
        looked=project.misfits.exists(),
        look=commands.misfits(project),
        command=commands.check(project),
    )


def show_column(studio: Studio, form: Form) -> Any:
    document, place, number = _place(studio, form)
    return _column(studio, document, place, number, document.fault(place))


def _column(studio: Studio, document: Document, place: Place, number: int, fault: str | None) -> Any:
    return studio.page(
        "column",
        "columns",
        status=200,
        name=str(place),
        number=number,
        count=len(document.places()),
        kinds=KINDS,
        fields=FIELDS,
        declared=document.declared(place),
        fault=None if fault == "needs you" else fault,
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
    waiting = [at for at, each in enumerate(places) if document.fault(each) is not None]
    if not form["next"] or not waiting:
        return studio.go("/columns")
    return studio.go(f"/columns/{next((at for at in waiting if at > number), waiting[0])}")


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


def look(studio: Studio, form: Form) -> Any:
    """The private look: exact counts of misfits, on a page of its own that is marked red."""
    if not form["agreed"]:
        raise OptionError("not-agreed", "the private look was not taken: say first that you know what it is.")
    if Document.read(studio.project).linked:
        raise SchemaError("not-for-linked-tables", "the private look is not there for linked tables yet.")
    studio.finish("misfits", commands.misfits(studio.project))
    studio.project.save()
    return studio.go("/columns/private")


def show_private(studio: Studio, form: Form) -> Any:
    command = commands.misfits(studio.project)
    shown = "/columns/private/page" if studio.project.misfits.exists() else None
    return studio.page("private", "columns", title="What does not fit", frame=shown, command=command, kind="private")


def _place(studio: Studio, form: Form) -> tuple[Document, Place, int]:
    document = Document.read(studio.project)
    places = document.places(names(studio.project, document))
    number = int(form.path["number"])
    if number >= len(places):
        raise OptionError("unknown-column", "there is no such column.")
    return document, places[number], number


ROUTES = [
    Step("/columns", show),
    Step("/columns/rules", None, save_rules),
    Step("/columns/sources", None, import_sources),
    Step("/columns/text", show_text, save_text),
    Step("/columns/private", show_private, look),
    Step("/columns/private/page", lambda studio, form: framed(studio.project.misfits)),
    Step("/columns/{number:int}", show_column, save_column),
]
