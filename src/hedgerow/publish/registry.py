"""An entry for OpenDP's registry of deployments, of its third tier, as a draft for the publisher to send."""

from __future__ import annotations

import math
from typing import Any

from hedgerow.publish.facts import facts_of
from hedgerow.publish.markdown import escaped
from hedgerow.publish.publication import Publication
from hedgerow.publish.template import filled

SECTIONS = "registry.md"
"""The template whose headings name the keys of the entry, `deployment.accounting.composition` for example."""


def entry(publication: Publication, template: str) -> dict[str, Any]:
    """The entry; what a person writes in it is Markdown, and comes from a template."""
    facts, certificate = publication.publisher, publication.release.certificate
    given = certificate.guarantee
    assert given is not None
    deployment: dict[str, dict[str, Any]] = {
        "basic": {
            "name": escaped(facts["title"]),
            "data_curators": [escaped(facts["publisher"])],
            "description": escaped(facts["description"]),
            "intended_use": escaped(facts["intended_use"]),
            "data_product_type": "Synthetic data",
            "data_product_region": escaped(facts["region"]),
            "publication_date": facts["publication_date"],
        },
        "dp_variant": {"variant_name": "Pure DP" if given.delta == 0 else "Approximate DP"},
        "privacy_loss": {
            "privacy_unit": _unit(publication),
            "privacy_parameters": {"epsilon": math.ceil(given.epsilon * 1e9) / 1e9, "delta": given.delta},
        },
        "deployment_model": {
            "model_name": "Central",
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {},
        "implementation": {},
        "administrative": {"registry_authors": [escaped(name) for name in facts.all("authors")]},
    }
    if facts["sector"]:
        deployment["basic"]["data_product_sector"] = facts["sector"]
    for key, words in _sections(filled(template, facts_of(publication), SECTIONS)):
        part, _, name = key.partition(".")
        deployment[part][name] = words
    return {"url_slug": publication.slug, "status": "Draft", "tier": 3, "deployment": deployment}


def _unit(publication: Publication) -> str:
    links = publication.release.schema.linked
    if links is not None:
        return f"A key of {escaped(links.root)}, with all rows that link to it"
    return "Person" if publication.release.certificate.person else "Row"


def _sections(text: str) -> list[tuple[str, str]]:
    """Headings and what stands under them."""
    parts = [part.partition("\n") for part in ("\n" + text).split("\n## ")[1:]]
    return [(key.strip(), words.strip()) for key, _, words in parts if words.strip()]
