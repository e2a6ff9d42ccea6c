"""What catalogues read: Croissant, CSVW, Frictionless, schema.org and DCAT. Each is a dictionary, written as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hedgerow.publish.publication import Column, File, Publication, Table
from hedgerow.schema.spreadsheets import guarded_name

MOST_VALUES = 1000
"""Values that a catalogue lists; the codebook and the release hold all of them."""
CSV, PARQUET, RELEASE = "text/csv", "application/vnd.apache.parquet", "application/zip"
DATETIME = "%Y-%m-%d %H:%M:%S"

Files = Mapping[str, File]


def abstract(publication: Publication) -> str:
    """The description with one sentence on what was promised, for readers who see nothing else."""
    given = publication.release.guarantee
    unit = publication.release.certificate.unit
    return (
        f"{publication.publisher['description']} Synthetic data: no row stands for a person. Made under "
        f"differential privacy with ε = {given.epsilon:g}, δ = {given.delta:g} for each {unit}; see statement.md."
    )


# ---------------------------------------------------------------- schema.org and Croissant


def schema_org(publication: Publication, files: Files) -> dict[str, Any]:
    """schema.org/Dataset, for search engines."""
    return {"@context": "https://schema.org/", **_dataset(publication, files, "DataDownload")}


def croissant(publication: Publication, files: Files) -> dict[str, Any]:
    """Croissant 1.0 (MLCommons), for machine learning tools."""
    data = {
        "@context": _CROISSANT,
        **_dataset(publication, files, "cr:FileObject"),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "citeAs": citation(publication),
        "recordSet": [_record_set(publication, table) for table in publication.tables],
    }
    for file in data["distribution"]:
        file["@id"] = file["name"]
        if file["encodingFormat"] == PARQUET:
            file["encodingFormat"] = "application/x-parquet"  # as Croissant calls it
    return data


def citation(publication: Publication) -> str:
    facts = publication.publisher
    version = f", version {facts['version']}" if facts["version"] else ""
    return f"{facts['authors']} ({facts['publication_date'][:4]}): {facts['title']}{version}. {facts['publisher']}."


def _dataset(publication: Publication, files: Files, kind: str) -> dict[str, Any]:
    facts = publication.publisher
    return _present(
        {
            "@type": "Dataset",
            "name": facts["title"],
            "description": abstract(publication),
            "url": facts["url"],
            "version": facts["version"],
            "license": facts.license_url,
            "datePublished": facts["publication_date"],
            "creator": [{"@type": "Organization", "name": name} for name in facts.all("authors")],
            "publisher": {"@type": "Organization", "name": facts["publisher"]},
            "keywords": [*facts.all("keywords"), "synthetic data", "differential privacy"],
            "spatialCoverage": facts["region"],
            "measurementTechnique": f"{publication.release.certificate.method['title']}, under differential privacy",
            "variableMeasured": [
                {"@type": "PropertyValue", "name": column.name, "description": column.about}
                for table in publication.tables
                for column in publication.columns(table)
            ]
            if kind == "DataDownload"
            else None,
            "distribution": [_download(file, kind) for file in _data_files(publication, files)],
        }
    )


def _data_files(publication: Publication, files: Files) -> list[tuple[File, str, str]]:
    """The files that hold data, each with its type and what it is."""
    found = [
        (files[name], form, f"{table.rows:,} synthetic rows")
        for table in publication.tables
        for name, form in ((table.csv, CSV), (table.parquet, PARQUET))
    ]
    said = "The release: model, noisy answers and certificate, from which the rows were drawn"
    return [*found, (files[publication.release_file], RELEASE, said)]


def _download(file: tuple[File, str, str], kind: str) -> dict[str, Any]:
    held, form, said = file
    return {
        "@type": kind,
        "name": held.name,
        "description": said,
        "contentUrl": held.name,
        "contentSize": f"{held.size} B",
        "encodingFormat": form,
        "sha256": held.sha256,
    }


def _record_set(publication: Publication, table: Table) -> dict[str, Any]:
    kinds = {"string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float", "boolean": "sc:Boolean"}
    place = publication.place(table)
    key, link = (None, None) if place is None else (place.key, publication.reference(table))
    fields = [
        {
            "@type": "cr:Field",
            "@id": _field_id(table, column.name),
            "name": column.name,
            "description": column.about,
            "dataType": kinds.get(column.kind, "sc:Date" if column.kind == "date" else "sc:DateTime"),
            "source": {"fileObject": {"@id": table.parquet}, "extract": {"column": column.name}},
            **(
                {"references": {"field": {"@id": _field_id(link.table, link.key)}}}
                if link is not None and column.name == link.column
                else {}
            ),
        }
        for column in publication.columns(table)
    ]
    return _present(
        {
            "@type": "cr:RecordSet",
            "@id": table.name,
            "name": table.name,
            "description": "Synthetic rows; none stands for a person.",
            "key": {"@id": _field_id(table, key)} if key else None,
            "field": fields,
        }
    )


def _field_id(table: Table, column: str) -> str:
    return f"{table.name}/{quote(column, safe='')}"


_CROISSANT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
            "transform",
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
}  # fmt: skip


# ---------------------------------------------------------------- Frictionless


def frictionless(publication: Publication, files: Files) -> dict[str, Any]:
    """A data package (Frictionless Data Package 1), with a schema that a table can be checked against."""
    facts = publication.publisher
    return _present(
        {
            "profile": "tabular-data-package",
            "name": re.sub("[^a-z0-9._-]+", "-", publication.slug),
            "title": facts["title"],
            "description": abstract(publication),
            "homepage": facts["url"],
            "version": facts["version"],
            "licenses": [_present({"name": facts.license_name, "path": facts.license_url})],
            "contributors": [
                *({"title": name, "role": "author"} for name in facts.all("authors")),
                {"title": facts["publisher"], "role": "publisher"},
            ],
            "keywords": list(facts.all("keywords")),
            "resources": [_resource(publication, table, files) for table in publication.tables],
        }
    )


def _resource(publication: Publication, table: Table, files: Files) -> dict[str, Any]:
    file = files[table.csv]
    schema = {
        "fields": [_field(column) for column in publication.columns(table)],
        "missingValues": [""],
        **_frictionless_keys(publication, table),
    }
    return {
        "profile": "tabular-data-resource",
        "name": _resource_name(table),
        "path": table.csv,
        "format": "csv",
        "mediatype": CSV,
        "encoding": "utf-8",
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
        "schema": schema,
    }


def _frictionless_keys(publication: Publication, table: Table) -> dict[str, Any]:
    place, link = publication.place(table), publication.reference(table)
    found: dict[str, Any] = {}
    if place is not None and place.key is not None:
        found["primaryKey"] = guarded_name(place.key)
    if link is not None:
        there = {"resource": _resource_name(link.table), "fields": guarded_name(link.key)}
        found["foreignKeys"] = [{"fields": guarded_name(link.column), "reference": there}]
    return found


def _resource_name(table: Table) -> str:
    return table.name.lower()


def _field(column: Column) -> dict[str, Any]:
    bounds = {"minimum": column.least, "maximum": column.most} if column.kind in ("integer", "number", "date") else {}
    listed = {"enum": list(column.values)} if 0 < len(column.values) <= MOST_VALUES else {}
    constraints = {key: value for key, value in {**bounds, **listed}.items() if value is not None}
    return _present(
        {
            "name": column.written,
            "type": column.kind,
            "format": DATETIME if column.kind == "datetime" else None,
            "description": column.about,
            "constraints": constraints,
        }
    )


# ---------------------------------------------------------------- CSVW


def csvw(publication: Publication, files: Files) -> dict[str, Any]:
    """CSV on the Web (W3C 2015)."""
    facts = publication.publisher
    return {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "dc:title": facts["title"],
        "dc:description": abstract(publication),
        "dc:publisher": facts["publisher"],
        "dc:license": {"@id": facts.license_url},
        "dc:issued": {"@value": facts["publication_date"], "@type": "xsd:date"},
        "tables": [{"url": table.csv, "tableSchema": _csvw_schema(publication, table)} for table in publication.tables],
    }


def _csvw_schema(publication: Publication, table: Table) -> dict[str, Any]:
    place, link = publication.place(table), publication.reference(table)
    ids = set() if place is None else {place.key, place.link}
    columns = []
    for column in publication.columns(table):
        named = {"name": _csvw_name(column.name)} if column.name in ids else {}
        columns.append({**named, **_csvw_column(column)})
    found: dict[str, Any] = {"columns": columns}
    if place is not None and place.key is not None:
        found["primaryKey"] = _csvw_name(place.key)
    if link is not None:
        there = {"resource": link.table.csv, "columnReference": _csvw_name(link.key)}
        found["foreignKeys"] = [{"columnReference": _csvw_name(link.column), "reference": there}]
    return found


def _csvw_name(column: str) -> str:
    """A name by which keys are spoken of: what a URI template takes for a variable, and no leading underscore."""
    named = quote(column, safe="").replace("-", "%2D").replace("~", "%7E")
    return re.sub("^_", "%5F", named)


def _csvw_column(column: Column) -> dict[str, Any]:
    datatype: dict[str, Any] = {"base": {"datetime": "dateTime"}.get(column.kind, column.kind)}
    if column.kind == "datetime":
        datatype["format"] = "yyyy-MM-dd HH:mm:ss"
    elif column.kind in ("integer", "number", "date"):
        datatype |= {"minimum": column.least, "maximum": column.most}
    elif 0 < len(column.values) <= MOST_VALUES:
        datatype["format"] = "|".join(re.escape(value) for value in column.values)
    return {
        "titles": column.written,
        "dc:description": column.about,
        "datatype": {key: value for key, value in datatype.items() if value is not None},
    }


# ---------------------------------------------------------------- DCAT


def dcat(publication: Publication, files: Files) -> dict[str, Any]:
    """DCAT 3 (W3C), as JSON-LD, for open-data portals."""
    facts = publication.publisher
    return {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
            "spdx": "http://spdx.org/rdf/terms#",
            "vcard": "http://www.w3.org/2006/vcard/ns#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
        },
        **({"@id": facts["url"]} if facts["url"] else {}),
        "@type": "dcat:Dataset",
        **_present(
            {
                "dct:title": facts["title"],
                "dct:description": abstract(publication),
                "dct:issued": {"@value": facts["publication_date"], "@type": "xsd:date"},
                "dct:publisher": {"@type": "foaf:Organization", "foaf:name": facts["publisher"]},
                "dct:license": {"@id": facts.license_url},
                "dct:spatial": {"@type": "dct:Location", "rdfs:label": facts["region"]},
                "dcat:contactPoint": _contact(facts["publisher"], facts["contact"]),
                "dcat:keyword": [*facts.all("keywords"), "synthetic data", "differential privacy"],
                "dcat:version": facts["version"],
                "dcat:distribution": [
                    {
                        "@type": "dcat:Distribution",
                        "dct:title": file.name,
                        "dct:description": said,
                        "dct:license": {"@id": facts.license_url},
                        "dcat:accessURL": {"@id": facts["url"] or file.name},
                        "dcat:downloadURL": {"@id": file.name},
                        "dcat:mediaType": {"@id": f"https://www.iana.org/assignments/media-types/{form}"},
                        "dcat:byteSize": {"@value": str(file.size), "@type": "xsd:nonNegativeInteger"},
                        "spdx:checksum": {
                            "@type": "spdx:Checksum",
                            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
                            "spdx:checksumValue": {"@value": file.sha256, "@type": "xsd:hexBinary"},
                        },
                    }
                    for file, form, said in _data_files(publication, files)
                ],
            }
        ),
    }


def _contact(publisher: str, contact: str) -> dict[str, Any]:
    """Whom to ask, by mail or at an address; where it is neither, as it was written."""
    found: dict[str, Any] = {"@type": "vcard:Organization", "vcard:fn": publisher}
    if re.fullmatch(r"[^\s@<>\"]+@[^\s@<>\"]+", contact):
        return found | {"vcard:hasEmail": {"@id": f"mailto:{contact}"}}
    if re.fullmatch(r"https?://[^\s<>\"]+", contact):
        return found | {"vcard:hasURL": {"@id": contact}}
    return found | {"vcard:note": contact}


def _present(data: dict[str, Any]) -> dict[str, Any]:
    """Without what was left out."""
    return {key: value for key, value in data.items() if value not in (None, "", [], {})}
