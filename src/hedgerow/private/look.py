"""A first, small look: how many values of each column fit nothing that is declared, with noise.

A misspelt category or a date in another format would otherwise be coded as something else without a word, and the rest
of the budget spent on it. The look is a run of its own: its amount is fixed beforehand, debited before it counts, and
stays spent. One stack of queries, each of one cell: the rows that are kept after bounding, and for each column those
among them whose value fits no declared cell.
"""

from __future__ import annotations

from collections.abc import Collection

from hedgerow.budget.accounting import Charge, guarantee, stack_noise, stack_scale
from hedgerow.coded.measurement import Answer, Measurement
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.errors import MisfitError, listing
from hedgerow.private.account import Account
from hedgerow.private.engines.engine import Engine
from hedgerow.private.mechanisms import Randomizer
from hedgerow.release.misfits import Misfits
from hedgerow.schema import Schema
from hedgerow.schema.fits import FITS, MISFIT, Fits, can_misfit

SHARE = 0.02
"""Of the budget."""


def look_share(schema: Schema) -> float:
    """The part of the budget that goes to the look; nothing where nothing can misfit."""
    return SHARE if can_misfit(schema) else 0.0


def take_a_look(schema: Schema, engine: Engine, account: Account, mechanisms: Randomizer) -> Answer:
    """Spend the whole account on noisy counts of misfits, the number of rows first."""
    encoding = Fits(schema)
    engine.prepare(encoding)  # a table that cannot be read shows before it is paid for
    queries = looked_at(encoding)
    weights = (1.0,) * len(queries)
    people, spend = encoding.rows_per_person, account.whole
    noises = stack_noise(spend, weights, people)
    scale = stack_scale(spend, weights, people)
    asked = tuple(query.description for query in queries)
    account.debit(Charge(noises[0].kind, "look", people, weights, scale, spend, asked))
    counted = zip(queries, engine.count(queries), noises, strict=True)
    return Answer(measurements=tuple(Measurement(q, mechanisms.noisy_counts(e, q.cells, n), n) for q, e, n in counted))


def looked_at(encoding: Fits) -> list[MarginalQuery]:
    """The number of rows, and for each column the number of its misfits."""
    misfits = [0 if code == MISFIT else -1 for code in (FITS, MISFIT)]
    domain = encoding.domain
    return [total_query(domain), *(MarginalQuery(domain, (name,), blocks=misfits) for name in domain.names)]


def refuse_misfits(found: Misfits, schema: Schema, account: Account, delta: float, allowed: Collection[str]) -> None:
    """Stop where clearly more values than `max_misfits` fit nothing; what was looked at stays paid for."""
    beyond = [each for each in found.columns if each.surely > schema.max_misfits and each.column not in allowed]
    if not beyond:
        return
    spent = guarantee(account.whole, delta)
    named = listing(f'{each.said} of "{each.column}"' for each in beyond)
    raise MisfitError(
        "misfits",
        f"values that fit nothing declared: {named}. More than {100 * schema.max_misfits:g} % of a column is taken for "
        f"a mistake. The look that found it cost ε = {spent.epsilon:.3g}, which adds to what comes after; nothing else "
        "was counted. Hint: mend spelling, format or bounds in the schema, or go on with "
        f"{' '.join(f'--allow-misfits {each.column}' for each in beyond)}.",
    )
