"""What the user wants right: marginals with weights, named by the table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.coded.domain import Domain, Marginal, Workload
from hedgerow.curator import Curator
from hedgerow.errors import OptionError, listing, suggestion

EMPHASIS = 4.0
"""How much more a marginal weighs that contains the target column."""
MOST_MARGINALS = 200_000
"""What a degree may come to: all triples of 107 columns. Where it is more, the degree is lowered, down to pairs."""


Listed = tuple[tuple[tuple[str, ...], float], ...]
"""Marginals as columns, each with its weight: a workload that was handed in, and not read from a file."""


def read_workload(value: Any) -> str | Listed:
    """A degree or a file as text; otherwise columns and weights: `[["age", "sex"]]`, `{("age", "sex"): 2.0}`."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        value = [{"columns": list(columns), "weight": weight} for columns, weight in value.items()]
    if not isinstance(value, list | tuple) or not value:
        raise OptionError(
            "bad-workload", "a workload is a degree, a file, or a list of marginals, each a list of columns."
        )
    entries = [_entry(entry, "the workload", number) for number, entry in enumerate(value, start=1)]
    return tuple((tuple(columns), weight) for columns, weight in entries)


def listed_workload(workload: str | Listed) -> str | Listed:
    """A workload whose file was read: a release then says what it holds, and not what it was called."""
    if not isinstance(workload, str) or workload.isdigit():
        return workload
    return tuple((tuple(columns), weight) for columns, weight in _entries(Path(workload)))


def workload_of(curator: Curator, workload: str | Listed, target: str = "") -> Workload:
    """All marginals of a degree (1, 2, 3 …) or those of a list or file, those with the target column weighing more.

    On tables of very many columns the degree is lowered, and where there are too many pairs lots decide which: nothing
    could go through all of them round by round.
    """
    if not isinstance(workload, str):
        wanted = _weighted(workload, curator.domain, curator.columns)
    elif workload.isdigit() and int(workload) > 0:
        degree = _feasible(int(workload), len(curator.domain))
        wanted = (
            Workload.degree(curator.domain, degree)
            if degree != 2
            else Workload(dict.fromkeys(some_pairs(curator), 1.0))
        )
    else:
        wanted = _from_file(Path(workload), curator.domain, curator.columns)
    if not target:
        return wanted
    targets = set(_attributes(target, curator.columns))
    return Workload(
        {
            marginal: weight * (EMPHASIS if targets & set(marginal) else 1.0)
            for marginal, weight in wanted.weights.items()
        }
    )


def declared_workload(method: object, curator: Curator) -> Workload:
    """The marginals that the user listed for a method; none where a degree is all that was said."""
    said = getattr(method, "workload", "1")
    return Workload({}) if isinstance(said, str) and said.isdigit() else workload_of(curator, said)


def _feasible(degree: int, columns: int) -> int:
    while degree > 2 and comb(columns, degree) > MOST_MARGINALS:
        degree -= 1
    return degree


def some_pairs(curator: Curator, most: int = MOST_MARGINALS) -> list[Marginal]:
    """All pairs of attributes; where there are more than so many, some of them by lot."""
    names = curator.domain.names
    count = comb(len(names), 2)
    if count <= most:
        return list(combinations(names, 2))
    lots = np.sort(curator.rng.choice(count, size=most, replace=False, shuffle=False))
    # lot k is the pair (i, j), i < j, with k = j·(j − 1)/2 + i
    later = ((1 + np.sqrt(1 + 8 * lots.astype(np.float64))) / 2).astype(np.int64)
    later -= later * (later - 1) // 2 > lots
    later += later * (later + 1) // 2 <= lots
    earlier = lots - later * (later - 1) // 2
    return [(names[i], names[j]) for i, j in zip(earlier.tolist(), later.tolist(), strict=True)]


def by_lot(curator: Curator, marginals: Sequence[Marginal], most: int) -> Sequence[Marginal]:
    """All of the marginals, or so many of them by lot."""
    if len(marginals) <= most:
        return marginals
    return [marginals[lot] for lot in np.sort(curator.rng.permutation(len(marginals))[:most]).tolist()]


def closure(workload: Workload, domain: Domain) -> dict[Marginal, float]:
    """Every non-empty part of a marginal in the workload, weighing Σ over the workload of weight · overlap.

    This is AIM's candidate set (McKenna, Mullins, Sheldon, Miklau 2022, §3.2).
    """
    parts = dict.fromkeys(
        part
        for marginal in workload.weights
        for size in range(1, len(marginal) + 1)
        for part in combinations(marginal, size)
    )
    shared: dict[Marginal, float] = {}
    for part in parts:
        shared[domain.marginal(part)] = 0.0
    # Σ_s c_s·|r ∩ s| splits over the attributes of r, so one pass over the workload is enough
    of_attribute = dict.fromkeys(domain.names, 0.0)
    for marginal, weight in workload.weights.items():
        for name in marginal:
            of_attribute[name] += weight
    return {part: sum(of_attribute[name] for name in part) for part in shared}


def stood_for(columns: Mapping[str, Marginal], marginals: Sequence[Marginal]) -> list[float]:
    """A marginal weighs as many marginals of columns as it stands for."""
    held: dict[str, int] = {}
    for attributes in columns.values():
        for name in attributes:
            held[name] = held.get(name, 0) + 1
    return [float(np.prod([held.get(name, 1) for name in marginal])) for marginal in marginals]


def _from_file(path: Path, domain: Domain, columns: Mapping[str, Marginal]) -> Workload:
    return _weighted(_entries(path), domain, columns)


def _entries(path: Path) -> list[tuple[Sequence[str], float]]:
    """A YAML or JSON list: each entry a list of columns, or {columns: […], weight: 2}."""
    import yaml

    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError:
        raise OptionError(
            "bad-workload", f'the workload "{path}" is neither a degree (1, 2, 3) nor a file that can be read.'
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise OptionError("bad-workload", f'the workload file "{path}" is not valid YAML or JSON.') from None
    if not isinstance(entries, list) or not entries:
        raise OptionError("bad-workload", f'the workload file "{path}" must hold a list of marginals.')
    where = f'the workload file "{path}"'
    return [_entry(entry, where, number) for number, entry in enumerate(entries, start=1)]


def _weighted(
    entries: Sequence[tuple[Sequence[str], float]], domain: Domain, columns: Mapping[str, Marginal]
) -> Workload:
    weights: dict[Marginal, float] = {}
    for names, weight in entries:
        marginal = domain.marginal(name for column in names for name in _attributes(column, columns))
        weights[marginal] = weights.get(marginal, 0.0) + weight
    return Workload(weights)


def _entry(entry: Any, where: str, number: int) -> tuple[Sequence[str], float]:
    """Columns; {columns: […], weight: 2}; or, as a certificate writes it, [[columns], weight]."""
    names, weight = entry, 1.0
    if isinstance(entry, dict):
        names, weight = entry.get("columns"), entry.get("weight", 1.0)
    elif isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], list | tuple):
        names, weight = entry
    if not isinstance(names, list | tuple) or not names or not isinstance(weight, int | float):
        raise OptionError(
            "bad-workload", f"entry {number} of {where} must be a list of columns, or columns and a weight."
        )
    return [str(name) for name in names], float(weight)


def _attributes(column: str, columns: Mapping[str, Marginal]) -> Marginal:
    if column not in columns:
        raise OptionError(
            "unknown-column", f'unknown column "{column}"; columns: {listing(columns)}.{suggestion(column, columns)}'
        )
    return columns[column]
