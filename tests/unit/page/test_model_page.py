"""The page of a model."""

import re
from dataclasses import replace

import pytest

from html_pages import HtmlPage
from model_pages import CONVERTED, COST, GRAPH, LINT, MODEL_NAME, hostile_subject, sample_subject
from ortrim.analysis.cost.memory import Peak
from ortrim.analysis.page import (
    COLUMNS,
    COMMON,
    MODEL,
    MODELS,
    OTHERS,
    OWN,
    RUNTIME,
    UNMEASURED,
    memory_timeline,
    model_page,
    report_of_model,
    size_share,
)
from ortrim.errors import VerifyError
from ortrim.models.models import OrtModel
from ortrim.parity.measurements import Verdict
from ortrim.size.accounting import Leaf
from ortrim.verify.judge import failure_of
from sample_reports import four_devices, recorded_report

SECTIONS = ("graph", "lint", "steps", "cost", "memory", "latency", "size", "parity")


def test_every_section_is_there_and_the_head_leads_to_it() -> None:
    """Each has a heading, a link in the navigation, and what was asked for in it."""
    page = HtmlPage(model_page(sample_subject()))
    sections = [value for tag, name, value in page.attributes if (tag, name) == ("section", "id")]
    assert tuple(sections) == SECTIONS
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert links == ["#content", *(f"#{name}" for name in SECTIONS)]
    for text in (
        "2.85 MB", "pytorch 2.9.0", "batch x 512", "of any shape", "com.microsoft:QGemm", "fixed sizes fails",
        "7 places", "1. simplify", "-30 ai.onnx:Identity", "left out", "case long cannot be checked any more",
        "5.00 M", "peak 21.0 kB in relu1", "alone the peak is 18.0 kB", "(the kernel's own)",
        "kernels that other models need, too", "outputs of", "Time on host",
    ):  # fmt: skip
        assert text in page.text, text


def test_no_two_things_have_one_name_and_nothing_leads_away() -> None:
    text = model_page(sample_subject(report=replace(four_devices())))
    page = HtmlPage(text)
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert not [value for _, name, value in page.attributes if name in {"src", "style", "action", "xlink:href"}]
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert not re.search(r"https?://(?!www\.w3\.org)", text.replace("chrome://", ""))


def test_hostile_names_are_only_text() -> None:
    """Whatever a model calls its things, nothing becomes a tag, an attribute or a control character."""
    text = model_page(hostile_subject())
    page = HtmlPage(text)
    assert "script" not in page.tags
    assert "<script" not in text
    assert "\x1b" not in text
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert('1')</script>" in page.text


def test_a_model_that_was_not_verified_has_a_page() -> None:
    """What its file tells is there; what was not measured is said to be so."""
    bare = sample_subject(
        steps=None,
        share=None,
        times=(),
        report=None,
        lint=replace(LINT, findings=(), not_checked=()),
        costs=(),
    )
    page = HtmlPage(model_page(bare))
    for text in (
        UNMEASURED, "Nothing was found.", "No step of the buildspec prepares this model.", "could not be counted",
        "Not measured on a device.", "not known by operator", "Not verified on a device.",
    ):  # fmt: skip
        assert text in page.text, text


def test_a_report_is_cut_down_to_one_model() -> None:
    """Of another model nothing is left, and the verdict is that of what is."""
    report = recorded_report()
    own = report_of_model(report, MODEL_NAME)
    assert own.devices[0].runs == report.devices[0].runs
    assert own.comparisons == ()
    other = report_of_model(report, "another")
    assert (other.devices[0].runs, other.devices[0].parity, other.verdict) == ((), (), Verdict.NOT_JUDGED)
    (device,) = report.devices
    broken = replace(device, parity=(replace(device.parity[0], verdict=Verdict.FAIL),))
    assert report_of_model(replace(report, devices=(broken,)), MODEL_NAME).verdict is Verdict.FAIL
    refused = replace(device, failed_models=(failure_of(VerifyError("model-refused", "no"), "another"),))
    refusing = replace(report, devices=(refused,))
    assert report_of_model(refusing, "another").verdict is Verdict.FAIL
    assert report_of_model(refusing, MODEL_NAME) == own


def test_a_lost_device_makes_the_page_say_so() -> None:
    lost = report_of_model(four_devices(), MODEL_NAME)
    assert lost.verdict is Verdict.FAIL
    page = HtmlPage(model_page(sample_subject(report=four_devices())))
    assert "error: device-lost" in page.text


def test_many_nodes_share_columns_and_the_peak_stays() -> None:
    """However many nodes there are, the highest is drawn; sizes that only a damaged model asks for are not."""
    timeline = tuple((f"n{number}", number % 977) for number in range(5000))
    picture = memory_timeline(replace(COST, memory=Peak(size_bytes=976, node="n976", tensors=(), timeline=timeline)))
    assert picture.count("<rect") == COLUMNS
    assert 'class="peak"' in picture
    absurd = Peak(size_bytes=10**400, node="n", tensors=(), timeline=(("n", 10**400),))
    assert memory_timeline(replace(COST, memory=absurd)) == ""
    page = model_page(sample_subject(costs=(replace(COST, macs=10**400, peak=absurd, memory=absurd),)))
    assert "memory of a run" in page


def test_bytes_are_parted_by_what_needs_them() -> None:

    def leaf(operator: str, size: int) -> Leaf:
        return Leaf(component="providers", section=".text", size_bytes=size, operator=operator)

    def model(name: str, size: int, *lines: str) -> OrtModel:
        return replace(CONVERTED, name=name, size_bytes=size, config="\n".join(lines))

    leaves = (
        leaf("Conv", 100),
        leaf("com.microsoft:QGemm", 40),
        leaf("Relu", 7),
        leaf("", 1000),
        leaf("several in x", 3),
    )
    share = size_share(
        leaves, model("a", 5000, "ai.onnx;11;Conv", "com.microsoft;1;QGemm"), [model("b", 600, "ai.onnx;14;Conv,Relu")]
    )
    assert share.parts == {
        OWN: 40, COMMON: 100, OTHERS: 7, RUNTIME: 1003, MODEL: 5000, MODELS: 600,
    }  # fmt: skip
    assert share.kernels == (("Conv", 100, ("b",)), ("com.microsoft:QGemm", 40, ()))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_any_number_of_inputs_is_a_page(count: int) -> None:
    facts = replace(GRAPH.model, inputs=GRAPH.model.inputs * count, outputs=())
    HtmlPage(model_page(sample_subject(graph=replace(GRAPH, model=facts))))
