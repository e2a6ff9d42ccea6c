"""A private folder for what a database puts on disk; gone with the process, or at the next start after a kill."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path


class SpillFolder:
    """A new folder for temporary files (TMPDIR) that its owner alone can read.

    It is locked while its process lives, so whoever starts next can tell an abandoned one and removes it.
    """

    def __init__(self, prefix: str):
        for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            _remove_abandoned(left)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            lock = _lock(self.path)
            if lock is not None and self.path.exists():  # nobody took it for abandoned before it was locked
                break
        self.close = weakref.finalize(self, _remove, self.path, lock)


def _lock(folder: Path) -> int | None:
    """A lock on the folder that the process holds until it ends; None where another one has it."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_abandoned(folder: Path) -> None:
    try:
        ours = folder.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:
        return
    if ours and (lock := _lock(folder)) is not None:
        _remove(folder, lock)
