"""What is on the disk when a call returns, whatever happens next: a kill, a power cut, a disk that is nearly full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_UNKNOWN = (errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)
"""How a file system says that it does not know a call."""


def reason(problem: OSError) -> str:
    """The system's own words for an error number; never the text of the exception, which could quote a row."""
    return os.strerror(problem.errno).lower() if problem.errno else type(problem).__name__


def write_through(place: int, data: bytes) -> None:
    """All of `data` to an open file and on to the disk: a nearly full one takes a part of it without an error."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(place, rest) :]
    os.fsync(place)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk, where its file system knows how and we may."""
    try:
        place = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(place)
    except OSError as problem:
        if problem.errno not in _UNKNOWN:
            raise
    finally:
        os.close(place)


def move_new(written: Path, path: Path) -> None:
    """Give a whole file its name, and leave alone what has that name already (FileExistsError)."""
    try:
        os.link(written, path)
    except OSError as problem:
        if problem.errno not in _UNKNOWN:
            raise
        # a file system without second names: the name is taken first, which a kill at this very moment would show
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(written, path)
    else:
        os.unlink(written)


def is_at(place: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(place), os.stat(path))
    except FileNotFoundError:
        return False


def exists(path: Path) -> bool:
    """As the system says it: a name that is too long is an error, not an absence."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True
