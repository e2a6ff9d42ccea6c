"""What is on the disk when a call returns, whatever happens next: a kill, a power cut, a disk that is nearly full."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

from hedgerow.release.locks import opened

_AT_FDCWD, _NOREPLACE = -100, 1
"""What Linux calls the current folder, and a renaming that replaces nothing."""
_UNKNOWN = (errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)
"""How a file system says that it does not know a call."""


def reason(problem: OSError) -> str:
    """The system's own words for an error number; never the text of the exception, which could quote a row."""
    return os.strerror(problem.errno).lower() if problem.errno else type(problem).__name__


def write_through(descriptor: int, data: bytes) -> None:
    """All of `data` to an open file and on to the disk: a nearly full one takes a part of it without an error."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to disk, where its file system knows how and we may."""
    try:
        descriptor = opened(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except PermissionError:  # on Windows that of every folder
        return
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _UNKNOWN:
            raise
    finally:
        os.close(descriptor)


def move_new(written: Path, path: Path) -> None:
    """Give a whole file its name, and leave alone what has that name already (FileExistsError)."""
    if _rename_new(written, path):
        return
    try:
        os.link(written, path)
    except OSError as problem:
        if problem.errno not in _UNKNOWN:
            raise
        # a file system without second names: the name is taken first, which a kill at this very moment would show
        os.close(opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(written, path)
    else:
        os.unlink(written)


def move_new_folder(written: Path, path: Path) -> None:
    """Give a whole folder its name, and leave alone what has that name already (FileExistsError)."""
    if _rename_new(written, path):
        return
    if exists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    os.rename(written, path)


def _rename_new(written: Path, path: Path) -> bool:
    """In one step, which a kill cannot divide; False where the system or the file system has no such step."""
    if sys.platform == "win32":
        os.rename(written, path)
        return True
    elif sys.platform == "linux":
        rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if rename is None:
            return False
        if rename(_AT_FDCWD, os.fsencode(written), _AT_FDCWD, os.fsencode(path), _NOREPLACE) == 0:
            return True
        number = ctypes.get_errno()
        if number not in _UNKNOWN:
            raise OSError(number, os.strerror(number), str(path))
        return False
    else:
        return False


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def exists(path: Path) -> bool:
    """As the system says it: a name that is too long is an error, not an absence."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True
