"""What is to be compared: cells of methods × ε × runs, floors, and tables that were made elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hedgerow.errors import OptionError

FLOORS = ("bootstrap", "subsample")
"""Samples of the real rows, which no method has to beat: as many rows with replacement, and a tenth of the rows."""
ALWAYS = "independent"
"""The method that every other one should beat."""


@dataclass(frozen=True)
class ForeignTable:
    """A synthetic table that was made elsewhere, with the ε that its maker states."""

    name: str
    epsilon: float
    file: str

    @classmethod
    def parse(cls, text: str) -> ForeignTable:
        """NAME@ε=FILE."""
        said, equals, file = text.partition("=")
        name, at, epsilon = said.rpartition("@")
        try:
            if not (equals and at and name and file):
                raise ValueError
            return cls(name, float(epsilon), file)
        except ValueError:
            raise OptionError(
                f'--table takes NAME@ε=FILE, for example other@1=made.csv, got "{text}". Nothing was read.'
            ) from None


@dataclass(frozen=True)
class Cell:
    """One run: of a method at an ε, of a floor, or a look at a foreign table."""

    kind: Literal["method", "floor", "table"]
    name: str
    epsilon: float | None
    run: int
    options: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    digest: str | None = None
    """SHA-256 of the foreign table: another file is another cell."""

    @property
    def key(self) -> str:
        """The name of the file that keeps the cell's result."""
        said = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:24]

    @property
    def title(self) -> str:
        budget = "" if self.epsilon is None else f" ε = {self.epsilon:g}"
        return f"{self.name}{budget} run {self.run + 1}"


@dataclass(frozen=True)
class Plan:
    """Everything about a comparison that is fixed before it starts."""

    table: str
    schema: str
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    runs: int
    metrics: tuple[str, ...]
    delta: float = 1e-9
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Options by method."""
    tables: tuple[ForeignTable, ...] = ()
    public: str | None = None
    """A public table that methods may learn from."""
    target: str | None = None
    ledger: str | None = None
    seed: int = 0
    unsafe_noise_seed: int | None = None
    max_memory: int = 4 << 30
    max_seconds: float = 3600.0
    """Wall-clock seconds after which a cell is stopped."""

    def cells(self) -> Iterator[Cell]:
        """Run by run, so that a comparison that is stopped has something to say about every method."""
        methods = dict.fromkeys([*self.methods, ALWAYS])
        for run in range(self.runs):
            for floor in FLOORS:
                yield Cell("floor", floor, None, run)
            for epsilon in self.epsilons:
                for method in methods:
                    yield Cell("method", method, epsilon, run, dict(self.options.get(method, {})))
        for each in self.tables:
            yield Cell("table", each.name, each.epsilon, 0, {}, each.file, digest_of(Path(each.file)))

    def paired(self, run: int) -> tuple[int, int | None]:
        """The seeds of a run, the same for every method: post-processing, and noise where that is unsafely seeded."""
        unsafe = self.unsafe_noise_seed
        return self.seed + run, None if unsafe is None else unsafe + run

    def judged(self) -> dict[str, Any]:
        """What must be the same for two results to be compared."""
        from hedgerow.schema import Schema

        return {
            "table": self.table if "://" in self.table else digest_of(Path(self.table)),
            "schema": hashlib.sha256(json.dumps(Schema.load(self.schema).to_dict()).encode()).hexdigest(),
            "public": None if self.public is None else digest_of(Path(self.public)),
            "delta": self.delta,
            "metrics": list(self.metrics),
            "target": self.target,
            "seed": self.seed,
            "unsafe_noise_seed": self.unsafe_noise_seed,
        }


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    try:
        for file in files:
            with open(file, "rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    except OSError as problem:
        raise OptionError(f'"{path}" cannot be read ({(problem.strerror or "refused").lower()}).') from None
    return digest.hexdigest()
