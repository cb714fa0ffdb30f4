"""From builds to an xcframework: made when it passes every gate, gone when it does not."""

import shutil
from pathlib import Path

import pytest

from apple_packages import TARGETS, apple_inputs
from apple_slices import recorded
from ortrim.binaries.xcframework import XcframeworkFacts
from ortrim.compiling.plan import BuildJob, JobResult, RunnerJob
from ortrim.errors import BinaryError, DiagnosticGroup, ExitCode, PackageError, ToolError
from ortrim.package.manifest import PackageInputs
from ortrim.parity.measurements import Verdict
from ortrim.pipeline import building
from ortrim.pipeline.building import groups, packaged
from ortrim.planning.planned import planned_for
from ortrim.platforms.apple import package as apple
from ortrim.platforms.apple.framework import ApplePart
from ortrim.platforms.apple.package import apple_part, deliver_apple
from pipeline_stages import Stages
from refusing import refused

PHONES = """
[apple]
ios_deployment_target = "15.1"
[[targets]]
id = "ios-arm64"
[[targets]]
id = "ios-simulator-arm64"
[[targets]]
id = "ios-simulator-x86_64"
"""


class Recorded:
    """Builds nothing: its libraries are the recorded ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, job: BuildJob) -> JobResult:
        """Return a library and headers, as a build leaves them."""
        folder = self.folder / job.target.identifier
        (folder / "headers").mkdir(parents=True)
        for name in ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h"):
            (folder / "headers" / name).write_text("// header\n")
        (folder / "libonnxruntime.so").write_bytes(recorded(job.target.identifier))
        return JobResult(
            folder=folder, library=folder / "libonnxruntime.so", link_map=None, headers=folder / "headers",
            log=folder / "build.log", seconds=1.0, compiler_cache=None,
        )  # fmt: skip

    def run_runner(self, _job: RunnerJob) -> Path:
        return self.folder / "runner"


@pytest.fixture(name="sources")
def fixture_sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources" / "onnxruntime" / "objectivec" / "include"
    folder.mkdir(parents=True)
    (folder / "onnxruntime.h").touch()
    return tmp_path / "sources"


def left(path: Path) -> list[Path]:
    return [each for each in path.iterdir() if not each.name.startswith(".")]


def test_a_sound_xcframework_is_delivered(tmp_path: Path, sources: Path) -> None:
    parts = apple_inputs(tmp_path / "in").parts
    package, gates = deliver_apple(parts, sources, tmp_path / "out", {})
    assert package.xcframework.is_file()
    assert len(gates) > 25
    assert not [gate for gate in gates if gate.verdict is Verdict.FAIL]
    unjudged = {gate.name for gate in gates if gate.verdict is Verdict.NOT_JUDGED}
    assert unjudged == {"size of each slice", "imports of the system"}
    delivery = apple.delivery(parts[0].inputs.result, package.xcframework, gates)
    assert (delivery.archive, delivery.gates) == (package.xcframework, gates)
    assert delivery.facts.machine == "arm64"
    assert delivery.size.file_bytes == len(recorded(TARGETS[0]))


def test_an_unsound_xcframework_is_not_delivered(tmp_path: Path, sources: Path) -> None:
    parts = apple_inputs(tmp_path / "in", ("ios-arm64",)).parts
    parts[0].inputs.result.library.write_bytes(recorded("ios-simulator-arm64"))
    caught = refused(
        DiagnosticGroup, deliver_apple, (ApplePart(inputs=parts[0].inputs),), sources, tmp_path / "out", {}
    )
    assert "platform-differs" in {error.code for error in caught.diagnostics}
    assert all(isinstance(error, BinaryError) for error in caught.diagnostics)
    assert left(tmp_path / "out") == []


def test_a_package_that_was_not_judged_does_not_stay(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds one may take it to have passed: one whose gates Ctrl-C has ended is gone too."""

    def interrupted(_path: Path) -> XcframeworkFacts:
        raise KeyboardInterrupt

    monkeypatch.setattr(apple, "read_xcframework", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deliver_apple(apple_inputs(tmp_path / "in", ("ios-arm64",)).parts, sources, tmp_path / "out", {})
    assert left(tmp_path / "out") == []


def test_symbols_are_taken_where_a_build_left_them(tmp_path: Path) -> None:
    inputs: PackageInputs = apple_inputs(tmp_path / "in", ("macos-arm64",)).first
    assert apple_part(inputs).symbols == inputs.result.folder / "libonnxruntime.dylib.dwarf"
    (inputs.result.folder / "libonnxruntime.dylib.dwarf").unlink()
    assert apple_part(inputs).symbols is None


def test_no_parts_make_no_package(tmp_path: Path, sources: Path) -> None:
    caught = refused(PackageError, deliver_apple, (), sources, tmp_path / "out", {})
    assert caught.code == "no-slice"


def test_who_is_to_sign_must_be_able_to(tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    parts = apple_inputs(tmp_path / "in", ("ios-arm64",)).parts
    caught = refused(
        ToolError,
        deliver_apple,
        parts,
        sources,
        tmp_path / "out",
        {"ORTRIM_CODESIGN_IDENTITY": "Apple Distribution: A"},
    )
    assert (caught.code, caught.exit_code) == ("codesign-missing", ExitCode.TOOL)
    assert not (tmp_path / "out").exists()


def test_one_package_is_made_of_a_plans_slices(stages: Stages, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies beside the folders of the targets, and each target's library is verified as it is in it."""
    shutil.copytree(sources, stages.folder, dirs_exist_ok=True)
    for name in ("LICENSE", "ThirdPartyNotices.txt"):
        (stages.folder / "onnxruntime" / name).write_text("licence")
    builder = Recorded(stages.folder / "built")
    monkeypatch.setattr(building, "licences", lambda _: ())
    monkeypatch.setattr(building, "executor_for", lambda *_: builder)
    request = stages.request(PHONES, target="ios", on_macs=True, elsewhere=True)
    planned = planned_for(request, stages.console)
    (group,) = groups(planned.plan)
    results = tuple(builder.run(target.job) for target in group.targets)
    found = list(packaged(planned, group, results, request, stages.console))
    assert [each.target.identifier for each in found] == list(TARGETS[:3])
    (archive,) = {each.delivery.archive for each in found}
    assert archive.is_relative_to(planned.folder / "apple" / "ortrim-sample-apple-1.21.0" / "onnxruntime")
    assert [each.delivery.facts.machine for each in found] == ["arm64", "arm64", "x86_64"]
