"""What is to be compared: cells of methods × ε × runs, floors, and tables that were made elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hedgerow.budget.amounts import Budget
from hedgerow.compare.origin import Origin, digest_of, digest_of_table, origin, package_digest
from hedgerow.compare.program import files_of
from hedgerow.errors import OptionError
from hedgerow.methods.method import Method
from hedgerow.private.engines.elsewhere import engine_elsewhere
from hedgerow.private.sources.sameness import refuse_as_public
from hedgerow.progress import Limits
from hedgerow.run.request import Request, chosen_method

if TYPE_CHECKING:
    from hedgerow.schema import Schema

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
                "bad-table-option",
                f'--table takes NAME@ε=FILE, for example other@1=made.csv, got "{text}".',
            ) from None


@dataclass(frozen=True)
class Cell:
    """One run: of a method or a program at an ε, of a floor, or a look at a foreign table."""

    kind: Literal["method", "program", "floor", "table"]
    name: str
    epsilon: float | None
    run: int
    options: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    digest: str | None = None
    """SHA-256 of the foreign table: another file is another cell."""
    made: Origin = field(default_factory=dict)
    """The code, the options and the judge that make it: others make another cell."""

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
    named: Mapping[str, str] = field(default_factory=dict)
    """Methods that go by a label here: one method may stand under several, with other options."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Other people's programs by name: commands (`hedgerow.compare.program`)."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """How the private and the public table are written; it wins over what the schema says."""
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
        source, judged = package_digest(), {"judged": self.judged}
        plain = {**self.origin(source), **judged}
        made = {
            (method, epsilon): {**self.origin(source, method, epsilon), **judged}
            for method in dict.fromkeys([*self.methods, ALWAYS])
            for epsilon in self.epsilons
        }
        for run in range(self.runs):
            for floor in FLOORS:
                yield Cell("floor", floor, None, run, made=plain)
            for epsilon in self.epsilons:
                for method in dict.fromkeys([*self.methods, ALWAYS]):
                    given = dict(self.options.get(method, {}))
                    yield Cell("method", method, epsilon, run, given, made=made[method, epsilon])
                for name in self.programs:
                    yield Cell("program", name, epsilon, run, made={**self.origin(source, name, epsilon), **judged})
        for each in self.tables:
            yield Cell("table", each.name, each.epsilon, 0, {}, each.file, digest_of(Path(each.file)), plain)

    def origin(self, source: str, method: str | None = None, epsilon: float | None = None) -> Origin:
        """The code and the options that make a cell; `source` is that of Hedgerow."""
        if method is None or epsilon is None:
            return origin(source, self._outside)
        if method in self.programs:
            command = self.programs[method]
            return {**origin(source, self._outside), "command": command, "files": dict(files_of(command))}
        behind = self.named.get(method, method)
        made = origin(source, (behind, *self._outside), self.method(method, epsilon), self.options.get(method))
        return {**made, "max_memory": self.max_memory, **({"method": behind} if method in self.named else {})}

    @property
    def _outside(self) -> tuple[str, ...]:
        """What may be made elsewhere, methods aside: metrics, and where the tables live."""
        engines = [engine_elsewhere(table) for table in (self.table, self.public)]
        return (*self.metrics, *(name for name in engines if name is not None))

    def method(self, name: str, epsilon: float) -> Method:
        """A method with the options of the plan, and those of its preset."""
        return chosen_method(self.schema, self.named.get(name, name), epsilon, self.options.get(name))

    def request(self, cell: Cell, journal: Path | None = None) -> Request:
        """A run of a method; a journal that is there already is gone on with."""
        assert cell.epsilon is not None
        seed, unsafe = self.paired(cell.run)
        paid = journal if unsafe is None else None
        return Request(
            table=self.table,
            schema=self.schema,
            budget=Budget(cell.epsilon, self.delta),
            method=self.named.get(cell.name, cell.name),
            options=self.options.get(cell.name, {}),
            file=self.file,
            public=self.public,
            ledger=self.ledger,
            limits=Limits(self.max_memory),
            seed=seed,
            unsafe_noise_seed=unsafe,
            journal=paid,
            resume=paid is not None and paid.exists(),
            quality=0.0,  # a comparison sees the rows themselves
        )

    def given(self, cell: Cell) -> dict[str, Any]:
        """What a program is told."""
        seed = self.paired(cell.run)[0]
        about = {"table": self.table, "schema": self.schema, "delta": self.delta, "seed": seed}
        return {**about, "epsilon": cell.epsilon}

    def paired(self, run: int) -> tuple[int, int | None]:
        """The seeds of a run, the same for every method: post-processing, and noise where that is unsafely seeded."""
        unsafe = self.unsafe_noise_seed
        return self.seed + run, None if unsafe is None else unsafe + run

    @cached_property
    def declared(self) -> Schema:
        """The schema of all cells."""
        from hedgerow.schema import Schema

        schema = Schema.load(self.schema, lambda path: refuse_as_public(path, self.table))
        return schema.unlinked("compare").with_file(self.file)

    @cached_property
    def judged(self) -> dict[str, Any]:
        """What must be the same for two results to be compared. Files are read once, when this is first asked."""
        return {
            "table": digest_of_table(self.table),
            "schema": hashlib.sha256(json.dumps(self.declared.to_dict()).encode()).hexdigest(),
            "public": None if self.public is None else digest_of_table(self.public),
            "delta": self.delta,
            "metrics": list(self.metrics),
            "target": self.target,
            "seed": self.seed,
            "unsafe_noise_seed": self.unsafe_noise_seed,
        }
