"""Which releases a command asks for: one at each ε that was typed, or all those of a contest's parameters file."""

from __future__ import annotations

from collections.abc import Sequence
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


def wanted(schema: str | Sequence[str], epsilon: str | None, delta: float) -> list[Wanted]:
    """A release at each ε that was typed, `1` or `8,1,0.3`; without one, those that the schema's file asks for."""
    if epsilon is not None:
        typed = _typed(epsilon)
        return [Wanted(each, delta, mark=f"{each:g}" if len(typed) > 1 else "") for each in typed]
    from hedgerow.schema.contest import runs

    found = [run for each in ([schema] if isinstance(schema, str) else schema) for run in runs(each)]
    if not found:
        raise OptionError(
            "missing-epsilon",
            "-e/--epsilon is missing, and the schema is no parameters.json that asks for runs. "
            "Hint: common choices lie between 0.1 and 10.",
        )
    return [Wanted(run.epsilon, run.delta, run.most_rows, f"{run.epsilon:g}") for run in found]


def _typed(epsilon: str) -> list[float]:
    try:
        found = [float(part) for part in epsilon.split(",")]
    except ValueError:
        raise OptionError(
            "bad-epsilon", f'-e/--epsilon takes a number, or several with commas between them, got "{epsilon}".'
        ) from None
    if len(set(found)) < len(found):
        raise OptionError("epsilon-twice", f'-e/--epsilon names the same ε twice: "{epsilon}".')
    return found
