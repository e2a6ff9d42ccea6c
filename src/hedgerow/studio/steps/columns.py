"""Columns: what each may hold, checked as it is typed; nothing comes from private rows, unless a private look is asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hedgerow.errors import HedgerowError, OptionError, counted, visible
from hedgerow.private.sources.source import described
from hedgerow.schema.schema import TODO, Schema
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio
from hedgerow.studio.declaring import FIELDS, KINDS, NEEDS_YOU, Document, Place, in_words, is_open, typed
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
    waiting = [number for number, place in enumerate(places) if is_open(document.declared(place))]
    only_open = bool(form["open"] and waiting)
    among = waiting if only_open else range(len(places))
    page = int(form["page"]) if form["page"].isdecimal() and len(form["page"]) < 9 else 1
    pages = max(1, -(-len(among) // PAGE))
    page = min(max(1, page), pages)
    listed = [
        (number, str(places[number]), in_words(document.declared(places[number])), document.fault(places[number]))
        for number in among[(page - 1) * PAGE : page * PAGE]
    ]
    rules = document.data.get("rules", [])
    return studio.page(
        "columns",
        "columns",
        listed=listed,
        count=len(places),
        waiting=waiting,
        first=str(places[waiting[0]]) if waiting else None,
        only_open=only_open,
        shown_of=f"{len(waiting)} of {len(places)} columns need you" if only_open else counted(len(places), "column"),
        page=page,
        pages=pages,
        fault=None if waiting else _refused(project, header),
        linked=document.linked,
        rules=rules if all(isinstance(rule, str) for rule in rules) else None,
        command=commands.check(project),
    )


def _refused(project: Project, header: list[str]) -> str | None:
    """What a run would refuse of the whole schema."""
    try:
        declared(project, header)
    except HedgerowError as problem:
        return str(problem)
    return None


def show_column(studio: Studio, form: Form) -> Any:
    document, places, numbers = _chosen(studio, form)
    chosen = [places[number] for number in numbers]
    told = [document.declared(place) for place in chosen]
    alike = all(each == told[0] for each in told)
    fault = document.fault(chosen[0]) if alike else None
    return studio.page(
        "column",
        "columns",
        column=str(chosen[0]),
        number=numbers[0],
        count=len(places),
        several={} if "number" in form.path else dict(zip(numbers, map(str, chosen), strict=True)),
        formed=not alike or told[0].get("type", "category") in (*KINDS, TODO),
        kinds=KINDS,
        fields=FIELDS,
        declared={"type": "category", **told[0]} if alike else {"type": TODO},
        fault=None if fault == NEEDS_YOU else fault,
        command=commands.check(studio.project),
    )


def save_column(studio: Studio, form: Form) -> Any:
    """Save a declaration, of one column or of several; one that cannot be used is kept as it was typed, and said to be
    wrong.
    """
    project = studio.project
    document, places, numbers = _chosen(studio, form)
    for number in numbers:
        document.declare(places[number], typed(form, document.declared(places[number])))
    project.write(project.schema, document.text)
    project.save()
    if document.fault(places[numbers[0]]) is not None:
        asked = urlencode([("at", number) for number in numbers])
        return studio.go(f"/columns/{numbers[0]}" if "number" in form.path else f"/columns/several?{asked}")
    others = [*range(numbers[0] + 1, len(places)), *range(numbers[0])] if form["next"] else []
    waiting = next((at for at in others if document.fault(places[at]) is not None), None)
    return studio.go("/columns" if waiting is None else f"/columns/{waiting}")


def check_column(studio: Studio, form: Form) -> Any:
    """What the schema would say of what is typed; nothing is saved."""
    from starlette.responses import PlainTextResponse

    document, places, numbers = _chosen(studio, form)
    place = places[numbers[0]]
    declaration = typed(form, document.declared(place))
    document.declare(place, declaration)
    said = document.fault(place) or f"This can be used: {in_words(declaration)}."
    return PlainTextResponse(visible("Something is still to be filled in." if said == NEEDS_YOU else said))


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


def _chosen(studio: Studio, form: Form) -> tuple[Document, list[Place], list[int]]:
    """All columns, and those that the address or the ticks name, by their numbers."""
    document = Document.read(studio.project)
    places = document.places(names(studio.project, document))
    if "number" in form.path:
        numbers = [int(form.path["number"])]
    else:
        numbers = sorted({int(at) for at in form.all("at") if at.isdecimal() and len(at) < 9})
    if not numbers:
        raise OptionError("no-column-ticked", "tick the columns first that are declared alike. Nothing was saved.")
    if numbers[-1] >= len(places):
        raise OptionError("unknown-column", "there is no such column.")
    return document, places, numbers


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
    Step("/columns/several", show_column, save_column),
    Step("/columns/several/check", None, check_column, stale=True),
    Step("/columns/{number:int}", show_column, save_column),
    Step("/columns/{number:int}/check", None, check_column, stale=True),
]
