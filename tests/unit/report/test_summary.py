"""What a report claims in one sentence."""

import io
from dataclasses import replace

import pytest

from ortrim.base.console import Console
from ortrim.parity.measurements import Coverage, OutputParity, UnreadTable, Verdict
from ortrim.report.content import agreements, coverage_texts, parity_text, parity_verdict, subtitle, verdict_text
from ortrim.report.html import html_report, markdown_report
from ortrim.report.terminal import terminal_report
from ortrim.verify.reports import NOT_FOR_DEVICE, DeviceFailure, VerifyReport
from sample_reports import on_device


def unjudged(report: VerifyReport, count: int) -> VerifyReport:
    outputs = tuple(
        replace(output, verdict=Verdict.NOT_JUDGED if number < count else output.verdict)
        for number, output in enumerate(report.devices[0].parity)
    )
    return on_device(replace(report, verdict=Verdict.PASS), parity=outputs)


def test_parity_is_not_claimed_when_no_output_was_judged(report: VerifyReport) -> None:
    """A pass of the budgets alone does not read like a proof of the outputs."""
    all_random = unjudged(report, len(report.devices[0].parity))
    assert "parity not judged" in verdict_text(all_random)
    assert "in parity" not in verdict_text(all_random)
    assert "cannot be judged" in parity_text(all_random.devices[0])
    assert "agree" not in parity_text(all_random.devices[0])


def test_outputs_that_cannot_be_judged_are_counted(report: VerifyReport) -> None:
    some = unjudged(report, 1)
    assert "outputs in parity" in verdict_text(some)
    assert parity_text(some.devices[0]).startswith(f"1 of {len(report.devices[0].parity)} outputs")
    assert "the others agree" in parity_text(some.devices[0])


def passing(report: VerifyReport, count: int) -> VerifyReport:
    devices = tuple(replace(report.devices[0], device=f"adb:{number}") for number in range(count))
    return replace(report, devices=devices)


def misfit(report: VerifyReport) -> VerifyReport:
    failure = DeviceFailure(
        code=NOT_FOR_DEVICE, what="this library is for x86", where="adb:R58", why="", hint="name another",
        exit_code=19,
    )  # fmt: skip
    changes = {"host": None, "failure": failure, "verdict": Verdict.NOT_JUDGED, "parity": (), "comparisons": ()}
    return on_device(replace(report, verdict=Verdict.PASS), device="adb", runs=(), **changes)


def test_a_device_that_gave_nothing_is_not_said_to_have_measured(report: VerifyReport) -> None:
    """Whatever the reason; what is not for a device is neither its failure nor the library's."""
    nothing = misfit(report)
    assert subtitle(nothing).endswith("no results from adb")
    assert not verdict_text(nothing).startswith("FAIL")
    stream = io.StringIO()
    Console(stdout=stream, stderr=io.StringIO(), environment={}, width=120).render(terminal_report(nothing))
    for text in (stream.getvalue(), markdown_report(nothing), html_report(nothing)):
        assert "not run: not-for-this-device" in text
        assert "could not finish" not in text


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"difference": 0.05}, "largest difference 0.05 where 0.1 is allowed"),
        ({"difference": 0.01, "rms": 0.1, "rms_allowed": 0.2}, "largest RMS difference 0.1 where 0.2 is allowed"),
        (
            {"difference": 0.01, "same_graph": 1e-5, "same_graph_allowed": 2e-5},
            "largest difference from the same graph 1e-05 where 2e-05 is allowed",
        ),
        (
            {"difference": 0.0, "rms": 0.0, "rms_allowed": 1e-6, "same_graph": 0.0, "same_graph_allowed": 2e-5},
            "largest difference from the same graph 0 where 2e-05 is allowed",
        ),
    ],
)
def test_the_bound_that_binds_is_printed(report: VerifyReport, found: dict[str, float], said: str) -> None:
    """That of which most is used, or the narrowest if nothing differs; a share is no narrower than a number."""
    output = OutputParity(
        model="m", case="c", output="y", element_type="float32", shape=(1,), verdict=Verdict.PASS,
        **{"allowed": 0.1, **found},  # type: ignore[arg-type]  # floats alone
    )  # fmt: skip
    text = parity_text(on_device(report, parity=(output,)).devices[0])
    assert said in text


def test_a_model_that_does_not_run_is_named_everywhere(report: VerifyReport) -> None:
    failure = DeviceFailure(
        code="model-refused", what="the library refuses the model", where="libonnxruntime.so with kws",
        why="no kernel of Sin(17)", hint="", exit_code=19, model="kws",
    )  # fmt: skip
    failed = on_device(replace(report, verdict=Verdict.FAIL), failed_models=(failure,), verdict=Verdict.FAIL)
    assert verdict_text(failed) == "FAIL: kws does not run on host: the library refuses the model (model-refused)"
    stream = io.StringIO()
    Console(stdout=stream, stderr=io.StringIO(), environment={}, width=120).render(terminal_report(failed))
    for text in (stream.getvalue(), markdown_report(failed).replace("\\", ""), html_report(failed)):
        assert "libonnxruntime.so with kws: the library refuses the model" in text
        assert "no kernel of Sin(17)" in text


def test_several_devices_pass_together(report: VerifyReport) -> None:
    assert verdict_text(passing(report, 3)).startswith("PASS: within every budget, outputs in parity on 3 devices;")
    assert subtitle(passing(report, 3)).endswith("measured on 3 devices beside onnxruntime 1.21.0 (official wheel)")


def test_what_one_device_can_judge_is_judged(report: VerifyReport, side_report: VerifyReport) -> None:
    """Only what means nothing on all of them is left out of the claim."""
    user, machine, phone, _ = side_report.devices
    both = replace(report, devices=(user, machine))
    assert "(time cannot)" in verdict_text(both)
    assert "judged there" not in verdict_text(replace(report, devices=(user, phone)))


def test_parity_on_one_device_claims_nothing_of_another(report: VerifyReport) -> None:
    one, two = passing(report, 2).devices
    silent = replace(two, parity=())
    assert "parity not judged" in verdict_text(replace(report, devices=(one, silent)))
    assert "parity not judged" in verdict_text(replace(report, devices=()))


def test_failures_name_their_device(side_report: VerifyReport) -> None:
    """The device that went away comes first, then each budget and output with the device on which it was missed."""
    lost = replace(side_report.devices[0].parity[0], verdict=Verdict.FAIL, reason="0.5 off")
    text = verdict_text(on_device(side_report, parity=(lost,)))
    assert text == (
        "FAIL: ssh:pi@board could not finish: the connection broke (device-lost); missed deadlines, four-frames of "
        "silero_vad on adb:R58M12ABCDE is 1 run, budget ≤ 0.4 ms; 1 output out of parity on qemu-user:cortex-a53 "
        "(one-frame, output: 0.5 off)"
    )


def test_the_parity_of_all_outputs_together(report: VerifyReport) -> None:
    """One that differs decides; of none, or of random ones alone, nothing is said."""
    (device,) = report.devices
    assert parity_verdict(device) is Verdict.PASS
    assert parity_verdict(replace(device, parity=())) is Verdict.NOT_JUDGED
    assert parity_verdict(unjudged(report, len(device.parity)).devices[0]) is Verdict.NOT_JUDGED
    assert parity_verdict(unjudged(report, 1).devices[0]) is Verdict.PASS
    lost = replace(device.parity[0], verdict=Verdict.FAIL)
    assert parity_verdict(replace(device, parity=(lost, *device.parity[1:]))) is Verdict.FAIL


def test_elements_that_are_not_judged_for_one_reason_are_one_line(report: VerifyReport) -> None:
    keys = [
        OutputParity(
            model="m", case=case, output=f"p[{row}].{part}", element_type="int64", shape=(3,),
            verdict=Verdict.NOT_JUDGED if part == "keys" else Verdict.PASS, reason="the same in all 2 cases",
        )
        for case in ("one", "two") for row in range(9) for part in ("keys", "values")
    ]  # fmt: skip
    shown = [(each.case, each.output) for each in agreements(on_device(report, parity=tuple(keys)).devices[0])]
    assert [each for each in shown if each[1].endswith("keys")] == [("one", "p[...].keys"), ("two", "p[...].keys")]
    assert len(shown) == 2 + 2 * 9


def test_what_no_case_looks_up_is_said(report: VerifyReport) -> None:
    table = UnreadTable(place="'rows' (Gather 'y')", entries=12, unread=1)
    models = [replace(model, coverage=Coverage(nodes=5, executed=5, tables=(table,))) for model in report.models[:1]]
    name = report.models[0].name
    said = f"{name}: 1 of 12 entries of 'rows' (Gather 'y') was never looked up: not proved"
    assert coverage_texts(replace(report, models=tuple(models))) == (f"5 of 5 nodes of {name} run", said)
