"""Wheels and the source distribution: built, repaired, and installed into empty environments.

`python packaging/wheels.py build` fills dist/ with an archive of the sources and, built from that archive, a wheel for
every Python that has no stable ABI and one for all that have. `python packaging/wheels.py check` installs them into an
empty environment of every Python of this machine, without compiler and make on the path, and runs what anyone would.
What is built on Linux is repaired by auditwheel, which also says for how old a system it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
TOOLS = ROOT / "build" / "packaging"
LOCK = ROOT / "requirements" / "wheel.lock"
STABLE = (3, 12)
"""The first Python whose stable ABI the kernels keep to."""
OLDEST = (3, 11)
_ABOUT = """
import json, os, sys, sysconfig
json.dump({"version": sys.version_info[:2], "full": sys.version.split()[0], "path": os.path.realpath(sys.executable),
           "free": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
           "headers": os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))}, sys.stdout)
"""


@dataclass(frozen=True)
class Python:
    """An interpreter of this machine."""

    path: Path
    version: tuple[int, int]
    full: str
    headers: bool


def run(*words: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """What a command prints; it is shown where the command fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, words))} ended with exit code {done.returncode}")
    return done.stdout


def pythons() -> list[Python]:
    """Every Python at hand that Hedgerow runs on: on the path, and where pyenv and uv keep theirs."""
    home = Path.home()
    kept = (
        ".pyenv/versions/*/bin/python3",
        ".local/share/uv/python/*/bin/python3",
        "AppData/Local/Programs/Python/*/python.exe",
    )
    named = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 30)]
    found = [
        sys.executable,
        "/usr/bin/python3",
        *filter(None, named),
        *(str(p) for each in kept for p in home.glob(each)),
    ]
    known: dict[str, Python] = {}
    for path in found:
        try:
            asked = subprocess.run([path, "-c", _ABOUT], capture_output=True, encoding="utf-8", check=False)
            about = json.loads(asked.stdout)
        except (OSError, ValueError):
            continue
        version = (about["version"][0], about["version"][1])
        if version >= OLDEST and not about["free"]:
            known.setdefault(about["path"], Python(Path(about["path"]), version, about["full"], about["headers"]))
    return sorted(known.values(), key=lambda each: (each.version, str(each.path)))


def builders() -> list[Python]:
    """One Python for each version without a stable ABI, and the oldest that has it."""
    chosen: dict[tuple[int, int] | None, Python] = {}
    for each in pythons():
        if each.headers:
            chosen.setdefault(each.version if each.version < STABLE else None, each)
    return list(chosen.values())


def tools(python: Python) -> Path:
    """An environment with what builds and repairs, from locked packages; returns its programs' folder."""
    folder = TOOLS / python.full
    ready = folder / "ready"
    if not ready.exists() or ready.stat().st_mtime < LOCK.stat().st_mtime:
        run(python.path, "-m", "venv", "--clear", folder)
        run(programs(folder) / "python", "-m", "pip", "install", "-qq", "--require-hashes", "-r", LOCK)
        ready.touch()
    return programs(folder)


def programs(folder: Path) -> Path:
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def build() -> None:
    """Fill dist/."""
    makers = builders()
    if not makers:
        sys.exit("no Python with headers is at hand; install its development package")
    DIST.mkdir(exist_ok=True)
    for old in (*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")):
        old.unlink()
    print("==> sources")
    run(tools(makers[0]) / "python", "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST)
    (sources,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sources) as archive:
            archive.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        for each in makers:
            print(f"==> wheel by Python {each.full}")
            _wheel(tools(each), unpacked, Path(folder) / each.full)
    for made in sorted(DIST.iterdir()):
        print(f"{made.stat().st_size / 1e6:6.2f} MB  {made.relative_to(ROOT)}")


def _wheel(bin: Path, sources: Path, made: Path) -> None:
    path = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
    if ccache := shutil.which("ccache"):
        path |= {"CMAKE_CXX_COMPILER_LAUNCHER": ccache, "CCACHE_BASEDIR": str(made.parent)}
    run(bin / "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", made, sources, cwd=sources, env=path)
    (wheel,) = made.glob("*.whl")
    if sys.platform == "linux":
        run(bin / "auditwheel", "repair", "--wheel-dir", DIST, wheel, env=path)
    else:
        shutil.copy(wheel, DIST)


def fits(wheel: Path, python: Python) -> bool:
    """Whether a wheel is for a Python."""
    tag = re.search(r"-cp3(\d+)-(abi3|cp3\d+)-", wheel.name)
    assert tag is not None, wheel
    minor = int(tag[1])
    return python.version[1] >= minor if tag[2] == "abi3" else python.version[1] == minor


def check(versions: Sequence[str]) -> None:
    """Install what is in dist/ into empty environments and use it."""
    wheels = sorted(DIST.glob("*.whl"))
    if not wheels:
        sys.exit("dist/ holds no wheel. Hint: make wheel")
    for python in pythons():
        if versions and ".".join(map(str, python.version)) not in versions:
            continue
        (wheel,) = [each for each in wheels if fits(each, python)]
        with tempfile.TemporaryDirectory() as folder:
            print(f"==> {wheel.name} on Python {python.full} ({python.path})", flush=True)
            _used(python, wheel, Path(folder))


def _used(python: Python, wheel: Path, folder: Path) -> None:
    run(python.path, "-m", "venv", folder / "empty")
    bin = programs(folder / "empty")
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CC", "CXX")}
    bare |= {"PATH": str(bin), "CC": "none", "CXX": "none"}
    run(bin / "python", "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel, cwd=folder, env=bare)
    first = ROOT / "tests" / "support" / "editions" / "first.release"
    for words in (
        ("--version",),
        ("demo",),
        ("verify", "demo/synthetic.release"),
        ("verify", first),
        ("sample", first, "--rows", "50", "-o", "first.csv"),
    ):
        print("   ", run(bin / "hedgerow", *words, cwd=folder, env=bare).strip().splitlines()[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["build"]:
        build()
    elif sys.argv[1:2] == ["check"]:
        check(sys.argv[2:])
    else:
        sys.exit(__doc__)
