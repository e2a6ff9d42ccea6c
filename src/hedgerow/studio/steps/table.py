"""Table: what the header says, how the file is written, and who a person is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError
from hedgerow.private.sources.source import header_of
from hedgerow.schema.file import Written
from hedgerow.schema.schema import declared_file
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio
from hedgerow.studio.declaring import Document, skeleton

if TYPE_CHECKING:
    from hedgerow.studio.project import Project

FILE = ("delimiter", "encoding", "decimal", "sheet")
LINK = {
    "key": "Column that names a row",
    "parent": "Hangs on the table",
    "link": "Column that names its row there",
    "order": "Column that puts rows in order",
    "max_per_parent": "Most rows that count of one there",
}
_OPTION = re.compile(r"--file (\w+)=([\w-]+)")
SHOWN = 60
"""Names of a header that are shown."""


def headers(project: Project, file: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The names in the header, or in those of linked tables, written as `file` says; no row is read."""
    written = Written(declared_file(dict(file)))
    if not project.is_linked:
        return {"": header_of(project.table, written)}
    files = sorted(each for each in Path(project.table).iterdir() if not each.name.startswith("."))
    return {each.name.partition(".")[0]: header_of(str(each), written) for each in files}


def names(project: Project, document: Document) -> list[str]:
    """All columns as a schema calls them, as far as headers can be read."""
    try:
        found = headers(project, _written(project, document))
    except HedgerowError:
        return []
    return [f"{table}.{name}" if table else name for table, header in found.items() for name in header]


def show(studio: Studio, form: Form) -> Any:
    project = studio.project
    document = Document.read(project) if project.schema.exists() else None
    found: dict[str, tuple[str, ...]] = {}
    fault = None
    file = _written(project, document)
    try:
        found = headers(project, file)
    except HedgerowError as problem:
        fault, suggested = _mended(str(problem))
        file = suggested | file
    return studio.page(
        "table",
        "table",
        headers=found,
        most=SHOWN,
        fault=fault,
        file=file,
        document=document,
        links=LINK,
        command=commands.draft(project, project.schema) if not project.is_linked else None,
    )


def save(studio: Studio, form: Form) -> Any:
    """How the file is written; then, where these are the columns, a draft of the schema."""
    project = studio.project
    given = {key: form[key] for key in FILE if form[key]}
    declared_file(dict(given))
    if not form["again"]:
        headers(project, given)
    project.notes.file = given
    if project.schema.exists():
        document = Document.read(project)
        document.data.pop("file", None)
        document.data |= {"file": given} if given else {}
        project.write(project.schema, document.text)
    elif not form["again"]:
        draft(studio, [])
    project.save()
    return studio.go("/table#who")


def _mended(said: str) -> tuple[str, dict[str, str]]:
    """A fault in words of this page, and what its hint would have --file say, which is filled in."""
    before, _, hint = said.partition(" Hint: ")
    found = _OPTION.search(hint)
    if found is None:
        return said, {}
    return f"{before} What it may be is filled in below: read the header again.", {found[1]: found[2]}


def draft(studio: Studio, sources: list[str]) -> None:
    """A schema with what headers and public sources say."""
    project = studio.project
    if project.is_linked:
        project.write(project.schema, skeleton(project.name, headers(project, project.notes.file)).text)
    else:
        words = commands.draft(project, project.schema, sources, overwrite=project.schema.exists())
        studio.finish("draft", words)


def save_person(studio: Studio, form: Form) -> Any:
    """Who a person is; of linked tables, how they hang together."""
    project = studio.project
    document = Document.read(project)
    if document.linked:
        for number, table in enumerate(document.tables):
            document.set_link(table, {key: form[f"{key}-{number}"] for key in LINK})
    else:
        most = str(form.whole("most", "The most rows of a person")) if form["person"] else ""
        document.set_person(form["person"], most)
    project.write(project.schema, document.text)
    project.save()
    return studio.go("/columns")


def _written(project: Project, document: Document | None) -> dict[str, Any]:
    return dict(project.notes.file if document is None else document.data.get("file", {}))


ROUTES = [Step("/table", show, save), Step("/table/person", None, save_person)]
