import math
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ortrim.core.measurements import VerifyReport
from ortrim.report.html import html_report

VOID = {"meta", "line", "rect", "circle"}


class Page(HTMLParser):
    """What a browser would make of the page: its tags, their attributes, its text, and whether tags match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag."""
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag that holds nothing."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost tag."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember text."""
        self.text += data


@pytest.fixture
def page(report: VerifyReport) -> Page:
    """Return the demo report's page."""
    return Page(html_report(report))


def test_the_page_asks_the_network_for_nothing(page: Page) -> None:
    """No script, no link, no source, no address in the style, and a policy that would refuse them."""
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name in {"src", "href", "xlink:href", "style", "action"}]
    assert "url(" not in page.text
    assert "@import" not in page.text
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


@pytest.mark.parametrize("chart", ["chart-total", "chart-components", "chart-memory", "chart-load", "chart-parity"])
def test_each_picture_is_there(page: Page, chart: str) -> None:
    """Size, memory, loading and parity each have their picture."""
    assert ("figure", "id", chart) in page.attributes


def test_each_case_has_its_latency_picture(page: Page) -> None:
    """Three cases give three histograms beside the five other pictures, all with a label for screen readers."""
    assert sum(value == "chart-latency" for _, _, value in page.attributes) == 3
    assert page.tags.count("svg") == 8
    assert sum(name == "aria-label" for _, name, _ in page.attributes) == 8


def test_the_figures_are_there(page: Page) -> None:
    """Sizes, ratios, budgets and differences are readable."""
    for text in ("1.59 MB", "7.7 %", "≤ 9 %", "33.9 % ± 0.1", "≈ inconclusive", "1.2e-06 of 1e-04", "framework"):
        assert text in page.text


def test_dark_and_light_are_both_drawn(report: VerifyReport) -> None:
    """The style sheet has colours for both, and pictures have none of their own."""
    text = html_report(report)
    assert "prefers-color-scheme: dark" in text
    assert "fill=" not in text
    assert "stroke=" not in text


def test_hostile_names_are_only_text(ugly_report: VerifyReport) -> None:
    """A model called `<script>` gives no script, and no attribute can be broken out of."""
    text = html_report(ugly_report)
    page = Page(text)
    assert "script" not in page.tags
    assert page.tags.count("b") == sum(value == "tile" for _, _, value in page.attributes)
    assert "<script" not in text
    assert "<b>RWE" not in text
    assert "<script>alert('1')</script>" in page.text
    assert "\x1b" not in text
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_values_that_are_no_numbers_have_no_place_in_a_picture(ugly_report: VerifyReport) -> None:
    """NaN and infinity are written as text; no coordinate is one."""
    page = Page(html_report(ugly_report))
    places = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "viewbox"}
    drawn = [value for tag, name, value in page.attributes if name in places]
    assert drawn
    assert not [value for value in drawn if "nan" in value or "inf" in value]
    assert "nan" in page.text


def test_a_difference_that_is_no_number_is_drawn_as_the_worst(report: VerifyReport) -> None:
    """NaN and infinity lie at the far right of the parity picture, beyond all that can be measured."""
    for value in (math.nan, math.inf):
        worst = replace(report.parity[0], max_absolute=value, max_relative=0.0)
        huge = replace(report.parity[1], max_absolute=1e300, max_relative=0.0)
        page = Page(html_report(replace(report, parity=(worst, huge))))
        _, broken, _, large = [float(place) for tag, name, place in page.attributes if (tag, name) == ("circle", "cx")]
        assert broken > large


def test_a_load_time_that_is_no_number_has_no_bar(report: VerifyReport) -> None:
    """A bar that cannot be drawn is left out; its text stays."""
    broken = replace(report.runs[0], load_ms=replace(report.runs[0].load_ms, p50=math.nan))
    whole, gap = (Page(html_report(replace(report, runs=(run, report.runs[1])))) for run in (report.runs[0], broken))
    assert gap.tags.count("rect") == whole.tags.count("rect") - 1
    assert "nan" in gap.text


def test_a_missing_baseline_leaves_ours(report: VerifyReport) -> None:
    """Without a baseline the pictures show ours alone, and nothing is divided by it."""
    nothing = replace(report.baseline_size, file_bytes=0, loadable_bytes=0, compressed_bytes=0)
    alone = tuple(replace(line, baseline=None, ratio=None, spread=None) for line in report.comparisons)
    ours = tuple(run for run in report.runs if run.library == "ours")
    page = Page(html_report(replace(report, baseline_size=nothing, comparisons=alone, runs=ours)))
    assert "baseline: median" not in page.text
    assert "ours: median" in page.text
    assert page.tags.count("svg") == 8


def test_a_report_of_nothing_is_a_page(empty_report: VerifyReport) -> None:
    """Without cases, runs or components each section says that there is nothing."""
    page = Page(html_report(empty_report))
    for text in ("Nothing was compared.", "Nothing was measured.", "The components are not known.", "No gates"):
        assert text in page.text


def test_identical_samples_are_one_bar(report: VerifyReport) -> None:
    """A clock too coarse to tell runs apart gives a picture, not a division by zero."""
    ours = report.runs[0]
    for value in (0.0, 1.0, 1e300):
        case = replace(ours.cases[0], samples_ms=(value,) * 5)
        page = Page(html_report(replace(report, runs=(replace(ours, cases=(case,)),))))
        assert "ours: median" in page.text


def test_only_the_worst_of_many_outputs_are_drawn(report: VerifyReport) -> None:
    """With hundreds of outputs the picture keeps the worst and says how many are only in the table."""
    many = tuple(replace(report.parity[0], output=f"o{n}", max_absolute=1e-9 * n) for n in range(300))
    page = Page(html_report(replace(report, parity=many)))
    assert "260 other outputs only in the table" in page.text
    assert page.tags.count("circle") == 2 * 40
    assert page.text.count("o299") == 3
