"""Which releases a command asks for: one at the ε that was typed, or all those of a contest's parameters file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import OptionError


@dataclass(frozen=True)
class Wanted:
    """One release. Where a file asks for several, ε becomes part of every name."""

    epsilon: float
    delta: float
    most_rows: int | None = None
    mark: str = ""

    def named(self, path: Path | None) -> Path | None:
        """synthetic.csv, or synthetic-0.1.csv."""
        return path if path is None or not self.mark else path.with_name(f"{path.stem}-{self.mark}{path.suffix}")


def wanted(schema: str, epsilon: float | None, delta: float) -> list[Wanted]:
    """The release at `epsilon`; without one, those that the schema's file asks for."""
    if epsilon is not None:
        return [Wanted(epsilon, delta)]
    from hedgerow.schema.contest import runs

    found = runs(schema)
    if not found:
        raise OptionError(
            "missing-epsilon",
            "-e/--epsilon is missing, and the schema is no parameters.json that asks for runs. "
            "Hint: common choices lie between 0.1 and 10.",
        )
    return [Wanted(run.epsilon, run.delta, run.most_rows, f"{run.epsilon:g}") for run in found]
