"""The table of a model's steps."""

import io

from rich.console import Console

from ortrim.base.json import from_json, to_json
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.report.terminal import steps_table
from ortrim.steps.report import CaseLeft, ModelCounts, PreparationReport, StepReport

BEFORE = ModelCounts(
    size_bytes=2_850_000, nodes=90, parameters=545_671, opsets=(("ai.onnx", 18),), operators=(("ai.onnx:If", 90),)
)
AFTER = ModelCounts(size_bytes=2_200_000, nodes=80, parameters=545_000, opsets=(("ai.onnx", 17),), operators=())
PARITY = OutputParity(
    model="vad",
    case="one",
    output="y",
    element_type="float32",
    shape=(1,),
    difference=2.5e-7,
    allowed=1e-4,
    max_absolute=2.5e-7,
    max_relative=1e-6,
    cosine=1.0,
    nan_mismatch=0,
    verdict=Verdict.PASS,
)
REPORT = PreparationReport(
    model="vad",
    ort_version="1.21.0",
    original_sha256="a" * 64,
    sha256="b" * 64,
    original=BEFORE,
    prepared=AFTER,
    steps=(
        StepReport(
            number=1,
            use="opset",
            options="version = 17",
            outcome="changed",
            before=BEFORE,
            after=AFTER,
            notes=("operators that differ: If", *(f"note {number}" for number in range(5))),
            cases_left=(CaseLeft(case="batch", reason="the input 'x' is [4], and the model takes [1]"),),
            parity=(PARITY,),
        ),
        StepReport(
            number=2,
            use="simplify",
            options="",
            outcome="left out",
            reason="it crashed:\n\x1b[31mwords",
            before=AFTER,
            after=AFTER,
        ),
    ),
)


def test_each_step_has_a_line_and_its_words() -> None:
    """Sizes, counts and the largest difference; notes below, no more than a few; what a tool says cannot colour."""
    shown = io.StringIO()
    Console(file=shown, width=80).print(steps_table(REPORT))
    text = shown.getvalue()
    assert "1 opset" in text
    assert "2 simplify (left out)" in text
    assert "2.20 MB" in text
    assert "2.5e-07" in text
    assert "step 1 leaves out case 'batch': the input 'x' is [4]" in text
    assert "step 1: and 2 more, in the report" in text
    assert "step 2 was left out: it crashed:" in text
    assert "\x1b[31m" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_report_travels_as_json() -> None:
    assert from_json(PreparationReport, to_json(REPORT)) == REPORT
    assert REPORT.steps[0].largest_difference == 2.5e-7
    assert REPORT.steps[1].largest_difference is None
