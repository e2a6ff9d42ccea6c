"""Any number of synthetic rows, as a folder of Parquet files that several processes can fill and a kill cannot spoil.

Block b of a draw depends only on the release, the seed and b. So a part is a run of blocks, who writes it does not
matter, and a part that is there need not be written again. A part of linked tables is a file of each, in a folder of
its own: whole units, whose keys no other part has.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release, Trust
from hedgerow.release.disk import reason
from hedgerow.release.files import remove_abandoned, table_writer, whole_file
from hedgerow.release.workers import in_processes

BLOCKS_PER_PART = 8
MANIFEST = "manifest.json"
NONE_MADE_ELSEWHERE = Trust()


@dataclass(frozen=True)
class Draw:
    """What the folder is to hold."""

    release: str
    """SHA-256 of the release file."""
    rows: int
    seed: int
    blocks_per_part: int
    where: str | None = None
    """What every row is to meet."""

    def to_json(self) -> dict[str, Any]:
        """What the folder's manifest says: of a condition only where there is one."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def parts(self, block_rows: int) -> int:
        return math.ceil(self.rows / (block_rows * self.blocks_per_part))

    def blocks(self, part: int, block_rows: int) -> Iterator[tuple[int, int]]:
        """Numbers and sizes of the blocks of a part."""
        first = part * self.blocks_per_part
        for block in range(first, first + self.blocks_per_part):
            size = min(block_rows, self.rows - block * block_rows)
            if size > 0:
                yield block, size


def write_parts(
    release: Path,
    folder: Path,
    rows: int | None,
    seed: int,
    workers: int,
    progress: Progress,
    blocks_per_part: int = BLOCKS_PER_PART,
    trust: Trust = NONE_MADE_ELSEWHERE,
    where: str | None = None,
) -> tuple[int, int]:
    """Fill a folder with parts; those that a draw of the same rows left there stay. Returns rows, and parts written.

    Of linked tables `rows` are those of the root.
    """
    loaded = Release.load(release, **trust._asdict())
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    expected = loaded.expected_rows(where)  # a condition that nothing meets is refused before a folder is made
    draw = Draw(digest, expected if rows is None else rows, seed, blocks_per_part, where)
    lacking = _open_folder(folder, draw, loaded)
    with progress.phase("draw rows", len(lacking)):
        if workers < 2 or len(lacking) < 2:
            for part in lacking:
                _write_part(loaded, folder, draw, part)
                progress.step()
        else:
            jobs = [(release, folder, draw, part, trust) for part in lacking]
            try:
                with closing(in_processes(_write_part_of, jobs, workers)) as written:
                    for _ in written:
                        progress.step()
            finally:
                _clear(folder, loaded)
    return draw.rows, len(lacking)


def _open_folder(folder: Path, draw: Draw, release: Release) -> list[int]:
    """The parts that are not there yet; refused where the folder holds anything else."""
    path = folder / MANIFEST
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except (OSError, ValueError) as problem:
        why = reason(problem) if isinstance(problem, OSError) else f"its {MANIFEST} cannot be read"
        raise OptionError(
            "cannot-write", f'"{folder}" cannot be used as a folder of parts ({why}). Nothing was written.'
        ) from None
    _clear(folder, release)
    if held is None and any(folder.iterdir()):
        raise OptionError("folder-not-empty", f'"{folder}" is not empty; name a new folder. Nothing was written.')
    wanted = draw.to_json()
    if held is not None and held != wanted:
        differing = [key for key in {**wanted, **held} if held.get(key) != wanted.get(key)]
        raise OptionError(
            "another-draw",
            f'"{folder}" holds rows of another draw: its {", ".join(differing)} differs. Name a new folder. '
            "Nothing was written.",
        )
    if held is None:
        with whole_file(path) as partial:
            partial.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8", newline="\n")
    parts = range(draw.parts(release.block_rows))
    return [part for part in parts if not all(path.exists() for path in _files(folder, release, part).values())]


def _clear(folder: Path, release: Release) -> None:
    """What workers that were killed have left behind."""
    for name in release.arrow_schemas:
        for leftover in (folder / name).glob(".*.part"):
            remove_abandoned(leftover)


def _write_part_of(release: Path, folder: Path, draw: Draw, part: int, trust: Trust) -> None:
    _write_part(_loaded(release, draw.release, trust), folder, draw, part)


_held: dict[str, Release] = {}


def _loaded(release: Path, digest: str, trust: Trust) -> Release:
    """A worker reads the release once."""
    if digest not in _held:
        if hashlib.sha256(release.read_bytes()).hexdigest() != digest:
            raise OptionError("release-changed", f'"{release}" was changed while rows were drawn from it.')
        _held[digest] = Release.load(release, **trust._asdict())
    return _held[digest]


def _write_part(release: Release, folder: Path, draw: Draw, part: int) -> None:
    warning = " ".join(release.certificate.statements()) if release.certificate.void else None
    with ExitStack() as files:
        writers = {}
        for name, path in _files(folder, release, part).items():
            path.parent.mkdir(exist_ok=True)
            writers[name] = files.enter_context(table_writer(path, release.arrow_schemas[name], warning))
        for block, size in draw.blocks(part, release.block_rows):
            for piece in release.pieces(size, draw.seed, block, draw.where):
                for name, table in piece.items():
                    writers[name](table)


def _files(folder: Path, release: Release, part: int) -> dict[str, Path]:
    """The files of a part: one alone, or one for each of the linked tables."""
    return {name: folder / name / f"part-{part:06d}.parquet" for name in release.arrow_schemas}
