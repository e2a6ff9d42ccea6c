"""The facts that templates may ask for: read off the release, its tables, its publisher and its ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedgerow.budget.presence import group_guarantee
from hedgerow.pages.release import PURPOSES
from hedgerow.publish.catalogues import citation
from hedgerow.publish.counts import names
from hedgerow.publish.publication import Column, Publication, Table
from hedgerow.publish.publisher import QUESTIONS
from hedgerow.publish.sdmx import file_names
from hedgerow.release.certificate import PUBLIC, share_of_whole

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release

MOST_LISTED = 200
"""Values of a column that the codebook lists."""


def facts_of(publication: Publication) -> dict[str, Any]:
    """All of them, by name."""
    return {
        **{key: publication.publisher[key] for key in QUESTIONS},
        **_guarantee(publication),
        **_ledger(publication),
        **_links(publication),
        **_tables(publication),
        **_quality(publication),
        **_making(publication),
    }


def _guarantee(publication: Publication) -> dict[str, Any]:
    certificate = publication.release.certificate
    given = certificate.guarantee
    assert given is not None  # a release without one is not published
    after = 1 / (1 + math.exp(-given.epsilon))
    return {
        "epsilon": f"{given.epsilon:g}",
        "delta": f"{given.delta:g}",
        "mu": "" if given.mu is None else f"{given.mu:.4g}",
        "pure": given.delta == 0,
        "variant": "pure differential privacy" if given.delta == 0 else "approximate differential privacy",
        "factor": f"{math.exp(given.epsilon):.3g}" if given.epsilon < 20 else f"e^{given.epsilon:g}",
        "sure_after": f"{100 * after:.1f}",
        "one_in": f"{1 / given.delta:,.0f}" if given.delta else "",
        "unit": certificate.unit,
        "person": certificate.person,
        "rows_per_person": certificate.rows_per_person,
        "several_rows": certificate.rows_per_person > 1 and not certificate.tables,
        "currency": certificate.whole.currency.value,
        "whole": str(certificate.whole),
        "spent": str(certificate.spent),
        "all_spent": certificate.spent == certificate.whole,
        "households": [
            {"persons": size, "group_epsilon": _number(group.epsilon), "group_delta": _number(group.delta)}
            for size in (2, 3, 4)
            for group in [group_guarantee(certificate.whole, given.delta, size)]
        ],
        "doubts": [{"doubt": said} for said in (*certificate.budget.doubts(), *publication.release.doubts)],
        "notes_of_run": [{"note": note} for note in certificate.notes],
        "public_table": PUBLIC in certificate.notes,
        "unprotected": [{"quantity": said} for said in certificate.unprotected],
    }


def _ledger(publication: Publication) -> dict[str, Any]:
    named = publication.release.certificate.ledger
    said = publication.ledger or {}
    return {
        "ledger": bool(said),
        "in_a_ledger": named is not None,
        "ledger_dataset": "" if named is None else named["dataset"],
        "ledger_cap": _number(said.get("epsilon")),
        "ledger_cap_delta": _number(said.get("delta")),
        "ledger_delta": _number(said.get("spent_delta")),
        "ledger_spent": _number(said.get("spent")),
        "ledger_releases": said.get("releases", ""),
        "ledger_period": said.get("period") or "",
        "ledger_periods": bool(said.get("periods")),
        "ledger_presence": [
            {
                "present": each["present"],
                "opened": each["opened"],
                "spent_epsilon": _number(each["spent"][0]),
                "spent_delta": _number(each["spent"][1]),
                "cap_epsilon": _number(each["caps"][0]),
                "cap_delta": _number(each["caps"][1]),
            }
            for each in said.get("presence", ())
        ],
        "ledger_assertions": [
            {
                "attribute": attribute,
                "names": ", ".join(p["name"] for p in said["periods"] if p["disjoint"] == attribute),
            }
            for attribute in sorted({p["disjoint"] for p in said.get("periods", ())} - {""})
        ],
        "ledger_replaced": said.get("replaced", 0),
    }


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"


def _links(publication: Publication) -> dict[str, Any]:
    """Which rows belong to a unit, and how many of them count."""
    links = publication.release.schema.linked
    places = [(table, place) for table in publication.tables if (place := publication.place(table)) is not None]
    return {
        "linked": links is not None,
        "root": "" if links is None else links.root,
        "root_key": "" if links is None else links.links[links.root].key,
        "hanging": "" if links is None else ", ".join(links.names[1:]),
        "bounds": [
            {"below": place.declared, "above": links.parent(place.declared), "most": f"{place.most:,}"}
            for table, place in places
            if links is not None and place.above is not None
        ],
        "parts": f"{publication.release.parts:,}",
    }


def _linking(publication: Publication, table: Table) -> dict[str, Any]:
    """The keys of a table, and where it links to."""
    place, link = publication.place(table), publication.reference(table)
    return {
        "key": "" if place is None or place.key is None else place.key,
        "link": "" if link is None else link.column,
        "link_table": "" if link is None else link.table.name,
        "link_key": "" if link is None else link.key,
        "hangs": link is not None,
    }


def _said_column(release: Release, name: str) -> str:
    """A column by its name, or in words where nobody declared it."""
    if name not in release.schema.generated:
        return name
    table, _, what = name.partition(".")
    kind, _, inner = what.rstrip(")").partition("(")
    words = {
        "rows": f"how many rows of {inner} a row of {table} has",
        "start": f"where the first row of {inner} stands",
        "left": f"how many rows of {table} follow",
        "step": f"how far a row of {table} lies from the one before it",
    }
    return words.get(kind, name)


def _tables(publication: Publication) -> dict[str, Any]:
    release, certificate = publication.release, publication.release.certificate
    links = release.schema.linked
    misfits = {} if links is None else links.misfits
    columns = [column for table in publication.tables for column in publication.columns(table)]
    return {
        "dataset": certificate.dataset or "a private table",
        "release_file": publication.release_file,
        "tables": [
            {
                "table": table.name,
                "csv": table.csv,
                "parquet": table.parquet,
                "rows": f"{table.rows:,}",
                "seed": table.seed,
                "rows_estimated": table.drawn == release.expected_rows(),
                **_linking(publication, table),
                "column_count": len(publication.columns(table)),
                "columns_of_table": [_column(column) for column in publication.columns(table)],
            }
            for table in publication.tables
        ],
        "column_count": len(columns),
        "counts": [
            {"counts_file": name, "counts_sdmx": exchanged, "counts_of": " × ".join(wanted)}
            for name, exchanged, wanted in zip(
                names(publication.counts), file_names(publication.counts), publication.counts, strict=True
            )
        ],
        "several_tables": len(publication.tables) > 1,
        "discovered": ", ".join(_said_column(release, name) for name in certificate.discovered),
        "invented": ", ".join(column.name for column in columns if column.origin == "invented"),
        "left_out": ", ".join(
            [
                *release.schema.ignore,
                *(f"{name}.{each}" for name, link in release.schema.tables.items() for each in link.ignore),
                *(name for name, each in release.schema.invented.items() if not each.comes_back),
            ]
        ),
        "misfits": bool(release.misfits and release.misfits.seen),
        "misfit_columns": [
            {"column": misfits[each.column].what if each.column in misfits else each.column, "share": each.said}
            for each in (release.misfits.seen if release.misfits else ())
        ],
    }


def _quality(publication: Publication) -> dict[str, Any]:
    """Noisy distances from the private table, where some of the budget bought them."""
    found = publication.release.quality
    worst = None if found is None else found.worst_pair
    means = (
        {} if found is None else {"columns": found.mean_column, "pairs": found.mean_pair, "workload": found.mean_wider}
    )
    return {
        "quality": [{"measured": name, "distance": mean.said} for name, mean in means.items() if mean is not None],
        "worst_pair": "" if worst is None else " × ".join(worst.attributes),
        "worst_pair_at_most": "" if worst is None else f"{100 * min(1.0, max(0.0, worst.upper)):.1f} %",
    }


def _column(column: Column) -> dict[str, Any]:
    shown = column.values[:MOST_LISTED]
    more = len(column.values) - len(shown)
    return {
        "column": column.name,
        "written": column.written,
        "renamed": column.written != column.name,
        "kind": column.kind,
        "about": column.about,
        "origin": column.origin,
        "values": ", ".join(shown) + (f" and {more:,} more" if more else ""),
        "listed": bool(shown),
        "marks": [{"mark": mark or "(empty)", "meaning": said} for mark, said in column.missing.items()],
    }


def _making(publication: Publication) -> dict[str, Any]:
    certificate = publication.release.certificate
    method: Mapping[str, Any] = certificate.method
    shares: dict[str, float] = {}
    for charge in certificate.charges:
        shares[charge.purpose] = shares.get(charge.purpose, 0.0) + share_of_whole(charge, certificate)
    return {
        "method": method["title"],
        "method_name": method["name"],
        "paper": method["paper"],
        "argument": method["argument"],
        "departures": [{"departure": said} for said in method["departures"]],
        "accesses": len(certificate.charges),
        "budget_parts": [{"part": PURPOSES[name], "percent": f"{100 * share:.1f}"} for name, share in shares.items()],
        "mechanisms": ", ".join(sorted({charge.mechanism for charge in certificate.charges})),
        "versions": ", ".join(f"{name} {version}" for name, version in certificate.versions.items()),
        "made_with": ", ".join(f"{name} {version}" for name, version in publication.made_with.items()),
        "hedgerow_version": certificate.versions.get("hedgerow", "unknown"),
        "signed": publication.release.signer is not None,
        "signer": publication.release.signer or "",
        "license_url": publication.publisher.license_url,
        "citation": citation(publication),
    }
