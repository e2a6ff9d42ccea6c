"""What Windows lacks and forbids, played on this machine: `python windows.py` runs commands as if they were there.

Each line that it is given is a command in JSON; it prints how each has ended.

It is not Windows. It shows that nothing of ours asks for what Windows lacks (`fcntl`, `resource`, signals, calls and
flags of `os`), opens a file without asking for its bytes as they are, opens a folder, hands descriptors to a child, or
renames and removes a file that it has open; and its locks are of one byte, as those of `msvcrt` are.
"""

import contextlib
import errno
import importlib
import importlib.abc
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import types


def _words(text):
    return text.split()


LACKING = {
    "os": _words("""
fork forkpty getuid geteuid getgid getegid getpgrp getpgid getsid killpg setsid setpgid pread pwrite preadv pwritev
fchmod fchown chown lchown chroot register_at_fork sysconf confstr nice mkfifo mknod sched_getaffinity sched_yield
wait4 wait3 getloadavg openpty uname statvfs sync posix_fallocate posix_fadvise WIFSIGNALED WTERMSIG
O_NONBLOCK O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_SYNC O_DSYNC
"""),
    "signal": _words("""
SIGHUP SIGALRM SIGKILL SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGXCPU SIGSTOP SIGCONT alarm setitimer ITIMER_REAL
pthread_sigmask pthread_kill sigwait siginterrupt SIG_BLOCK SIG_UNBLOCK SIG_SETMASK pause
"""),
    "subprocess": [],
}
MODULES = {"fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "crypt", "syslog", "posix"}
O_BINARY = 1 << 30
EXTRAS = ("polars",)
"""Likewise, where they are installed: others import it where it is."""
THIRD_PARTY = _words("""
asyncio concurrent.futures logging multiprocessing.connection multiprocessing.popen_spawn_posix
multiprocessing.resource_tracker multiprocessing.synchronize ssl tempfile unittest.mock webbrowser zoneinfo
click cryptography.hazmat.primitives.ciphers cryptography.hazmat.primitives.serialization jinja2 numpy
pyarrow.compute pyarrow.csv pyarrow.dataset pyarrow.parquet pydantic rich.console rich.progress rich.table
scipy.sparse.linalg scipy.special scipy.stats sqlglot starlette.applications typer uvicorn yaml
""")


class Seen(types.ModuleType):
    """A module without what Windows lacks, with what it has instead."""

    def __init__(self, module, **instead):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(instead)
        self.__dict__["_module"] = module
        self.__dict__["_lacking"] = set(LACKING[module.__name__])

    def __getattr__(self, name):
        if name in self._lacking:
            raise AttributeError(f"Windows has no {self._module.__name__}.{name}")
        return getattr(self._module, name)


class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"Windows has no module {name}", name=name)


def is_open(path):
    """Whether this process has a file open."""
    try:
        there = os.stat(path)
    except OSError:
        return False
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.path.samestat(os.fstat(int(number)), there):
                return True
        except OSError:
            continue
    return False


def unless_open(call):
    def called(*paths, **options):
        for path in paths:
            if is_open(path):
                raise PermissionError(errno.EACCES, "it is open", os.fspath(path))
        return call(*paths, **options)

    return called


def renamed(call):
    def called(source, target, **options):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
        return call(source, target, **options)

    return called


def opened(path, flags, mode=0o777, *, dir_fd=None):
    assert flags & O_BINARY, "a descriptor that would change line ends"
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
    return os.open(path, flags & ~O_BINARY, mode)


class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        assert not options.get("pass_fds"), "Windows hands no descriptors on"
        assert options.pop("creationflags", 0) in (0, 512)
        super().__init__(*words, **options)


def byte_locks():
    """The `msvcrt` of this platform, by locks of an open file, which Linux has too."""
    import fcntl

    def locking(descriptor, mode, count):
        begin = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert begin < 1 << 31, "the C library of Windows counts in 32 bits"
        wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, begin, count, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    made = types.ModuleType("msvcrt")
    made.LK_NBLCK, made.locking = 2, locking
    return made


def pretend():
    """From here on, hedgerow sees Windows; the libraries below it were loaded before."""
    for name in THIRD_PARTY:
        importlib.import_module(name)
    for name in EXTRAS:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    sys.modules["msvcrt"] = byte_locks()
    for name in MODULES & set(sys.modules):
        del sys.modules[name]
    sys.meta_path.insert(0, Blocked())
    shutil._use_fd_functions = False
    for name in ("unlink", "remove"):
        setattr(os, name, unless_open(getattr(os, name)))
    os.replace, os.rename = unless_open(os.replace), unless_open(renamed(os.rename))
    fsync = os.fsync

    def synced(descriptor):
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as about:
            flags = int(about.read().split("flags:")[1].split()[0], 8)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        fsync(descriptor)

    sys.modules["os"] = Seen(os, open=opened, fsync=synced, O_BINARY=O_BINARY)
    sys.modules["signal"] = Seen(signal, CTRL_BREAK_EVENT=signal.SIGTERM, SIGBREAK=signal.SIGTERM)
    sys.modules["subprocess"] = Seen(subprocess, Popen=Popen, CREATE_NEW_PROCESS_GROUP=512)
    sys.platform = "win32"


def import_all():
    """Every module of hedgerow."""
    import pkgutil

    import hedgerow

    names = [each.name for each in pkgutil.walk_packages(hedgerow.__path__, "hedgerow.")]
    for name in names:
        if not name.endswith("__main__"):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as lacking:  # a package of an extra that is not installed
                root = str(lacking.name).partition(".")[0]
                if root == "hedgerow" or root in sys.stdlib_module_names:
                    raise
    return len(names)


def ended(words):
    """The exit code of a command."""
    from hedgerow.cli import main

    sys.argv = ["hedgerow", *words]
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


if __name__ == "__main__":
    pretend()
    if sys.argv[1:] == ["import"]:
        print(import_all())
    for line in sys.stdin if not sys.argv[1:] else ():
        print(json.dumps(ended(json.loads(line))), file=sys.stderr)
