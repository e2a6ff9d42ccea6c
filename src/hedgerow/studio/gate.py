"""Who may speak to the studio: the one browser that opened the printed address, and what it sends by itself.

Everything that is asked passes here first. A page elsewhere that makes the steward's browser ask (another site, another
port of this machine, a name that was rebound to 127.0.0.1) fails at Host, Origin or Sec-Fetch-Site; another browser, or
another user of this machine, fails at the cookie, which the address with the token hands out once. The cookie is bound
to a path that nobody can guess, because cookies do not tell ports apart: what another server on this machine is asked
never carries it. Where the studio listens beyond this machine (in a container), all of that holds for the names that
it was given, and for no others.

Nothing that is asked is logged, and what fails on our side is named by its type and place, never by its text.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from hedgerow.foreign import fault
from hedgerow.markup import tag

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

ADDRESS = "127.0.0.1"
LARGEST = 8 << 20
"""Bytes of a form: the text of a schema of some ten thousand columns."""
FORM = "application/x-www-form-urlencoded"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
USED = (
    "This address was used already, or never was one: it lets one browser in, once. For a new one, end the studio with "
    "Ctrl-C in its terminal and start it again."
)
STRANGER = "The studio answers the browser that opened its printed address, and nobody else."


class TooLargeError(Exception):
    """More was sent than a form may hold."""


class Gate:
    """Stands before an application; one for the life of a studio."""

    def __init__(self, app: App, port: int, hosts: Sequence[str] = ()):
        self._app = app
        self._hosts = tuple(hosts) or (f"{ADDRESS}:{port}",)
        """What a browser may call the studio: names with their ports, as they stand in its address bar."""
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"hedgerow-{port}"
        self.base = f"/{secrets.token_hex(8)}"
        """What every path begins with."""
        self.address = f"http://{self._hosts[0]}{self.base}/open?token={self._token}"
        """What is printed. It works once."""
        self.asked = time.monotonic()
        """When somebody who may was last here."""

    @property
    def is_opened(self) -> bool:
        """Whether the address was used."""
        return self._token is None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no other protocol is spoken
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        refusal = self._refused(scope, headers)
        if refusal is not None:
            await _say(send, *refusal)
        elif scope["path"] == f"{self.base}/open":
            await self._open(scope, send)
        elif not (scope["path"].startswith(f"{self.base}/") and self._known(headers)):
            await _say(send, 403, STRANGER)
        else:
            self.asked = time.monotonic()
            await self._pass(scope, receive, send)

    def _refused(self, scope: Message, headers: Mapping[str, list[str]]) -> tuple[int, str] | None:
        """What is wrong whoever asks."""
        asked = headers.get("host", [])
        if len(asked) != 1 or asked[0] not in self._hosts:
            return 421, "The studio answers to no other name than the one in its printed address."
        if scope["method"] not in ("GET", "POST"):
            return 405, "The studio takes GET and POST."
        origins = headers.get("origin", [])
        if origins != [f"http://{asked[0]}"] and (origins or scope["method"] == "POST"):
            return 403, STRANGER
        opening = scope["path"] == f"{self.base}/open" and scope["method"] == "GET"
        if not opening and headers.get("sec-fetch-site", ["none"]) not in (["same-origin"], ["none"]):
            return 403, STRANGER
        if scope["method"] == "POST" and headers.get("content-type", [""])[0].partition(";")[0].strip() != FORM:
            return 415, "The studio takes forms."
        if any(not size.isdigit() or int(size) > LARGEST for size in headers.get("content-length", [])):
            return 413, "That is more than a form of the studio holds."
        return None

    async def _open(self, scope: Message, send: Send) -> None:
        """The token is used up, and the browser gets its cookie.

        It goes on by a page, not by a redirect: after an address that was opened from elsewhere a redirect would carry
        no strict cookie.
        """
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        held, matches = self._token, False
        if held is not None:
            matches = hmac.compare_digest(given.encode(), held.encode())
        if not matches:
            await _say(send, 403, USED)
            return
        self._token = None
        self.asked = time.monotonic()
        cookie = f"{self._cookie}={self._session}; Path={self.base}; HttpOnly; SameSite=Strict"
        onward = tag("meta", http_equiv="refresh", content=f"0; url={self.base}/")
        link = tag("a", "Go on to the studio", href=f"{self.base}/")
        await _say(send, 200, link, head=onward, headers={"set-cookie": cookie})

    def _known(self, headers: Mapping[str, list[str]]) -> bool:
        """Whether our cookie is among those that came: others, of other servers here, may be called the same."""
        own = f"{self._cookie}={self._session}".encode()
        held = "; ".join(headers.get("cookie", [])).split(";")
        return any(hmac.compare_digest(each.strip().encode(), own) for each in held)

    async def _pass(self, scope: Message, receive: Receive, send: Send) -> None:
        """Hand on what may pass: no larger than a form may be, answered with our headers, never with a traceback."""
        begun = False
        taken = 0

        async def taking() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > LARGEST:
                raise TooLargeError
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                own = {name.decode("latin-1").lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name not in own]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            await self._app({**scope, "path": scope["path"].removeprefix(self.base)}, taking, sending)
        except TooLargeError:
            if not begun:
                await _say(send, 413, "That is more than a form of the studio holds.")
        except Exception as problem:
            if not begun:
                await _say(send, 500, f"{fault(problem)} No private value is shown here.")


def _headers(scope: Message) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _say(send: Send, status: int, text: str, *, head: str = "", headers: Mapping[str, str] | None = None) -> None:
    """A page of one sentence."""
    title = tag("title", "Hedgerow studio")
    page = tag("html", tag("head", title, head), tag("body", tag("main", tag("p", text))), lang="en")
    body = f"<!doctype html>\n{page}\n".encode()
    said = {**HEADERS, "content-type": "text/html; charset=utf-8", "content-length": str(len(body)), **(headers or {})}
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
