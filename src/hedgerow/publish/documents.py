"""All documents of a folder: what each is called, and how it follows from the publication."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from hedgerow.answers.cells import Tabulating
from hedgerow.pages.release import release_page
from hedgerow.pages.shell import public_page
from hedgerow.publish import catalogues, counts, sdmx
from hedgerow.publish.catalogues import Files
from hedgerow.publish.ddi import codebook
from hedgerow.publish.facts import facts_of
from hedgerow.publish.markdown import page_body, title
from hedgerow.publish.publication import Publication
from hedgerow.publish.registry import SECTIONS, entry
from hedgerow.publish.template import filled

PUBLICATION = "publication.json"
"""What the folder is made of; all other documents follow from it and from the release."""
CATALOGUES = {
    "croissant.json": catalogues.croissant,
    "csvw.json": catalogues.csvw,
    "datapackage.json": catalogues.frictionless,
    "dataset.jsonld": catalogues.schema_org,
    "dcat.jsonld": catalogues.dcat,
}


PAGE = "page.html"


def computed_names(publication: Publication) -> list[str]:
    """The files of `computed`."""
    return [PAGE, *counts.names(publication.counts), *sdmx.file_names(publication.counts)]


def computed(publication: Publication) -> dict[str, bytes]:
    """What floating-point numbers are printed in: the page, for the first table, and tables of counts."""
    first = publication.tables[0]
    made = {PAGE: release_page(publication.release, first.drawn, first.seed).encode()}
    if not publication.counts:
        return made
    tabulating = Tabulating(publication.release)
    names = zip(counts.names(publication.counts), sdmx.file_names(publication.counts), strict=True)
    for number, (columns, (read, exchanged)) in enumerate(zip(publication.counts, names, strict=True), start=1):
        found = counts.counted(publication.release, tabulating, columns)
        made[read] = counts.table(publication.release, found)
        made[exchanged] = sdmx.observations(publication, number, found)
    return made


def documents(publication: Publication, files: Files, translations: Mapping[str, str]) -> dict[str, bytes]:
    """Every document of words, by name. `files` are those that hold data; `translations` are templates by name."""
    facts = facts_of(publication)
    said = {name: filled(template(name), facts, name) for name in ("README.md", "datasheet.md", "codebook.md")}
    statements = {"statement.md": template("statement.md"), **translations}
    said |= {name: filled(text, facts, name) for name, text in statements.items()}
    written = {name: text.encode() for name, text in said.items()}
    written |= {f"{name.removesuffix('.md')}.html": _page(said[name]).encode() for name in statements}
    written |= {name: _json(make(publication, files)) for name, make in CATALOGUES.items()}
    written["ddi.xml"] = codebook(publication, files)
    if publication.counts:
        written[sdmx.STRUCTURE] = sdmx.structure(publication)
    written["registry.yaml"] = _yaml(entry(publication, template(SECTIONS)))
    written["CITATION.cff"] = _yaml(_citation(publication))
    written[PUBLICATION] = _json(publication.to_json())
    return written


def _page(text: str) -> str:
    status = "May be published: made of the release, its publisher's words and nothing else."
    return public_page(title(text), status, page_body(text))


def _citation(publication: Publication) -> dict[str, Any]:
    """CITATION.cff 1.2.0: authors are entities, because nobody can tell a person's name from an office's."""
    facts = publication.publisher
    named = facts.license_name
    return {
        "cff-version": "1.2.0",
        "type": "dataset",
        "message": "If you use this synthetic table, please cite it.",
        "title": facts["title"],
        "abstract": catalogues.abstract(publication),
        "authors": [{"name": name} for name in facts.all("authors")],
        "date-released": facts["publication_date"],
        **({"license": named} if named else {"license-url": facts.license_url}),
        **({"version": facts["version"]} if facts["version"] else {}),
        **({"url": facts["url"]} if facts["url"] else {}),
        "keywords": [*facts.all("keywords"), "synthetic data", "differential privacy"],
    }


@cache
def template(name: str) -> str:
    return resources.files("hedgerow.publish").joinpath("templates", name).read_text(encoding="utf-8")


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def _yaml(data: Any) -> bytes:
    text: str = yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=100)
    return text.encode()
