"""DDI-Codebook 2.5, as archives and statistical offices read it: the study, the file, and every variable."""

from __future__ import annotations

from xml.etree import ElementTree

from hedgerow.errors import visible
from hedgerow.publish.catalogues import MOST_VALUES, Files, abstract
from hedgerow.publish.publication import Column, Publication

NAMESPACE = "ddi:codebook:2_5"
_NUMERIC = ("integer", "number")


def codebook(publication: Publication, files: Files) -> bytes:
    """The document as XML."""
    facts = publication.publisher
    root = ElementTree.Element("codeBook", {"xmlns": NAMESPACE, "version": "2.5"})
    study = _under(root, "stdyDscr")
    citation = _under(study, "citation")
    title = _under(citation, "titlStmt")
    _under(title, "titl", facts["title"])
    responsible = _under(citation, "rspStmt")
    for author in facts.all("authors"):
        _under(responsible, "AuthEnty", author)
    produced = _under(citation, "prodStmt")
    _under(produced, "producer", facts["publisher"])
    _under(produced, "software", "Hedgerow", version=publication.made_with["hedgerow"])
    distributed = _under(citation, "distStmt")
    _under(distributed, "distDate", facts["publication_date"], date=facts["publication_date"])
    if facts["version"]:
        _under(_under(citation, "verStmt"), "version", facts["version"])
    about = _under(study, "stdyInfo")
    subject = _under(about, "subject")
    for word in (*facts.all("keywords"), "synthetic data", "differential privacy"):
        _under(subject, "keyword", word)
    _under(about, "abstract", abstract(publication))
    summary = _under(about, "sumDscr")
    _under(summary, "geogCover", facts["region"])
    _under(summary, "universe", facts["people"])
    _under(summary, "dataKind", "Synthetic data")
    method = _under(_under(study, "method"), "dataColl")
    _under(method, "collMode", facts["collection"])
    access = _under(_under(study, "dataAccs"), "useStmt")
    _under(access, "conditions", facts.license_url)
    variables = [(table, column) for table in publication.tables for column in publication.columns(table)]
    numbers = {(table.name, column.name): f"V{place}" for place, (table, column) in enumerate(variables, start=1)}
    owners = {table.name: f"F{place}" for place, table in enumerate(publication.tables, start=1)}
    for table in publication.tables:
        text = _under(_under(root, "fileDscr", ID=owners[table.name], URI=table.csv), "fileTxt")
        _under(text, "fileName", table.csv)
        place = publication.place(table)
        if place is not None:
            key = {"keyvar": numbers[table.name, place.key]} if place.key is not None else {}
            _under(_under(text, "fileStrc", type="relational"), "recGrp", **key)
        size = _under(text, "dimensns")
        _under(size, "caseQnty", str(table.rows))
        _under(size, "varQnty", str(len(publication.columns(table))))
        _under(text, "fileType", files[table.csv].name.rpartition(".")[2])
    described = _under(root, "dataDscr")
    for table, column in variables:
        _variable(described, numbers[table.name, column.name], column, owners[table.name])
    ElementTree.indent(root, " ")
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _variable(parent: ElementTree.Element, number: str, column: Column, file: str) -> None:
    numeric = column.kind in _NUMERIC
    interval = {"intrvl": "contin" if column.kind == "number" else "discrete"}
    variable = _under(parent, "var", ID=number, name=column.written, files=file, **interval)
    _under(variable, "labl", column.name)
    if column.least is not None and column.most is not None:
        bounds = {"min": str(column.least), "max": str(column.most)}
        _under(_under(variable, "valrng"), "range", **bounds)
    _under(variable, "txt", column.about)
    for value in column.values[:MOST_VALUES]:
        missing = {"missing": "Y"} if value in column.missing else {}
        category = _under(variable, "catgry", **missing)
        _under(category, "catValu", value)
        _under(category, "labl", column.missing.get(value, value))
    _under(variable, "varFormat", type="numeric" if numeric else "character")


def _under(parent: ElementTree.Element, element_name: str, text: str = "", /, **attributes: str) -> ElementTree.Element:
    held = {key: visible(value) for key, value in attributes.items()}
    element = ElementTree.SubElement(parent, element_name, held)
    if text:
        element.text = visible(text, keep="\n\t")
    return element
