"""A preset applied to another table of the same kind: its structure by column name, shrunk to what is there.

The table's own declaration says which columns there are and which values they hold; a preset adds bins, heaps and
special values where the declaration has a bare range, groups, and the options of methods. What shrinks, what is left
out and what the preset does not hold is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hedgerow.errors import SchemaError, listing
from hedgerow.schema.presets import PREFIX, Preset, is_schedule

_STRUCTURE = ("bins", "heaps", "special")


def applied(own: Preset, preset: Preset) -> Preset:
    """The table's declaration with the preset's structure. Refused where the two share no column."""
    columns, theirs = dict(own.declared["columns"]), preset.declared["columns"]
    shared = [name for name in columns if name in theirs]
    said = f"{PREFIX}{preset.name}"
    if not shared:
        raise SchemaError(
            "preset-of-other-columns",
            f"{said} speaks of {listing(theirs)}, and of no column that {own.name} declares.",
        )
    notes: list[str] = []
    taken = [name for name in shared if _says_more(columns[name], theirs[name])]
    for name in taken:
        columns[name] = _structured(columns[name], theirs[name])
    if taken:
        notes.append(f"{said}: bins, heaps and special values of {listing(taken)} are the preset's.")
    absent = [name for name in theirs if name not in columns]
    if absent:
        notes.append(f"{said}: {len(absent)} of its columns are not there and left out: {listing(absent)}.")
    strange = [name for name in columns if name not in theirs]
    if strange:
        notes.append(f"{said}: it says nothing of {listing(strange)}.")
    declared = {**own.declared, "columns": columns}
    if "dataset" not in declared and "dataset" in preset.declared:
        declared["dataset"] = preset.declared["dataset"]
    if "person" in preset.declared and "person" not in declared:
        notes.append(
            f"{said} counts people by {preset.declared['person']}; {own.name} names no person, so a row is one."
        )
    groups = [*own.declared.get("groups", []), *_groups(columns, own, preset, said, notes)]
    if groups:
        declared["groups"] = groups
    methods = {
        method: _shrunk(options, columns, f"{said}, {method}", notes) for method, options in preset.methods.items()
    }
    return Preset(own.name, own.about or preset.about, declared, {**methods, **own.methods}, (*own.notes, *notes))


# ------------------------------------------------------------ columns


def _says_more(own: Any, theirs: Any) -> bool:
    """Whether the preset divides a range that the declaration leaves whole, or in equal bins."""
    return (
        isinstance(own, Mapping)
        and isinstance(theirs, Mapping)
        and own.get("type") in ("integer", "number")
        and theirs.get("type") in ("integer", "number")
        and not isinstance(own.get("bins"), list)
        and not own.get("heaps")
        and any(theirs.get(key) for key in _STRUCTURE)
    )


def _structured(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's column; with listed edges, between the declaration's own bounds."""
    edges = theirs.get("bins")
    rest = {key: own[key] for key in ("missing", "other") if key in own}
    if not isinstance(edges, list):
        return {**theirs, **rest}
    low, high = float(own["min"]), float(own["max"])
    inside = [edge for edge in edges if low < float(edge) < high]
    if not inside:
        return dict(own)
    special = list(theirs.get("special", []))
    if theirs.get("closed") == "right" and low in map(float, edges):
        special.append(own["min"])  # the cell of all that is at most the first edge
    found = {**theirs, **rest, "type": own["type"], "min": own["min"], "max": own["max"], "bins": inside}
    return found | ({"special": special} if special else {})


# ------------------------------------------------------------ groups of columns that are one thing


def _groups(
    columns: Mapping[str, Any], own: Preset, preset: Preset, said: str, notes: list[str]
) -> list[dict[str, Any]]:
    taken = {name for group in own.declared.get("groups", []) for name in group["columns"]}
    found = []
    for group in preset.declared.get("groups", []):
        names = [name for name in group["columns"] if name in columns and name not in taken]
        whole = " × ".join(group["columns"])
        if len(names) < 2:
            notes.append(f"{said}: the group {whole} is left out.")
            continue
        if len(names) < len(group["columns"]):
            notes.append(f"{said}: the group {whole} became {' × '.join(names)}.")
        if group["allowed"] == "public":
            found.append({**group, "columns": names})
            continue
        places = [group["columns"].index(name) for name in names]
        rows = [
            list(row) for row in dict.fromkeys(tuple(str(row[place]) for place in places) for row in group["allowed"])
        ]
        kept = [row for row in rows if all(_holds(columns[n], value) for n, value in zip(names, row, strict=True))]
        if not kept:
            notes.append(f"{said}: the group {' × '.join(names)} is left out: it holds none of the declared values.")
            continue
        if len(kept) < len(rows):
            notes.append(f"{said}: {len(rows) - len(kept)} combinations of {' × '.join(names)} hold undeclared values.")
        notes += _unheld(columns, names, kept, said)
        found.append({**group, "columns": names, "allowed": kept})
    return found


def _holds(column: Any, value: str) -> bool:
    """Whether a declaration lists a value, or has a range that it lies in."""
    if not isinstance(column, Mapping):
        return False
    if "values" in column:
        return value in map(str, column["values"])
    if column.get("type") == "code":
        return value.isdigit() and int(value) < int(column["size"])
    try:
        inside = float(column["min"]) <= float(value) <= float(column["max"])
    except (KeyError, ValueError):
        return False
    return inside or value in map(str, column.get("special", []))


def _unheld(columns: Mapping[str, Any], names: Sequence[str], rows: Sequence[Sequence[str]], said: str) -> list[str]:
    """Declared values that stand in no combination: rows with them are in none either."""
    notes = []
    for place, name in enumerate(names):
        held = {row[place] for row in rows}
        lost = [str(value) for value in columns[name].get("values", []) if str(value) not in held]
        if lost:
            notes.append(
                f"{said}: no combination of {' × '.join(names)} holds {name} = {listing(lost)}; rows with it are "
                "counted together as undeclared, and come back as declared combinations."
            )
    return notes


# ------------------------------------------------------------ options


def _shrunk(options: Mapping[str, Any], columns: Mapping[str, Any], said: str, notes: list[str]) -> dict[str, Any]:
    """The options without the columns that are not there."""

    def there(name: Any) -> bool:
        column, _, part = str(name).partition(":")
        return column in columns and (part != "heap" or bool(columns[column].get("heaps")))

    found: dict[str, Any] = {}
    for option, value in options.items():
        if option in ("groups", "marginals", "forced") and isinstance(value, list):
            least = 1 if option == "groups" else 2
            found[option] = _entries(value, there, least, f"{said}: {option}", notes)
        elif option in ("exempt", "segments") and isinstance(value, list):
            found[option] = [name for name in value if there(name)]
        elif option == "columns" and isinstance(value, Mapping):
            found[option] = {name: weight for name, weight in value.items() if there(name)}
        else:
            found[option] = value
    return found


def _entries(
    entries: Sequence[Any], there: Callable[[Any], bool], least: int, said: str, notes: list[str]
) -> list[Any]:
    """Lists of columns, or mappings with `columns`, each shrunk to what is there, and left out where too little is."""
    found: list[Any] = []
    fewer = gone = 0
    for entry in entries:
        names = entry["columns"] if isinstance(entry, Mapping) else entry
        kept = [name for name in names if there(name)]
        gone += len(kept) < least
        fewer += least <= len(kept) < len(names)
        if len(kept) >= least:
            found.append(_with_columns(entry, kept))
    if fewer or gone:
        notes.append(f"{said}: {len(found)} of {len(entries)} are left, {fewer} of them with fewer columns.")
    return found


def _with_columns(entry: Any, names: list[Any]) -> Any:
    if not isinstance(entry, Mapping):
        return names
    levels = entry.get("levels", {})
    kept = {name: starts for name, starts in levels.items() if name in names} if not is_schedule(levels) else levels
    changed = {**entry, "columns": names}
    if "levels" in changed:
        changed = {**changed, "levels": kept} if kept else {k: v for k, v in changed.items() if k != "levels"}
    return changed
