"""What others have published at, for whoever has to choose ε: facts with their sources, no recommendation."""

from __future__ import annotations

from typing import NamedTuple


class Precedent(NamedTuple):
    """A release of synthetic rows, its ε, and who says so."""

    epsilon: float
    release: str
    note: str
    source: str


_REGISTRY = "OpenDP deployments registry"
PRECEDENTS = (
    Precedent(
        1.0,
        "a national statistics office's linked table of census and deaths",
        "made with MST",
        _REGISTRY,
    ),
    Precedent(
        4.5,
        "United States Census Bureau: demonstration microdata of April 2021, from the census of 2010",
        "published at 12.2 as well",
        "California Department of Finance, Disclosure Avoidance through Differential Privacy",
    ),
    Precedent(
        5.0,
        "SAS and Nationwide: bank accounts and transactions",
        "at most 5 accounts of a customer count; transactions are outside the guarantee",
        _REGISTRY,
    ),
    Precedent(
        9.98,
        "Israel's Ministry of Health: live births of 2014",
        "(4 for fitting + 0.99 for evaluation) × 2 for the choice of a model",
        f"{_REGISTRY}; arXiv:2405.00267",
    ),
    Precedent(12.0, "Microsoft and IOM: victims of trafficking", "", _REGISTRY),
)
