"""Charts as SVG text, drawn without a plotting library. Colours are class names; the page or
picture fills them in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

MAX_POINTS = 600
"""More points than this are averaged into as many buckets: a screen has no room for more."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over the steps; ``colour`` is a class name, ``raw`` the unsmoothed points drawn
    faintly."""

    name: str
    points: Sequence[Point]
    colour: str
    raw: Sequence[Point] = ()


@dataclass(frozen=True, slots=True)
class Whisker:
    """A measured value with its interval, drawn as a diamond on a bar."""

    x: float
    y: float
    low: float
    high: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the data lies in the picture: size in pixels, margins, and the ranges of both axes."""

    width: int
    height: int
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    left: int = 48
    right: int = 16
    top: int = 12
    bottom: int = 30

    def x(self, value: float) -> float:
        """Pixels from the left."""
        span = (self.x_high - self.x_low) or 1.0
        return self.left + (value - self.x_low) / span * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        span = (self.y_high - self.y_low) or 1.0
        share = (value - self.y_low) / span
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)


def chart(
    series: Sequence[Series],
    *,
    unit: str = "number",
    stacked: bool = False,
    low: float | None = None,
    high: float | None = None,
    whiskers: Sequence[Whisker] = (),
    size: tuple[int, int] = (560, 220),
) -> str:
    """Return an ``<svg>`` of the series over steps; empty text where there is no point.

    ``unit`` is share, number, seconds or tiny and decides how the axis is labelled. ``stacked``
    draws bands
    on top of each other, which only makes sense for parts of a whole at the same steps.
    """
    frame = _frame(series, stacked, low, high, whiskers, size)
    if frame is None:
        return ""
    body = axes(frame, unit)
    if stacked:
        body += bands(frame, series)
    else:
        for one in series:
            body += curve(frame, one)
    body += "".join(whisker(frame, w) for w in whiskers)
    return (
        f'<svg class="chart" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'data-box="{frame.left},{frame.width - frame.right},{frame.top},'
        f'{frame.height - frame.bottom}" '
        f'data-x="{frame.x_low:g},{frame.x_high:g}" data-unit="{unit}">{body}</svg>'
    )


def axes(frame: Frame, unit: str) -> str:
    """Return grid lines, tick labels and the word step."""
    parts = []
    left, right = frame.left, frame.width - frame.right
    for value in ticks(frame.y_low, frame.y_high, 4):
        y = frame.y(value)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{left - 8}" y="{y + 3.5:.1f}" text-anchor="end">'
            f"{shown(value, unit)}</text>"
        )
    base = frame.height - frame.bottom
    for value in ticks(frame.x_low, frame.x_high, 6, whole=True):
        parts.append(
            f'<text class="tick" x="{frame.x(value):.1f}" y="{base + 17}" text-anchor="middle">'
            f"{value:g}</text>"
        )
    parts.append(f'<line class="base" x1="{left}" x2="{right}" y1="{base}" y2="{base}"/>')
    parts.append(f'<text class="tick" x="{right}" y="{base + 29}" text-anchor="end">step</text>')
    return "".join(parts)


def curve(frame: Frame, one: Series, *, area: bool = False) -> str:
    """Return one line, its raw points under it, and (``area``) a wash down to the axis."""
    parts = []
    for x, y in ((frame.x(a), frame.y(b)) for a, b in thin(one.raw)):
        parts.append(f'<circle class="raw {one.colour}" cx="{x:.1f}" cy="{y:.1f}" r="1.9"/>')
    points = thin(one.points)
    path = _path(frame, points)
    if area and len(points) > 1:
        base = frame.y(max(frame.y_low, min(0.0, frame.y_high)))
        first, last = frame.x(points[0][0]), frame.x(points[-1][0])
        parts.append(
            f'<path class="wash {one.colour}" d="{path} L{last:.1f} {base:.1f} '
            f'L{first:.1f} {base:.1f} Z"/>'
        )
    parts.append(
        f'<path class="line {one.colour}" d="{path}"><title>{escape(one.name)}</title></path>'
    )
    if len(points) == 1:
        x, y = points[0]
        parts.append(
            f'<circle class="dot {one.colour}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3"/>'
        )
    return "".join(parts)


def bands(frame: Frame, series: Sequence[Series]) -> str:
    """Return the series stacked from the bottom up; all must stand at the same steps."""
    parts = []
    thinned = [thin(s.points) for s in series]
    below = [(x, 0.0) for x, _ in thinned[0]]
    for one, points in zip(series, thinned, strict=True):
        top = [(x, base + y) for (x, y), (_, base) in zip(points, below, strict=True)]
        back = " ".join(f"L{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in reversed(below))
        parts.append(
            f'<path class="band {one.colour}" d="{_path(frame, top)} {back} Z">'
            f"<title>{escape(one.name)}</title></path>"
        )
        below = top
    return "".join(parts)


def whisker(frame: Frame, w: Whisker) -> str:
    """Return a diamond with its interval."""
    x, y, low, high = frame.x(w.x), frame.y(w.y), frame.y(w.low), frame.y(w.high)
    return (
        f'<g class="held"><title>{escape(w.label)}</title>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
        f'<line x1="{x - 4:.1f}" x2="{x + 4:.1f}" y1="{low:.1f}" y2="{low:.1f}"/>'
        f'<line x1="{x - 4:.1f}" x2="{x + 4:.1f}" y1="{high:.1f}" y2="{high:.1f}"/>'
        f'<path d="M{x:.1f} {y - 6:.1f} l6 6 l-6 6 l-6 -6 Z"/></g>'
    )


def ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """Return about ``count`` round values between low and high.

    >>> ticks(0.0, 1.0, 4)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if span <= 0:
        return [low]
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.75)
    if whole:
        step = max(1.0, float(round(step)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def thin(points: Sequence[Point], limit: int = MAX_POINTS) -> list[Point]:
    """Return at most ``limit`` points, neighbours averaged; the last one stays itself."""
    points = list(points)
    if len(points) <= limit:
        return points
    out = []
    for i in range(limit - 1):
        part = points[
            i * (len(points) - 1) // (limit - 1) : (i + 1) * (len(points) - 1) // (limit - 1)
        ]
        out.append((sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)))
    return [*out, points[-1]]


def shown(value: float, unit: str) -> str:
    """Return a number as its axis shows it.

    >>> shown(0.25, "share"), shown(1200.0, "number"), shown(2e-6, "tiny")
    ('25%', '1.2k', '2e-06')
    """
    if unit == "share":
        return f"{100 * value:.3g}%"
    if unit == "seconds":
        return f"{value:.3g} s"
    if unit == "tiny":
        return "0" if value == 0 else f"{value:.1e}".replace(".0e", "e")
    return f"{value / 1000:.3g}k" if abs(value) >= 1000 else f"{value:.3g}"


def _frame(
    series: Sequence[Series],
    stacked: bool,
    low: float | None,
    high: float | None,
    whiskers: Sequence[Whisker],
    size: tuple[int, int],
) -> Frame | None:
    """Return ranges that hold everything drawn; None where there is nothing to draw."""
    xs = [x for s in series for x, _ in (*s.points, *s.raw)] + [w.x for w in whiskers]
    if not xs:
        return None
    if stacked:
        by_x: dict[float, float] = {}
        for s in series:
            for x, y in s.points:
                by_x[x] = by_x.get(x, 0.0) + y
        ys = [0.0, *by_x.values()]
    else:
        ys = [y for s in series for _, y in (*s.points, *s.raw)]
        ys += [v for w in whiskers for v in (w.low, w.high)]
    y_low = min(ys) if low is None else min(low, *ys)
    y_high = max(ys) if high is None else max(high, *ys)
    if y_high - y_low < 1e-12:
        room = abs(y_low) * 0.1 or 0.5
        y_low, y_high = (y_low if low is not None else y_low - room), y_high + room
    elif high is None:
        y_high += 0.06 * (y_high - y_low)
    return Frame(size[0], size[1], min(xs), max(xs), y_low, y_high)


def _path(frame: Frame, points: Sequence[Point]) -> str:
    return " ".join(
        f"{'L' if i else 'M'}{frame.x(x):.1f} {frame.y(y):.1f}" for i, (x, y) in enumerate(points)
    )
