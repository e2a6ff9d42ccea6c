"""The tables that a publisher named beforehand, as a release of `residual` holds them: counts, and how far each is off.

They are not the synthetic table's: they are what was measured, unbiased, in agreement with each other, and each with
the standard deviation of its noise. Some are below 0, because noise is; a synthetic table cannot say that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.coded.domain import Counts, Marginal
from hedgerow.errors import OptionError
from hedgerow.models.interactions import Asked, Interactions
from hedgerow.release.files import whole_folder, write_table

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.release.bundle import Release

COUNT, STD = "count", "std"


@dataclass(frozen=True, eq=False)
class NamedTable:
    """Counts over some columns: an axis for each, in the order of `columns`, and a label for each place along it."""

    columns: Marginal
    labels: tuple[tuple[str, ...], ...]
    values: Counts
    std: Counts

    def table(self) -> pa.Table:
        """A row for each count."""
        import pyarrow as pa

        held = list(product(*self.labels)) or [()]
        arrays: dict[str, Any] = {
            name: pa.array([row[axis] for row in held], pa.string()) for axis, name in enumerate(self.columns)
        }
        taken = set(arrays)
        for name, numbers in ((COUNT, self.values), (STD, self.std)):
            arrays[name if name not in taken else f"{name} of rows"] = pa.array(numbers.reshape(-1))
        return pa.table(arrays)

    def to_pandas(self) -> Any:
        """The same as a frame."""
        return self.table().to_pandas()

    def __repr__(self) -> str:
        what = " × ".join(self.columns) or "total"
        return f"NamedTable({what}: {self.values.size:,} counts, std={self.std.min():.3g} to {self.std.max():.3g})"


def named_tables(release: Release) -> list[Marginal]:
    """The tables that were named when the release was made."""
    held = _held(release)
    said = release.certificate.method["options"].get("workload")
    if isinstance(said, str):
        widest = held.widest
        return sorted(widest, key=lambda table: [release.encoding.domain.index(name) for name in table])
    tables = [tuple(columns) for columns, _ in said]
    coding = (dict.fromkeys(a for column in table for a in release.encoding.attributes_of(column)) for table in tables)
    return list(dict.fromkeys(release.encoding.domain.marginal(names) for names in coding))


def named_table(release: Release, columns: Sequence[str], ask: Mapping[str, Any] | None = None) -> NamedTable:
    """The counts over some columns. `ask` is what is wanted of them, as for the method; by default what it was told."""
    encoding, held = release.encoding, _held(release)
    attributes = [name for column in columns for name in _attributes(release, column)]
    marginal = encoding.domain.marginal(attributes)
    said = dict(release.certificate.method["options"].get("ask", ())) if ask is None else dict(ask)
    asked = {}
    for column, wanted in said.items():
        if column not in marginal:
            if ask is not None:
                raise OptionError("bad-ask", f'ask: "{column}" is not a column of this table.')
            continue
        asked[column] = Asked.read(wanted, column)
        asked[column].refuse_unfit(encoding.domain[column])
    found = held.table(marginal, asked)
    labels = tuple(
        tuple(asked.get(name, Asked()).labels(encoding.domain[name], encoding.labels(name))) for name in marginal
    )
    return NamedTable(marginal, labels, found.values, found.std)


def write_tables(release: Release, tables: Sequence[Sequence[str]], folder: Path, suffix: str) -> list[str]:
    """A file for each table, in a folder that does not exist yet; their names."""
    names = []
    with whole_folder(folder) as partial:
        for number, columns in enumerate(tables, start=1):
            made = named_table(release, columns).table()
            names.append(f"{number:03}{suffix}")
            write_table(partial / names[-1], made.schema, _once(made), None)
    return names


def _once(table: pa.Table) -> Iterator[pa.Table]:
    yield table


def _attributes(release: Release, column: str) -> tuple[str, ...]:
    if column in release.encoding.domain:
        return (column,)
    return release.encoding.attributes_of(column)


def _held(release: Release) -> Interactions:
    held = Interactions(release.encoding.domain, release.measurements)
    if not held:
        raise OptionError(
            "no-named-tables",
            f"the release was made by {release.certificate.method['name']}, which measures no tables that were named "
            "beforehand. Hint: synth -m residual --workload FILE; release.marginal has the model's own counts.",
        )
    return held
