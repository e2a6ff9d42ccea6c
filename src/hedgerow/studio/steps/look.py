"""Look: the publishable page, questions to the release, and, apart from both, the private comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, OptionError
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio, framed
from hedgerow.studio.steps.run import is_linked

if TYPE_CHECKING:
    from hedgerow.studio.project import Run


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
        linked=is_linked(studio),
        question=question,
        answers=answers,
        fault=fault,
        command=commands.ask(run, question) if question else commands.verify(run.release),
        kind="public",
    )


def ask(studio: Studio, form: Form) -> Any:
    """A question to the release: it costs no privacy, and reads no table."""
    from hedgerow.release.bundle import Release

    question = form["question"]
    try:
        return _look(studio, question, Release.load(finished(studio).release).ask(question), None)
    except HedgerowError as problem:
        return _look(studio, question, None, str(problem))


def show_private(studio: Studio, form: Form) -> Any:
    run = finished(studio)
    runs = studio.job is not None and studio.job.name == "evaluation" and studio.job.runs
    ended = studio.job if studio.job is not None and studio.job.name == "evaluation" else None
    return studio.page(
        "evaluation",
        "look",
        runs=runs,
        refused=ended.said.refusal if ended is not None and ended.failed else None,
        frame="/look/private/page" if run.evaluation.exists() and not runs else None,
        command=commands.evaluate(studio.project, run),
        kind="private",
    )


def evaluate(studio: Studio, form: Form) -> Any:
    """Compare with the private rows, in a process of its own."""
    if not form["agreed"]:
        raise OptionError("not-agreed", "nothing was compared: say first that you know what it is.")
    run = finished(studio)
    studio.start("evaluation", commands.evaluate(studio.project, run), studio.project.folder / ".evaluation.log")
    return studio.go("/look/private")


ROUTES = [
    Step("/look", show, ask, stale=True),
    Step("/look/page", lambda studio, form: framed(finished(studio).page)),
    Step("/look/private", show_private, evaluate, stale=True),
    Step("/look/private/page", lambda studio, form: framed(finished(studio).evaluation)),
]
