"""A first, small look: how many values of each column fit nothing that is declared, with noise.

A misspelt category or a date in another format would otherwise be coded as something else without a word, and the rest
of the budget spent on it. The look is a run of its own: its amount is fixed beforehand, debited before it counts, and
stays spent. One stack of queries, each of one cell: the rows that are kept after bounding, and for each column those
among them whose value fits no declared cell.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping

from hedgerow.budget.accounting import Charge, guarantee, stack_noise, stack_scale
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Answer, Measurement
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.errors import MisfitError, listing
from hedgerow.private.account import Account
from hedgerow.private.engines.engine import Engine
from hedgerow.private.mechanisms import Randomizer
from hedgerow.release.misfits import Misfit, Misfits
from hedgerow.schema import Encoding, Schema
from hedgerow.schema.fits import FITS, MISFIT, Looked, fits


class Look:
    """The look of a run: it spends its whole account, once, before any other charge is granted.

    An account that opens its books with `take` lets the run be refused for whatever else is wrong with it, before it
    asks anything, at no cost at all. What fits is coded in the pass that codes the rows.
    """

    def __init__(self, schema: Schema, engine: Engine, account: Account, mechanisms: Randomizer):
        self.account = account
        self.answers: list[Answer] = []
        self._schema = schema
        self._engine = engine
        self._mechanisms = mechanisms
        self._fits: Mapping[str, str] = {}
        self._coded = Domain(())
        self._due = bool(account.whole)

    @property
    def due(self) -> bool:
        """Whether it is still to be taken."""
        return self._due

    def prepare(self, encoding: Encoding) -> None:
        """Let the engine code the rows, with what fits beside them while that is still to be counted."""
        if isinstance(encoding, Looked):
            self._fits, self._coded = encoding.fits, encoding.domain
        self._engine.prepare(encoding)

    def take(self, delta: float, allowed: Collection[str]) -> None:
        """Count what does not fit, unless that is done; MisfitError where it is clearly too much."""
        if not self._due:
            return
        domain = fits(self._schema)
        queries = misfit_queries(domain, {name: name for name in domain.names})
        weights = (1.0,) * len(queries)
        people, spend = self._schema.max_rows_per_person, self.account.whole
        noises = stack_noise(spend, weights, people)
        scale = stack_scale(spend, weights, people)
        asked = tuple(query.description for query in queries)
        self.account.debit(Charge(noises[0].kind, "look", people, weights, scale, spend, asked))
        counts = self._engine.count(misfit_queries(self._coded, self._fits))
        counted = zip(queries, counts, noises, strict=True)
        answer = Answer(
            measurements=tuple(Measurement(q, self._mechanisms.noisy_counts(e, q.cells, n), n) for q, e, n in counted)
        )
        self.answers.append(answer)
        refuse_misfits(Misfits.of(answer.measurements), self._schema, self.account, delta, allowed)
        self._due = False


def misfit_queries(domain: Domain, names: Mapping[str, str]) -> list[MarginalQuery]:
    """The number of rows, and for each column the number of its misfits, by the attributes that tell."""
    misfits = [0 if code == MISFIT else -1 for code in (FITS, MISFIT)]
    return [total_query(domain), *(MarginalQuery(domain, (name,), blocks=misfits) for name in names.values())]


def refuse_misfits(found: Misfits, schema: Schema, account: Account, delta: float, allowed: Collection[str]) -> None:
    """Stop where clearly more values than `max_misfits` fit nothing; what was looked at stays paid for."""
    links = {} if schema.linked is None else schema.linked.misfits
    meant = {*allowed, *(name for name, link in links.items() if not link.mistaken)}
    beyond = [each for each in found.columns if each.surely > schema.max_misfits and each.column not in meant]
    if not beyond:
        return
    spent = guarantee(account.whole, delta)
    named = listing(
        f'{each.said} {links[each.column].what} ("{each.column}")'
        if each.column in links
        else f'{each.said} of "{each.column}"'
        for each in beyond
    )
    raise MisfitError(
        "misfits",
        f"what fits nothing declared, or breaks a rule: {named}. More than {100 * schema.max_misfits:g} % is taken for "
        f"a mistake. The look that found it cost ε = {spent.epsilon:.3g}, which adds to what comes after; nothing else "
        f"was counted. Hint: mend spelling, format or bounds in the schema{_how_written(schema, beyond)}, or go on "
        "with "
        f"{' '.join(f'--allow-misfits {shlex.quote(each.column)}' for each in beyond)}.",
    )


_WRITTEN = {
    **dict.fromkeys(("number", "integer"), "for numbers `decimal` and `strip` of `file:`"),
    **dict.fromkeys(("date", "datetime"), "for dates `format`"),
}


def _how_written(schema: Schema, beyond: Iterable[Misfit]) -> str:
    """Which keys of a schema say how the values of these columns are written."""
    kinds = [getattr(schema.columns.get(name), "type", None) for name in (each.column for each in beyond)]
    said = dict.fromkeys(_WRITTEN[kind] for kind in kinds if kind in _WRITTEN)
    return f" ({', '.join(said)})" if said else ""
