"""Look: the publishable page, questions to the release, and, apart from both, the private comparison."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, OptionError
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio, framed
from hedgerow.studio.declaring import Document
from hedgerow.studio.steps.private import Room

if TYPE_CHECKING:
    from hedgerow.studio.project import Project, Run

_WORD = re.compile(r"[^\W\d]\w*")


def finished(studio: Studio) -> Run:
    """The release that was made last."""
    for number in range(studio.project.notes.runs, 0, -1):
        run = studio.project.run_number(number)
        if run.is_done:
            return run
    raise OptionError("no-release", "there is no release yet. Hint: make one in the step Run.")


def show(studio: Studio, form: Form) -> Any:
    return _look(studio, "", None, None)


def _look(studio: Studio, question: str, answers: Any, fault: str | None) -> Any:
    run = finished(studio)
    return studio.page(
        "look",
        "look",
        status=422 if fault else 200,
        run=run,
        linked=studio.project.is_linked,
        asked=question or f"SELECT COUNT(*) FROM {_table(studio.project)}",
        examples=_examples(studio.project),
        answers=answers,
        fault=fault,
        command=commands.ask(run, question) if question else commands.verify(run.release),
        kind="public",
    )


def _table(project: Project) -> str:
    """What a question may ask: one of linked tables by its name, a single table by any."""
    return next(iter(Document.read(project).tables), "t")


def _examples(project: Project) -> list[str]:
    """Questions that this very release can be asked."""
    document = Document.read(project)
    if document.linked:
        return []
    kinds: dict[str, list[str]] = {}
    for name, declared in document.data["columns"].items():
        kind = declared.get("type", "category") if isinstance(declared, dict) else str(declared)
        kinds.setdefault(kind, []).append(name if _WORD.fullmatch(name) else '"' + name.replace('"', '""') + '"')
    groups = [*kinds.get("category", []), *kinds.get("boolean", [])][:2]
    figures = [*kinds.get("number", []), *kinds.get("integer", [])][:1]
    asked = [f"SELECT {group}, COUNT(*) FROM t GROUP BY {group}" for group in groups]
    return asked + [f"SELECT AVG({figure}), MEDIAN({figure}) FROM t" for figure in figures]


def ask(studio: Studio, form: Form) -> Any:
    """A question to the release: it costs no privacy, and reads no table."""
    from hedgerow.release.bundle import Release

    question = form["question"]
    try:
        return _look(studio, question, Release.load(finished(studio).release).ask(question), None)
    except HedgerowError as problem:
        return _look(studio, question, None, str(problem))


EVALUATION = Room(
    "/look/private",
    "The synthetic rows beside the real ones",
    "How far the synthetic table is from the real one: columns, pairs and triples, compared exactly.",
    "Compare with the real rows",
    lambda studio: finished(studio).evaluation,
    lambda studio: commands.evaluate(studio.project, finished(studio)),
)
ROUTES = [
    Step("/look", show, ask, stale=True),
    Step("/look/page", lambda studio, form: framed(finished(studio).page)),
    *EVALUATION.steps,
]
