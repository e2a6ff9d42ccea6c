"""A private folder for what a database puts on disk; gone with the process, or at the next start after a kill."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from pathlib import Path

from hedgerow.release.locks import lock, opened_folder


class SpillFolder:
    """A new folder for temporary files (TMPDIR) that its owner alone can read.

    It is locked while its process lives, so whoever starts next can tell an abandoned one and removes it.
    """

    def __init__(self, prefix: str):
        for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            _remove_abandoned(left)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            held = _lock(self.path)
            if held is not None and self.path.exists():  # nobody took it for abandoned before it was locked
                break
        self.close = weakref.finalize(self, _remove, self.path, held)


def _lock(folder: Path) -> int | None:
    """A lock on the folder that the process holds until it ends; None where another one has it."""
    try:
        handle = opened_folder(folder)
    except OSError:
        return None
    try:
        lock(handle, wait=False)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove(folder: Path, held: int) -> None:
    if sys.platform == "win32":  # what is open there cannot be removed
        os.close(held)
    shutil.rmtree(folder, ignore_errors=True)
    if sys.platform != "win32":
        os.close(held)


def _remove_abandoned(folder: Path) -> None:
    try:
        about = folder.stat(follow_symlinks=False)
    except OSError:
        return
    ours = sys.platform == "win32" or about.st_uid == os.getuid()  # there the folder is the user's own
    if ours and (held := _lock(folder)) is not None:
        _remove(folder, held)
