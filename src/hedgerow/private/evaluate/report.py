"""From two coded tables to the PRIVATE page: what the page shows is worked out here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts
from hedgerow.pages.distributions import MOST_CODES, Distribution
from hedgerow.pages.evaluation import MOST_MAPPED, CorrelationView, EvaluationView, FigureView, evaluation_page
from hedgerow.pages.values import WordsView
from hedgerow.private.evaluate.classifier import MACHINES
from hedgerow.private.evaluate.correlations import Correlations, cramers_v, kendall, pearson
from hedgerow.private.evaluate.detector import told
from hedgerow.private.evaluate.marginals import distances, worst_marginals
from hedgerow.private.evaluate.metric import Comparison, Figure, percentage
from hedgerow.private.evaluate.ranks import spearman
from hedgerow.private.evaluate.samples import SAMPLES, verdict
from hedgerow.private.evaluate.views import has_spikes, histogram, number_view, pairs, profile_views, spike_view
from hedgerow.private.sources.coded import rows_of
from hedgerow.release.files import write_private


def write_report(path: Path, comparison: Comparison, found: Mapping[str, Any], figures: Mapping[str, Figure]) -> None:
    """Write the page; only its owner can read it."""
    write_private(path, evaluation_page(view_of(comparison, found, figures)))


def view_of(comparison: Comparison, found: Mapping[str, Any], figures: Mapping[str, Figure]) -> EvaluationView:
    """Everything that the page shows: the values found, each with what is said about its figure."""
    domain, tables = comparison.domain, comparison.tables
    single = distances(*tables, [(name,) for name in domain.names])
    mapped = sorted(np.argsort(-single, kind="stable")[:MOST_MAPPED].tolist())
    shown = [domain.names[index] for index in mapped]
    in_order = pairs(comparison)
    return EvaluationView(
        name=comparison.name,
        rows=found["rows"],
        columns=found["columns"],
        never_read=comparison.encoding.never_read,
        cut_by_rows=found.get("cut_by_rows", ()),
        figures=[
            FigureView(
                name,
                figure.title,
                figure.text(found[name]),
                figure.meaning + figure.sampled(len(domain)),
                figure.headline,
            )
            for name, figure in figures.items()
        ],
        distributions=_distributions(comparison, single),
        attributes=shown,
        pairs=_pairs(comparison, shown),
        worst={
            degree: worst_marginals(*tables, degree, seed=comparison.seed)
            for degree in (1, 2, 3)
            if degree <= len(domain)
        },
        correlations=_correlations(comparison),
        missing=_missing(comparison),
        target=comparison.target,
        learnt={
            machine: {"synthetic": found[name], "real": found[f"{name}_real"]}
            for name, machine in MACHINES.items()
            if name in found
        },
        majority=found.get("majority"),
        words=_words(found, figures),
        numbers=[number_view(name, pair) for name, pair in in_order.items()],
        spikes=[spike_view(name, pair) for name, pair in in_order.items() if has_spikes(pair)],
        rhythms=[
            each for name, pair in pairs(comparison, ("day", "moment")).items() for each in profile_views(name, pair)
        ],
        alone={name: (area, told(area)) for name, area in found.get("detector_columns", {}).items()},
        together=percentage(found.get("detector", 0.0)),
        left_out=found.get("left_out", {}),
    )


def _words(found: Mapping[str, Any], figures: Mapping[str, Figure]) -> list[WordsView]:
    """The figures that are said in a sentence, where they have a value."""
    samples: Mapping[str, Mapping[str, float | None]] = found.get("samples", {})
    views = []
    for name, figure in figures.items():
        if figure.words and found[name] is not None:
            beside = {sample: each[name] for sample, each in samples.items() if name in each}
            texts = {SAMPLES[sample]: figure.text(value) for sample, value in beside.items()}
            worst = (found[name] and found.get(f"{name}_at")) or ""
            sentence = figure.sentence(found[name])
            close = found.get(f"{name}_verdict") or verdict(found[name], beside)
            views.append(WordsView(sentence, close, worst, figure.text(found[name]), texts))
    return views


def _distributions(comparison: Comparison, single: Counts) -> list[tuple[Distribution, float]]:
    """Values where a column of numbers or dates is an attribute by itself, else the cells of the attribute."""
    raw = pairs(comparison)
    drawn = []
    for attribute, distance in zip(comparison.domain, single, strict=True):
        if attribute.name in raw and comparison.encoding.columns_of(attribute.name) == (attribute.name,):
            drawn.append(histogram(attribute.name, raw[attribute.name]))
        elif attribute.size <= MOST_CODES:
            drawn.append((_distribution(comparison, attribute.name), float(distance)))
    return drawn


def _shares(table: CodedTable, name: str, size: int) -> Counts:
    return np.bincount(table[name], minlength=size) / rows_of(table)


def _distribution(comparison: Comparison, name: str) -> Distribution:
    size = comparison.domain[name].size
    both = [("real", comparison.real), ("synthetic", comparison.synthetic)]
    series = [(what, _shares(table, name, size)) for what, table in both]
    return Distribution(name, comparison.encoding.labels(name), series, comparison.encoding.ordered(name))


def _pairs(comparison: Comparison, shown: list[str]) -> dict[tuple[int, int], float]:
    indices = [(i, j) for i in range(len(shown)) for j in range(i + 1)]
    marginals = [(shown[j], shown[i]) if i != j else (shown[i],) for i, j in indices]
    found = distances(comparison.real, comparison.synthetic, comparison.domain, marginals)
    return dict(zip(indices, found.tolist(), strict=True))


def _correlations(comparison: Comparison) -> list[CorrelationView]:
    def view(title: str, meaning: str, real: Correlations, synthetic: Correlations) -> CorrelationView:
        return CorrelationView(title, meaning, real.attributes, real.matrix, synthetic.matrix)

    real, synthetic, domain, ordered = comparison.real, comparison.synthetic, comparison.domain, comparison.ordered
    views = []
    if len(domain) > 1:
        words = "How well one column tells the other, for all columns: 0 not at all, 1 completely."
        views.append(view("Cramér's V", words, cramers_v(real, domain), cramers_v(synthetic, domain)))
    if len(ordered) > 1:
        words = (
            "How well a straight line fits, for ordered columns: from −1 to 1. Rows with a missing value are left out."
        )
        views.append(view("Pearson's r", words, pearson(real, domain, ordered), pearson(synthetic, domain, ordered)))
        words = "How often both put two rows into the same order, for ordered columns: from −1 to 1."
        views.append(view("Kendall's τ", words, kendall(real, domain, ordered), kendall(synthetic, domain, ordered)))
    ranked = [spearman(table) for table in comparison.values]
    if len(ranked[0].attributes) > 1:
        words = "How well a straight line fits the ranks, for numbers and dates as they stand: from −1 to 1."
        views.append(view("Spearman's ρ", words, ranked[0], ranked[1]))
    return views


def _missing(comparison: Comparison) -> list[tuple[str, float, float]]:
    """Shares of missing values, for the columns that declare them."""
    found = []
    for column in comparison.encoding.columns:
        blank = comparison.encoding.missing(column)
        if blank.any():
            attribute = comparison.encoding.attributes_of(column)[0]
            shares = [float(blank[table[attribute]].mean()) for table in (comparison.real, comparison.synthetic)]
            found.append((column, shares[0], shares[1]))
    return found
