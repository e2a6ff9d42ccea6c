"""What a steward has done so far: a folder beside the table, in which every step is saved as it goes.

    people.studio/
      studio.json       what was typed and stands in no other file
      people.yaml       the schema
      people.ledger     the lifetime budget, unless another ledger was given
      publisher.yaml    what only the publisher knows
      private/          pages with exact figures: they stay here
      people.run-1.yaml the schema as it was when the first release was begun, beside the one that it is a copy of
      runs/1/           a release: its command, its rows, its page, what was published of it

The folder can be read by its owner alone. A file in it appears whole or not at all.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import threading
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError, OptionError
from hedgerow.private.sources.source import dataset_name, parquet_files
from hedgerow.release.files import whole_file
from hedgerow.release.locks import lock, opened
from hedgerow.run.outputs import Outputs
from hedgerow.schema.schema import Schema
from hedgerow.studio.commands import DELTA

FORMAT = 1


@dataclass
class Notes:
    """What was typed and stands in no other file."""

    revision: int = 0
    """Grows with every change, so that a page of a second tab that is out of date can be told."""
    file: dict[str, Any] = field(default_factory=dict)
    """How the table is written, as --file takes it, while there is no schema that says so."""
    rows: int | None = None
    """About how many rows there are, as the steward guesses."""
    epsilon: float | None = None
    delta: float = DELTA
    allow_misfits: list[str] = field(default_factory=list)
    runs: int = 0
    """How many releases were begun."""


class Project:
    """One table and all that is made of it; one studio at a time has it."""

    def __init__(
        self,
        table: str,
        folder: Path | None = None,
        schema: Path | None = None,
        ledger: Path | None = None,
        noise_seed: int | None = None,
    ):
        self.table = table
        self.name = dataset_name(table)
        self.folder = folder or Path(table if "://" not in table else self.name).with_name(f"{self.name}.studio")
        self.schema = schema or self.folder / f"{self.name}.yaml"
        self.ledger = ledger or self.folder / f"{self.name}.ledger"
        if self.schema.suffix not in (".yaml", ".yml"):
            raise OptionError("unknown-suffix", f'the studio writes YAML; "{self.schema}" must end in .yaml or .yml.')
        self.publisher = self.folder / "publisher.yaml"
        self.misfits = self.folder / "private" / "misfits.html"
        self.noise_seed = noise_seed
        """For tests: voids the guarantee of what is made."""
        self.lock = threading.RLock()
        self._judged = (b"", False)
        self._held = self._claimed()
        self.notes = self._read()

    @property
    def run(self) -> Run | None:
        """The release that was begun last."""
        return self.run_number(self.notes.runs) if self.notes.runs else None

    @property
    def next_run(self) -> Run:
        """The release that would be begun next."""
        return self.run_number(self.notes.runs + 1)

    @property
    def is_linked(self) -> bool:
        """Whether the table is a folder with a file for each of several that are linked."""
        folder = Path(self.table)
        return "://" not in self.table and folder.is_dir() and not parquet_files(folder)

    @property
    def done(self) -> set[str]:
        """The steps in which nothing is left to do."""
        runs = [self.run_number(number) for number in range(1, self.notes.runs + 1)]
        published = any(run.published.is_dir() for run in runs)
        reached = {
            "table": self.schema.exists(),
            "columns": self._is_declared(),
            "budget": self.notes.epsilon is not None,
            "run": any(run.is_done for run in runs),
            "look": published,
            "publish": published,
        }
        return {step for step, is_done in reached.items() if is_done}

    def _is_declared(self) -> bool:
        """Whether the schema can be used; judged once for each of its states."""
        try:
            text = self.schema.read_bytes()
            if text != self._judged[0]:
                self._judged = (text, False)
                Schema.load(self.schema)
                self._judged = (text, True)
        except (OSError, HedgerowError):
            return False
        return self._judged[1]

    def run_number(self, number: int) -> Run:
        """Its schema lies beside the one that it is a copy of, so that paths in it lead to the same files."""
        copied = self.schema.with_name(f"{self.schema.stem}.run-{number}{self.schema.suffix}")
        return Run(self.folder / "runs" / str(number), copied)

    def save(self) -> None:
        """Write down what was typed."""
        with self.lock:
            self.notes.revision += 1
            self.write(self.folder / "studio.json", json.dumps({"format": FORMAT, **asdict(self.notes)}, indent=1))

    @staticmethod
    def write(path: Path, text: str) -> None:
        """A text file, whole or not at all, for its owner alone."""
        with whole_file(path, mode=0o600) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")

    def close(self) -> None:
        os.close(self._held)

    def _claimed(self) -> int:
        private = self.folder / "private"
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            private.mkdir(mode=0o700, exist_ok=True)
            for each in (self.folder, private):
                _check_ours(each)
            held = opened(self.folder / ".lock", os.O_RDWR | os.O_CREAT)
        except OSError as problem:
            raise OptionError(
                "cannot-write", f'the folder "{self.folder}" of the studio cannot be used ({problem.strerror}).'
            ) from None
        try:
            lock(held, wait=False)
        except OSError:
            os.close(held)
            raise OptionError(
                "studio-open",
                f'a studio has "{self.folder}" open already. Hint: use its page, or end it by Ctrl-C in its terminal.',
            ) from None
        return held

    def _read(self) -> Notes:
        path = self.folder / "studio.json"
        if not path.exists():
            return Notes()
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            known = {each.name: data[each.name] for each in fields(Notes)}
            if data["format"] != FORMAT:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError):
            os.close(self._held)
            raise OptionError(
                "studio-damaged",
                f'"{path}" is not what a studio of this version writes. Hint: move it away to begin anew; the schema, '
                "the ledger and the releases beside it stay.",
            ) from None
        return Notes(**known)


def _fault(found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return "is a link to another place"
    if sys.platform != "win32":
        if found.st_uid != os.getuid():
            return "belongs to somebody else"
        if found.st_mode & 0o022:
            return "can be written by others"
    return None


def _check_ours(folder: Path) -> None:
    """Refuse a folder in which others could lay what we then read, or find what we write."""
    fault = _fault(folder.lstat())
    if fault is None:
        return
    hint = f"chmod go-w {shlex.quote(str(folder))}" if "written" in fault else "name a folder of your own by --project"
    raise OptionError(
        "not-our-folder",
        f'"{folder}" {fault}, and the studio keeps private pages there. Hint: {hint}.',
    )


@dataclass(frozen=True)
class Run:
    """The folder of one release."""

    folder: Path
    schema: Path
    """The schema as it was when the release was begun."""

    @property
    def command(self) -> Path:
        return self.folder / "command.json"

    @property
    def log(self) -> Path:
        return self.folder / "progress.log"

    @property
    def table(self) -> Path:
        return self.folder / "synthetic.csv"

    @property
    def tables(self) -> Path:
        """Where linked tables go."""
        return self.folder / "synthetic"

    @property
    def release(self) -> Path:
        return self.folder / "synthetic.release"

    @property
    def page(self) -> Path:
        return self.folder / "synthetic.html"

    @property
    def evaluation(self) -> Path:
        """PRIVATE, and beside nothing that is published."""
        return self.folder.parent.parent / "private" / f"evaluation-{self.folder.name}.html"

    @property
    def published(self) -> Path:
        return self.folder / "published"

    @property
    def words(self) -> list[str]:
        """The command that makes the release, as it was begun."""
        return [str(word) for word in json.loads(self.command.read_text(encoding="utf-8"))]

    @property
    def outputs(self) -> Outputs:
        return Outputs(self.table, self.release, self.page)

    @property
    def is_unfinished(self) -> bool:
        """Whether answers were paid for that are in no release yet."""
        journal = self.outputs.journal
        return journal.exists() and journal.stat().st_size > 0

    @property
    def is_done(self) -> bool:
        """Whether the release and its rows are there."""
        return self.outputs.is_done and (self.table.exists() or self.tables.exists())
