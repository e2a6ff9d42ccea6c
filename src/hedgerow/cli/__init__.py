"""The command line. Commands import what they need when they run, so that --help answers at once."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from typing import Any

STOPPED = 130
SOON = 0.01
_ENDED = "stopped; no half-written file was left, and what was debited stays debited."
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))
_asked_to_end: list[int] = []
"""The signals that asked the command to end."""


def main() -> None:
    """Run a command; one clear sentence on stderr if it cannot be done.

    Exit codes: 0 done, 2 the input or a limit is at fault, 3 a look found misfits, 4 the release is not as good as the
    schema demands, 1 our fault, 130 stopped by Ctrl-C.
    An unexpected error is named by its type and place alone, because its text could quote a private row.
    """
    _asked_to_end.clear()
    atexit.register(_too_late)
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or the background work of a shell
            signal.signal(number, _interrupt)
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _unraised
    _speak_utf8()
    try:
        _run()
    except KeyboardInterrupt:
        _asked_to_end.append(signal.SIGINT)
        _stop("stopped", _ENDED, STOPPED)


def _run() -> None:
    import typer

    from hedgerow.cli import room
    from hedgerow.cli.app import app
    from hedgerow.errors import INTERNAL, HedgerowError, LimitError

    if _works(sys.argv[1:]) and not room.suffices():
        _stop("out-of-memory", room.sentence(started=False), LimitError.exit_code)
    try:
        code = app(standalone_mode=False)  # the parser turns an interrupt into a code
        if code == STOPPED:
            raise KeyboardInterrupt
        _flush()
        sys.exit(code if isinstance(code, int) else 0)
    except HedgerowError as problem:
        _stop(problem.code, str(problem), problem.exit_code)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        sys.exit(0)
    except _usage_error(typer.BadParameter) as problem:
        said = problem.format_message().rstrip(".")
        if not said:
            sys.exit(2)
        _stop("usage", f"{said}{'' if said.endswith('?') else '.'} Hint: {_help(problem)}", 2)
    except OSError as problem:
        from hedgerow.release.disk import reason

        if room.ran_out(problem):
            _stop("out-of-memory", room.sentence(started=True), LimitError.exit_code)
        which = f'"{problem.filename}"' if isinstance(problem.filename, str) else "a file, or what is printed,"
        said = f"{which} could not be read or written ({reason(problem)}); a release written before that is kept."
        _stop("file-failed", said, 2)
    except Exception as problem:
        if room.ran_out(problem):
            _stop("out-of-memory", room.sentence(started=True), LimitError.exit_code)
        from hedgerow.foreign import fault

        _stop(INTERNAL, f"{fault(problem)} No private value is shown here.", 1)


def _works(arguments: list[str]) -> bool:
    """Whether a command is to be run, rather than explained."""
    return any(not word.startswith("-") for word in arguments) and "--help" not in arguments


def _tidy_up() -> None:
    if "hedgerow.release.files" in sys.modules:
        from hedgerow.release.files import remove_unfinished

        remove_unfinished()


def _flush() -> None:
    """What was printed reaches its reader, or it is said that it did not."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it would be tried again at the end
        if isinstance(problem, BrokenPipeError):
            raise
        from hedgerow.release.disk import reason

        _stop("file-failed", f"what is printed could not be written ({reason(problem)}); the files are there.", 2)


def _interrupt(number: int, _: object) -> None:
    """A request to end is treated like Ctrl-C, so that partial files are removed."""
    _asked_to_end.append(number)
    raise KeyboardInterrupt


def _unraised(problem: sys.UnraisableHookArgs) -> None:
    """A request to end that came where Python can only drop it (a callback, a finalizer) is made again soon."""
    if _asked_to_end and issubclass(problem.exc_type, KeyboardInterrupt):
        _ask_again()
    else:
        sys.__unraisablehook__(problem)


def _ask_again() -> None:
    if sys.platform == "win32":
        import _thread
        import threading

        threading.Timer(SOON, _thread.interrupt_main).start()
    else:
        signal.setitimer(signal.ITIMER_REAL, SOON)


def _speak_utf8() -> None:
    """Into a file or a pipe too, where Windows would write in a code page that has no ε."""
    if sys.platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]


def _too_late() -> None:
    """The command has ended; a signal would only disturb the interpreter while it takes itself down."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _usage_error(kind: type[Exception]) -> Any:
    """The root of the parser's own errors, wherever its package keeps it."""
    return next(base for base in kind.__mro__ if base.__name__ == "ClickException")


def _help(problem: Any) -> str:
    """How to ask for help about the command that was typed."""
    _, *command = problem.ctx.command_path.split() if getattr(problem, "ctx", None) else [""]
    return " ".join(["hedgerow", *command, "--help"])


def _stop(code: str, message: str, status: int) -> None:
    """End with a sentence. Code that is not ours may have turned a request to end into an error of another kind."""
    if _asked_to_end:
        code, message, status = "stopped", _ENDED, STOPPED
        _tidy_up()
    from hedgerow.errors import visible

    print(f"hedgerow [{code}]: {visible(message, keep=chr(10))}", file=sys.stderr)
    sys.exit(status)
