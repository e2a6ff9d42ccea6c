"""Files that are open as they are, byte for byte, and locks on them that end with their holder, even by kill -9.

Where the system is POSIX, `flock` locks the file itself, as every version did, so versions that write to one file wait
for each other. Windows locks bytes and lets nobody else read them, so there one byte is locked that lies beyond any
content; a file that is open there can be neither removed nor renamed, and a folder cannot be opened at all.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

FOLDER_LOCK = ".lock"
"""The file that is locked where a folder cannot be."""
_BEYOND = (1 << 31) - 2
"""The last byte that Windows' C library can lock."""
_PAUSE = 0.05


def opened(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor that gives and takes bytes as they are: Windows would make two of every line end."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0), mode)


def lock(descriptor: int, *, wait: bool = True) -> None:
    """Exclude everyone else until the descriptor is closed; BlockingIOError where another has it and `wait` is off."""
    if sys.platform == "win32":
        while not _locked_a_byte(descriptor):
            if not wait:
                raise BlockingIOError
            time.sleep(_PAUSE)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def opened_folder(folder: Path) -> int:
    """What is locked so that a folder is: the folder itself, or on Windows a file in it."""
    if sys.platform == "win32":
        return opened(folder / FOLDER_LOCK, os.O_RDWR | os.O_CREAT)
    else:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def read_at_start(descriptor: int, size: int) -> bytes:
    """The first bytes of an open file, at most `size`."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    found = b""
    while len(found) < size and (more := os.read(descriptor, size - len(found))):
        found += more
    return found


if sys.platform == "win32":

    def _locked_a_byte(descriptor: int) -> bool:
        import msvcrt

        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)
        return True
