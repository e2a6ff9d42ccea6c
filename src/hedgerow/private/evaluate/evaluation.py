"""A private table beside a synthetic one: every metric, under the declared encoding. PRIVATE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, SchemaError, listing, unread
from hedgerow.private.evaluate import METRICS, classifier, find
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.evaluate.raw import RawTable, coded_and_raw
from hedgerow.private.evaluate.samples import SAMPLES, beside
from hedgerow.private.evaluate.uncut import with_cells_of
from hedgerow.private.sources.coded import coded_rows, rows_of, with_columns_of
from hedgerow.private.sources.source import open_source, open_synthetic
from hedgerow.progress import Progress
from hedgerow.release.files import check_writable

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.coded.domain import CodedTable
    from hedgerow.private.sources.source import Source
    from hedgerow.schema import Encoding, Schema


RESERVED = {
    *("private", "seed", "columns", "attributes", "rows", "target", "identifiers", "phases", "peak_rss_mb"),
    *("never_read",),
    *("samples", "left_out", "rows_of_values", "cut_by_rows"),
    *("kind", "name", "epsilon", "run", "options", "file", "digest", "made", "versions", "status", "problem", "ended"),
    *("code", "cpu_s", "wall_s", "peak_mb"),
}
"""What a report, or a row of a comparison, holds beside the figures."""


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path | Sequence[str | Path],
    *,
    file: Mapping[str, Any] | None = None,
    metrics: Sequence[str | Metric] | None = None,
    target: str | None = None,
    identifiers: Sequence[str] = (),
    seed: int = 0,
    ledger: str | Path | None = None,
    report: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare a private table with a synthetic one. The answer is PRIVATE: it is computed from real rows, exactly.

    Tables are what `synthesize` takes; `schema` may also be the path of a release, which holds the domain that a run
    discovered. Where a schema leaves a domain to be discovered, codes are compared in cells where the real rows lie
    (`hedgerow.private.evaluate.uncut`), and the answer names these columns. `file` says how the private table is
    written, as for `synthesize`; the synthetic one is plain. `metrics` are names of METRICS (default: all; "svm" and
    "boosting" need `target`, the column to predict, "apparent_matches" needs `identifiers`, columns that an outsider
    may know), names of others (`package.module:Name`) or `Metric`s. The
    same seed gives the same numbers. A ledger, where one is given, notes the look at exact data before it happens.
    `report` is a page (.html) to write, marked PRIVATE and readable by its owner alone. Of linked tables both are
    folders, or mappings from names to frames, and the figures are others (`hedgerow.private.evaluate.linked`).
    """
    with unread():
        settled = _settled(schema).with_file(file or {})
    if settled.linked is not None:
        return _linked(real, synthetic, settled, metrics, target, identifiers, seed, ledger, report, progress)
    with unread():
        chosen = list(settled_metrics(metrics, target, identifiers).values())
        waiting = [name for name, _ in settled.discoveries]
        encoding = settled.with_stand_ins(1).encoding()
        for column in (*identifiers, *([] if target is None else [target])):
            encoding.attributes_of(column)
        if report is not None:
            check_writable(Path(report), (".html",))
        if waiting and hasattr(real, "read_all"):
            real = real.read_all()  # a reader can be read once, and is looked at for its cells first
        opened = {"real": open_source(real, settled.written), "synthetic": open_synthetic(synthetic)}
        sources = {what: with_columns_of(encoding, source, what) for what, source in opened.items()}
    _noted(ledger)
    progress = progress or Progress()
    with_values = report is not None or look_at_values(chosen)
    if waiting:
        with progress.phase("find cells for what is uncut"):
            encoding = with_cells_of(settled, sources["real"], seed).encoding()
    with progress.phase("read and encode"):
        read = {what: read_rows(source, encoding, what, seed, with_values) for what, source in sources.items()}
    named = settled.dataset or "table"
    (real_codes, real_values), (made_codes, made_values) = read["real"], read["synthetic"]
    values = None if real_values is None or made_values is None else (real_values, made_values)
    comparison = Comparison(
        encoding,
        real_codes,
        made_codes,
        seed,
        target,
        tuple(identifiers),
        named,
        values,
        _rows_again(real, synthetic, settled),
    )
    found = figures_of(comparison, chosen, progress)
    found |= {"cut_by_rows": waiting} if waiting else {}
    found |= {"samples": samples} if (samples := figures_of_samples(comparison, chosen, progress)) else {}
    if report is not None:
        from hedgerow.private.evaluate.report import write_report

        with progress.phase("draw the page"):
            write_report(Path(report), comparison, found, shown_figures(chosen))
    return found


def _noted(ledger: str | Path | None) -> None:
    """The look at exact data, in the ledger, where one is given."""
    if ledger is not None:
        from hedgerow.private.ledger import note_exact_access

        note_exact_access(ledger, "evaluate")


def _linked(
    real: Any,
    synthetic: Any,
    schema: Schema,
    metrics: Sequence[str | Metric] | None,
    target: str | None,
    identifiers: Sequence[str],
    seed: int,
    ledger: str | Path | None,
    report: str | Path | None,
    progress: Progress | None,
) -> dict[str, Any]:
    """Linked tables have figures of their own."""
    from hedgerow.private.evaluate import linked

    with unread():
        for option, given in (("metrics", metrics), ("target", target), ("identifiers", identifiers)):
            if given:
                raise OptionError("not-with-tables", f"--{option} cannot be used with linked tables yet; leave it out.")
        if report is not None:
            check_writable(Path(report), (".html",))
        opened = linked.sources(real, schema, "real"), linked.sources(synthetic, schema, "synthetic")
    _noted(ledger)
    return linked.evaluate(schema, *opened, seed, None if report is None else Path(report), progress or Progress())


def look_at_values(metrics: Iterable[Metric]) -> bool:
    """Whether one of the metrics needs more than codes."""
    return any("values" in metric.needs for metric in metrics)


def read_rows(
    source: Source, encoding: Encoding, what: str, seed: int, with_values: bool
) -> tuple[CodedTable, RawTable | None]:
    """The codes of a table and, where they are needed, its values: one pass."""
    if with_values:
        return coded_and_raw(source, encoding, what, seed)
    return coded_rows(source, encoding, what), None


def figures_of(comparison: Comparison, metrics: Iterable[Metric], progress: Progress | None = None) -> dict[str, Any]:
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
    report |= {"never_read": list(comparison.encoding.never_read)} if comparison.encoding.never_read else {}
    report |= {"identifiers": list(comparison.identifiers)} if comparison.identifiers else {}
    for metric in metrics:
        with progress.phase(metric.name):
            report |= metric.compute(comparison)
    report |= _about_values(comparison) if comparison.raw_tables is not None else {}
    return report


def compared_metrics(target: str | None) -> list[str]:
    """What a comparison computes where no metrics are named."""
    metrics = {name: find(name) for name in METRICS}
    met = {"values"} if target is None else {"values", "target", "scikit-learn"}
    return [name for name, each in metrics.items() if each.compared and met.issuperset(each.needs)]


def figures_of_samples(
    comparison: Comparison, metrics: Iterable[Metric], progress: Progress | None = None
) -> dict[str, dict[str, float | None]]:
    """The figures of metrics that want it so, for samples of the real rows in the place of the synthetic table."""
    progress = progress or Progress()
    wanted = [metric for metric in metrics if metric.beside_samples]
    found: dict[str, dict[str, float | None]] = {}
    for name in SAMPLES if wanted else ():
        with progress.phase(f"{SAMPLES[name]} of the real rows"):
            sampled = beside(comparison, name, comparison.seed)
            answers = [(metric, metric.compute(sampled)) for metric in wanted]
            found[name] = {figure: answer[figure] for metric, answer in answers for figure in metric.figures}
    return found


def _about_values(comparison: Comparison) -> dict[str, Any]:
    """How many rows gave values, and by column the shares of those that do not fit the schema, where there are any."""
    tables = dict(zip(("real", "synthetic"), comparison.values, strict=True))
    left_out = {
        name: {what: len(table.columns[name].misfits) / table.rows for what, table in tables.items()}
        for name in comparison.encoding.columns
        if any(len(table.columns[name].misfits) for table in tables.values())
    }
    return {"rows_of_values": {what: table.rows for what, table in tables.items()}, "left_out": left_out}


def settled_metrics(
    wanted: Sequence[str | Metric] | None, target: str | None, identifiers: Sequence[str]
) -> dict[str, Metric]:
    """The metrics to compute by the names that find them: ours in the order of METRICS, then those made elsewhere.

    Refused where they and the named columns do not go together.
    """
    given = {
        "target": target is not None,
        "identifiers": bool(identifiers),
        "to be named": wanted is not None,
        "values": True,
    }
    known = {name: find(name) for name in METRICS}
    if wanted is None:
        able = classifier.available() or given["target"]  # a target asks for a machine, so its lack is worth a word
        given["scikit-learn"] = able
        wanted = [name for name, metric in known.items() if all(given[need] for need in metric.needs)]
    if not wanted:
        raise OptionError("no-metric", f"no metric was named; metrics: {listing(METRICS, 20)}.")
    distinct = {x if isinstance(x, str) else id(x): find(x) if isinstance(x, str) else x for x in wanted}
    [(name, times)] = Counter(metric.name for metric in distinct.values()).most_common(1)
    if times > 1:
        raise OptionError(
            "metric-name-taken", f'{times} metrics are called "{name}"; a report holds one of a name. Name one of them.'
        )
    asked = {key if isinstance(key, str) else metric.name: metric for key, metric in distinct.items()}
    for metric in asked.values():
        for need in metric.needs:
            if need == "scikit-learn":
                classifier.check_available(metric.name)
            elif not given[need]:
                raise OptionError("missing-option", f'the metric "{metric.name}" needs --{need}.')
    for option in ("target", "identifiers"):
        if given[option] and not any(option in metric.needs for metric in asked.values()):
            users = [name for name, metric in known.items() if option in metric.needs]
            raise OptionError("unused-option", f"--{option} is for {' and '.join(users)}; add it to the metrics.")
    ordered = {name: asked[name] for name in METRICS if name in asked}
    settled = ordered | {name: metric for name, metric in asked.items() if name not in ordered}
    shown_figures(settled.values())
    return settled


def _rows_again(real: Any, synthetic: Any, schema: Schema) -> Callable[[], tuple[pa.Table, pa.Table]] | None:
    """Both tables' rows as they stand in their files; None where one of them can be read but once."""
    if not all(isinstance(given, str | Path) for given in (real, synthetic)):
        return None
    import pyarrow as pa

    def read() -> tuple[pa.Table, pa.Table]:
        sources = open_source(real, schema.written), open_synthetic(synthetic)
        first, second = (pa.Table.from_batches(list(source.batches(list(schema.columns)))) for source in sources)
        return first, second

    return read


def shown_figures(metrics: Iterable[Metric]) -> dict[str, Figure]:
    """The figures of the metrics in order; what several of them give comes after the last of these."""
    shown: dict[str, Figure] = {}
    for metric in metrics:
        for name, figure in metric.figures.items():
            if name in RESERVED or shown.pop(name, figure) != figure:
                raise OptionError(
                    "figure-name-taken",
                    f'the figure "{name}" of the metric "{metric.name}" has a name that means something else already.',
                )
            shown[name] = figure
    return shown


def _settled(schema: Schema | str | Path | Sequence[str | Path]) -> Schema:
    """The schema; what is still to be discovered in it may wait, what only a public table can say may not."""
    from hedgerow.schema import Schema

    if not isinstance(schema, Schema):
        of_release = isinstance(schema, str | Path) and Path(schema).suffix == ".release"
        schema = _release_schema(str(schema)) if of_release else Schema.load(schema)
    try:
        schema.with_stand_ins(1).encoding()
    except SchemaError as problem:
        raise SchemaError(
            problem.code,
            f"{problem} Hint: give the release as the schema (-s FILE.release); it holds the domain.",
        ) from None
    return schema


def _release_schema(path: str | Path) -> Schema:
    from hedgerow.release.bundle import Release

    return Release.load(path).schema
