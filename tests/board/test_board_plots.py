"""Charts: whole XML, the data at the right pixels, ticks that are round."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from verigrad.board.curves import braille_plot, sparkline
from verigrad.board.picture import heldout_whiskers, reward_picture
from verigrad.board.plots import Frame, Series, Whisker, chart, shown, thin, ticks
from verigrad.errors import RunDirectoryError
from verigrad.runlog import RunReader


def test_a_frame_maps_the_corners_of_the_data() -> None:
    frame = Frame(100, 60, 0.0, 10.0, 0.0, 2.0, left=10, right=10, top=5, bottom=15)
    assert (frame.x(0.0), frame.x(10.0)) == (10.0, 90.0)
    assert (frame.y(0.0), frame.y(2.0)) == (45.0, 5.0)


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (0.0, 1.0, 4, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 60.0, 6, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
        (3.0, 3.0, 4, [3.0]),
    ],
)
def test_ticks_are_round(low: float, high: float, count: int, expected: list[float]) -> None:
    assert ticks(low, high, count) == pytest.approx(expected)


def test_step_ticks_are_whole_numbers() -> None:
    assert ticks(1.0, 3.0, 6, whole=True) == [1.0, 2.0, 3.0]


def test_numbers_read_as_their_unit() -> None:
    assert shown(0.255, "share") == "25.5%"
    assert shown(2.5, "seconds") == "2.5 s"
    assert shown(1500.0, "number") == "1.5k"
    assert shown(0.0, "tiny") == "0"


def test_a_chart_escapes_names_and_is_whole_xml() -> None:
    svg = chart([Series("a<b>&", [(1, 0.1), (2, 0.4)], "c1")], whiskers=[Whisker(2, 0.3, 0.2, 0.5)])
    titles = [e.text for e in ET.fromstring(svg).iter("title")]
    assert "a<b>&" in titles


def test_a_chart_of_nothing_is_nothing() -> None:
    assert chart([Series("x", [], "c1")]) == ""


@pytest.mark.parametrize("values", [[(1.0, 0.5)], [(1.0, 0.0), (2.0, 0.0)]])
def test_one_point_and_a_constant_line_are_drawn(values: list[tuple[float, float]]) -> None:
    svg = chart([Series("x", values, "c1")])
    assert "nan" not in svg
    ET.fromstring(svg)


def test_stacked_bands_lie_on_each_other() -> None:
    lower, upper = (
        Series("a", [(0, 0.25), (1, 0.25)], "c1"),
        Series("b", [(0, 0.75), (1, 0.75)], "c2"),
    )
    svg = chart([lower, upper], stacked=True, low=0.0, high=1.0, size=(164, 142))
    paths = [e.get("d", "") for e in ET.fromstring(svg).iter("path")]
    # Plot box: x 48 to 148, y 12 (1.0) to 112 (0.0).
    assert paths[0].startswith("M48.0 87.0 L148.0 87.0 L148.0 112.0")
    assert paths[1].startswith("M48.0 12.0 L148.0 12.0 L148.0 87.0")


def test_long_curves_are_thinned_and_keep_their_last_point() -> None:
    points = [(float(i), float(i % 2)) for i in range(5001)]
    few = thin(points, 100)
    assert len(few) == 100
    assert few[-1] == points[-1]
    assert few[10][1] == pytest.approx(0.5, abs=0.02)


def test_the_reward_picture_stands_alone(finished: RunReader) -> None:
    svg = reward_picture(finished)
    root = ET.fromstring(svg)
    text = " ".join(e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "30% → 78%" in text
    assert "A tiny model learns" in text
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_no_picture_of_a_run_without_steps(empty: RunReader) -> None:
    with pytest.raises(RunDirectoryError, match="no step yet"):
        reward_picture(empty)


def test_the_base_model_is_not_drawn_where_a_cold_start_was_measured() -> None:
    base = {"pass_at_1": 0.1, "low": 0.0, "high": 0.2}
    both = heldout_whiskers(
        {"before": base, "after-cold-start": {**base, "pass_at_1": 0.3}}, last=5
    )
    assert [w.y for w in both] == [0.3]
    assert [w.y for w in heldout_whiskers({"before": base}, last=5)] == [0.1]


def test_a_sparkline_spans_its_own_range() -> None:
    assert sparkline([0.0, 1.0]) == "▁█"
    assert sparkline([2.0, 2.0, 2.0]) == "▁▁▁"
    assert len(sparkline([float(i) for i in range(100)], width=10)) == 10
    assert sparkline([]) == ""


def test_a_braille_plot_climbs_from_corner_to_corner() -> None:
    rows = braille_plot([], [0.0, 1.0], width=4, height=2, low=0.0, high=1.0)
    assert [len(r.plain) for r in rows] == [4, 4]
    assert rows[0].plain[:2] == "  "
    assert rows[0].plain[3] != " "
    assert rows[1].plain[0] != " "
