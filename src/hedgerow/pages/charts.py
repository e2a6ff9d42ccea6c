"""Pictures as small pure functions: numbers in, SVG out. Colours are named by the style sheet and safe for the
colour-blind (after Okabe and Ito); every mark says its value on hover, and whoever calls puts a table beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.markup import Content, Markup, tag

CHARACTER, CAPITAL = 6.6, 8.2
"""Widths of a small letter and of a capital of the charts' font, about."""
SERIES = 8
WIDTH = 760
"""Of a picture with axes."""
REAL, MADE = "var(--real)", "var(--made)"


@dataclass(frozen=True)
class Bar:
    """One value of a distribution: its name and the height of each series; a whisker where it is uncertain."""

    label: str
    heights: tuple[float, ...]
    tip: str
    whisker: float | None = None
    """Half the length of an error bar around the first height."""


@dataclass(frozen=True)
class Spread:
    """A point of a curve: where, the middle of several runs, and from where to where they go."""

    x: float
    middle: float
    low: float
    high: float
    tip: str


def colour(series: int) -> str:
    return f"var(--series-{series % SERIES})"


def shortened(text: str, most: int) -> str:
    """The text, cut in the middle where it is too long: long names often differ at their ends."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def text_width(text: str) -> float:
    """How wide a label will be, about."""
    return sum(CAPITAL if letter.isupper() or letter in "mw%@…" else CHARACTER for letter in text)


def fitted(text: str, width: float) -> str:
    """The text, shortened until it fits."""
    most = len(text)
    while most > 3 and text_width(shortened(text, most)) > width:
        most -= 1
    return shortened(text, most)


def key(*entries: tuple[str, str]) -> Markup:
    """Which colour is what: (colour, name) one after the other."""
    swatches: list[str | Markup] = []
    for fill, name in entries:
        square = tag("rect", width="11", height="11", y="1", rx="2", fill=fill)
        swatches.append(tag("svg", square, width="14", height="12", aria_hidden="true", class_="swatch"))
        swatches.append(tag("span", name))
    return tag("div", swatches, class_="legend")


def rows_of_bars(bars: Sequence[Bar], fills: Sequence[str], title: str, width: int = 340) -> Markup:
    """Horizontal bars with their names at the left: for few values, whose names may be long."""
    left = min(0.45 * width, max((text_width(bar.label) for bar in bars), default=0.0) + 8)
    thick = 9.0
    pitch = thick * len(fills) + 7
    most = _largest(bars)
    marks: list[Content] = []
    for index, bar in enumerate(bars):
        top = index * pitch + 4
        label = fitted(bar.label, left - 6)
        middle = top + (pitch - 7) / 2 + 4
        drawn: list[Markup] = [tag("text", label, x=left - 6, y=middle, text_anchor="end")]
        for nth, (height, fill) in enumerate(zip(bar.heights, fills, strict=True)):
            length = (width - left - 4) * max(0.0, height) / most
            drawn.append(tag("rect", x=left, y=top + nth * thick, width=length, height=thick - 1, fill=fill))
        if bar.whisker is not None:
            drawn.append(_whisker(bar, left, (width - left - 4) / most, top + (thick - 1) / 2))
        hit = tag("rect", x="0", y=top - 3, width=float(width), height=pitch, fill="transparent")
        marks.append(tag("g", drawn, hit, data_tip=bar.tip))
    axis = tag("line", x1=left, y1="0", x2=left, y2=len(bars) * pitch + 2, class_="axis")
    return _svg(title, width, len(bars) * pitch + 4, [*marks, axis])


def columns_of_bars(bars: Sequence[Bar], fills: Sequence[str], title: str, ordered: int, width: int = 340) -> Markup:
    """Upright bars side by side: for many values in their order.

    The first, the middle and the last of the `ordered` bars are named; those after them say their name on hover.
    """
    height, bottom = 118.0, 18.0
    most = _largest(bars)
    slot = width / max(len(bars), 1)
    marks: list[Content] = []
    for index, bar in enumerate(bars):
        thick = 0.86 * slot / len(fills)
        drawn: list[Markup] = []
        for nth, (value, fill) in enumerate(zip(bar.heights, fills, strict=True)):
            tall = height * max(0.0, value) / most
            x = index * slot + 0.07 * slot + nth * thick
            drawn.append(tag("rect", x=x, y=height - tall, width=max(thick, 0.6), height=tall, fill=fill))
        if bar.whisker is not None:
            x = index * slot + 0.07 * slot + thick / 2
            ends = [height - height * max(0.0, bar.heights[0] + side * bar.whisker) / most for side in (-1, 1)]
            drawn.append(tag("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_="axis"))
        hit = tag("rect", x=index * slot, y="0", width=slot, height=height, fill="transparent")
        marks.append(tag("g", drawn, hit, data_tip=bar.tip))
    names = _end_names([bar.label for bar in bars[:ordered]], ordered * slot, height + 14)
    axis = tag("line", x1="0", y1=height, x2=str(width), y2=height, class_="axis")
    return _svg(title, width, height + bottom, [*marks, axis, *names])


def heat_map(
    names: Sequence[str],
    values: Mapping[tuple[int, int], float],
    tips: Mapping[tuple[int, int], str],
    title: str,
    *,
    most: float,
) -> Markup:
    """A triangle of cells (row, column ≤ row), the stronger the larger; minus and plus have colours of their own.

    Column names stand on the diagonal. Cells can be reached by keyboard (arrow keys from the first one).
    """
    cell = max(9.0, min(34.0, 640 / max(len(names), 1)))
    longest = min(160.0, max((text_width(name) for name in names), default=1.0))
    left = longest + 10
    top = 0.78 * left
    drawn: list[Content] = []
    for index, name in enumerate(names):
        label = fitted(name, longest)
        drawn.append(tag("text", label, x=left - 5, y=top + (index + 0.5) * cell + 4, text_anchor="end"))
        turn = f"translate({left + (index + 0.5) * cell + 4:.1f},{top + index * cell - 4:.1f}) rotate(-50)"
        drawn.append(tag("text", label, transform=turn))
    side = f"{cell - 1:.1f}"
    for nth, (row, column) in enumerate(sorted(values)):
        value = values[row, column]
        strength = 0.0 if most <= 0 else min(1.0, abs(value) / most)
        drawn.append(
            tag(
                "rect",
                x=left + column * cell,
                y=top + row * cell,
                width=side,
                height=side,
                fill="var(--plus)" if value >= 0 else "var(--minus)",
                fill_opacity=f"{0.04 + 0.96 * strength:.2f}",
                tabindex="-1" if nth else "0",
                role="img",
                aria_label=tips[row, column],
                data_tip="",
                data_cell=f"{row},{column}",
            )
        )
    whole = len(names) * cell
    return _svg(title, left + whole + 0.62 * left, top + whole + 4, drawn, role="group")


def stacked(parts: Sequence[tuple[float, str, str]], title: str, width: int = 900) -> Markup:
    """One bar cut into parts: (size, colour, what to say)."""
    whole = sum(size for size, _, _ in parts) or 1.0
    drawn: list[Content] = []
    x = 0.0
    for size, fill, tip in parts:
        wide = width * size / whole
        gap = 1.0 if wide > 3 else 0.0
        drawn.append(tag("rect", x=x, y="0", width=max(wide - gap, 0.2), height="34", fill=fill, data_tip=tip))
        x += wide
    for quarter in range(5):
        anchor = "start" if quarter == 0 else "end" if quarter == 4 else "middle"
        drawn.append(tag("text", f"{25 * quarter} %", x=width * quarter / 4, y="50", text_anchor=anchor))
    return _svg(title, width, 56, drawn)


def curves(
    series: Mapping[str, Sequence[Spread]], levels: Mapping[str, float], title: str, x_title: str, y_title: str
) -> Markup:
    """A curve for each name over a logarithmic x, with a bar from the lowest to the highest run at every point.

    `levels` are dashed lines, for what does not depend on x.
    """
    points = [point for each in series.values() for point in each]
    reach = [*(end for point in points for end in (point.low, point.high)), *levels.values()]
    frame = _Frame([point.x for point in points], reach, WIDTH, x_title, y_title)
    drawn: list[Content] = [*frame.axes()]
    ends: list[tuple[float, str, str]] = []
    for name, level in levels.items():
        y = frame.y(level)
        said: dict[str, str] = {"stroke": "var(--frame)", "stroke_dasharray": "5 4", "stroke_width": "1.5"}
        drawn.append(tag("line", x1=frame.left, x2=frame.right, y1=y, y2=y, data_tip=f"{name}: {level:.4g}", **said))
        ends.append((y, name, "var(--frame)"))
    for nth, (name, spreads) in enumerate(series.items()):
        fill = colour(nth)
        middles = [(frame.x(each.x), frame.y(each.middle)) for each in spreads]
        path = " ".join(f"{'M' if not step else 'L'}{x:.1f},{y:.1f}" for step, (x, y) in enumerate(middles))
        drawn.append(tag("path", d=path, fill="none", stroke=fill, stroke_width="2"))
        for spread, (x, y) in zip(spreads, middles, strict=True):
            low, high = frame.y(spread.low), frame.y(spread.high)
            drawn.append(tag("line", x1=x, x2=x, y1=low, y2=high, stroke=fill, stroke_width="2", stroke_opacity="0.5"))
            drawn.append(_dot(nth, x, y, fill, spread.tip))
        if middles:
            ends.append((middles[-1][1], name, fill))
    return _svg(title, WIDTH, frame.height, [*drawn, *_named_ends(ends, frame.right + 8)])


def scatter(series: Mapping[str, Sequence[tuple[float, float, str]]], title: str, x_title: str, y_title: str) -> Markup:
    """Dots (x, y, what to say), one colour and shape for each name, both axes logarithmic where that helps."""
    points = [point for each in series.values() for point in each]
    frame = _Frame([x for x, _, _ in points], [y for _, y, _ in points], WIDTH, x_title, y_title)
    drawn: list[Content] = [*frame.axes()]
    ends = []
    for nth, (name, dots) in enumerate(series.items()):
        drawn += [_dot(nth, frame.x(x), frame.y(y), colour(nth), tip) for x, y, tip in dots]
        if dots:
            ends.append((frame.y(dots[-1][1]), name, colour(nth)))
    return _svg(title, WIDTH, frame.height, [*drawn, *_named_ends(ends, frame.right + 8)])


class _Frame:
    """Axes: both logarithmic, as errors, times and budgets go over several powers of ten."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float], width: int, x_title: str, y_title: str):
        self.left, self.right, self.top, self.bottom = 58.0, width - 150.0, 24.0, 262.0
        self.height = 306
        self._titles = x_title, y_title
        self._x_ends = _ends([x for x in xs if x > 0])
        self._y_ends = _ends([y for y in ys if y > 0])

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * _share(value, self._x_ends)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * _share(value, self._y_ends)

    def axes(self) -> list[Markup]:
        drawn = []
        for tick in _ticks(self._y_ends):
            y = self.y(tick)
            drawn.append(tag("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="rule"))
            drawn.append(tag("text", f"{tick:g}", x=self.left - 6, y=y + 4, text_anchor="end"))
        for tick in _ticks(self._x_ends):
            x = self.x(tick)
            drawn.append(tag("line", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 4, class_="axis"))
            drawn.append(tag("text", f"{tick:g}", x=x, y=self.bottom + 17, text_anchor="middle"))
        drawn.append(tag("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis"))
        middle = (self.left + self.right) / 2
        drawn.append(tag("text", self._titles[0], x=middle, y=self.bottom + 36, text_anchor="middle", class_="strong"))
        drawn.append(tag("text", self._titles[1], x="0", y="12", class_="strong"))
        return drawn


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of a logarithmic axis, a little wider than the values."""
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    room = max((high / low) ** 0.06, 1.15)
    return low / room, high * room


def _share(value: float, ends: tuple[float, float]) -> float:
    return math.log(max(value, ends[0]) / ends[0]) / math.log(ends[1] / ends[0])


def _ticks(ends: tuple[float, float]) -> list[float]:
    """Round numbers inside: powers of ten, with 2 and 5 between where there are few, else 1 … 9."""
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), tuple(map(float, range(1, 10)))):
        powers = range(math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1])) + 1)
        found = [step * 10.0**power for power in powers for step in steps]
        inside = [float(f"{tick:.6g}") for tick in found if ends[0] <= tick <= ends[1]]
        if len(inside) >= 3:
            return inside
    return inside or [float(f"{(ends[0] * ends[1]) ** 0.5:.2g}")]


def _dot(series: int, x: float, y: float, fill: str, tip: str) -> Markup:
    """A mark whose shape, like its colour, tells the series."""
    shape = series % 4
    said: dict[str, str] = {"fill": fill, "tabindex": "0", "role": "img", "aria_label": tip, "data_tip": tip}
    if shape == 0:
        return tag("circle", cx=x, cy=y, r="5", **said)
    if shape == 1:
        return tag("rect", x=x - 4.5, y=y - 4.5, width="9", height="9", **said)
    corners = [(0, -6), (6, 5), (-6, 5)] if shape == 2 else [(0, -6.5), (6.5, 0), (0, 6.5), (-6.5, 0)]
    return tag("polygon", points=" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners), **said)


def _named_ends(ends: Sequence[tuple[float, str, str]], x: float) -> list[Markup]:
    """Names beside the last points, moved apart so that none covers another."""
    drawn = []
    last = -math.inf
    for y, name, fill in sorted(ends):
        last = max(y + 4, last + 15)
        drawn.append(tag("text", shortened(name, 20), x=x, y=last, class_="strong"))
        drawn.append(tag("line", x1=x - 6, x2=x - 2, y1=last - 4, y2=last - 4, stroke=fill, stroke_width="3"))
    return drawn


def _end_names(labels: Sequence[str], width: float, y: float) -> list[Markup]:
    """Where the line begins, where it ends and, where there is room, its middle; of a range its near end."""
    if not labels:
        return []
    ends = [(labels[0].split(" – ")[0], 0.0, "start")]
    if len(labels) > 1:
        ends.append((labels[-1].split(" – ")[-1], width, "end"))
    if len(labels) > 4:
        middle = len(labels) // 2
        ends.insert(1, (labels[middle].split(" – ")[0], width * (middle + 0.5) / len(labels), "middle"))
    room = width / len(ends) - 8
    return [tag("text", fitted(label, room), x=x, y=y, text_anchor=anchor) for label, x, anchor in ends]


def _largest(bars: Sequence[Bar]) -> float:
    """What the longest bar stands for, whiskers included."""
    ends = [bar.heights[0] + bar.whisker for bar in bars if bar.whisker is not None]
    return max([*ends, *(height for bar in bars for height in bar.heights), 1e-12])


def _whisker(bar: Bar, left: float, scale: float, y: float) -> Markup:
    assert bar.whisker is not None
    low = left + scale * max(0.0, bar.heights[0] - bar.whisker)
    high = left + scale * max(0.0, bar.heights[0] + bar.whisker)
    return tag("line", x1=low, x2=high, y1=y, y2=y, class_="axis")


def _svg(title: str, width: float, height: float, content: Sequence[Content], role: str = "img") -> Markup:
    return tag(
        "svg",
        *content,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role=role,
        aria_label=title,
    )


def standing_alone(pictures: Sequence[Markup]) -> str:
    """Pictures under one another as one SVG document, with the colours that pages give them."""
    heights = [float(re.findall(r'height="(\d+)"', str(picture))[0]) for picture in pictures]
    placed = [
        str(picture).replace("<svg ", f'<svg y="{sum(heights[:number]):.0f}" ', 1)
        for number, picture in enumerate(pictures)
    ]
    sheet = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    style = "\n".join([sheet.partition("@media")[0], *re.findall(r"^svg (?:text|\.).*", sheet, re.M)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{sum(heights):.0f}" font-family="sans-serif">'
        f"<style>{style}</style>{''.join(placed)}</svg>\n"
    )
