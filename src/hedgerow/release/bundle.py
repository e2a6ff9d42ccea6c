"""A release: the model, the way back to columns, the noisy answers and the certificate, in one file.

The file is a zip of JSON and .npy members: no pickle, no code, nothing that runs when it is read. A manifest holds
the SHA-256 of every member, and a signature, where there is one, signs the manifest.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, Marginal
from hedgerow.coded.joining import Join
from hedgerow.coded.measurement import Answer, Measurement, Noise
from hedgerow.coded.query import InteractionQuery, MarginalQuery, Measurable, TreeQuery
from hedgerow.errors import OptionError, ReleaseError, listing, suggestion
from hedgerow.markup import Markup, joined, listed
from hedgerow.models import read as read_model
from hedgerow.models import refuse_unreadable
from hedgerow.models.interactions import in_counts
from hedgerow.models.matching import Totals, split
from hedgerow.models.model import BLOCK_ROWS, HELD, Model, State, block_rng, block_sizes
from hedgerow.models.rows import CountedRows, Recounted
from hedgerow.models.stored import MEMORY, MOST_CELLS, Allowance, Stored
from hedgerow.release import archive, editions
from hedgerow.release.certificate import Certificate, check
from hedgerow.release.drawing import Drawing
from hedgerow.release.files import whole_file
from hedgerow.release.misfits import Misfits
from hedgerow.release.quality import Asked, Quality
from hedgerow.release.signing import check_signature, sign
from hedgerow.schema.subgroups import subgroup_queries

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.answers.asking import Answers, Asking
    from hedgerow.release.counts import NamedTable
    from hedgerow.release.demand import Demand
    from hedgerow.schema import Encoding, Schema
    from hedgerow.schema.weight import Weight

MANIFEST, SIGNATURE = OUTSIDE = ("manifest.json", "signature.json")
"""Members that come last, and that the manifest does not list."""
MANY_UNDECLARED = 0.2
"""A part of the rows that is worth a word where they hold no declared value."""
DOUBTFUL_ROWS = 100_000
"""Rows that are drawn at most where nobody said how many and the estimate is mostly noise."""
MOST_ROWS = 1 << 40
"""Rows that are drawn at most where nobody said how many."""
DEALING = 1 << 40
"""The number of the generator that deals totals to blocks: no block has it."""
TEXT_BYTES = 32
"""Memory for one byte of JSON while it is read, at most."""
POOL = 1 << 18
"""Rows of the model that several tables choose theirs from."""
CODE_BYTES = 64
"""Memory for one code of a column while codes become values: what it stands for, and where its bin begins and ends."""
LARGEST_SCALE = 1e100
"""Of noise: its variance is still a number."""


PILOT = 1 << 13
"""Rows that are drawn to say how rules are kept."""


class RulesKept(NamedTuple):
    """Shares: of the model's own rows those that obey every rule; of a draw's rows those that had to be completed."""

    right: float
    completed: float


class Trust(NamedTuple):
    """What a reader allows a release: classes of models and of columns made elsewhere, and memory for its model."""

    models: tuple[str, ...] = ()
    memory: int = MEMORY
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ModelAnswer:
    """The model's counts over a marginal, and the noise on a cell where just this was measured.

    `noise_std` is the standard deviation of the noise that the measured counts carry. It is not the error of `counts`:
    those are fitted to all answers together, kept from being negative and made to add up, so they differ from the
    measured ones; `Release.ask` gives intervals for what they are wrong by. None where just this was not measured.
    """

    attributes: Marginal
    counts: Counts
    noise_std: float | None


class Release:
    """Everything that may leave the private side, and all that is needed to make rows of it."""

    block_rows = BLOCK_ROWS
    """Rows of a block; of linked tables, rows of the root."""

    def __init__(
        self,
        schema: Schema,
        model: Model,
        certificate: Certificate,
        answers: Sequence[Answer],
        signer: str | None = None,
        trust: Trust | None = None,
    ):
        self.schema = schema
        self.model = model
        self.certificate = certificate
        self.answers = tuple(answers)
        self.signer = signer
        self._trust = trust
        self._encoding: Encoding | None = None
        self._demands: dict[str | None, Demand] = {}

    def refuse_unfit(self) -> None:
        """Refuses a model that does not draw the columns of the schema: one of linked tables draws their root alone."""
        if self.model.kind == "linked":
            raise ReleaseError(
                "model-without-tables", "the model of the release does not fit the tables of its schema."
            )

    @property
    def encoding(self) -> Encoding:
        if self._encoding is None:
            self._encoding = self.schema.encoding()
        return self._encoding

    @property
    def trust(self) -> Trust:
        """What it takes to read this release again: as much as its reader allowed, or all that it needs."""
        if self._trust is None:
            state = self.model.state()
            from hedgerow.schema.kinds import elsewhere

            columns = elsewhere(self.schema.columns.values())
            self._trust = Trust(tuple(_made_elsewhere(state.kind, state.values)), sys.maxsize, columns)
        return self._trust

    @property
    def guarantee(self) -> Any:
        """(ε, δ) for this release, or None where it was voided."""
        return self.certificate.guarantee

    @property
    def measurements(self) -> list[Measurement]:
        """Every noisy answer about the coded table, in the order in which they were asked for."""
        asked = zip(self.certificate.charges, self.answers, strict=True)
        return [each for charge, answer in asked if charge.purpose != "look" for each in answer.measurements]

    @cached_property
    def counted(self) -> list[Measurement]:
        """The same as noisy counts: interactions as the tables that they come to, with the noise of a cell."""
        if not any(isinstance(each.query, InteractionQuery) for each in self.measurements):
            return self.measurements
        return in_counts(self.encoding.domain, self.measurements)

    @property
    def misfits(self) -> Misfits | None:
        """What the first look found, where the run took one."""
        if self.certificate.charges[0].purpose != "look":
            return None
        return Misfits.of(self.answers[0].measurements)

    @property
    def quality(self) -> Quality | None:
        """How far the rows that are drawn by default are from the private table, where the run measured that."""
        charge = self.certificate.charges[-1]
        if charge.purpose != "quality":
            return None
        return Quality.of(charge, self.answers[-1].scores, self.model.total, self._within)

    @cached_property
    def _within(self) -> dict[str, Asked]:
        """The declared subgroups, by the digests of the queries that can be asked within them."""
        found: dict[str, Asked] = {}
        for subgroup, query in subgroup_queries(self.schema, self.encoding):
            rows = max(1.0, float(self.model.marginal((subgroup.attribute,))[subgroup.codes].sum()))
            found[query.description["aggregation"]] = Asked(subgroup.column, subgroup.value, rows)
        return found

    @property
    def missed(self) -> list[str]:
        """What the schema demands (`accept`) and the measured distances do not show, in words; empty where all is met.

        A criterion is met where the upper bound of its distance is: the truth then is, with a probability of 90 %.
        """
        found = {} if self.quality is None else self.quality.criteria()
        said = []
        for name, most in self.schema.accept.items():
            distance = found.get(name)
            if distance is None:
                said.append(f"{name}: at most {100 * most:g} %, not measured")
            elif distance.upper > most:
                said.append(f"{name}: at most {100 * most:g} %, measured {distance.said}")
        return said

    @property
    def parts(self) -> int:
        """What one of those who are counted weighs in the counts of the release."""
        return 1

    @property
    def estimated_rows(self) -> int:
        """The noisy estimate of the number of rows; at most `DOUBTFUL_ROWS` where that is mostly noise."""
        if self.schema.totals:
            return self.schema.totals[0].rows
        rows = max(1, round(self.model.total))
        return min(rows, DOUBTFUL_ROWS if self.rows_are_noise else MOST_ROWS)

    @property
    def rows_are_noise(self) -> bool:
        """Whether the best sum of noisy counts is off by more than half of the estimated number of rows."""
        errors = [math.sqrt(measurement.query.cells) * measurement.std for measurement in self.counted]
        return bool(errors) and min(errors) > self.model.total / 2

    @property
    def doubts(self) -> list[str]:
        """Why the guarantee promises little to a table of this size; the certificate says what its size alone says."""
        if self.rows_are_noise:
            return []
        said = [
            f"about {100 * share:.0f} % of the rows hold a value of {name} that the schema does not declare (an "
            "estimate from noisy counts); such values do not come back."
            for name, share in self.undeclared.items()
        ]
        delta = self.certificate.budget.delta
        if not self.certificate.void and delta * self.model.total > 1:
            said.append(
                f"δ = {delta:g} is more than 1 divided by the estimated number of rows, {self.model.total:,.0f}: "
                "publishing one of them as it is would keep it."
            )
        return said

    @property
    def undeclared(self) -> dict[str, float]:
        """Attributes of which the model says that many rows hold no declared value, with their estimated share."""
        found = {}
        for block in self.encoding.blocks:
            cell = block.undeclared
            if cell is not None:
                counts = self.model.marginal((block.names[0],))
                if counts[cell] > MANY_UNDECLARED * max(1.0, float(counts.sum())):
                    found[block.names[0]] = float(counts[cell] / counts.sum())
        return found

    def expected_rows(self, where: str | None = None) -> int:
        """How many rows are drawn where nobody says: the noisy estimate of what there is, of one kind or in all.

        Of a population drawn by weights, as many as the weights add up to.
        """
        rows: float = self.estimated_rows
        weight = self._population
        if weight is not None:
            rows = min(MOST_ROWS, rows * self._demand(where).share / self._legal * weight.max)
        elif where is not None:
            rows *= self.share(where)
        return max(1, round(rows))

    def share(self, where: str) -> float:
        """The part of the rows that meet a condition as in SQL's WHERE: an estimate from noisy answers."""
        share = self._demand(where).share
        return share / self._legal if self._population is None else share / self._demand(None).share

    @cached_property
    def rules_kept(self) -> RulesKept:
        """How the rules are kept, read off a fixed draw of PILOT rows."""
        drawing = Drawing(self.model, self.encoding, block_rng(0, 0))
        for _ in drawing.rows(PILOT):
            pass
        return RulesKept(drawing.right / max(1, drawing.tried), drawing.completed / PILOT)

    @cached_property
    def _legal(self) -> float:
        """The part of the model's own rows that obey the rules."""
        from hedgerow.release.demand import Demand

        return Demand(self.encoding, self.model, None, None).share if self.encoding.rules else 1.0

    @property
    def _population(self) -> Weight | None:
        """The weights by which a population is drawn, where the schema asks for one."""
        weight = self.schema.weight
        return weight if weight is not None and weight.draw == "population" else None

    def batches(self, rows: int | None = None, seed: int = 0, where: str | None = None) -> Iterator[pa.Table]:
        """Rows some at a time, from blocks of 2²⁰; block b depends only on what is asked, the seed, b and its size."""
        for number, size in enumerate(block_sizes(self.expected_rows(where) if rows is None else rows)):
            yield from self.block(size, seed, number, where)

    def block(self, size: int, seed: int, number: int, where: str | None = None) -> Iterator[pa.Table]:
        """One block of a draw, some rows at a time."""
        if where is not None or self._population is not None:
            return self._demand(where).rows(size, block_rng(seed, number), number * BLOCK_ROWS)
        return self._plain(size, seed, number)

    @property
    def arrow_schema(self) -> pa.Schema:
        """Of the table as it is drawn."""
        return self.encoding.arrow_schema

    @property
    def arrow_schemas(self) -> Mapping[str, pa.Schema]:
        """Of each table as it is drawn; one that is alone has no name."""
        return {"": self.arrow_schema}

    def pieces(self, size: int, seed: int, number: int, where: str | None = None) -> Iterator[Mapping[str, pa.Table]]:
        """One block of a draw, some rows of each table at a time."""
        yield from ({"": table} for table in self.block(size, seed, number, where))

    def _plain(self, size: int, seed: int, number: int) -> Iterator[pa.Table]:
        """A block of the model's own rows: those that were counted are its likes."""
        drawing = Drawing(self.model, self.encoding, block_rng(seed, number))
        return drawing.rows(size, number * BLOCK_ROWS, self._totals(size, seed, number))

    def _totals(self, size: int, seed: int, number: int) -> Totals | None:
        """The part of the published totals that a block matches, if its draw is of as many rows as they count."""
        totals = [(table.attributes, table.counts) for table in self.schema.published]
        sizes = list(block_sizes(self.schema.totals[0].rows)) if totals else []
        if number >= len(sizes) or sizes[number] != size:
            return None
        return split(totals, sizes, number, block_rng(seed, DEALING))

    def written(self, rows: int, seed: int) -> CodedTable:
        """The codes of the rows of a draw's first block: what was drawn for values that are not declared is replaced
        in them, as it is in a table that is written. Rows are drawn as a sample, also where a population is: it is
        samples that were counted.
        """
        written = [self.encoding.read_back(part) for part in self._plain(min(rows, BLOCK_ROWS), seed, 0)]
        return {name: np.concatenate([part[name] for part in written]) for name in self.encoding.domain.names}

    def recounted(self, rows: int, seed: int) -> Recounted:
        """The rows of a draw's first block, to be counted as the private ones were."""
        return CountedRows(self.written(rows, seed), self.model.total)

    def sample(self, rows: int | None = None, seed: int = 0, *, where: str | None = None) -> pa.Table:
        """An Arrow table of `rows` synthetic rows (default: the noisy estimate of how many there are).

        With `where`, a condition as in SQL, rows that meet it: drawn from the model given the condition.
        """
        import pyarrow as pa

        if rows is not None and rows < 0:
            raise OptionError("bad-row-count", f"the number of rows must not be negative, got {rows}.")
        return pa.concat_tables([self.encoding.arrow_schema.empty_table(), *self.batches(rows, seed, where)])

    def complete(self, given: Any, seed: int = 0) -> pa.Table:
        """All rows of a public table, in order, with what they lack drawn from the model given what they hold.

        `given` is an Arrow table, or anything with the Arrow C interface, of some of the columns. What is null in a
        row, or an empty text, is drawn like the columns that are not there. What is given comes back as it is: the
        guarantee does not cover it.
        """
        import pyarrow as pa

        rows = self.completed(pa.table(given), seed)
        return pa.concat_tables([self.encoding.arrow_schema.empty_table(), *rows])

    def completed(self, given: pa.Table, seed: int = 0) -> Iterator[pa.Table]:
        """The same some rows at a time."""
        from hedgerow.release.completion import completed

        return completed(self, given, seed)

    def _demand(self, where: str | None) -> Demand:
        """What is asked as the model takes it, made once."""
        if where not in self._demands:
            from hedgerow.release.demand import Demand

            self._demands[where] = Demand(self.encoding, self.model, where, self._population)
        return self._demands[where]

    def table(self) -> pa.Table:
        """The synthetic table with its default number of rows and seed."""
        return self.sample()

    def to_pandas(self) -> Any:
        """The rows of `table()` as a pandas frame."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """The rows of `table()` as a polars frame."""
        import polars

        return polars.from_arrow(self.table())

    def to_spark(self, session: Any, rows: int | None = None, seed: int = 0, *, where: str | None = None) -> Any:
        """The rows of `sample` as a Spark frame that the workers fill."""
        from hedgerow.release import spark_parts

        return spark_parts.frames(self, session, self.expected_rows(where) if rows is None else rows, seed, where)[""]

    def marginal(self, columns: Sequence[str]) -> ModelAnswer:
        """The model's answer for some columns, over the attributes that code them."""
        known = self.encoding.columns
        for column in columns:
            if column not in known:
                raise OptionError(
                    "unknown-column",
                    f'unknown column "{column}"; columns: {listing(known)}.{suggestion(column, known)}',
                )
        attributes = [name for column in columns for name in self.encoding.attributes_of(column)]
        marginal = self.model.domain.marginal(attributes)
        measured = [
            measurement.std
            for measurement in self.counted
            if measurement.kept is None and measurement.query.description.keys() == {"attributes", "cells"}
            if measurement.query.attributes == marginal
        ]
        return ModelAnswer(marginal, self.model.marginal(marginal), min(measured, default=None))

    def counts(self, columns: Sequence[str], ask: Mapping[str, Any] | None = None) -> NamedTable:
        """The counts over some columns as `residual` measured them, each with the std of its noise.

        `ask` says what is wanted of a column beyond each value ({"age": "prefixes"}); by default what was asked for.
        """
        from hedgerow.release.counts import named_table

        return named_table(self, columns, ask)

    def ask(self, question: str, level: float = 0.9, population: bool = False) -> Answers:
        """Answers to a SELECT, or to several that semicolons part: see docs/use/ask.md.

        Each row has an estimate, an interval that is to hold the private table's own figure with probability `level`,
        and what it rests on. With `population` the interval is for the people of whom the rows are a random sample.
        """
        return self._asking.ask(question, level, population)

    def tables(self, count: int, rows: int | None = None, seed: int = 0) -> Iterator[pa.Table]:
        """Several tables that differ among each other as much as each may be wrong, for tools of your own.

        Each is drawn from a bootstrap of the model: from as many independent rows of it as tell as much of the private
        table as the release does. So what varies between tables estimates the error of their mean; docs/use/tables.md
        says how to combine them.
        """
        if count < 2:
            raise OptionError("too-few-tables", f"what varies between tables shows in two at least, got {count}.")
        pool = self.model.draw(POOL, block_rng(seed, 0))
        size = self.estimated_rows if rows is None else rows
        for number in range(count):
            rng = block_rng(seed, number + 1)
            few = rng.integers(0, POOL, self._asking.worth)
            chosen = few[rng.integers(0, len(few), size)]
            yield self.encoding.decode({name: codes[chosen] for name, codes in pool.items()}, rng)

    @cached_property
    def _asking(self) -> Asking:
        from hedgerow.answers.asking import Asking

        return Asking(self)

    def _repr_html_(self) -> str:
        """For notebooks: what it promises, how good it is, what its columns may hold."""
        about = [
            ("guarantee", self.certificate.statements()[0]),
            ("method", str(self.certificate.method.get("name", ""))),
            ("rows", f"about {self.estimated_rows:,}, a noisy estimate"),
        ]
        if self.quality is not None and self.quality.mean_pair is not None:
            about.append(("pairs of columns", f"{self.quality.mean_pair.said} from the private table, on average"))
        return joined(listed(("a release", ""), about), Markup(self.schema._repr_html_()))

    # ------------------------------------------------------------ files

    def save(self, path: str | Path, sign_with: str | Path | None = None, *, overwrite: bool = True) -> None:
        """Write the release whole, signed with an Ed25519 private key (PEM) if one is given.

        Without `overwrite` another file of that name is left alone, and OptionError says so.
        """
        refuse_unreadable(type(self.model))
        members = self._members()
        manifest = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
        members[MANIFEST] = _json(manifest)
        if sign_with is not None:
            members[SIGNATURE] = _json(sign(members[MANIFEST], Path(sign_with)))
        with whole_file(Path(path), replace=overwrite) as partial:
            archive.write(partial, members)

    def _members(self) -> dict[str, bytes]:
        described, arrays = self._parts()
        return described | {name: archive.array_bytes(array) for name, array in arrays.items()}

    def _parts(self) -> tuple[dict[str, bytes], dict[str, npt.NDArray[Any]]]:
        """What is written down as text, and the arrays beside it."""
        state = self.model.state()
        measured: list[npt.NDArray[Any]] = []
        described = {
            "certificate.json": _json(self.certificate.to_json()),
            "schema.json": _json(editions.written(self.schema)),
            "model.json": _json({"kind": state.kind, "values": state.values, "arrays": list(state.arrays)}),
            "answers.json": _json([_answer_to_json(answer, measured) for answer in self.answers]),
        }
        arrays = {f"model/{number}.npy": array for number, array in enumerate(state.arrays.values())}
        arrays |= {f"answers/{number}.npy": array for number, array in enumerate(measured)}
        return described, arrays

    @classmethod
    def load(
        cls, path: str | Path, *, models: Sequence[str] = (), memory: int = MEMORY, columns: Sequence[str] = ()
    ) -> Release:
        """Read a release and check it, as `verify` does."""
        release, _ = verify(path, models=models, memory=memory, columns=columns)
        return release


def _made_elsewhere(kind: str, values: Mapping[str, Any]) -> Iterator[str]:
    """The classes of a model, and of those inside it, that are not Hedgerow's own."""
    if ":" in kind:
        yield kind
    if HELD in values:
        yield from _made_elsewhere(values[HELD]["kind"], values[HELD]["values"])


def release_of(schema: Schema) -> type[Release]:
    """The class of the releases of a schema."""
    if schema.linked is None:
        return Release
    from hedgerow.release.linked import KeptRelease, LinkedRelease

    return KeptRelease if schema.linked.kept else LinkedRelease


def verify(
    path: str | Path, *, models: Sequence[str] = (), memory: int = MEMORY, columns: Sequence[str] = ()
) -> tuple[Release, list[str]]:
    """Read a release, recompute its guarantee from its charges, and say what was confirmed.

    A release that reads is one from which rows can be drawn, in `memory` bytes beside the rows. `models` and
    `columns` name classes of models and of columns made elsewhere, `package.module:Class`, that the reader trusts:
    their code is run.
    """
    from hedgerow.schema.kinds import NotAllowedError, allow

    allow(*columns)
    members = archive.read(Path(path), memory)
    try:
        allowance = Allowance(memory, models=frozenset(models))
        allowance.take(memory=TEXT_BYTES * sum(len(data) for name, data in members.items() if name.endswith(".json")))
        confirmed, signer = _check_manifest(members)
        stated = _parsed(members["certificate.json"])
        schema = editions.schema_of(_parsed(members["schema.json"]))
        _take(allowance, schema)
        domain = schema.encoding().domain
        unread = dict(members)  # an array is taken once, so that nothing small stands for much
        answers = [
            _answer_from_json(answer, lambda number: archive.array_of(unread.pop(f"answers/{number}.npy")))
            for answer in _parsed(members["answers.json"])
        ]
        confirmed += check(stated, answers, schema)
        if schema.invented:
            confirmed.append(f"never read, and invented or left out: {listing(schema.invented)}")
        about = _parsed(members["model.json"])
        arrays = {name: archive.array_of(members[f"model/{number}.npy"]) for number, name in enumerate(about["arrays"])}
        model = read_model(domain, Stored(State(about["kind"], about["values"], arrays), allowance))
        trust = Trust(tuple(models), memory, tuple(columns))
        release = release_of(schema)(schema, model, Certificate.from_json(stated), answers, signer, trust)
        release.refuse_unfit()
        _check_nothing_else(members, release)
    except ReleaseError:
        raise
    except NotAllowedError as problem:
        raise ReleaseError(problem.code, f"the schema of the release: {problem}") from None
    except Exception as problem:  # a damaged or hostile file may break anything below; it is the file's fault
        raise ReleaseError(
            "not-a-release", f'"{path}" is not a release that can be read ({type(problem).__name__}).'
        ) from None
    return release, confirmed


def _take(allowance: Allowance, schema: Schema) -> None:
    """What it takes to turn the codes of a block into values."""
    from hedgerow.schema.invented import LONGEST

    for name, column in schema.columns.items():
        codes = math.prod(attribute.size for attribute in column.attributes(name))
        own = column.layout.special + len(column.layout.marks)
        period = math.lcm(*getattr(column, "heaps", ()))
        allowance.take(memory=CODE_BYTES * (codes + period), steps=20 * (codes + period) * (own + 1))
        allowance.take(steps=BLOCK_ROWS * (20 + 4 * own))
    for _ in schema.invented:
        allowance.take(memory=BLOCK_ROWS * LONGEST, steps=BLOCK_ROWS * 200)


def _check_nothing_else(members: Mapping[str, bytes], release: Release) -> None:
    """A release holds what it would hold if it were written again: nothing that no charge or model accounts for."""
    described, arrays = release._parts()
    named = [*described, *arrays]
    strange = set(members) - {*named, *OUTSIDE}
    if strange:
        raise ReleaseError(
            "release-strange-members", f"the release holds {len(strange)} members that nothing in it refers to."
        )
    for name, data in described.items():
        if data != members[name]:
            raise ReleaseError(
                "release-strange-entries",
                f'"{name}" holds entries that a release does not have, or is spelled in another way.',
            )
    signed = [name for name in OUTSIDE if name in members]
    hashes = {name: hashlib.sha256(members[name]).hexdigest() for name in named}
    if list(members) != [*named, *signed] or members[MANIFEST] != _json(hashes):
        raise ReleaseError(
            "release-member-order", "the members of the release stand in another order than Hedgerow writes them."
        )


def _check_manifest(members: Mapping[str, bytes]) -> tuple[list[str], str | None]:
    manifest = _parsed(members[MANIFEST])
    listed = set(manifest) | {MANIFEST} | ({SIGNATURE} & set(members))
    if listed != set(members):
        raise ReleaseError("release-manifest", "the release holds other members than its manifest lists.")
    for name, digest in manifest.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise ReleaseError("release-altered", f'"{name}" was changed after the release was made: its hash differs.')
    confirmed = [f"{len(manifest)} members match the manifest"]
    if SIGNATURE not in members:
        return confirmed, None
    signature = _parsed(members[SIGNATURE])
    if members[SIGNATURE] != _json({name: signature[name] for name in ("public_key", "signature")}):
        raise ReleaseError("signature-written", "the signature is not written as Hedgerow writes signatures.")
    signer = check_signature(members[MANIFEST], signature)
    return [*confirmed, f"signed by the Ed25519 key {signer}"], signer


# ---------------------------------------------------------------- plain values


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False).encode()


def _parsed(data: bytes) -> Any:
    """JSON as the standard has it: no NaN, no infinity."""

    def refuse(_: str) -> Any:
        raise ReleaseError("release-numbers", "the release holds numbers that JSON does not have.")

    return json.loads(data, parse_constant=refuse)


def _answer_to_json(answer: Answer, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    return {
        "measurements": [_measurement_to_json(measurement, arrays) for measurement in answer.measurements],
        "chosen": answer.chosen,
        "scores": list(answer.scores),
    }


def _answer_from_json(data: Mapping[str, Any], array: Any) -> Answer:
    measurements = tuple(_measurement_from_json(entry, array) for entry in data["measurements"])
    chosen, scores = data["chosen"], data["scores"]
    if not (chosen is None or isinstance(chosen, dict)) or not all(type(score) in (int, float) for score in scores):
        raise ReleaseError(
            "answer-choice", "a choice or a score in the release is not written as Hedgerow writes them."
        )
    return Answer(measurements, chosen, tuple(scores))


def _measurement_to_json(measurement: Measurement, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    def store(array: npt.NDArray[Any] | None) -> int | None:
        if array is None:
            return None
        arrays.append(array)
        return len(arrays) - 1

    query = measurement.query
    about: dict[str, Any] = {
        "noise": [measurement.noise.kind, measurement.noise.scale],
        "values": store(measurement.values),
        "kept": store(measurement.kept),
    }
    if isinstance(query, TreeQuery):
        tree = {"splits_on": list(query.splits_on), "label": query.label, "sizes": query.sizes}
        return about | {"tree": tree | {"split": store(query.split), "child": store(query.child)}}
    if isinstance(query, InteractionQuery):
        matrices = [store(None if matrix is None else matrix.reshape(-1)) for matrix in query.matrices]
        return about | {"interaction": {"sizes": query.sizes, "matrices": matrices}}
    marginal: dict[str, Any] = {"sizes": query.sizes, "levels": [store(level) for level in query.levels]}
    if any(query.joins):
        marginal["axes"] = [
            name if join is None else [name, list(join.members), store(join.combinations.reshape(-1))]
            for name, join in zip(query.attributes, query.joins, strict=True)
        ]
    return about | {"marginal": marginal | {"blocks": store(query.blocks)}}


def _measurement_from_json(data: Mapping[str, Any], array: Any) -> Measurement:
    """A query speaks of its own attributes' sizes: a domain may have been refined after it was asked."""

    def line(number: Any, kind: str = "<i8") -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = array(number)
        if found.dtype.str != kind or found.ndim != 1:
            raise ReleaseError(
                "answer-not-whole", "the release has answers that are not whole numbers, one after the other."
            )
        return found

    query: Measurable
    sizes = data[next(kind for kind in ("tree", "interaction", "marginal") if kind in data)]["sizes"]
    if not isinstance(sizes, dict) or not all(type(size) is int and 0 < size <= MOST_CELLS for size in sizes.values()):
        raise ReleaseError("answer-query", "a query of the release speaks of attributes that have no size.")
    if "tree" in data:
        tree = data["tree"]
        names = tuple(tree["splits_on"])
        query = TreeQuery(Domain.of(sizes), names, line(tree["split"], "<i4"), line(tree["child"]), tree["label"])
    elif "interaction" in data:
        matrices = {
            name: line(number).reshape(-1, sizes[name])
            for name, number in zip(sizes, data["interaction"]["matrices"], strict=True)
            if number is not None
        }
        query = InteractionQuery(Domain.of(sizes), tuple(sizes), matrices)
    else:
        marginal = data["marginal"]
        joins = {
            axis[0]: Join({name: sizes[name] for name in axis[1]}, line(axis[2]).reshape(-1, len(axis[1])))
            for axis in marginal.get("axes", ())
            if isinstance(axis, list)
        }
        axes = [axis[0] if isinstance(axis, list) else axis for axis in marginal.get("axes", sizes)]
        given = {name: line(level) for name, level in zip(axes, marginal["levels"], strict=True) if level is not None}
        blocks = None if marginal["blocks"] is None else line(marginal["blocks"])
        query = MarginalQuery(Domain.of(sizes), tuple(axes), levels=given, blocks=blocks, joins=joins)
    kept = None if data["kept"] is None else line(data["kept"])
    values = line(data["values"])
    if query.cells > MOST_CELLS or values.shape != ((query.cells,) if kept is None else kept.shape):
        raise ReleaseError("answer-cells", "a noisy answer has another number of cells than its query.")
    if (
        kept is not None
        and kept.size
        and not (kept[0] >= 0 and kept[-1] < query.cells and (kept[1:] > kept[:-1]).all())
    ):
        raise ReleaseError("answer-kept-cells", "a noisy answer kept cells that its query does not have.")
    kind, scale = data["noise"]
    if type(scale) is not float or not 0 < scale <= LARGEST_SCALE:
        raise ReleaseError("answer-noise", "a noisy answer has noise of no known scale.")
    return Measurement(query, values, Noise(kind, scale), kept)
