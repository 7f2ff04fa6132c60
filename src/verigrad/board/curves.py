"""Curves drawn with characters: a Braille plot (two by four dots a cell) and a one-line
sparkline."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.text import Text

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Return the last values as bars between their own least and greatest, at most ``width``
    cells."""
    shown = _squeeze(values, width)
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    if high == low:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(7, int(8 * (v - low) / (high - low)))] for v in shown)


def braille_plot(
    raw: Sequence[float], line: Sequence[float], *, width: int, height: int, low: float, high: float
) -> list[Text]:
    """Return ``height`` rows of ``width`` cells: ``raw`` as faint dots, ``line`` joined and bright
    over it."""
    faint, bright = _Grid(width, height), _Grid(width, height)
    span = (high - low) or 1.0
    columns, rows = 2 * width, 4 * height

    def place(index: int, total: int, value: float) -> tuple[int, int]:
        x = round(index * (columns - 1) / max(1, total - 1)) if total > 1 else 0
        share = min(1.0, max(0.0, (value - low) / span))
        return x, round((1 - share) * (rows - 1))

    for i, value in enumerate(raw):
        faint.set(*place(i, len(raw), value))
    points = [place(i, len(line), v) for i, v in enumerate(line)]
    for a, b in itertools.pairwise(points):
        bright.join(a, b)
    if len(points) == 1:
        bright.set(*points[0])
    return [_row(faint.cells[r], bright.cells[r]) for r in range(height)]


class _Grid:
    """A field of Braille dots."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[0] * width for _ in range(height)]
        self._size = (2 * width, 4 * height)

    def set(self, x: int, y: int) -> None:
        if 0 <= x < self._size[0] and 0 <= y < self._size[1]:
            self.cells[y // 4][x // 2] |= _DOTS[y % 4][x % 2]

    def join(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        steps = max(abs(a[0] - b[0]), abs(a[1] - b[1]), 1)
        for i in range(steps + 1):
            self.set(
                round(a[0] + (b[0] - a[0]) * i / steps), round(a[1] + (b[1] - a[1]) * i / steps)
            )


def _row(faint: Sequence[int], bright: Sequence[int]) -> Text:
    text = Text(no_wrap=True)
    for dim, full in zip(faint, bright, strict=True):
        if full:
            text.append(chr(0x2800 + (full | dim)), style="bold cyan")
        elif dim:
            text.append(chr(0x2800 + dim), style="bright_black")
        else:
            text.append(" ")
    return text


def _squeeze(values: Sequence[float], width: int) -> list[float]:
    """Return at most ``width`` values, neighbours averaged."""
    values = list(values)
    if len(values) <= width:
        return values
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
