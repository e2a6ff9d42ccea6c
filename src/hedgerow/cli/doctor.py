"""hedgerow doctor: what is installed, what is missing for what, and whether that which protects people works here."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from hedgerow import __version__
from hedgerow.cli.options import Json

USES = {
    "verify": "a second opinion on ε in hedgerow verify",
    "draft": "SPSS, Stata and SAS files, and drafts from their labels",
    "excel": "Excel and OpenDocument workbooks",
    "lakes": "tables of Delta and Iceberg",
    "evaluate": "metrics that train classifiers",
    "studio": "hedgerow studio",
    "fake": "columns of invented names and addresses",
}
"""What an extra is for. That of databases is told apart by database."""
DATABASES = {
    "DuckDB": ("duckdb", "ibis-framework"),
    "PostgreSQL": ("psycopg", "ibis-framework"),
    "Spark": ("pyspark", "ibis-framework"),
}
DRAWS = 1 << 16
FALSE_ALARM = 1e-12
"""How often a sampler that is right fails its check."""
LEAST_FREE = 1 << 30
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[.*?\])?[^;]*(?:;.*extra == ['\"](\w+)['\"])?")

State = Literal["works", "missing", "fault"]


@dataclass(frozen=True)
class Found:
    """One thing that was looked at. What is `missing` can be done without; a `fault` cannot."""

    name: str
    state: State
    said: str
    hint: str | None = None


def doctor(json_: Json = False) -> None:
    """Say what is installed, what is missing for what, what works.

    Kernels and the sampler of noise are tried out, the folder for temporary files is written to. Nothing of yours is
    read. Exits with 1 if something does not work that every release needs.

    Examples:
        hedgerow doctor
        hedgerow doctor --json
    """
    from hedgerow.cli import build
    from hedgerow.errors import HedgerowError, visible

    found = [*_checks()]
    faults = [each.name for each in found if each.state == "fault"]
    if json_:
        about = {"version": __version__, "commit": build.commit(), "kernels": build.kernels()}
        where = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
        print(json.dumps({**about, **where, "works": not faults, "checks": [asdict(each) for each in found]}))
    else:
        print("\n".join(build.lines()) + "\n")
        for each in found:
            mark = {"works": "✓", "missing": "–", "fault": "✗"}[each.state]
            hint = f". Hint: {each.hint}" if each.hint else ""
            print(visible(f"{mark} {each.name:15} {each.said}{hint}"))
    if faults:
        raise HedgerowError("doctor-faults", f"this installation cannot be relied on: {', '.join(faults)}.")


def _checks() -> Iterator[Found]:
    yield _tried("packages", _packages, "pip install --force-reinstall hedgerow")
    yield _tried("kernels", _kernels, "a wheel for this system, or: pip install --force-reinstall hedgerow")
    yield _tried("noise", _noise, "another version of numpy or scipy")
    yield _tried("temporary files", _temporary_files, "TMPDIR names a folder with room that you can write to")
    yield Found("machine", "works", _machine())
    yield from _extras()


def _tried(name: str, check: Callable[[], str], hint: str) -> Found:
    """A check, in words; whatever stops it is a fault."""
    try:
        return Found(name, "works", check())
    except Exception as problem:
        return Found(name, "fault", f"{type(problem).__name__}: {problem}", hint)


def _packages() -> str:
    """Everything that Hedgerow always needs, with its version."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in _required()[""])


def _required() -> dict[str, list[str]]:
    """Packages by extra, as the installed Hedgerow states them; those that it always needs under no name."""
    found: dict[str, list[str]] = {"": []}
    for line in metadata.requires("hedgerow") or []:
        stated = _REQUIREMENT.match(line)
        if stated is not None:
            found.setdefault(stated[2] or "", []).append(stated[1])
    return found


def _kernels() -> str:
    """Each kernel computes something that numpy computes too."""
    import numpy as np

    import hedgerow
    from hedgerow import _count, _records

    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, size, 1000).astype(np.uint8) for size in (3, 4))
    plan = _count.Marginal([0, 1], [3, 4], [None, None], None)
    (counts,) = _count.count([first, second], 1000, [plan], 12, 1)
    table = np.bincount(4 * first.astype(int) + second, minlength=12).reshape(3, 4)
    if (np.asarray(counts).reshape(3, 4) != table).any():
        raise ArithmeticError("_count counts wrongly")
    model = hedgerow.fit({"a": 3, "b": 4}, [hedgerow.noisy(("a", "b"), table, std=1.0)])
    if np.abs(model.marginal(("a", "b")) - table).max() > 0.01 or len(model.sample(100, seed=0)["a"]) != 100:
        raise ArithmeticError("_model fits or draws wrongly")
    return f"they load and compute what they should ({_records.compiler})"


def _noise() -> str:
    """The quantiles are as exact as the sampler supposes, and what it draws follows its law."""
    import numpy as np
    from scipy.special import ndtr
    from scipy.stats import chi2

    from hedgerow.private.noise import Stream, gaussian, laplace

    stream, reach = Stream(), 6
    steps = np.arange(-reach, reach + 1)
    edges = ndtr((np.arange(-reach, reach) + 0.5) / 2.0)
    normal = np.diff(np.concatenate([[0.0], edges, [1.0]]))
    ratio = np.exp(-1 / 2.0)
    geometric = (1 - ratio) / (1 + ratio) * ratio ** np.abs(steps)
    geometric[[0, -1]] /= 1 - ratio  # all that lies beyond
    for name, drawn, law in (
        ("gaussian", gaussian(stream, 2.0, DRAWS), normal),
        ("laplace", laplace(stream, 2.0, DRAWS), geometric),
    ):
        seen = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=len(law))
        distance = float(((seen - DRAWS * law) ** 2 / (DRAWS * law)).sum())
        if distance > chi2.isf(FALSE_ALARM, len(law) - 1):
            raise ArithmeticError(f"{name} draws do not follow their law")
    return f"quantiles of this numpy and scipy are exact enough; 2 × {DRAWS:,} draws follow their laws"


def _temporary_files() -> str:
    folder = tempfile.gettempdir()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise OSError(f"{folder} has {free >> 20:,} MB free")
    return f"{folder} can be written to, {_gigabytes(free)} free"


def _machine() -> str:
    """Cores and memory as this process sees them."""
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    memory = _memory()
    seen = f"{_gigabytes(memory)} of memory" if memory else "memory unknown"
    return f"{cores} core{'' if cores == 1 else 's'}, {seen}"


def _memory() -> int | None:
    """The least of what the machine has, its container may take, and the shell allows."""
    from hedgerow.cli import room

    held = [room.limit()]
    if sys.platform != "win32":
        with contextlib.suppress(ValueError, OSError):  # not on this system
            held.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            held.append(int((Path("/sys/fs/cgroup") / file).read_text(encoding="ascii")))
    return min((each for each in held if each), default=None)


def _gigabytes(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GB"


def _extras() -> Iterator[Found]:
    required = _required()
    for extra, use in USES.items():
        yield _optional(f"[{extra}]", required.get(extra, []), use, extra)
    for database, packages in DATABASES.items():
        yield _optional(database, packages, f"tables in {database}", "engines")
        if database == "Spark" and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
            yield Found("Java", "missing", "not on the path, which Spark needs", "install a Java runtime, 17 or newer")


def _optional(name: str, packages: Sequence[str], use: str, extra: str) -> Found:
    here, lacking = [], []
    for package in packages:
        try:
            here.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            lacking.append(package)
    if lacking:
        hint = f'pip install "hedgerow[{extra}]"'
        return Found(name, "missing", f"not here: {', '.join(lacking)}, for {use}", hint)
    return Found(name, "works", f"{', '.join(here)}: {use}")
