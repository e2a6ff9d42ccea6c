"""Serves the studio, on this machine alone unless told otherwise, until it is ended or nobody was there for a while."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError
from hedgerow.markup import tag
from hedgerow.release.locks import opened
from hedgerow.studio.app import Studio, application
from hedgerow.studio.gate import ADDRESS, Gate

if TYPE_CHECKING:
    from hedgerow.studio.project import Project

CONNECTIONS = 64
_HOST = re.compile(r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")
_PORT = re.compile(r":[0-9]+$")
LOOK_AGAIN = 2.0
"""Seconds between looks at how long nobody was here."""


class Serving:
    """A studio behind its gate, on a port of its own."""

    def __init__(
        self,
        project: Project,
        port: int = 0,
        idle: float = 3600.0,
        listen: str = ADDRESS,
        host_names: Sequence[str] = (),
    ):
        import uvicorn

        logging.getLogger("uvicorn").disabled = True
        self.studio = Studio(project)
        self._idle = idle
        family = socket.AF_INET6 if ":" in listen else socket.AF_INET
        try:
            self._socket = socket.create_server((listen, port), family=family)
        except OSError as problem:
            project.close()
            raise OptionError(
                "no-port", f"port {port} at {listen} cannot be used ({problem.strerror}). Hint: leave out --port."
            ) from None
        self.port: int = self._socket.getsockname()[1]
        self.gate = Gate(application(self.studio), self.port, hosts(listen, self.port, host_names))
        self.studio.base = self.gate.base
        settings = uvicorn.Config(
            self.gate,
            access_log=False,
            log_config=None,
            log_level="critical",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=2,
            timeout_keep_alive=5,
            ws="none",
            loop="asyncio",
            http="h11",
        )
        self._server = uvicorn.Server(settings)
        self._launcher: Path | None = None

    def run(self, opened: Callable[[str], object] | None = None) -> None:
        """Serve until the end; `opened` is handed a file that leads a browser to the address.

        The address itself is on no command line, where other users of the machine could read it.
        """
        try:
            if opened is not None:
                self._launcher = self._launch_file()
                opened(self._launcher.resolve().as_uri())
            asyncio.run(self._serve())
        finally:
            self.studio.close()
            self._forget()

    def end(self) -> None:
        """Ask the server to end, from whatever thread."""
        self._server.should_exit = True

    async def _serve(self) -> None:
        watching = asyncio.create_task(self._watch())
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """End when nobody has been here for long and nothing is at work."""
        while not self._server.should_exit:
            await asyncio.sleep(min(LOOK_AGAIN, self._idle / 4))
            if self.gate.is_opened:
                self._forget()
            if self.studio.at_work:
                self.gate.asked = time.monotonic()
            if time.monotonic() - self.gate.asked > self._idle:
                print("nobody was here for long; the studio has ended. What was saved is kept.", file=sys.stderr)
                self.end()

    def _launch_file(self) -> Path:
        onward = tag("meta", http_equiv="refresh", content=f"0; url={self.gate.address}")
        page = tag("html", tag("head", onward, tag("title", "Hedgerow studio")), lang="en")
        path = self.studio.project.folder / ".open.html"
        with open(opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8", newline="\n") as file:
            file.write(f"<!doctype html>\n{page}\n")
        return path

    def _forget(self) -> None:
        if self._launcher is not None:
            with contextlib.suppress(OSError):
                self._launcher.unlink()
            self._launcher = None


def check_door(listen: str, host_names: Sequence[str]) -> None:
    """Refuse to listen where everybody could ask, unless it is said by which names."""
    try:
        address = ipaddress.ip_address(listen)
    except ValueError:
        raise OptionError(
            "bad-address", f'--listen takes an address such as 127.0.0.1 or 0.0.0.0, not "{listen}".'
        ) from None
    for name in host_names:
        if not _HOST.fullmatch(name):
            raise OptionError(
                "bad-host-name",
                "--host-name takes what stands in the browser's address bar, such as studio.example or 127.0.0.1:8000, "
                f'not "{name}".',
            )
    if not address.is_loopback and not host_names:
        raise OptionError(
            "listening-without-names",
            f"at {listen} others than this machine can ask, and a page elsewhere could make a browser ask by any name. "
            "Hint: --host-name 127.0.0.1:8000, as often as there are names by which your browser reaches the studio.",
        )


def hosts(listen: str, port: int, host_names: Sequence[str]) -> list[str]:
    """The names that are answered: those that were given and, on this machine alone, its own."""
    own = f"[{listen}]:{port}" if ":" in listen else f"{listen}:{port}"
    given = [name.lower() if _PORT.search(name) else f"{name.lower()}:{port}" for name in host_names]
    return [*([own] if ipaddress.ip_address(listen).is_loopback else []), *given]


def refuse_without_extra() -> None:
    """Say what to install where the server is not."""
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise OptionError(
            "missing-package", "the studio needs a small server. Hint: pip install 'hedgerow[studio]'."
        ) from None


def opener() -> Callable[[str], Any]:
    """What opens a browser, or nothing where there is none."""
    import webbrowser

    return webbrowser.open
