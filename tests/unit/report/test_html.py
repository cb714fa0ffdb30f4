import math
from dataclasses import replace

import pytest

from html_pages import HtmlPage as Page
from ortrim.report.html import html_report
from ortrim.verify.reports import VerifyReport
from sample_reports import on_device


@pytest.fixture
def page(report: VerifyReport) -> Page:
    return Page(html_report(report))


def test_the_page_asks_the_network_for_nothing(page: Page) -> None:
    """No script, no link, no source, no address in a style, and a policy that would refuse them."""
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name in {"src", "href", "xlink:href", "action"}]
    assert {value.split()[0] for _, name, value in page.attributes if name == "style"} == {"flex-grow:"}
    assert "url(" not in page.text
    assert "@import" not in page.text
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


@pytest.mark.parametrize(
    "chart", ["chart-total", "chart-components", "chart-treemap", "chart-memory-1", "chart-load-1", "chart-parity-1"]
)
def test_each_picture_is_there(page: Page, chart: str) -> None:
    assert ("figure", "id", chart) in page.attributes


def test_each_case_has_its_latency_picture(page: Page) -> None:
    """Three cases give three histograms beside the other pictures, all with a label for screen readers."""
    assert sum(value == "chart-latency" for _, _, value in page.attributes) == 3
    assert page.tags.count("svg") == 8
    assert sum(name == "aria-label" for _, name, _ in page.attributes) == 9


def test_the_figures_are_there(page: Page) -> None:
    for text in ("1.59 MB", "7.7 %", "≤ 9 %", "33.9 % ± 0.1", "≈ inconclusive", "1.2e-06 of 1e-04", "framework"):
        assert text in page.text


def test_dark_and_light_are_both_drawn(report: VerifyReport) -> None:
    """The style sheet has colours for both, and pictures have none of their own."""
    text = html_report(report)
    assert "prefers-color-scheme: dark" in text
    assert "fill=" not in text
    assert "stroke=" not in text


def test_hostile_names_are_only_text(ugly_reports: tuple[VerifyReport, ...]) -> None:
    """A model called `<script>` gives no script, and no attribute can be broken out of, beside other devices either."""
    for report in ugly_reports:
        text = html_report(report)
        page = Page(text)
        assert "script" not in page.tags
        assert page.tags.count("b") == sum(value == "tile" for _, _, value in page.attributes)
        assert "<script" not in text
        assert "<b>RWE" not in text
        assert "<script>alert('1')</script>" in page.text
        assert "\x1b" not in text
        assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_values_that_are_no_numbers_have_no_place_in_a_picture(ugly_report: VerifyReport) -> None:
    page = Page(html_report(ugly_report))
    places = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "viewbox"}
    drawn = [value for tag, name, value in page.attributes if name in places]
    assert drawn
    assert not [value for value in drawn if "nan" in value or "inf" in value]
    assert "nan" in page.text


def test_a_difference_that_is_no_number_is_drawn_as_the_worst(report: VerifyReport) -> None:
    """NaN and infinity lie at the far right of the parity picture, beyond all that can be measured."""
    for value in (math.nan, math.inf):
        first, second, *_ = report.devices[0].parity
        worst = replace(first, difference=value, rms=None)
        huge = replace(second, difference=1e300, rms=None)
        page = Page(html_report(on_device(report, parity=(worst, huge))))
        broken, large = [float(place) for tag, name, place in page.attributes if (tag, name) == ("circle", "cx")]
        assert broken > large


def test_a_load_time_that_is_no_number_has_no_bar(report: VerifyReport) -> None:
    ours, baseline = report.devices[0].runs
    broken = replace(ours, load_ms=replace(ours.load_ms, p50=math.nan))
    whole, gap = (Page(html_report(on_device(report, runs=(run, baseline)))) for run in (ours, broken))
    assert gap.tags.count("rect") == whole.tags.count("rect") - 1
    assert "nan" in gap.text


def test_a_missing_baseline_leaves_ours(report: VerifyReport) -> None:
    """Without a baseline the pictures show ours alone, and nothing is divided by it."""
    nothing = replace(report.baseline_size, file_bytes=0, loadable_bytes=0, compressed_bytes=0)
    (device,) = report.devices
    library, models = (
        tuple(replace(line, baseline=None, ratio=None, spread=None) for line in lines)
        for lines in (report.comparisons, device.comparisons)
    )
    ours = tuple(run for run in device.runs if run.library == "ours")
    alone = on_device(replace(report, baseline_size=nothing, comparisons=library), comparisons=models, runs=ours)
    page = Page(html_report(alone))
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
    ours = report.devices[0].runs[0]
    for value in (0.0, 1.0, 1e300):
        case = replace(ours.cases[0], samples_ms=(value,) * 5)
        page = Page(html_report(on_device(report, runs=(replace(ours, cases=(case,)),))))
        assert "ours: median" in page.text


def test_only_the_worst_of_many_outputs_are_drawn(report: VerifyReport) -> None:
    first = report.devices[0].parity[0]
    many = tuple(replace(first, output=f"o{n}", difference=1e-9 * n, rms=None) for n in range(300))
    page = Page(html_report(on_device(report, parity=many)))
    assert "260 other outputs only in the table" in page.text
    assert page.tags.count("circle") == 40
    assert page.text.count("o299") == 3


def test_tiles_say_what_they_are(page: Page) -> None:
    """Every tile of the treemap has a tip with its whole name, bytes and share; components have their bytes on them."""
    tips = [value for tag, name, value in page.attributes if (tag, name) == ("div", "title")]
    assert len(tips) == sum(tag == "div" and name == "style" for tag, name, _ in page.attributes)
    assert any(tip.startswith("framework\n") and tip.endswith(" %") for tip in tips)


@pytest.fixture
def side_page(side_report: VerifyReport) -> Page:
    return Page(html_report(side_report))


def test_several_devices_stand_beside_each_other(side_page: Page) -> None:
    assert ("table", "id", "side-by-side") in side_page.attributes
    sections = [value for tag, name, value in side_page.attributes if (tag, name) == ("section", "id")]
    assert sections == ["devices", "size", "device-1", "device-2", "device-3", "device-4", "coverage"]
    for text in (
        "58 MiB",
        "5 of 160 over 0.4 ms",
        "✗ device-lost",
        "user-emulation",
        "silero_vad; times of four-frames",
    ):
        assert text in side_page.text


def test_pictures_of_several_devices_are_told_apart(side_page: Page) -> None:
    """No two things on the page have one name, and what means nothing on a device has no picture."""
    names = [value for _, name, value in side_page.attributes if name == "id"]
    assert len(names) == len(set(names))
    assert sum(value == "chart-latency" for _, _, value in side_page.attributes) == 3
    assert {"chart-memory-2", "chart-memory-3", "chart-load-3", "chart-parity-1"} <= set(names)
    assert not {"chart-memory-1", "chart-memory-4"} & set(names)


def test_a_failed_device_says_why(side_page: Page, report: VerifyReport, side_report: VerifyReport) -> None:
    """In its own section beside others, and before everything else when it is the only one."""
    for text in ("error: device-lost", "the connection broke", "why: client_loop", "hint: see that it is switched on"):
        assert text in side_page.text
    alone = Page(html_report(replace(report, devices=side_report.devices[3:])))
    assert alone.text.index("ssh:pi@board could not finish") < alone.text.index("Against the budget")
    assert "hint: see that it is switched on" in alone.text
    assert ("table", "id", "side-by-side") not in alone.attributes


def test_a_profile_is_named_with_what_opens_it(side_page: Page) -> None:
    """The file's place in the folder, as text: nothing on the page leads anywhere."""
    assert "outputs/qemu-system_cortex-a53/silero_vad/trace.json" in side_page.text
    assert "ui.perfetto.dev" in side_page.text


def test_a_report_without_devices_is_a_page(report: VerifyReport) -> None:
    assert "The library against the budget" in Page(html_report(replace(report, devices=()))).text
