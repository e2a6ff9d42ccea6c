"""SDMX, as statistical offices exchange tables: the structure of every table of counts, and its observations.

The structure is an SDMX-ML 2.1 message: a code list for each column, a data structure and a dataflow for each table.
The observations are SDMX-CSV 1.0. Names of columns and values may hold anything and identifiers may not, so columns are
`D1`, `D2`, … by their place in the schema, values are `V1`, `V2`, … by theirs in the column, and what they are called
stands beside them in the structure.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from xml.etree import ElementTree

from hedgerow.errors import visible
from hedgerow.publish.counts import Counted, attributes, names
from hedgerow.publish.publication import Publication

STRUCTURE = "sdmx.xml"
VERSION = "1.0"
_MESSAGE = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"
_STRUCTURE = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"
_COMMON = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common"
_MEASURE = ("OBS_VALUE", "What the model expects in the cell")
_KNOWN = {
    "LOW": "The lower end of a 90 % interval for the private table's own count",
    "HIGH": "The upper end of that interval",
    "BASIS": "What the interval rests on: measured, modelled or assumed",
    "NOISE_STD": "Standard deviation of the noise of a cell, where just these columns were counted together",
    "DISTANCE": "Measured total variation distance of the whole table from the private one",
    "DISTANCE_STD": "Standard deviation of the noise in that distance",
}
for _prefix, _space in (("mes", _MESSAGE), ("str", _STRUCTURE), ("com", _COMMON)):
    ElementTree.register_namespace(_prefix, _space)


def file_names(wanted: tuple[tuple[str, ...], ...]) -> list[str]:
    """The observations of each table, beside the file that people read."""
    return [name.replace(".csv", ".sdmx.csv") for name in names(wanted)]


def observations(publication: Publication, number: int, counted: Counted) -> bytes:
    """One table as SDMX-CSV, an observation for each cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    places = _places(publication)
    writer.writerow(["DATAFLOW", *(places[name] for name in counted.cells.attributes), _MEASURE[0], *_KNOWN])
    flow = f"{_agency(publication)}:COUNTS_{number}({VERSION})"
    for codes, said in counted.lines:
        writer.writerow([flow, *(f"V{code + 1}" for code in codes), *said])
    return text.getvalue().encode()


def structure(publication: Publication) -> bytes:
    """The message that says what the identifiers of all tables mean."""
    agency, places, release = _agency(publication), _places(publication), publication.release
    tables = [attributes(release, columns) for columns in publication.counts]
    used = [name for name in places if any(name in table for table in tables)]
    owned = {"agencyID": agency, "version": VERSION}
    root = ElementTree.Element(f"{{{_MESSAGE}}}Structure")
    header = _under(root, _MESSAGE, "Header")
    _under(header, _MESSAGE, "ID", "COUNTS")
    _under(header, _MESSAGE, "Test", "false")
    _under(header, _MESSAGE, "Prepared", f"{publication.publisher['publication_date']}T00:00:00")
    _under(header, _MESSAGE, "Sender", id=agency)
    body = _under(root, _MESSAGE, "Structures")

    flows = _under(body, _STRUCTURE, "Dataflows")
    for number, table in enumerate(tables, start=1):
        flow = _named(flows, "Dataflow", f"COUNTS_{number}", " × ".join(table), **owned)
        _refers(flow, "Structure", "DataStructure", "datastructure", id=f"COUNTS_{number}", **owned)
    lists = _under(body, _STRUCTURE, "Codelists")
    for name in used:
        listed = _named(lists, "Codelist", f"CL_{places[name]}", name, **owned)
        for code, label in enumerate(release.encoding.labels(name), start=1):
            _named(listed, "Code", f"V{code}", label)
    concepts = _named(_under(body, _STRUCTURE, "Concepts"), "ConceptScheme", "CONCEPTS", "Columns and figures", **owned)
    for identity, said in ({places[name]: name for name in used} | dict([_MEASURE]) | _KNOWN).items():
        _named(concepts, "Concept", identity, said)
    structures = _under(body, _STRUCTURE, "DataStructures")
    for number, table in enumerate(tables, start=1):
        one = _named(structures, "DataStructure", f"COUNTS_{number}", " × ".join(table), **owned)
        components = _under(one, _STRUCTURE, "DataStructureComponents")
        dimensions = _under(components, _STRUCTURE, "DimensionList", id="DimensionDescriptor")
        for position, name in enumerate(table, start=1):
            dimension = _component(dimensions, "Dimension", places[name], agency, position=str(position))
            represented = _under(dimension, _STRUCTURE, "LocalRepresentation")
            _refers(represented, "Enumeration", "Codelist", "codelist", id=f"CL_{places[name]}", **owned)
        figures = _under(components, _STRUCTURE, "AttributeList", id="AttributeDescriptor")
        for name in _KNOWN:
            attribute = _component(figures, "Attribute", name, agency, assignmentStatus="Conditional")
            _written(attribute, "String" if name == "BASIS" else "Decimal")
            _refers_to_measure(attribute)
        measures = _under(components, _STRUCTURE, "MeasureList", id="MeasureDescriptor")
        _written(_component(measures, "PrimaryMeasure", _MEASURE[0], agency), "Decimal")
    ElementTree.indent(root, " ")
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _agency(publication: Publication) -> str:
    """The publisher's name in the letters of an identifier."""
    plain = unicodedata.normalize("NFKD", publication.publisher["publisher"]).encode("ascii", "ignore").decode()
    letters = re.sub("[^A-Z0-9]+", "_", plain.upper()).strip("_")
    return letters if letters[:1].isalpha() else f"PUBLISHER_{letters}".rstrip("_")


def _places(publication: Publication) -> dict[str, str]:
    return {name: f"D{place}" for place, name in enumerate(publication.release.model.domain.names, start=1)}


def _named(parent: ElementTree.Element, element: str, identity: str, name: str, /, **owned: str) -> ElementTree.Element:
    made = _under(parent, _STRUCTURE, element, id=identity, **owned)
    _under(made, _COMMON, "Name", name)
    return made


def _component(
    parent: ElementTree.Element, element: str, identity: str, agency: str, /, **held: str
) -> ElementTree.Element:
    made = _under(parent, _STRUCTURE, element, id=identity, **held)
    scheme = {"maintainableParentID": "CONCEPTS", "maintainableParentVersion": VERSION, "agencyID": agency}
    _refers(made, "ConceptIdentity", "Concept", "conceptscheme", id=identity, **scheme)
    return made


def _written(component: ElementTree.Element, kind: str) -> None:
    represented = _under(component, _STRUCTURE, "LocalRepresentation")
    _under(represented, _STRUCTURE, "TextFormat", textType=kind)


def _refers(parent: ElementTree.Element, element: str, kind: str, package: str, /, **target: str) -> None:
    _under(_under(parent, _STRUCTURE, element), "", "Ref", **target, **{"class": kind, "package": package})


def _refers_to_measure(attribute: ElementTree.Element) -> None:
    relation = _under(attribute, _STRUCTURE, "AttributeRelationship")
    _under(_under(relation, _STRUCTURE, "PrimaryMeasure"), "", "Ref", id=_MEASURE[0])


def _under(
    parent: ElementTree.Element, space: str, element: str, text: str = "", /, **held: str
) -> ElementTree.Element:
    seen = {key: visible(value) for key, value in held.items()}
    made = ElementTree.SubElement(parent, f"{{{space}}}{element}" if space else element, seen)
    if text:
        made.text = visible(text)
    return made
