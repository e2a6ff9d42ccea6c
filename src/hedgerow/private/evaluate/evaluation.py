"""A private table beside a synthetic one: every metric, under the declared encoding. PRIVATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.coded.domain import CodedTable, Domain, Marginal
from hedgerow.errors import OptionError, SchemaError, listing, suggestion
from hedgerow.private.evaluate import classifier
from hedgerow.private.evaluate.conjunctions import conjunctions
from hedgerow.private.evaluate.correlations import cramers_v_error, kendall_error, pearson_error
from hedgerow.private.evaluate.marginals import k_marginal, tvd1, tvd2, tvd3, worst_marginals
from hedgerow.private.evaluate.matches import apparent_matches, unique_matches
from hedgerow.private.evaluate.propensity import propensity
from hedgerow.private.evaluate.ranges import range3, range5
from hedgerow.private.evaluate.subsample import subsample_equivalent
from hedgerow.private.sources.coded import coded_rows, rows_of, with_columns_of
from hedgerow.private.sources.source import open_source, open_synthetic
from hedgerow.progress import Progress
from hedgerow.release.files import check_writable

if TYPE_CHECKING:
    from hedgerow.schema import Encoding, Schema


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two tables under one encoding, and what is asked about them."""

    encoding: Encoding
    real: CodedTable
    synthetic: CodedTable
    seed: int = 0
    target: str | None = None
    identifiers: tuple[str, ...] = ()
    name: str = "table"
    """What the real table is called."""

    @property
    def domain(self) -> Domain:
        return self.encoding.domain

    @property
    def line(self) -> dict[str, int]:
        """The ordered attributes, with the number of codes that are in order."""
        return {name: length for name in self.domain.names if (length := self.encoding.line(name)) > 0}

    @property
    def label(self) -> Marginal:
        """The attributes of the target."""
        assert self.target is not None
        return self.encoding.attributes_of(self.target)

    @property
    def known(self) -> Marginal:
        """The attributes of the identifying columns."""
        return self.domain.marginal(x for column in self.identifiers for x in self.encoding.attributes_of(column))


Distance = Callable[[CodedTable, CodedTable, Domain, int], float]
"""(real, synthetic, domain, seed) → a number."""

DISTANCES: Mapping[str, Distance] = {
    "tvd1": tvd1,
    "tvd2": tvd2,
    "tvd3": tvd3,
    "k_marginal": k_marginal,
    "range3": range3,
    "range5": range5,
    "cramers_v": cramers_v_error,
}


def _figures(comparison: Comparison, name: str) -> dict[str, Any]:
    """The numbers of one metric by the names under which the report holds them."""
    c = comparison
    tables = (c.real, c.synthetic, c.domain)
    match name:
        case "worst":
            ((attributes, distance),) = worst_marginals(*tables, 3, seed=c.seed, most=1)
            return {"worst": distance, "worst_at": list(attributes)}
        case "conjunctions":
            return {name: conjunctions(*tables, c.seed)}
        case "pearson":
            return {name: pearson_error(*tables, c.line)}
        case "kendall":
            return {name: kendall_error(*tables, c.line)}
        case "subsample":
            return {name: subsample_equivalent(*tables, c.seed)}
        case "pmse":
            told = propensity(*tables, c.seed)
            return {"pmse": told.pmse, "detected": told.detected}
        case "unique_matches":
            return {name: unique_matches(*tables)}
        case "apparent_matches":
            seen = apparent_matches(*tables, c.known)
            return {"apparent_matches": seen.share, "apparent_agreement": seen.agreement}
        case "svm" | "boosting":
            wrong = (classifier.svm if name == "svm" else classifier.boosting)(*tables, c.label, c.seed)
            return {name: wrong.synthetic, f"{name}_real": wrong.real, "majority": wrong.majority}
        case _:
            return {name: DISTANCES[name](*tables, c.seed)}


METRICS = (
    *("tvd1", "tvd2", "tvd3", "worst", "k_marginal", "range3", "range5", "conjunctions"),
    *("pearson", "kendall", "cramers_v", "subsample", "pmse", "unique_matches", "apparent_matches"),
    *("svm", "boosting"),
)
LEARNT = ("pmse", "svm", "boosting")
"""Metrics that train a machine of scikit-learn."""
NEEDS = {"svm": "target", "boosting": "target", "apparent_matches": "identifiers"}
"""Metrics that speak of columns which have to be named."""


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    metrics: Sequence[str] | None = None,
    target: str | None = None,
    identifiers: Sequence[str] = (),
    seed: int = 0,
    ledger: str | Path | None = None,
    report: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare a private table with a synthetic one. The answer is PRIVATE: it is computed from real rows, exactly.

    Tables are what `synthesize` takes; `schema` may also be the path of a release, which holds the domain that a run
    discovered. `metrics` are names of METRICS (default: all; "svm" and "boosting" need `target`, the column to predict,
    "apparent_matches" needs `identifiers`, columns that an outsider may know). The same seed gives the same numbers. A
    ledger, where one is given, notes the look at exact data before it happens. `report` is a page (.html) to write,
    marked PRIVATE and readable by its owner alone.
    """
    names = settled_metrics(metrics, target, identifiers)
    settled = _settled(schema)
    encoding = settled.encoding()
    for column in (*identifiers, *([] if target is None else [target])):
        encoding.attributes_of(column)
    if report is not None:
        check_writable(Path(report), (".html",))
    opened = {"real": open_source(real), "synthetic": open_synthetic(synthetic)}
    sources = {what: with_columns_of(encoding, source, what) for what, source in opened.items()}
    if ledger is not None:
        from hedgerow.private.ledger import note_exact_access

        note_exact_access(ledger, "evaluate")
    progress = progress or Progress()
    with progress.phase("read and encode"):
        coded = {what: coded_rows(source, encoding, what) for what, source in sources.items()}
    named = settled.dataset or "table"
    comparison = Comparison(encoding, coded["real"], coded["synthetic"], seed, target, tuple(identifiers), named)
    found = figures_of(comparison, names, progress)
    if report is not None:
        from hedgerow.private.evaluate.report import write_report

        with progress.phase("draw the page"):
            write_report(Path(report), comparison, found)
    return found


def figures_of(comparison: Comparison, names: Sequence[str], progress: Progress | None = None) -> dict[str, Any]:
    """The metrics of two coded tables, in one flat report."""
    progress = progress or Progress()
    report: dict[str, Any] = {
        "private": True,
        "seed": comparison.seed,
        "columns": len(comparison.encoding.columns),
        "attributes": len(comparison.domain),
        "rows": {"real": rows_of(comparison.real), "synthetic": rows_of(comparison.synthetic)},
    }
    report |= {key: value for key, value in (("target", comparison.target),) if value is not None}
    report |= {"identifiers": list(comparison.identifiers)} if comparison.identifiers else {}
    for name in names:
        with progress.phase(name):
            report |= _figures(comparison, name)
    return report


def settled_metrics(wanted: Sequence[str] | None, target: str | None, identifiers: Sequence[str]) -> list[str]:
    """The metrics to compute, in the order of METRICS; refused where they and the named columns do not go together."""
    given = {"target": target is not None, "identifiers": bool(identifiers)}
    if wanted is None:
        able = classifier.available() or given["target"]  # a target asks for a machine, so its lack is worth a word
        wanted = [x for x in METRICS if given.get(NEEDS.get(x, ""), True) and (able or x not in LEARNT)]
    if not wanted:
        raise OptionError(f"no metric was named; metrics: {listing(METRICS, 20)}. Nothing was read.")
    for name in wanted:
        if name not in METRICS:
            raise OptionError(
                f'unknown metric "{name}"; metrics: {listing(METRICS, 20)}.{suggestion(name, METRICS)} '
                "Nothing was read."
            )
        if not given.get(NEEDS.get(name, ""), True):
            raise OptionError(f'the metric "{name}" needs --{NEEDS[name]}. Nothing was read.')
        if name in LEARNT:
            classifier.check_available(name)
    for option, there in given.items():
        users = [name for name, need in NEEDS.items() if need == option]
        if there and not set(users) & set(wanted):
            raise OptionError(f"--{option} is for {' and '.join(users)}; add it to the metrics. Nothing was read.")
    return [name for name in METRICS if name in wanted]


def _settled(schema: Schema | str | Path) -> Schema:
    """The schema, with a domain that is complete."""
    from hedgerow.schema import Schema

    if not isinstance(schema, Schema):
        schema = _release_schema(schema) if Path(schema).suffix == ".release" else Schema.load(schema)
    try:
        schema.encoding()
    except SchemaError as problem:
        raise SchemaError(
            f"{problem} Nothing was read. Hint: give the release as the schema (-s FILE.release); it holds the domain."
        ) from None
    return schema


def _release_schema(path: str | Path) -> Schema:
    from hedgerow.release.bundle import Release

    return Release.load(path).schema
