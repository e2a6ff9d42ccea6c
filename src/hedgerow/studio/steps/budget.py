"""Budget: the ledger, ε with its odds in words, what others took, and what to expect of this very schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.budget.amounts import Budget
from hedgerow.budget.odds import believed
from hedgerow.errors import HedgerowError
from hedgerow.private.explaining import told
from hedgerow.private.ledger import Ledger, equivalent_epsilon
from hedgerow.studio import commands
from hedgerow.studio.app import Form, Step, Studio
from hedgerow.studio.steps.columns import declared

if TYPE_CHECKING:
    from hedgerow.studio.project import Project

EPSILONS = (0.1, 0.3, 1.0, 3.0)
LARGE = 10.0
"""Told beside them what it means, and not foretold: no table is good enough to suggest it."""
BEFORE = (0.01, 0.5)
"""Beliefs that odds are told of."""


def show(studio: Studio, form: Form) -> Any:
    from hedgerow.run.precedents import PRECEDENTS

    project, notes = studio.project, studio.project.notes
    wanted = sorted({*EPSILONS, *([notes.epsilon] if notes.epsilon else [])})
    return studio.page(
        "budget",
        "budget",
        ledger=_ledger(project),
        creating=commands.ledger(project, project.name, 4.0),
        befores=BEFORE,
        odds=[(each, [believed(before, each) for before in BEFORE]) for each in sorted({*wanted, LARGE})],
        precedents=PRECEDENTS,
        doubts=Budget(notes.epsilon, notes.delta).doubts() if notes.epsilon else [],
        **_plan(project, wanted),
        command=commands.plan(project, wanted),
    )


def _plan(project: Project, wanted: list[float]) -> dict[str, Any]:
    """What to expect at each ε, as `hedgerow plan` says it."""
    from hedgerow.run.forecast import advice, alternatives, drawn, forecast

    if project.notes.rows is None:
        return {"plan": None, "refused": "Say about how many rows there are to see what to expect."}
    try:
        schema = declared(project).unlinked("plan")
        budgets = [Budget(each, project.notes.delta) for each in wanted]
        expected = [forecast(schema, budget, project.notes.rows) for budget in budgets]
        said = advice(expected, alternatives(schema, budgets[-1], project.notes.rows))
    except HedgerowError as problem:
        return {"plan": None, "refused": str(problem)}
    return {"plan": {"expected": expected, "advice": said, "picture": drawn(expected)}, "refused": None}


def _ledger(project: Project) -> dict[str, Any] | None:
    if not project.ledger.exists():
        return None
    books = Ledger(project.ledger)
    return {
        "dataset": books.dataset,
        "lifetime": books.lifetime,
        "delta": books.delta,
        "spent": equivalent_epsilon(books),
        "left": books.remaining_epsilon(project.notes.delta),
        "entries": [told(entry) for entry in books.entries()[1:]],
    }


def save(studio: Studio, form: Form) -> Any:
    notes = studio.project.notes
    rows = form.whole("rows", "The number of rows") if form["rows"] else None
    budget = Budget(form.number("epsilon", "ε"), form.number("delta", "δ"))
    notes.rows, notes.epsilon, notes.delta = rows, budget.epsilon, budget.delta
    studio.project.save()
    return studio.go("/budget")


def create(studio: Studio, form: Form) -> Any:
    """Open a ledger."""
    project = studio.project
    dataset = declared(project).dataset or project.name
    studio.finish("ledger", commands.ledger(project, dataset, form.number("lifetime", "The lifetime's ε")))
    project.save()
    return studio.go("/budget")


ROUTES = [Step("/budget", show, save), Step("/budget/ledger", None, create)]
