"""Run: the command that makes a release, its progress by phase, stopped and gone on with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio
from hedgerow.studio.declaring import Document
from hedgerow.studio.job import Output, said
from hedgerow.studio.steps.columns import declared
from hedgerow.studio.steps.table import names

if TYPE_CHECKING:
    from hedgerow.studio.project import Project


def state(studio: Studio) -> dict[str, Any]:
    """Where the release that was begun last stands."""
    run, job = studio.project.run, studio.job
    runs = job is not None and job.name == "run" and job.runs
    if run is None:
        return {"run": None, "state": "none", "said": None}
    if runs:
        name = "running"
    elif run.is_unfinished:
        name = "unfinished"
    elif run.is_done:
        name = "done"
    else:
        name = "ended"
    return {"run": run, "state": name, "said": said(run.log)}


def show(studio: Studio, form: Form) -> Any:
    project = studio.project
    found = state(studio)
    refusal, mend = _refused(project, found["said"]) if found["state"] == "ended" else ("", [])
    ready = project.notes.epsilon is not None and project.schema.exists()
    command = commands.synth(project, project.next_run) if ready else None
    if found["state"] in ("running", "unfinished"):
        command = [*found["run"].words, *(["--resume"] if found["state"] == "unfinished" else [])]
    return studio.page(
        "run",
        "run",
        ready=ready,
        ledger=project.ledger.exists(),
        allowed=project.notes.allow_misfits,
        back="/run",
        at_work=found["state"] == "running",
        unit=_unit(project) if ready else "",
        refusal=refusal,
        mend=mend,
        command=command,
        **found,
    )


def _refused(project: Project, said: Output) -> tuple[str, list[tuple[int, str]]]:
    """Why there is no release, and the columns to mend, by their numbers."""
    if said.code != "misfits":
        return said.refusal, []
    document = Document.read(project)
    places = document.places(names(project, document))
    before = said.refusal.partition(" Hint: ")[0]
    return before, [(number, str(place)) for number, place in enumerate(places) if f'"{place}"' in before]


def _unit(project: Project) -> str:
    """What the guarantee is about."""
    data = Document.read(project).data
    if "tables" in data:
        return "a unit with all its rows"
    return "a person" if "person" in data else "a row"


def progress(studio: Studio, form: Form) -> Any:
    """The part of the page that changes while a command is at work."""
    job = studio.job
    return studio.page("progress", "run", at_work=studio.at_work, said=Output() if job is None else job.said)


def begin(studio: Studio, form: Form) -> Any:
    """Begin a release: its folder, the schema as it is now, its command."""
    project = studio.project
    if project.notes.epsilon is None:
        raise OptionError("missing-epsilon", "choose ε first, in the step Budget. Nothing was begun.")
    if studio.at_work:
        raise OptionError("at-work", "another command is at work. Hint: wait until it has ended, or stop it.")
    declared(project)
    project.notes.allow_misfits = form.lines("allow")
    run = project.next_run
    run.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    project.write(run.schema, project.schema.read_text(encoding="utf-8"))
    words = commands.synth(project, run)
    project.write(run.command, json.dumps(words))
    project.notes.runs += 1
    project.save()
    studio.start("run", words, run.log)
    return studio.go("/run")


def resume(studio: Studio, form: Form) -> Any:
    """Go on with answers that were paid for."""
    run = studio.project.run
    if run is None or not run.is_unfinished:
        raise OptionError("nothing-to-resume", "there is no run to go on with.")
    studio.start("run", [*run.words, "--resume"], run.log)
    studio.project.save()
    return studio.go("/run")


def stop(studio: Studio, form: Form) -> Any:
    if studio.job is not None:
        studio.job.stop()
    return studio.go(form["from"] if form["from"] in ("/columns/private", "/look/private") else "/run")


ROUTES = [
    Step("/run", show, begin),
    Step("/run/progress", progress),
    Step("/run/resume", None, resume),
    Step("/run/stop", None, stop, stale=True),
]
