"""What may be written, and what is never written over: one rule for all commands, and the files of a release."""

from __future__ import annotations

import os
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import OptionError
from hedgerow.release.files import TABLE_SUFFIXES, check_writable, void_note, writing

PAGE = (".html",)


@dataclass(frozen=True)
class Outputs:
    """The files of one release: its rows, the release itself, the journal beside it and, where wanted, its page."""

    table: Path
    release: Path
    page: Path | None = None
    key: Path | None = None
    """The key to sign the release with."""
    rows: int | None = None
    """Rows out; by default the noisy estimate."""
    most_rows: int | None = None
    """How many a contest allows at most, where none were asked for."""
    overwrite: bool = False
    tables: tuple[str, ...] = ()
    """Linked tables: `table` is then a folder, with a file for each."""

    @property
    def files(self) -> list[Path]:
        """Where the rows go."""
        return [self.table / f"{name}.csv" for name in self.tables] or [self.table]

    @property
    def journal(self) -> Path:
        return self.release.with_name(self.release.name + ".journal")

    @property
    def refused(self) -> Path:
        """Where a release is kept that misses what its schema demands."""
        return self.release.with_name(f"{self.release.stem}.refused{self.release.suffix}")

    @property
    def is_done(self) -> bool:
        """Whether the release was made, and saved, before."""
        begun = os.path.exists(self.journal) and self.journal.stat().st_size > 0
        return (zipfile.is_zipfile(self.release) or zipfile.is_zipfile(self.refused)) and not begun

    def refuse_release(self, seed: int, resume: bool) -> None:
        """A release that is there may have been paid for; only the run that made it goes on with it."""
        if zipfile.is_zipfile(self.release) and not self.overwrite:
            another = "" if resume else "; for another release name another --out or --release, or give --overwrite"
            raise OptionError(
                "release-exists",
                f'"{self.release}" exists already, a release that may have been paid for. Hint: '
                f"{self.sampling(seed)} draws its rows without paying again{another}.",
            )

    def check(self, inputs: Mapping[str, str | Path], seed: int, *, void: bool, resume: bool, begun: bool) -> None:
        """Refuse, before anything is read, files that cannot be written or would destroy something.

        `begun`: the run goes on with answers that were paid for. Then its release may be there: a run can be stopped
        just after it was saved.
        """
        pages = [] if self.page is None else [(self.page, PAGE)]
        if self.tables:
            with writing(self.table):
                self.table.mkdir(exist_ok=True)
        notes = [(void_note(path), ()) for path in self.files if void and path.suffix == ".csv"]
        files = [*((path, TABLE_SUFFIXES) for path in self.files), *pages, *notes]
        if begun:
            check_writable(self.release)
        else:
            self.refuse_release(seed, resume)
            files.append((self.release, ()))
        check_outputs(files, inputs, overwrite=self.overwrite)
        if self.key is not None:
            from hedgerow.release.signing import check_key

            check_key(self.key)

    def sampling(self, seed: int) -> str:
        """The command that draws the same rows from the release."""
        given = {"--rows": self.rows, "--seed": seed or None}
        options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        return shlex.join(["hedgerow", "sample", str(self.release), "-o", str(self.table), *options])


def check_outputs(
    outputs: Sequence[tuple[Path, Sequence[str]]], inputs: Mapping[str, str | Path | None], *, overwrite: bool
) -> None:
    """Refuse, before anything is read or spent, outputs that cannot be written or would destroy something.

    Each output comes with the endings that it may have. None may be an input, lie in a folder that is one, or be
    named twice; one that exists needs `overwrite`, and a ledger or a journal is never overwritten.
    """
    seen: set[Path] = set()
    for path, suffixes in outputs:
        _refuse_input(path, inputs)
        if path.resolve() in seen:
            raise OptionError("output-twice", f'"{path}" is named for two outputs; name another one.')
        seen.add(path.resolve())
        if os.path.isfile(path):  # a name that is too long is refused below
            _refuse_existing(path, overwrite)
        check_writable(path, suffixes)


def _refuse_input(path: Path, inputs: Mapping[str, str | Path | None]) -> None:
    for name, given in inputs.items():
        if given is None:
            continue
        place = _place(given)
        if path.resolve() == place:
            raise OptionError("output-is-input", f'"{path}" is the {name} itself; name another output.')
        if os.path.isdir(place) and place in path.resolve().parents:
            raise OptionError("output-inside-input", f'"{path}" lies inside the {name}; name another output.')


def _place(given: str | Path) -> Path:
    """Where an input lies: a file, a folder, or the file that a URL names (duckdb://FILE/TABLE)."""
    _, found, rest = str(given).partition("://")
    places = [Path(rest), Path(rest).parent] if found else []
    return next((place for place in places if os.path.isfile(place)), Path(given)).resolve()


def _refuse_existing(path: Path, overwrite: bool) -> None:
    from hedgerow.private import books, journal

    with writing(path), open(path, "rb") as file:
        beginning = file.read(256)
    for what, mark in (("a ledger", books.MARK), ("a journal of paid answers", journal.MARK)):
        if mark in beginning:
            raise OptionError(
                "never-overwritten",
                f'"{path}" is {what}, which is never overwritten; name another output.',
            )
    if not overwrite:
        raise OptionError(
            "already-exists",
            f'"{path}" exists already and was not touched; name another output, or give --overwrite.',
        )
