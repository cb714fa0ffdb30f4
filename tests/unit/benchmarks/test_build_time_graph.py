"""The graph: a picture that stands alone."""

from xml.etree import ElementTree as ET

import pytest
from build_time.graph import BOTTOM, LEFT, RIGHT, TOP, graph

SVG = "{http://www.w3.org/2000/svg}"
POINTS = ((1, 90.0), (20, 150.0), (120, 400.0), (253, 800.0))


def parsed(points: tuple[tuple[int, float], ...], upstream: float | None) -> ET.Element:
    """Return the picture's tree."""
    text = graph(points, upstream, "2 cores, <A & B>")
    assert text.endswith("\n")
    return ET.fromstring(text)  # noqa: S314 - our own


def test_the_picture_is_svg_with_its_own_style() -> None:
    """A browser and a page of documentation show it without a style sheet."""
    root = parsed(POINTS, None)
    assert root.tag == f"{SVG}svg"
    assert root[0].tag == f"{SVG}style"
    assert "prefers-color-scheme: dark" in (root[0].text or "")
    assert "<A & B>" in root.attrib["aria-label"]


def test_each_point_is_a_dot_in_its_place() -> None:
    """Right with more operators, up with more time, joined by lines."""
    root = parsed(POINTS, 1000.0)
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.iter(f"{SVG}circle")]
    assert dots == sorted(dots)
    assert [y for _, y in dots] == sorted((y for _, y in dots), reverse=True)
    assert dots[-1][0] == RIGHT
    assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in dots)
    lines = [line for line in root.iter(f"{SVG}line") if line.attrib["class"] == "ours"]
    assert len(lines) == len(POINTS) - 1


def test_upstreams_time_is_a_level_line_when_it_is_known() -> None:
    """The highest of all, as it does not depend on the operators."""
    root = parsed(POINTS, 1000.0)
    (line,) = (line for line in root.iter(f"{SVG}line") if line.attrib["class"] == "upstream")
    assert line.attrib["y1"] == line.attrib["y2"]
    assert any("upstream's recipe: 16 min 40 s" in (text.text or "") for text in root.iter(f"{SVG}text"))
    assert "upstream" not in {line.attrib["class"] for line in parsed(POINTS, None).iter(f"{SVG}line")}


@pytest.mark.parametrize("points", [((1, 90.0),), ((1, 0.0), (5, 0.0))])
def test_few_or_odd_points_are_drawn_too(points: tuple[tuple[int, float], ...]) -> None:
    """A record may hold a part only."""
    assert len(list(parsed(points, None).iter(f"{SVG}circle"))) == len(points)
