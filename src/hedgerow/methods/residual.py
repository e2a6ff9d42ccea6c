"""ResidualPlanner+: tables that are named beforehand, by the Gaussian mechanism that is best for just these.

Xiao, He, Zhang, Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
functions", NeurIPS 36; and its extension to prefixes and ranges, ResidualPlanner+.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hedgerow.coded.domain import Workload
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import Norm
from hedgerow.curator import Curator
from hedgerow.errors import LimitError, OptionError, listing, suggestion
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.documents import read_mapping
from hedgerow.methods.shared.strategies import FixedWorkload
from hedgerow.methods.shared.workloads import listed_workload, workload_of
from hedgerow.models.consistency import View, consistent
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.junction import size
from hedgerow.models.interactions import Asked, Interactions
from hedgerow.models.model import Model
from hedgerow.models.records import Records, Target
from hedgerow.progress import Progress

if TYPE_CHECKING:
    from hedgerow.schema import Schema

MOST_INTERACTIONS = 20_000
"""Each is counted and noised by itself."""
INTERACTION = 300_000
"""Work of one that is planned and measured."""

Asks = tuple[tuple[str, Any], ...]
"""Columns, each with a word or with groups."""


def read_ask(value: Any) -> Asks:
    """`age:prefixes,income:ranges`; {age: prefixes, place: {north: [a, b]}}; or the name of a file of that."""
    if isinstance(value, str) and ":" in value and not value.lower().endswith((".yaml", ".yml", ".json")):
        value = dict(part.strip().rpartition(":")[::2] for part in value.split(","))
    elif not value:
        return ()
    given = dict(value) if isinstance(value, list | tuple) else read_mapping(value, "ask")
    return tuple((str(column), Asked.read(wanted, str(column)).plain()) for column, wanted in given.items())


@dataclass(frozen=True)
class Residual(Options):
    """Interactions of the attributes of a fixed workload, each with the noise that is best for the tables."""

    workload: str = options.workload("2")
    ask: Asks = option(
        (),
        "what is wanted of columns beyond each value: COLUMN:prefixes, COLUMN:ranges, or a YAML file, groups too",
        read=read_ask,
    )
    objective: str = option(
        "sum",
        "what is made least: the weighted sum of all counts' variances, or the largest mean variance of a table",
        one_of=("sum", "largest"),
    )
    size: float = options.size(32.0, when="; where the tables need a larger one, rows are fitted to them directly")

    about: ClassVar[About] = About(
        name="residual",
        title="ResidualPlanner+",
        summary="Tables that are named beforehand, by the noise that is best for them, consistent, with their errors.",
        argument=(
            "Every set of columns that the tables share is asked for its interaction alone: whole-number combinations "
            "of its counts, which one person moves by at most θ times the longest column of the combining matrix. That "
            "is computed exactly, and noise is drawn in proportion. All interactions are one stack. Which they are, "
            "and how the budget is shared, follows from the schema and the list of tables alone. Tables and rows are "
            "post-processing."
        ),
        paper=(
            "Xiao, He, Zhang, Kifer (2023), An optimal and scalable matrix mechanism for noisy marginals under convex "
            "loss functions, NeurIPS 36; arXiv:2305.08175."
        ),
        departures=(
            "Noise is drawn on whole numbers: strategies of prefixes and ranges are rounded to whole numbers, and what "
            "is left out of their best is counted in the stated errors.",
            "With δ = 0 the noise is Laplace. Shares are the best ones for these interactions, but the interactions "
            "are not the best mechanism there.",
        ),
    )

    def bound(self, schema: Schema) -> Residual:
        """The method with its files read, and groups of values turned into groups of codes."""
        asks = tuple((column, _coded(column, wanted, schema)) for column, wanted in self.ask)
        return replace(self, workload=listed_workload(self.workload), ask=asks)  # type: ignore[arg-type]

    def run(self, curator: Curator, progress: Progress) -> Model:
        with progress.phase("plan the interactions"):
            plan = self.plan(curator)
            progress.worked(INTERACTION * len(plan.interactions))
            norm: Norm = "l2" if curator.noise(curator.remaining)[0].kind == "gaussian" else "l1"
            queries = [plan.query(part) for part in plan.interactions]
            weights = plan.weights(norm, self.objective)
        with progress.phase("measure the interactions"):
            measured = curator.measure(queries, spend=curator.remaining, weights=weights)
        with progress.phase("fit"):
            return self.fitted(curator, list(plan.tables), measured, progress)

    def plan(self, curator: Curator) -> FixedWorkload:
        """What is wanted; refused where an attribute cannot answer it, or where there is too much of it."""
        asked = {}
        for column, wanted in self.ask:
            if column not in curator.columns:
                raise OptionError(
                    "unknown-column",
                    f'ask: unknown column "{column}"; columns: {listing(curator.columns)}.'
                    f"{suggestion(column, curator.columns)}",
                )
            if curator.columns[column] != (column,):
                raise OptionError("bad-ask", f'ask: "{column}" is coded together with others, or in several parts.')
            asked[column] = Asked.read(wanted, column)
            asked[column].refuse_unfit(curator.domain[column])
        tables: Workload = workload_of(curator, self.workload)
        most = sum(2 ** len(table) for table in tables.weights)
        plan = FixedWorkload(curator.domain, tables.weights, asked)
        if most > 64 * MOST_INTERACTIONS or len(plan.interactions) > MOST_INTERACTIONS:
            raise LimitError(
                "too-many-interactions",
                f"{len(tables.weights):,} tables are made of more than {MOST_INTERACTIONS:,} sets of columns. "
                "Hint: name fewer tables, or narrower ones.",
            )
        return plan

    def fitted(
        self, curator: Curator, tables: Sequence[tuple[str, ...]], measured: list[Measurement], progress: Progress
    ) -> Model:
        """A graphical model of all interactions where it is small enough, otherwise rows that fit the tables."""
        domain = curator.domain
        total = measured[0].total
        if size(domain, tables) <= self.size * 2**20:
            return fit(domain, measured, total=total, limits=progress.limits)
        held = Interactions(domain, measured)
        views = []
        for attributes in held.widest:
            table = held.table(attributes)
            views.append(View(attributes, table.values, 1 / max(float(np.mean(table.std**2)), 1e-12)))
        agreed = consistent(views, max(1.0, total), progress=progress)
        return Records(domain, [Target.of(each.marginal, each.counts) for each in agreed], total)


def _coded(column: str, wanted: Any, schema: Schema) -> Any:
    """Groups of values as groups of codes."""
    import pyarrow as pa

    if not isinstance(wanted, list):
        return wanted
    if column not in schema.columns:
        raise OptionError("unknown-column", f'ask: unknown column "{column}"; columns: {listing(schema.columns)}.')
    found = []
    for name, values in wanted:
        encoded = schema.columns[column].encode(pa.array([str(value) for value in values], pa.string()))
        if encoded.outside.any():
            raise OptionError(
                "bad-ask", f'ask: the group "{name}" of "{column}" holds values that the schema does not declare.'
            )
        found.append([name, sorted(set(encoded.codes[0].tolist()))])
    return found
