"""The page of a release: what was promised, what was asked, and what came of it. Safe to publish.

Everything on it follows from the release, which is public: the import contracts leave no way to private rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.budget.accounting import Charge
from hedgerow.coded.domain import Counts
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import counted, listing
from hedgerow.markup import Content, Markup, joined, tag
from hedgerow.models.rows import Recounted
from hedgerow.pages.charts import MADE, REAL, colour, key, stacked
from hedgerow.pages.cuts import cut_columns, cuts
from hedgerow.pages.distributions import MOST_CODES, Distribution
from hedgerow.pages.shell import contents, folded, public_page, section, table
from hedgerow.pages.uses import uses
from hedgerow.release.certificate import share_of_whole

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release
    from hedgerow.release.misfits import Misfits

PURPOSES = {
    "look": "a first look",
    "measure": "noisy counts",
    "select": "choices",
    "score": "noisy scores",
    "discover": "domains bought",
    "quality": "distances of the result",
}
MOST_PICTURES = 40
MOST_LISTED = 400


def release_page(release: Release, rows: int | None = None, seed: int = 0) -> str:
    """The page for a release and the rows that were drawn from it (of which the first 2²⁰ are compared)."""
    certificate = release.certificate
    name = certificate.dataset or "a private table"
    status = (
        f"NO PRIVACY GUARANTEE: {certificate.void}."
        if certificate.void
        else "May be published: the private rows took part only through the noisy answers listed here."
    )
    published = release.expected_rows() if rows is None else rows
    made = release.recounted(max(published, 1), seed)
    technical = [
        ("guarantee", "The guarantee", _guarantee(release)),
        ("budget", "Where the budget went", _budget(release)),
        *(
            [("misfits", "What did not fit the declaration", _misfits(release, release.misfits))]
            if release.misfits
            else []
        ),
        ("columns", "Measured columns beside the synthetic table", _columns(release, made)),
        ("marginals", "All measured counts and their expected error", _marginals(release, made)),
        *([("cuts", "Where columns were cut", cuts(release))] if cut_columns(release) else []),
        ("method", "The method", _method(release)),
        ("certificate", "The certificate", _certificate(release)),
    ]
    return public_page(
        f"A synthetic version of {name}",
        status,
        tag("h1", f"A synthetic version of {name}"),
        tag(
            "p",
            _what(release, published),
            " drawn from a model that was fitted to noisy counts. No row stands for a person.",
        ),
        _invented(release),
        _population(release),
        _totals(release),
        section("uses", "What you may use this for, and what not", uses(release), _rules(release)),
        folded(
            "For those who want to check: the guarantee, the budget, every measured count, the certificate",
            contents((anchor, title) for anchor, title, _ in technical),
            [section(anchor, title, content) for anchor, title, content in technical],
        ),
    )


def _what(release: Release, rows: int) -> str:
    """What was drawn, in a few words."""
    links = release.schema.linked
    if links is None:
        return f"{rows:,} made-up rows with {counted(len(release.encoding.arrow_schema), 'column')},"
    if links.kept:
        return f"{counted(rows, 'made-up person')} with their rows,"
    others = listing(links.names[1:])
    return f"{counted(rows, 'made-up unit')}, rows of {links.root} with the rows of {others} that hang on them,"


def _invented(release: Release) -> Content:
    """The columns that were never read, and what stands in them."""
    invented = release.schema.invented
    if not invented:
        return ""
    said = listing((f"{name} ({column.fate})" for name, column in invented.items()), most=40)
    return tag("p", f"Never read, so they say nothing of anybody, whatever they look like: {said}.")


def _totals(release: Release) -> Content:
    """What was public before, and is matched."""
    if not release.schema.totals:
        return ""
    said = listing((total.said for total in release.schema.totals), most=40)
    rows = release.schema.totals[0].rows
    return tag(
        "p",
        f"Totals that were published before are matched exactly by a table of {rows:,} rows: {said}. They are the "
        "publisher's word and no part of the guarantee.",
    )


def _population(release: Release) -> Content:
    """Rows that were drawn by weight are no sample, and a sample is what was counted."""
    weight = release.schema.weight
    if weight is None or weight.draw != "population":
        return ""
    return tag(
        "p",
        f"The table holds a population: rows as often as the weights in {weight.column} say, each of which stands for "
        "one. What is compared with measured counts below is a sample of the same model, which those are counts of.",
    )


def _rules(release: Release) -> Content:
    """What every row obeys, and how much of that the model had not learnt."""
    rules = release.encoding.rules
    said = [str(each) for each in rules.kept] + [f"{name} = {text}" for name, text in release.schema.derive.items()]
    if not said:
        return ""
    kept = release.rules_kept
    drawn = f" Of the model's own rows {100 * kept.right:.1f} % obeyed; the others were drawn again." if rules else ""
    what = (
        "completed with legal values drawn evenly: the model left those next to no mass."
        if release.schema.linked is None
        else "left out: given the rows that they hang on, the model drew nothing legal."
    )
    completed = f" {100 * kept.completed:.1f} % of the rows had to be {what}" if kept.completed else ""
    return tag("p", f"Rules kept in every row: {listing(said, most=60)}.{drawn}{completed}")


def _misfits(release: Release, found: Misfits) -> Markup:
    """The look: which share of a column's values fits nothing declared, and of the rows breaks a rule."""
    links = {} if release.schema.linked is None else release.schema.linked.misfits
    lines = [[links[each.column].what if each.column in links else each.column, each.said] for each in found.seen]
    rest = len(found.columns) - len(lines)
    looked, others = ("column was", "columns were"), ("other column shows", "other columns show")
    none = "None of the columns has a share that stands out of its noise." if not lines else ""
    return joined(
        tag(
            "p",
            f"Before anything else {counted(len(found.columns), *looked)} looked at: which share of their values fits "
            "nothing that the schema declares (a misspelt category, a number beyond the bounds, an empty field where "
            "none is declared). Such values are not in the synthetic table: they were replaced by declared ones, or "
            f"moved to the nearest bound. The shares are noisy like every count, ± {100 * found.noise:.2f} % where "
            f"they are small. {none}",
        ),
        table(["column", "share that does not fit"], lines, figures=(1,)) if lines else "",
        tag("p", f"{counted(rest, *others)} none beyond the noise.", class_="soft") if lines and rest else "",
    )


def _guarantee(release: Release) -> Markup:
    certificate = release.certificate
    given = certificate.guarantee
    statements = tag("ul", [tag("li", said) for said in certificate.statements()])
    tiles: list[tuple[str, str, str]] = []
    words: Content = ""
    if given is not None:
        tiles = [
            (f"{given.epsilon:.3g}", "ε (epsilon)", "how much the result may depend on one " + certificate.unit),
            (
                f"{given.delta:.3g}",
                "δ (delta)",
                "a slack beside ε: by at most this may a probability exceed what ε allows",
            ),
        ]
        after = 1 / (1 + math.exp(-given.epsilon))
        factor = f" = {math.exp(given.epsilon):.3g}" if given.epsilon < 20 else ""
        words = tag(
            "p",
            f"In words: with or without any one {certificate.unit}, every possible result is equally likely up to a "
            f"factor of e^ε{factor}. Somebody who was 50 % sure that a certain {certificate.unit} is in the table can "
            f"be at most {100 * after:.1f} % sure after seeing this release"
            + (
                ", up to δ: by at most that may anything be more likely than the factor allows." if given.delta else "."
            ),
        )
        if given.mu is not None:
            tiles.append((f"{given.mu:.3g}", "μ", "the same as a Gaussian shift, in standard deviations"))
    if certificate.person and not certificate.tables:
        tiles.append((str(certificate.rows_per_person), "row limit per person", "more rows of one person never count"))
    tiles.append(
        (f"{release.estimated_rows:,}", _counted_in(release), "a noisy estimate; the true number stays private")
    )
    return joined(words, _tiles(tiles), statements, [tag("p", tag("b", said)) for said in release.doubts])


def _tiles(tiles: list[tuple[str, str, str]]) -> Markup:
    return tag(
        "div",
        [
            tag("div", tag("span", name, class_="name"), tag("b", value), tag("span", words), class_="tile")
            for value, name, words in tiles
        ],
        class_="tiles",
    )


def _budget(release: Release) -> Markup:
    certificate = release.certificate
    order = list(PURPOSES)
    parts = []
    spent: dict[str, float] = {}
    for number, charge in enumerate(certificate.charges, start=1):
        share = share_of_whole(charge, certificate)
        spent[charge.purpose] = spent.get(charge.purpose, 0.0) + share
        tip = f"step {number}: {PURPOSES[charge.purpose]}\n{_asked(charge)}\n{100 * share:.2f} % of the budget"
        parts.append((share, colour(order.index(charge.purpose)), tip))
    left = 1 - sum(share for share, _, _ in parts)
    if left > 1e-6:
        parts.append((left, "var(--rule)", f"not spent: {100 * left:.2f} %"))
    used = [purpose for purpose in order if purpose in spent]
    words = ", ".join(f"{100 * spent[purpose]:.1f} % on {PURPOSES[purpose]}" for purpose in used)
    count = len(certificate.charges)
    return joined(
        tag("p", f"{count} {'access' if count == 1 else 'accesses'} to the private table, in this order: {words}."),
        tag("figure", stacked(parts, f"Budget by step: {words}")),
        key(*((colour(order.index(purpose)), PURPOSES[purpose]) for purpose in used)),
    )


def _asked(charge: Charge) -> str:
    """What a charge asked about, briefly."""
    if charge.purpose in ("select", "score"):
        number = sum(query.get("candidates", 1) for query in charge.queries)
        return f"one of {number:,} candidates" if charge.purpose == "select" else f"{number:,} candidates"
    named = [" × ".join(query.get("attributes", [query.get("column", "")])) or "total" for query in charge.queries]
    shown = ", ".join(named[:4])
    return shown + (f" and {len(named) - 4} more" if len(named) > 4 else "")


def _columns(release: Release, recounted: Recounted) -> Markup:
    """A picture for each attribute that was measured by itself: the answer with the least noise."""
    best: dict[str, Measurement] = {}
    for measurement in release.counted:
        query = measurement.query
        plain = isinstance(query, MarginalQuery) and query.description.keys() == {"attributes", "cells"}
        drawable = plain and len(query.attributes) == 1 and measurement.kept is None and query.cells <= MOST_CODES
        if drawable and recounted.names.issuperset(query.attributes) and _fits(release, measurement):
            name = query.attributes[0]
            if name not in best or measurement.std < best[name].std:
                best[name] = measurement
    if not best:
        return tag("p", "No column was measured by itself; see the list of all measured counts below.")
    what = _counted_in(release)
    cut = {attribute for name in cut_columns(release) for attribute in release.encoding.attributes_of(name)}
    figures = []
    for name in [attribute.name for attribute in release.encoding.domain if attribute.name in best][:MOST_PICTURES]:
        measured = best[name]
        assert isinstance(measured.query, MarginalQuery)
        (made,) = recounted.answers([measured.query])
        shown = Distribution(
            name,
            release.encoding.labels(name),
            [("measured, with noise", measured.values / release.parts), ("synthetic", made / release.parts)],
            release.encoding.ordered(name),
            measured.std / release.parts,
            what,
        )
        unlike = f" · {counted(release.encoding.ordered(name), 'cell')} of unlike width" if name in cut else ""
        caption = tag(
            "figcaption",
            tag("b", name),
            f"{unlike} · noise on each count: ± {measured.std / release.parts:,.0f} {what}",
        )
        figures.append(tag("figure", caption, shown.picture([REAL, MADE])))
    more = len(best) - len(figures)
    return joined(
        tag(
            "p",
            "Grey: the count that was measured, noise included; the thin line is twice the noise's standard deviation "
            f"each way. Blue: the synthetic table, scaled to the same number of {what}."
            + (
                " A column that was cut has one bar for each cell, whatever its width: cells are wide where rows are "
                "few, so the outline of the bars is not the shape of the column. Hover for the range of each."
                if cut & best.keys()
                else ""
            ),
        ),
        key((REAL, "measured, with noise"), (MADE, "synthetic")),
        tag("div", figures, class_="grid"),
        tag("p", f"{more} more columns are in the list below.") if more > 0 else "",
    )


def _marginals(release: Release, recounted: Recounted) -> Markup:
    """Every measured answer: how much of it is noise, and how far the synthetic rows are from it."""
    total = max(1.0, release.model.total)
    what = _counted_in(release)
    lines = []
    listed = release.counted
    for measurement in listed[:MOST_LISTED]:
        query = measurement.query
        noise = measurement.noise.mean_absolute * query.cells / (2 * total)
        lines.append(
            [
                " × ".join(query.sizes) or "total",
                f"{query.cells:,}",
                f"± {measurement.std / release.parts:,.1f} {what}",
                _percent(noise),
                _percent(_apart(release, measurement, recounted)),
            ]
        )
    cut = len(listed) - len(lines)
    return joined(
        tag(
            "p",
            f"Expected error: the share of {what} that the noise alone would put into wrong cells, if the noisy counts "
            f"were taken as they are (half of cells × mean absolute noise / {what}). A model that reconciles all "
            "counts is usually closer to the truth. Distance: how far the synthetic rows are from the noisy counts, in "
            "the same unit; about the expected error is as it should be.",
        ),
        table(
            ["counts of", "cells", "noise per cell", "expected error", "distance of the synthetic table"],
            lines,
            figures=(1, 2, 3, 4),
        ),
        tag("p", f"{cut} more measured answers are in the release file.", class_="soft") if cut > 0 else "",
    )


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return "over 100 %" if share > 1 else f"{100 * share:.2f} %"


def _counted_in(release: Release) -> str:
    """What counts are counts of."""
    return "rows" if release.schema.linked is None else "units"


def _fits(release: Release, measurement: Measurement) -> bool:
    """Whether a query speaks of the domain as it is now: one asked before a discovery may not."""
    domain = release.model.domain
    return all(name in domain and domain[name].size == size for name, size in measurement.query.sizes.items())


def _apart(release: Release, measurement: Measurement, recounted: Recounted) -> float | None:
    """½ Σ |synthetic − measured| over the number of rows; None for answers over trees, parts of the cells, or columns
    of several tables.
    """
    query = measurement.query
    if not isinstance(query, MarginalQuery) or measurement.kept is not None or not _fits(release, measurement):
        return None
    owners = {name.partition(".")[0] for name in query.sizes} if release.schema.linked is not None else ()
    if len(owners) > 1 or not recounted.names.issuperset(query.sizes):
        return None
    total = max(1.0, release.model.total)
    (made,) = recounted.answers([query])
    values: Counts = measurement.values.astype(np.float64)
    return float(np.abs(made - values).sum()) / (2 * total)


def _method(release: Release) -> Markup:
    method = release.certificate.method
    options = [[name, str(value)] for name, value in method["options"].items()]
    return joined(
        tag("p", tag("b", method["title"]), f" ({method['name']}). ", method["argument"]),
        tag("p", "Paper: ", method["paper"]),
        tag("ul", [tag("li", "Differs from the paper: ", said) for said in method["departures"]]),
        table(["option", "value"], options) if options else "",
    )


def _certificate(release: Release) -> Markup:
    certificate = release.certificate
    stated = certificate.to_json()
    facts: list[list[str]] = [
        ["dataset", certificate.dataset or "not named"],
        ["unit of privacy", certificate.unit],
        ["neighbouring tables", stated["adjacency"]],
        [
            "parts that the rows of a unit weigh together" if certificate.tables else "rows of a person that count",
            f"{certificate.rows_per_person:,}",
        ],
        ["budget", f"ε = {certificate.budget.epsilon:g}, δ = {certificate.budget.delta:g}"],
        ["guarantee", str(certificate.guarantee) if certificate.guarantee else f"none: {certificate.void}"],
        ["accounting in", certificate.whole.currency.value],
        ["given to the run", str(certificate.whole)],
        ["spent of it", str(certificate.spent)],
        ["columns whose domain was bought", ", ".join(certificate.discovered) or "none"],
        ["ledger", f"of {certificate.ledger['dataset']}" if certificate.ledger else "none"],
        ["made with", ", ".join(f"{name} {version}" for name, version in certificate.versions.items())],
    ]
    charges = [
        [
            str(number),
            PURPOSES[charge.purpose],
            charge.mechanism,
            _asked(charge),
            f"{charge.sensitivity:.4g}",
            f"{charge.scale:.4g}",
            f"{100 * share_of_whole(charge, certificate):.3f} %",
        ]
        for number, charge in enumerate(certificate.charges, start=1)
    ]
    header = ["step", "for", "mechanism", "asked", "sensitivity", "noise scale", "of the budget"]
    return joined(
        table(["", ""], facts),
        folded(
            f"All {len(charges)} accesses to the private table",
            table(header, charges, figures=(0, 4, 5, 6), caption="In the order in which they happened"),
        ),
        tag("p", "Anyone can recompute this: ", tag("code", "hedgerow verify FILE.release"), class_="small"),
    )
