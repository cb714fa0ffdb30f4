"""Each task at its boundary: options checked, one function called, results rendered, failures with their code."""

import errno
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from invoke.exceptions import Exit
from onnx import helper

from onnx_samples import model_of, relu, write
from ortrim.buildspec.buildspec import BuildSpec, ModelSpec, Provider, TargetSpec
from ortrim.cli.boundary import boundary
from ortrim.errors import DiagnosticGroup, Interrupted, SpecError
from ortrim.models.models import OrtModel
from ortrim.parity.measurements import Gate, Verdict
from ortrim.planning.prediction import Prediction
from ortrim.planning.request import Request
from ortrim.verify.reports import VerifyReport
from program_runs import Run
from sample_plans import OPERATORS, sample_plan
from sample_reports import four_devices, on_device, recorded_report

UNIT = Path(__file__).parents[1]
REPORTING = ("build", "verify", "report")
FUNCTIONS = {
    "build": "ortrim.pipeline.building.build",
    "plan": "ortrim.planning.planned.planned_for",
    "verify": "ortrim.pipeline.building.verify_again",
    "report": "ortrim.cli.tasks.build.reports_of",
    "convert": "ortrim.cli.tasks.models.converted_models",
    "reduce": "ortrim.cli.tasks.models.converted_models",
}
"""What each task calls."""


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], list[Request]]:
    """Let the function behind a task return or raise something; its requests are collected."""

    def replace_by(task: str, outcome: Any) -> list[Request]:
        requests: list[Request] = []

        def function(request: Request, _console: Any) -> Any:
            requests.append(request)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(FUNCTIONS[task], function)
        return requests

    return replace_by


Answer = Callable[[str, Any], list[Request]]


@pytest.fixture
def good() -> VerifyReport:
    """Return a report without a failure."""
    report = recorded_report()
    (device,) = report.devices
    return on_device(
        replace(report, gates=(), verdict=Verdict.PASS),
        parity=tuple(replace(output, verdict=Verdict.PASS) for output in device.parity),
        comparisons=tuple(replace(line, verdict=Verdict.PASS) for line in device.comparisons),
    )


@pytest.fixture
def bad(good: VerifyReport) -> VerifyReport:
    """Return a report whose library failed a gate."""
    return replace(good, gates=(Gate(name="exports", verdict=Verdict.FAIL, detail="too many"),), verdict=Verdict.FAIL)


@pytest.mark.parametrize(
    ("task", "words", "where"),
    [
        ("build", ("--executor", "Container"), "--executor"),
        ("build", ("--engine", "docker"), "--engine"),
        ("build", ("--executor", "container", "--engine", "lxc"), "--engine"),
        ("build", ("--mount", "/:/opt/own"), "--mount"),
        ("build", ("--executor", "container", "--mount", "/:/usr"), "--mount"),
        ("build", ("--executor", "container", "--engine-flag=--privileged"), "--engine-flag"),
        ("build", ("--executor", "gitHub", "--plan-only"), "--executor"),
        ("build", ("--executor", "github", "--engine", "docker"), "--engine"),
        ("build", ("--executor", "github", "--ref", "../x"), "--ref"),
        ("build", ("--executor", "github", "--ref", "a b"), "--ref"),
        ("build", ("--repo", "octo/ort"), "--repo"),
        ("build", ("--executor", "container", "--ref", "main"), "--ref"),
        ("build", ("--token-file", "token"), "--token-file"),
        ("build", ("--profile", "fast"), "--profile"),
        ("build", ("--profile", ""), "--profile"),
        ("build", ("--jobs", "0"), "--jobs"),
        ("build", ("--jobs", "-1"), "--jobs"),
        ("build", ("--jobs", "two", "--plan-only"), "--jobs"),
        ("build", ("--jobs", "1.5"), "--jobs"),
        ("build", ("--jobs", "9" * 5000), "--jobs"),
        ("build", ("--jobs", "²"), "--jobs"),
        ("plan", ("--profile", "Balanced"), "--profile"),
        ("verify", ("--profile", "x"), "--profile"),
        ("report", ("--profile", "x"), "--profile"),
    ],
)
def test_an_impossible_option_ends_with_the_code_of_usage(
    ortrim: Run, answer: Answer, task: str, words: tuple[str, ...], where: str
) -> None:
    requests = answer(task, None)
    ended = ortrim(task, *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: bad-option\n")
    assert f"  {where}: " in ended.err
    assert "hint: " in ended.err
    assert requests == []


def test_options_become_a_request(ortrim: Run, answer: Answer, good: VerifyReport) -> None:
    requests = answer("build", (good,))
    words = ("--spec", "a b.toml", "--target", "linux-*", "--profile", "upstream", "--jobs", "3", "--output", "../out")
    assert ortrim("build", *words).code == 0
    wanted = Request(
        spec=Path("a b.toml"), target="linux-*", profile="upstream", jobs=3, output=Path("../out")
    )  # fmt: skip
    assert requests == [wanted]


@pytest.mark.parametrize("task", ["build", "verify"])
def test_devices_become_part_of_the_request(ortrim: Run, answer: Answer, good: VerifyReport, task: str) -> None:
    """Each `--device` in its order, and what else is asked for of them; none by default."""
    requests = answer(task, (good,))
    devices = ("--device", "qemu-user", "--device", "ssh:pi@board:22")
    assert ortrim(task, *devices, "--least-memory", "--trace").code == 0
    assert ortrim(task).code == 0
    asked, plain = requests
    assert (asked.devices, asked.least_memory, asked.trace) == (("qemu-user", "ssh:pi@board:22"), True, True)
    assert (plain.devices, plain.least_memory, plain.trace) == ((), False, False)


@pytest.mark.parametrize("task", ["build", "verify"])
@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (("--device", "phone"), "unknown-device"),
        (("--device", ""), "unknown-device"),
        (("--device", "adb", "--device", "adb"), "device-twice"),
        (("--target", "linux-arm64", "--device", "host"), "wrong-device"),
        (("--least-memory",), "bad-option"),
    ],
)
def test_an_impossible_device_is_refused_before_any_work(
    ortrim: Run, task: str, words: tuple[str, ...], reference: str
) -> None:
    """The real check, on the demo, in a second: usage, and nothing is fetched or left behind."""
    ended = ortrim(task, *words, "--json")
    assert ended.code == 2
    assert [error["code"] for error in ended.document()["errors"]] == [reference]
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("task", ["build", "verify"])
def test_a_device_that_failed_ends_the_command_after_its_report(ortrim: Run, answer: Answer, task: str) -> None:
    """All devices are shown, then the failure with its own code; as JSON both are in one document."""
    answer(task, (four_devices(),))
    ended = ortrim(task)
    assert ended.code == 19
    assert "58 MiB" in ended.out
    assert ended.err.startswith("error: device-lost\n  ssh:pi@board: the connection broke\n  why: client_loop")
    document = ortrim(task, "--json").document()
    (report,) = document["reports"]
    assert [device["device"] for device in report["devices"]][3] == "ssh:pi@board"
    assert report["devices"][3]["failure"]["code"] == "device-lost"
    assert [error["code"] for error in document["errors"]] == ["device-lost"]
    assert ended.err.count("error: ") == 1


def test_without_options_the_demo_is_built_for_this_host(ortrim: Run, answer: Answer, good: VerifyReport) -> None:
    """The buildspec travels with ortrim; one of the same name in the folder at hand goes before it."""
    requests = answer("build", (good,))
    ortrim("build")
    Path("buildspecs").mkdir()
    Path("buildspecs/silero-vad.toml").touch()
    ortrim("build")
    shipped, own = requests
    assert shipped.spec.is_absolute()
    assert shipped.spec.name == "silero-vad.toml"
    assert shipped.spec.is_file()
    assert own.spec == Path("buildspecs/silero-vad.toml")
    assert (shipped.target, shipped.profile, shipped.jobs, shipped.output) == (None, None, None, Path("artifacts"))


def test_an_empty_buildspec_name_is_not_the_demo(ortrim: Run) -> None:
    """A script whose variable is empty must not build something else."""
    ended = ortrim("build", "--spec", "")
    assert (ended.code, ended.out) == (10, "")


@pytest.mark.parametrize("task", ["build", "plan", "convert", "reduce", "verify", "report"])
def test_a_bad_buildspec_ends_with_its_code_and_no_output(ortrim: Run, task: str) -> None:
    """The real reader's diagnostics on standard error, nothing on standard output, nothing left behind."""
    Path("bad.toml").write_text('colour = "red"\n[[models]]\nname = "x"\npath = "absent.onnx"\n')
    ended = ortrim(task, "--spec", "bad.toml")
    assert (ended.code, ended.out) == (10, "")
    assert "error: unknown-key" in ended.err
    assert "bad.toml: 'colour' is not a known key" in ended.err
    assert [path.name for path in Path().iterdir()] == ["bad.toml"]


@pytest.mark.parametrize(
    ("raised", "ending"),
    [
        (KeyboardInterrupt(), (130, "interrupted")),
        (OSError(errno.ENOSPC, "No space left on device", "/some/file"), (22, "disk-full")),
        (OSError(errno.EROFS, "Read-only file system", "/some/file"), (22, "not-permitted")),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/some/file"), (22, "path-in-the-way")),
        (OSError(errno.EIO, "Input/output error"), (22, "storage-failed")),
        (MemoryError("Unable to allocate 7 GiB"), (23, "out-of-memory")),
    ],
    ids=["interrupt", "disk-full", "read-only", "in-the-way", "nameless", "memory"],
)
def test_what_goes_wrong_has_its_code_and_words(
    ortrim: Run, answer: Answer, raised: BaseException, ending: tuple[int, str]
) -> None:
    answer("plan", raised)
    ends(ortrim, "plan", *ending)


@pytest.mark.parametrize("task", FUNCTIONS)
def test_every_task_ends_with_its_diagnostic(ortrim: Run, answer: Answer, task: str) -> None:
    answer(task, SpecError("a-b", "what", where="/some/file"))
    ends(ortrim, task, 10, "a-b")


def ends(ortrim: Run, task: str, code: int, reference: str) -> None:
    """Check how a task ends, both for people and for programs."""
    ended = ortrim(task)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(f"error: {reference}\n")
    assert ended.err.count("error: ") == 1
    ended = ortrim(task, "--json")
    assert ended.code == code
    assert [error["code"] for error in ended.document()["errors"]] == [reference]


def test_a_group_is_a_list_of_errors(ortrim: Run, answer: Answer) -> None:
    answer("plan", DiagnosticGroup((SpecError("a", "one"), SpecError("b", "two"))))
    assert [error["what"] for error in ortrim("plan", "--json").document()["errors"]] == ["one", "two"]


def unchanged(error: BaseException) -> None:
    """Let what a signal raised go on."""
    raise error


def swallowed(_: BaseException) -> None:
    """End well, as a task does that shows what was finished."""


def worded(_: BaseException) -> None:
    """Say more of what is left."""
    raise Interrupted("run-left", "it goes on")


def unwritten(_: BaseException) -> None:
    """Fail to write to a terminal that was closed."""
    raise OSError(errno.EIO, "gone")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("ending", [unchanged, swallowed, worded, unwritten])
def test_a_termination_says_goodbye_like_ctrl_c(
    capfd: pytest.CaptureFixture[str], number: int, code: int, ending: Callable[[BaseException], None]
) -> None:
    """With the exit code that shells expect, whatever a task makes of it; nothing of ours stays behind."""
    left = []

    def work() -> None:
        left.append(Path(tempfile.mkdtemp()))
        os.kill(os.getpid(), number)
        time.sleep(5)

    def task() -> None:
        with boundary(json_mode=True):
            try:
                work()
            except KeyboardInterrupt as error:
                ending(error)

    with pytest.raises(Exit) as caught:
        task()
    assert caught.value.code == code
    out, err = capfd.readouterr()
    goodbye = f"interrupted\n  stopped by {signal.Signals(number).name}; finished work is kept"
    assert err.startswith("error: " + ("run-left" if ending is worded else goodbye))
    assert [error["exit_code"] for error in json.loads(out)["errors"]] == [code]
    assert not left[0].exists()
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_error_of_our_own_is_not_dressed_up(ortrim: Run, answer: Answer) -> None:
    """A mistake in ortrim keeps its traceback, which is what a report needs."""
    answer("plan", ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        ortrim("plan")


@pytest.mark.parametrize("task", REPORTING)
def test_reports_are_shown_as_tables(ortrim: Run, answer: Answer, good: VerifyReport, task: str) -> None:
    answer(task, (good,))
    ended = ortrim(task)
    assert (ended.code, ended.err) == (0, "")
    assert good.target in ended.out


@pytest.mark.parametrize("task", REPORTING)
def test_reports_are_one_json_document(ortrim: Run, answer: Answer, good: VerifyReport, task: str) -> None:
    answer(task, (good, good))
    ended = ortrim(task, "--json")
    assert (ended.code, ended.err) == (0, "")
    document = ended.document()
    assert [report["target"] for report in document["reports"]] == [good.target] * 2
    assert document["errors"] == []


@pytest.mark.parametrize("task", ["build", "verify"])
def test_a_failed_verdict_follows_its_report(ortrim: Run, answer: Answer, bad: VerifyReport, task: str) -> None:
    """The table first, then the diagnostic; as JSON both are in one document."""
    answer(task, (bad,))
    ended = ortrim(task)
    assert ended.code == 20
    assert bad.target in ended.out
    assert ended.err.startswith("error: gate-failed\n")
    ended = ortrim(task, "--json")
    assert ended.code == 20
    document = ended.document()
    assert len(document["reports"]) == 1
    assert [error["code"] for error in document["errors"]] == ["gate-failed"]
    assert ended.err.count("error: ") == 1


def test_showing_a_report_is_no_failure(ortrim: Run, answer: Answer, bad: VerifyReport) -> None:
    """`report` shows what is; `build` and `verify` judge."""
    answer("report", (bad,))
    assert ortrim("report").code == 0


@pytest.mark.parametrize("words", [("plan",), ("build", "--plan-only")])
def test_a_plan_is_shown_without_building(
    ortrim: Run, answer: Answer, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    plan = sample_plan()
    job = plan.targets[0].job
    answer("build", AssertionError())
    answer("plan", SimpleNamespace(plan=plan))
    expected = Prediction(target="linux-x64", least=900_000, most=1_100_000, builds=0, seconds=(70.0, 200.0))
    monkeypatch.setattr("ortrim.planning.prediction.predictions", lambda *_: (expected,))
    ended = ortrim(*words)
    assert (ended.code, ended.err) == (0, "")
    foretold = "a library of about 0.90 to 1.10 MB, from ortrim's own table; compiling takes 1 min 10 s to 3 min"
    assert f"linux-x64: {foretold}\n" in ended.out
    assert "zig 0.17.0 x86_64-linux-gnu.2.28" in ended.out
    assert f"{len(job.arguments)} words: --json shows them" in ended.out
    printed = ortrim(*words, "--json").document()
    assert printed["spec_name"] == "sample"
    assert "--minimal_build" in printed["targets"][0]["job"]["arguments"]


def models(folder: Path, *names: str) -> Any:
    """Return what `converted_models` returns, as far as the tasks look."""
    converted = []
    specs = tuple(ModelSpec(name=name) for name in names or ("one",))
    for name in names:
        (folder / name).write_bytes(f"model {name}".encode())
        converted.append(
            OrtModel(
                name=name, path=folder / name, sha256="1" * 64, size_bytes=7, ort_version="1.21.0", style="fixed",
                level="extended", config="",
            )
        )  # fmt: skip
    return SimpleNamespace(
        loaded=BuildSpec(name="sample", models=specs),
        runtime=SimpleNamespace(version="1.21.0"),
        converted=tuple(converted),
        operators=OPERATORS,
    )


def test_converted_models_are_copied_out(ortrim: Run, answer: Answer, tmp_path: Path) -> None:
    """Into this folder or the one named, under their names, with the file that says how to load them."""
    answer("convert", models(tmp_path, "one", "two"))
    ended = ortrim("convert")
    assert ended.code == 0
    assert Path("one.ort").read_text() == "model one"
    assert "two.ort: 7 bytes, style fixed, level extended" in ended.out
    assert ended.out.endswith("no model was named, so these are the demo's; for yours: ortrim convert MODEL.onnx\n")
    assert "the demo's" not in ortrim("convert", "--spec", "own.toml").out
    session = json.loads(Path("session.json").read_text())
    assert {name: each["file"] for name, each in session["models"].items()} == {"one": "one.ort", "two": "two.ort"}
    document = ortrim("convert", "--output", "out", "--json").document()
    assert [model["path"] for model in document] == ["out/one.ort", "out/two.ort"]
    assert Path("out/session.json").read_text() == Path("session.json").read_text()


@pytest.mark.parametrize(("own", "said"), [(None, ["CoreML", "XNNPACK"]), (("xnnpack",), ["XNNPACK"]), ((), None)])
def test_what_every_target_has_of_execution_providers_is_said(
    ortrim: Run, answer: Answer, tmp_path: Path, own: tuple[Provider, ...] | None, said: list[str] | None
) -> None:
    """A session cannot add one that the library does not have, and the file is for the libraries of all targets."""
    converted = models(tmp_path, "one")
    targets = (TargetSpec(id="ios-arm64"), TargetSpec(id="macos-arm64", providers=own))
    converted.loaded = replace(converted.loaded, providers=("xnnpack", "coreml"), targets=targets)
    answer("convert", converted)
    assert ortrim("convert").code == 0
    (session,) = json.loads(Path("session.json").read_text())["models"].values()
    assert session.get("execution_providers") == said


def test_models_that_cannot_be_copied_are_a_diagnostic(ortrim: Run, answer: Answer, tmp_path: Path) -> None:
    """A file in the way of the folder, before any conversion."""
    requests = answer("convert", models(tmp_path, "one"))
    Path("out").touch()
    ended = ortrim("convert", "--output", "out")
    assert (ended.code, ended.out) == (22, "")
    assert requests == []


def test_operators_are_printed_as_a_configuration(ortrim: Run, answer: Answer, tmp_path: Path) -> None:
    """What upstream's build reads, and nothing else, so that it can be redirected into a file; or to a file itself."""
    answer("reduce", models(tmp_path))
    ended = ortrim("reduce")
    assert (ended.code, ended.err) == (0, "")
    assert "ai.onnx;13;Gemm" in ended.out
    assert ortrim("reduce", "--output", "operators.config").out.startswith("operators.config: 2 operators")
    assert Path("operators.config").read_text().strip() == ended.out.strip()
    assert len(ortrim("reduce", "--json").document()["operators"]) == 2


def test_the_schema_is_json(ortrim: Run) -> None:
    assert ortrim("schema").document()["$schema"].startswith("https://json-schema.org/")


def test_the_doctor_reports_as_table_and_json(ortrim: Run) -> None:
    """The same findings; the program goes on to end well, since looking is not failing."""
    findings = ortrim("doctor", "--json").document()
    assert {"Python", "memory", "cache folder"} <= {finding["name"] for finding in findings}
    ended = ortrim("doctor")
    assert ended.code == 0
    assert all(finding["name"] in ended.out for finding in findings)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (UNIT / "binaries" / "data" / "tiny.so", "library"),
        (UNIT / "models" / "data" / "branching_first.ort", "ort model"),
        ("model.onnx", "onnx model"),
        ("operators.config", "operator configuration"),
    ],
)
def test_each_kind_of_file_is_inspected(ortrim: Run, file: Path | str, kind: str) -> None:
    write(Path("model.onnx"), relu())
    Path("operators.config").write_text("ai.onnx;14;Relu\n")
    ended = ortrim("inspect", str(file))
    assert (ended.code, ended.err) == (0, "")
    assert kind in ended.out
    assert ortrim("inspect", str(file), "--json").document()["kind"] == kind


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("absent.onnx", None, 11),
        ("empty.onnx", b"", 11),
        ("noise.so", bytes(range(256)) * 4, 11),
        ("cut.so", (UNIT / "binaries" / "data" / "tiny.so").read_bytes()[:64], 20),
        ("text.config", b"not a configuration\n", 13),
        ("utf16.config", "ai.onnx;1;Relu".encode("utf-16"), 13),
        ("", None, 11),
    ],
)
def test_what_cannot_be_inspected_is_a_diagnostic(ortrim: Run, name: str, content: bytes | None, code: int) -> None:
    """Missing, empty, noise, cut, a folder: one error, its class's code, nothing on standard output."""
    if content is not None:
        Path(name).write_bytes(content)
    ended = ortrim("inspect", name or ".")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.count("error: ") == 1
    assert ortrim("inspect", name or ".", "--json").document()["errors"][0]["exit_code"] == code


def test_a_models_names_do_not_steer_the_terminal(ortrim: Run) -> None:
    """Escape sequences in a model from anywhere are shown as replacement characters; JSON escapes them."""
    domain = "\x1b[2Jevil"
    evil = model_of([helper.make_node("Relu", ["x"], ["y"], domain=domain)], opsets=[(domain, 1), ("", 17)])
    evil.producer_name = "\x1b]0;title\x07"
    write(Path("evil.onnx"), evil)
    ended = ortrim("inspect", "evil.onnx")
    assert "evil" in ended.out
    assert not {"\x1b", "\x07"} & set(ended.out)
    assert "\x1b" not in ortrim("inspect", "evil.onnx", "--json").out


def test_pins_are_not_updated_from_nonsense(ortrim: Run) -> None:
    ended = ortrim("pins.update", "--version", "1.21.0", "--mirror", "nonsense")
    assert (ended.code, ended.out.startswith("✗") or ended.out == "") == (2, True)
    assert "--mirror" in ended.err
