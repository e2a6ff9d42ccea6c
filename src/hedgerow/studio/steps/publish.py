"""Publish: what only the publisher knows, and the folder."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, listing
from hedgerow.publish.publisher import QUESTIONS, SECTORS, TODO, load
from hedgerow.schema.document import read_yaml, write_yaml
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio
from hedgerow.studio.steps.look import finished

if TYPE_CHECKING:
    from hedgerow.studio.project import Project

LONG = (
    "description",
    "intended_use",
    "people",
    "collection",
    "access",
    "justification",
    "looked_before",
    "legal_basis",
    "notes",
)
"""What takes more than a line to answer."""


def show(studio: Studio, form: Form) -> Any:
    project = studio.project
    run = finished(studio)
    published = run.published.is_dir()
    answers = _answers(project)
    lacking = [key for key, question in QUESTIONS.items() if question.needed and key not in answers]
    begun = project.publisher.exists() and not published
    return studio.page(
        "publish",
        "publish",
        run=run,
        published=sorted(each.name for each in run.published.iterdir()) if published else None,
        questions=QUESTIONS,
        sectors=SECTORS,
        answers={"publication_date": datetime.date.today().isoformat(), **answers},
        long=LONG,
        lacking=lacking if begun else [],
        further=any(not question.needed for key, question in QUESTIONS.items() if key in answers),
        fault=_fault(project, lacking) if begun else None,
        command=commands.verify(run.published) if published else commands.publish(project, run),
        kind="public",
    )


def _answers(project: Project) -> dict[str, str]:
    """What was answered so far, a line for each of several."""
    if not project.publisher.exists():
        return {}
    data, _ = read_yaml(project.publisher.read_text(encoding="utf-8"), project.publisher.name)
    given = data if isinstance(data, dict) else {}
    texts = {key: "\n".join(each) if isinstance(each, list) else str(each) for key, each in given.items()}
    return {key: text for key, text in texts.items() if not text.startswith(TODO)}


def _fault(project: Project, lacking: list[str]) -> str | None:
    """What keeps the folder from being written."""
    if lacking:
        named = listing((key.replace("_", " ") for key in lacking), 99)
        return f"no answer yet to: {named}. Nobody but you knows, so nothing was made up or written."
    try:
        load(project.publisher)
    except HedgerowError as problem:
        return str(problem)
    return None


def save(studio: Studio, form: Form) -> Any:
    """Keep the answers; where all are there, write the folder."""
    project = studio.project
    answers: dict[str, Any] = {}
    for key, question in QUESTIONS.items():
        given: Any = form.lines(key) if question.several else form[key]
        if given:
            answers[key] = given
        elif question.needed:
            answers[key] = [TODO] if question.several else TODO
    project.write(project.publisher, write_yaml(answers))
    project.save()
    if form["publish"] and _fault(project, [key for key in answers if TODO in answers[key]]) is None:
        studio.finish("publish", commands.publish(project, finished(studio)))
    return studio.go("/publish")


ROUTES = [Step("/publish", show, save)]
