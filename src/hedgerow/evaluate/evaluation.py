"""A private table beside a synthetic one: every metric, under the declared encoding. PRIVATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.domain import CodedTable, Domain, Marginal
from hedgerow.engines.coded import coded_rows, open_table, rows_of
from hedgerow.errors import OptionError, SchemaError, listing, suggestion
from hedgerow.evaluate import classifier
from hedgerow.evaluate.marginals import k_marginal, tvd1, tvd2, tvd3
from hedgerow.evaluate.ranges import range3, range5
from hedgerow.progress import Progress

if TYPE_CHECKING:
    from hedgerow.schema import Encoding, Schema

Distance = Callable[[CodedTable, CodedTable, Domain, int], float]
"""(real, synthetic, domain, seed) → a number."""

DISTANCES: Mapping[str, Distance] = {
    "tvd1": tvd1,
    "tvd2": tvd2,
    "tvd3": tvd3,
    "k_marginal": k_marginal,
    "range3": range3,
    "range5": range5,
}
METRICS = (*DISTANCES, "svm")


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    metrics: Sequence[str] | None = None,
    target: str | None = None,
    seed: int = 0,
    ledger: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare a private table with a synthetic one. The answer is PRIVATE: it is computed from real rows, exactly.

    Tables are what `synthesize` takes; `schema` may also be the path of a release, which holds the domain that a run
    discovered. `metrics` are names of METRICS (default: all; "svm" needs `target`, the column to predict). The
    same seed gives the same numbers. A ledger, where one is given, notes the look at exact data before it happens.
    """
    names = _metrics(metrics, target)
    encoding = _encoding(schema)
    label = encoding.attributes_of(target) if target is not None else None
    sources = {what: open_table(table, encoding, what) for what, table in (("real", real), ("synthetic", synthetic))}
    if ledger is not None:
        from hedgerow.private.ledger import note_exact_access

        note_exact_access(ledger, "evaluate")
    progress = progress or Progress()
    with progress.phase("read and encode"):
        coded = {what: coded_rows(source, encoding, what) for what, source in sources.items()}
    report: dict[str, Any] = {
        "private": True,
        "seed": seed,
        "columns": len(encoding.columns),
        "attributes": len(encoding.domain),
        "rows": {what: rows_of(table) for what, table in coded.items()},
    }
    for name in names:
        with progress.phase(name):
            if name in DISTANCES:
                report[name] = DISTANCES[name](coded["real"], coded["synthetic"], encoding.domain, seed)
            else:
                assert label is not None
                report |= {"target": target, **_svm(coded["real"], coded["synthetic"], encoding.domain, label, seed)}
    return report


def _svm(real: CodedTable, synthetic: CodedTable, domain: Domain, label: Marginal, seed: int) -> dict[str, float]:
    wrong = classifier.svm(real, synthetic, domain, label, seed)
    return {"svm": wrong.synthetic, "svm_real": wrong.real, "svm_majority": wrong.majority}


def _metrics(wanted: Sequence[str] | None, target: str | None) -> list[str]:
    """The metrics to compute, in the order of METRICS; refused where svm and the target do not go together."""
    if wanted is None:
        wanted = METRICS if target is not None else tuple(DISTANCES)
    if not wanted:
        raise OptionError(f"no metric was named; metrics: {listing(METRICS)}. Nothing was read.")
    for name in wanted:
        if name not in METRICS:
            raise OptionError(
                f'unknown metric "{name}"; metrics: {listing(METRICS)}.{suggestion(name, METRICS)} Nothing was read.'
            )
    if "svm" in wanted and target is None:
        raise OptionError('the metric "svm" needs --target, the column to predict. Nothing was read.')
    if "svm" not in wanted and target is not None:
        raise OptionError('--target is the column that "svm" predicts; add svm to the metrics. Nothing was read.')
    if "svm" in wanted:
        classifier.check_available()
    return [name for name in METRICS if name in wanted]


def _encoding(schema: Schema | str | Path) -> Encoding:
    from hedgerow.schema import Schema

    if not isinstance(schema, Schema):
        schema = _release_schema(schema) if Path(schema).suffix == ".release" else Schema.load(schema)
    try:
        return schema.encoding()
    except SchemaError as problem:
        raise SchemaError(
            f"{problem} Nothing was read. Hint: give the release as the schema (-s FILE.release); it holds the domain."
        ) from None


def _release_schema(path: str | Path) -> Schema:
    from hedgerow.release import Release

    return Release.load(path).schema
