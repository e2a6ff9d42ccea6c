"""The pages as an application: a list of routes, a handler for each, templates that escape whatever is put in.

A handler is a plain function of the studio and what was typed. What it raises on purpose is shown as a sentence; where
it changes something it is refused if its page is out of date, because another tab changed something since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from hedgerow.errors import HedgerowError, OptionError, visible
from hedgerow.foreign import fault
from hedgerow.pages.shell import policy, resource
from hedgerow.studio import commands
from hedgerow.studio.job import Job

if TYPE_CHECKING:
    from pathlib import Path

    from hedgerow.studio.project import Project

MOST_FIELDS = 2_000
_WORD = re.compile("[a-z]+ ")
STEPS = (
    ("table", "Table"),
    ("columns", "Columns"),
    ("budget", "Budget"),
    ("run", "Run"),
    ("look", "Look"),
    ("publish", "Publish"),
)
STATIC = {"studio.js": "text/javascript", "icon.svg": "image/svg+xml"}


class Form:
    """What was typed: texts by name, as they came."""

    def __init__(self, body: bytes = b"", path: Mapping[str, Any] | None = None, query: str = ""):
        try:
            pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
            asked = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            raise OptionError("bad-form", "what was sent is no form of the studio. Nothing was saved.") from None
        self._texts: dict[str, list[str]] = {}
        for name, text in [*pairs, *asked]:
            self._texts.setdefault(name, []).append(text.replace("\r\n", "\n"))
        self.path = dict(path or {})
        """What the address names: numbers of columns."""

    def __getitem__(self, name: str) -> str:
        """One text without the spaces around it; empty where there is none."""
        return self._texts.get(name, [""])[-1].strip()

    def all(self, name: str) -> list[str]:
        return self._texts.get(name, [])

    def lines(self, name: str) -> list[str]:
        """The lines of a text, without empty ones."""
        return [line.strip() for line in self[name].splitlines() if line.strip()]

    def number(self, name: str, what: str) -> float:
        try:
            return float(self[name].replace(",", "."))
        except ValueError:
            raise OptionError(
                "bad-number", f'{what} must be a number, got "{self[name]}". Nothing was saved.'
            ) from None

    def whole(self, name: str, what: str) -> int:
        """A whole number, with or without signs between thousands."""
        text = self[name].replace(",", "").replace(" ", "").replace("_", "")
        if not text.isdecimal() or not int(text[:16]) > 0 or len(text) > 15:
            raise OptionError(
                "bad-number", f'{what} must be a whole number above 0, got "{self[name]}". Nothing was saved.'
            )
        return int(text)


Handler = Callable[["Studio", Form], Any]


class Step(NamedTuple):
    """A route: its path, what is shown there, and what a form of it does."""

    path: str
    show: Handler | None
    save: Handler | None = None
    stale: bool = False
    """Whether the form may come from a page that is out of date, because it changes nothing that others change."""


class Studio:
    """One project with its pages."""

    def __init__(self, project: Project):
        from jinja2 import Environment, PackageLoader, StrictUndefined

        self.project = project
        self.job: Job | None = None
        self.base = ""
        self._templates = Environment(
            loader=PackageLoader("hedgerow.studio"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_spelled,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["sentence"] = _sentence

    @property
    def at_work(self) -> bool:
        return self.job is not None and self.job.runs

    def start(self, name: str, words: Sequence[str], log: Path) -> Job:
        """Start a command; one at a time."""
        with self.project.lock:
            if self.at_work:
                raise OptionError("at-work", "another command is at work. Hint: wait until it has ended, or stop it.")
            self.job = Job(name, words, log)
            return self.job

    def finish(self, name: str, words: Sequence[str]) -> None:
        """Run a command that is soon done, and say what it refuses."""
        job = self.start(name, words, self.project.folder / f".{name}.log")
        job.wait()
        if job.failed:
            said = job.said
            raise OptionError(said.code or "other", said.refusal or "the command failed without a word.")

    def page(self, name: str, step: str, status: int = 200, **shown: Any) -> Any:
        """A page from its template."""
        from starlette.responses import HTMLResponse

        text = self._templates.get_template(f"{name}.html").render(
            base=self.base,
            steps=STEPS,
            step=step,
            project=self.project,
            done=self.project.done,
            revision=self.project.notes.revision,
            **{"kind": "", "command": None, "fault": None, "shown": commands.shown, **shown},
        )
        return HTMLResponse(text, status)

    def go(self, path: str) -> Any:
        """On to another page."""
        from starlette.responses import RedirectResponse

        return RedirectResponse(f"{self.base}{path}", 303)

    def close(self) -> None:
        if self.job is not None:
            self.job.stop()
        self.project.close()


def framed(path: Path) -> Any:
    """A page that a command wrote, in a frame of ours: cut off from the studio, with nothing of its own but its few
    lines.
    """
    from starlette.responses import HTMLResponse

    if not path.is_file():
        raise OptionError("no-such-page", "that page was not made yet.")
    own = f"{policy()}; frame-ancestors 'self'; sandbox allow-scripts"
    return HTMLResponse(path.read_text(encoding="utf-8"), headers={"content-security-policy": own})


def application(studio: Studio) -> Any:
    """All pages."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    from hedgerow.studio.steps import ROUTES

    routes = [
        Route("/", lambda request: studio.go("/table"), methods=["GET"]),
        Route("/style.css", lambda request: _static("style.css"), methods=["GET"]),
        *(Route(f"/{name}", lambda request: _static(request.url.path[1:]), methods=["GET"]) for name in STATIC),
    ]
    for step in ROUTES:
        name = step.path.split("/")[1]
        if step.show is not None:
            routes.append(Route(step.path, _answering(studio, name, step.show), methods=["GET"]))
        if step.save is not None:
            saving = _answering(studio, name, step.save, changes=not step.stale)
            routes.append(Route(step.path, saving, methods=["POST"]))
    said = {
        404: lambda request, problem: _gone(studio, 404, "There is no such page."),
        Exception: lambda request, problem: _gone(studio, 500, fault(problem)),
    }
    return Starlette(routes=routes, exception_handlers=said)


def _answering(studio: Studio, step: str, handler: Handler, *, changes: bool = False) -> Any:
    """A handler as the server calls it: in a thread, so that one that takes long keeps no other waiting."""
    from starlette.concurrency import run_in_threadpool

    def answered(body: bytes, path: Mapping[str, Any], query: str) -> Any:
        try:
            form = Form(body, path, query)
            if not changes:
                return handler(studio, form)
            with studio.project.lock:
                if form["revision"] != str(studio.project.notes.revision):
                    raise OptionError(
                        "stale-page",
                        "this page is out of date: something was changed since, perhaps in another tab. Nothing was "
                        "saved. Hint: open the step again.",
                    )
                return handler(studio, form)
        except HedgerowError as problem:
            return _gone(studio, 409 if problem.code == "stale-page" else 422, str(problem), step)

    async def endpoint(request: Any) -> Any:
        body = await request.body()
        return await run_in_threadpool(answered, body, request.path_params, request.url.query)

    return endpoint


def _gone(studio: Studio, status: int, said: str, step: str = "") -> Any:
    return studio.page("sentence", step, status, said=said)


def _static(name: str) -> Any:
    from starlette.responses import Response

    read = resources.files("hedgerow.studio").joinpath("static")
    if name == "style.css":
        text = resource("style.css") + read.joinpath("studio.css").read_text(encoding="utf-8")
        return Response(text, media_type="text/css")
    return Response(read.joinpath(name).read_text(encoding="utf-8"), media_type=STATIC[name])


def _sentence(text: str) -> str:
    """What a command says begins with a small letter, because its name stands before it there."""
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def _spelled(value: Any) -> Any:
    """What would not show is spelled out, as on all our pages."""
    if hasattr(value, "__html__") or not isinstance(value, str):
        return value
    return visible(value, keep="\n\t")
