"""What a synthetic table may be used for, and what not: for a reader who knows nothing of ε, from the release alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import counted, listing
from hedgerow.markup import Content, Markup, joined, tag
from hedgerow.pages.charts import heat_map
from hedgerow.pages.shell import folded, table
from hedgerow.schema.links import rows_of

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release
    from hedgerow.release.quality import Distance, Quality

HOLDS, ROUGH = 0.05, 0.1
"""A relation holds where its distance is surely at most this; beyond the second it is not to be relied on."""
MOST_NAMED = 12
MOST_DRAWN = 60
"""Columns of which a map of all pairs can still be read."""


def uses(release: Release) -> Markup:
    """The first section of a page."""
    quality = release.quality
    return joined(
        tag(
            "p",
            "Every row is made up: one that looks like somebody is not that person. What the table can tell is how "
            "common things are and how they go together, as far as the noise that protects people leaves it.",
        ),
        _unmeasured_quality(release) if quality is None else _measured(release, quality),
        _resolution(release),
        _misfitting(release),
    )


def _unmeasured_quality(release: Release) -> Content:
    pairs = _unasked(release)
    return tag(
        "p",
        tag("b", "How far it is from the private table was not measured. "),
        f"Trust the counts that are listed below with their noise, and little else: {counted(len(pairs), 'pair')} of "
        "columns were never counted together, so what the table says of them is an assumption.",
    )


def _measured(release: Release, quality: Quality) -> Content:
    """What the measured distances allow."""
    column = quality.mean_column
    if column is None or not column.tells:
        return tag(
            "p",
            tag("b", "The table is too small, or ε too strict, to tell how good it is: "),
            "the noise of that measurement is larger than anything it could show. Use the table to learn its form, to "
            "write and try programs, and for nothing else.",
        )
    said: list[Content] = [
        tag(
            "p",
            "How far it is from the private table was measured, with noise of its own (±, one standard deviation). "
            "A distance of 3 % says that no statement about these columns is off by more than 3 % of all rows.",
        ),
        tag("h3", "You may use it for"),
        tag("ul", [tag("li", each) for each in _allowed(release, quality, column)]),
        tag("h3", "Do not use it for"),
        tag("ul", [tag("li", each) for each in _denied(release, quality)]),
    ]
    if quality.subgroups:
        said.append(_subgroups(quality))
    if _clear(quality):
        said.append(_all_pairs(release, quality))
    return joined(*said)


def _subgroups(quality: Quality) -> Content:
    """The rows of each declared subgroup by themselves."""
    lines = [
        [
            f"{each.column}: {each.value}",
            f"{each.rows:,.0f}",
            each.distance.said if each.distance.tells else "too small to speak of",
        ]
        for each in quality.subgroups
    ]
    return joined(
        tag("h3", "Subgroups"),
        tag(
            "p",
            "How far the rows of each subgroup are from its private ones, as a part of its own rows, on average over "
            "the other columns. Where noise hides that, the group is too small to speak of.",
        ),
        table(["subgroup", "rows, about", "measured distance"], lines, figures=(1, 2)),
    )


def _allowed(release: Release, quality: Quality, column: Distance) -> list[Content]:
    said: list[Content] = [f"single columns (shares, means, distributions): on average {column.said} off."]
    good = sorted((each for each in _clear(quality) if each.upper <= HOLDS), key=lambda each: each.value)
    if good:
        named = listing((f"{_name(each)} ({each.said})" for each in good), MOST_NAMED)
        of_all = f"{len(good)} of {len(quality.pairs)} pairs"
        said.append(
            joined(tag("b", "relations of two columns"), f" that hold within {100 * HOLDS:g} %: {of_all}. {named}.")
        )
    pair = quality.mean_pair
    if pair is not None and pair.upper <= ROUGH:
        said.append(f"a rough picture of how two columns go together: on average over all pairs {pair.said} off.")
    wider = quality.mean_wider
    if wider is not None and wider.tells:
        said.append(f"the combinations that its makers cared for: on average {wider.said} off.")
    said.append("trying out questions and programs, before asking for access to the real rows.")
    return said


def _denied(release: Release, quality: Quality) -> list[Content]:
    said: list[Content] = []
    pair = quality.mean_pair
    if pair is not None and pair.tells and pair.upper > ROUGH:
        said.append(f"how two columns go together: on average over all pairs the table is {pair.said} off.")
    single = _clear(quality)
    bad = sorted((each for each in single if each.value > ROUGH), key=lambda each: -each.value)
    if bad:
        named = listing((f"{_name(each)} ({each.said})" for each in bad), MOST_NAMED)
        said.append(joined(tag("b", "relations that did not come through"), f": {named}."))
    elif quality.pairs and not single:
        said.append("any particular relation of two columns: which of them hold is hidden by noise.")
    unasked = _unasked(release)
    if unasked:
        how = "How wrong, the measured distances say." if single else "How wrong, nobody knows."
        named = listing((" × ".join(each) for each in unasked), MOST_NAMED)
        said.append(
            joined(
                tag("b", "relations that nobody measured"),
                f": {counted(len(unasked), 'pair')} of columns were never counted together: {named}. What the table "
                f"says of them is an assumption. {how}",
            )
        )
    if pair is not None and pair.tells:
        share = max(pair.upper, 0.0)
        rows = f"{share * release.model.total / release.parts:,.0f}"
        what = "rows" if release.schema.linked is None else "units"
        said.append(
            f"groups that are described by two columns and make up less than about {100 * share:.1f} % of the {what} "
            f"(some {rows} of them): an error of that size can be all there is of them. Of three columns, expect worse."
        )
    said.append("finding, counting or ruling out single people or rare combinations.")
    return said


def _all_pairs(release: Release, quality: Quality) -> Content:
    """A map of all pairs, or a list where there are too many."""
    names = list(release.encoding.domain.names)
    if len(names) <= MOST_DRAWN and release.schema.linked is None:
        place = {name: index for index, name in enumerate(names)}
        at = {(place[b], place[a]): each for each in quality.pairs for a, b in [each.attributes]}
        order = "the darker, the further off"
        drawn: Content = heat_map(
            names,
            {where: max(0.0, each.value) for where, each in at.items()},
            {where: f"{_name(each)}: {each.said}" for where, each in at.items()},
            "Measured distance of every pair of columns",
            most=max(ROUGH, max((each.value for each in quality.pairs), default=0.0)),
        )
    else:
        order = "the furthest off first"
        worst = sorted(quality.pairs, key=lambda each: -each.value)[:200]
        drawn = table(["columns", "measured distance"], [[_name(each), each.said] for each in worst], figures=(1,))
    return folded(f"Every pair of columns: {order}", tag("figure", drawn))


def _resolution(release: Release) -> Content:
    """How finely columns are told apart, and how well each is known."""
    measured = {} if release.quality is None else {each.attributes[0]: each for each in release.quality.columns}
    lines = []
    for name in _written(release):
        attribute, distance = release.encoding.domain[name], measured.get(name)
        lines.append([attribute.name, f"{attribute.size:,}", "–" if distance is None else distance.said])
    return folded(
        "How fine each column is",
        tag(
            "p",
            "A column is told apart in so many values or bins. Inside a bin values are spread by rule, not by what was "
            "there: trust nothing finer.",
        ),
        table(["column", "values or bins", "measured distance"], lines, figures=(1, 2)),
    )


def _misfitting(release: Release) -> Content:
    seen = [] if release.misfits is None else release.misfits.seen
    if not seen:
        return ""
    named = listing((f"{each.column} ({each.said})" for each in seen), MOST_NAMED)
    return tag("p", f"Values that fitted nothing declared are not in the table; they were replaced or moved: {named}.")


def _clear(quality: Quality) -> list[Distance]:
    """The pairs that can be told one by one: their noise is well below what makes a relation hold."""
    return [each for each in quality.pairs if each.std <= HOLDS / 2]


def _unasked(release: Release) -> Sequence[tuple[str, str]]:
    """Pairs of attributes that no noisy answer holds together."""
    asked = set()
    for measurement in release.counted:
        query = measurement.query
        if isinstance(query, MarginalQuery):
            asked |= set(combinations(sorted(query.attributes), 2))
    names = _written(release)
    near = {frozenset([name, link.parent or name]) for name, link in release.schema.tables.items()}
    return [
        pair
        for pair in combinations(names, 2)
        if tuple(sorted(pair)) not in asked
        if not near or len(owners := {name.partition(".")[0] for name in pair}) == 1 or owners in near
    ]


def _written(release: Release) -> list[str]:
    """The attributes of what stands in the rows that are drawn, and how many rows of other tables hang on them."""
    links, encoding = release.schema.linked, release.encoding
    if links is None:
        return list(encoding.domain.names)
    told = {rows_of(links.parent(name), name) for name in links.names[1:]}
    columns = (name for name in encoding.columns if name not in release.schema.generated or name in told)
    return [attribute for name in columns for attribute in encoding.attributes_of(name)]


def _name(distance: Distance) -> str:
    return " × ".join(distance.attributes)
