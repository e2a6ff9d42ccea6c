"""Small-multiple charts as SVG text: steps in a grid, lines over a common logarithmic scale. No dependency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito's, for every eye
AREA, TEXT = "#bdbdbd", "#57606a"
LEFT, TOP, GAP = 46, 46, 8


@dataclass(frozen=True)
class Panel:
    """One small chart: a title, and one list of values for each series."""

    title: str
    series: Sequence[Sequence[float]]


def steps(title: str, names: Sequence[str], panels: Sequence[Panel], across: int, size: tuple[int, int]) -> str:
    """Shares as steps: the first series as a grey area, the others as lines over it; one scale for all panels."""
    width, height = size
    most = max(value for panel in panels for series in panel.series for value in series)
    parts = []
    for number, panel in enumerate(panels):
        shapes = []
        for index, series in enumerate(panel.series):
            step = max(1, width // len(series))
            line = "".join(f"V{round(height * (1 - value / most))}h{step}" for value in series)
            style = f'fill="{AREA}"' if index == 0 else f'class="l" stroke="{COLOURS[index - 1]}"'
            shapes.append(f'<path {style} d="M0 {height}{line}V{height}"/>')
        parts.append(_placed(number, across, size, _head(panel.title) + "".join(shapes) + _base(size)))
    parts += [
        _text(LEFT - 4, TOP + row * (height + 14 + GAP) + 14 + 8, _number(most), "e")
        for row in range(_rows(panels, across))
    ]
    return _svg(title, names, [AREA, *COLOURS], parts, across, _rows(panels, across), size)


def lines(
    title: str, names: Sequence[str], panels: Sequence[Panel], ticks: Sequence[str], across: int, size: tuple[int, int]
) -> str:
    """Lines over the same ticks, on one logarithmic scale for all panels."""
    width, height = size
    values = [value for panel in panels for series in panel.series for value in series if value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    parts = []
    for number, panel in enumerate(panels):
        shapes = [_head(panel.title), _base(size)]
        for index, series in enumerate(panel.series):
            points = [
                (
                    round(width * (spot + 0.5) / len(ticks), 1),
                    round(height * (high - math.log10(max(value, 10.0**low))) / (high - low), 1),
                )
                for spot, value in enumerate(series)
            ]
            path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
            shapes.append(f'<path class="l" stroke="{COLOURS[index % len(COLOURS)]}" d="{path}"/>')
        shapes += [
            _text(round(width * (spot + 0.5) / len(ticks)), height + 11, tick, "m") for spot, tick in enumerate(ticks)
        ]
        parts.append(_placed(number, across, size, "".join(shapes)))
    for row in range(_rows(panels, across)):
        top = TOP + row * (height + 14 + GAP) + 14
        parts += [_text(LEFT - 4, top + 8, f"1e{high}", "e"), _text(LEFT - 4, top + height, f"1e{low}", "e")]
    return _svg(title, names, COLOURS, parts, across, _rows(panels, across), size)


def histogram(
    title: str, counts: Sequence[int], edges: Sequence[float], marks: Sequence[tuple[float, str]], size: tuple[int, int]
) -> str:
    """Counts on a logarithmic scale over logarithmic bins, with marked values."""
    width, height = size
    most = math.log10(max(counts))
    begin, end = math.log10(edges[0]), math.log10(edges[-1])

    def across(value: float) -> float:
        return round(width * (math.log10(value) - begin) / (end - begin), 1)

    step = width / len(counts)
    line = "".join(f"V{round(height * (1 - math.log10(max(count, 1)) / most))}h{step:g}" for count in counts)
    shapes = [f'<path fill="{AREA}" d="M0 {height}{line}V{height}"/>', _base(size)]
    for index, (value, _) in enumerate(marks):
        shapes.append(f'<path class="l" stroke="{COLOURS[index]}" d="M{across(value):g} 0V{height}"/>')
    for power in range(round(begin), round(end) + 1):
        shapes.append(_text(round(across(10.0**power)), height + 11, f"1e{power}", "m"))
    parts = [_placed(0, 1, size, "".join(shapes))]
    parts += [_text(LEFT - 4, TOP + 22, f"{max(counts):,}", "e"), _text(LEFT - 4, TOP + 14 + height, "1", "e")]
    names = ["rows × trees", *(name for _, name in marks)]
    return _svg(title, names, [AREA, *COLOURS], parts, 1, 1, size)


def _placed(number: int, across: int, size: tuple[int, int], inside: str) -> str:
    x = LEFT + number % across * (size[0] + GAP)
    y = TOP + 14 + number // across * (size[1] + 14 + GAP)
    return f'<g transform="translate({x},{y})">{inside}</g>'


def _head(title: str) -> str:
    return f'<text y="-3">{escape(title)}</text>'


def _base(size: tuple[int, int]) -> str:
    return f'<path class="b" d="M0 {size[1]}h{size[0]}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:.2g}"


def _rows(panels: Sequence[Panel], across: int) -> int:
    return -(-len(panels) // across)


def _svg(
    title: str,
    names: Sequence[str],
    colours: Sequence[str],
    parts: Sequence[str],
    across: int,
    down: int,
    size: tuple[int, int],
) -> str:
    width = LEFT + across * (size[0] + GAP) + 8
    height = TOP + down * (size[1] + 14 + GAP) + 14
    legend, x = [], LEFT
    for name, colour in zip(names, colours, strict=False):
        legend.append(f'<rect x="{x}" y="26" width="10" height="10" fill="{colour}"/>' + _text(x + 14, 35, name, "n"))
        x += 30 + 6 * len(name)
    width = max(width, x, LEFT + 7 * len(title))
    style = (
        f"text{{font:10px sans-serif;fill:{TEXT}}}.t{{font-size:13px}}.n{{font-size:11px}}.e{{text-anchor:end}}"
        f".m{{text-anchor:middle}}.l{{fill:none;stroke-width:1.2}}.b{{fill:none;stroke:{TEXT};stroke-width:.5}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<title>{escape(title)}</title><style>{style}</style>"
        f'<rect width="{width}" height="{height}" fill="#fff"/>{_text(LEFT, 15, title, "t")}{"".join(legend)}\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
