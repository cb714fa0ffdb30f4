"""From builds to packages and reports: what is packaged together, and an AAR from the plan to the report."""

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aar_samples import fake_jdk
from android_samples import BINDING, CXX, RUNTIME, sample
from finished_builds import leave_build, leave_compiled
from ndk_layout import LINUX, lay_out_ndk
from ortrim.base.cache import record_entry
from ortrim.base.console import Console
from ortrim.buildspec.targets import ABIS
from ortrim.compiling.plan import AssemblyJob, BuildJob, JobResult, RunnerJob, Toolchain
from ortrim.compiling.workspace import finished_build
from ortrim.errors import Diagnostic, DiagnosticGroup, ExitCode
from ortrim.parity.measurements import Verdict
from ortrim.pipeline import building
from ortrim.pipeline.building import build, groups, verify_again
from ortrim.pipeline.verification import Packaged, verify
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import Request
from ortrim.platforms.android import jni, ndk
from ortrim.platforms.android.arguments import MACHINES
from ortrim.platforms.android.jni import JAVA
from ortrim.report.terminal import terminal_report
from ortrim.verify.reports import VerifyReport
from pipeline_stages import Stages
from refusing import refused
from sample_plans import sample_plan

BOTH = '[android]\nmodels_as_assets = true\n[[targets]]\nid = "android-arm64-v8a"\n[[targets]]\nid = "android-x86_64"\n'


class Recorded:
    """Builds nothing: its libraries are the recorded ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.built: list[str] = []

    def run(self, job: BuildJob) -> JobResult:
        """Return a library, headers and a log, as a build leaves them."""
        self.built.append(job.target.identifier)
        folder = self.folder / job.target.identifier
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "include").mkdir(parents=True)
        for name in ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h"):
            (folder / "include" / name).write_text("// header\n")
        (folder / RUNTIME).write_bytes(sample(f"{ABIS[job.target.architecture]}-{RUNTIME}"))
        if job.android is not None and job.android.stl == "c++_shared":
            (folder / CXX).write_bytes(sample(f"{ABIS[job.target.architecture]}-{CXX}"))
        return JobResult(
            folder=folder,
            library=folder / RUNTIME,
            link_map=None,
            headers=folder / "include",
            log=folder / "build.log",
            seconds=1.0,
            compiler_cache=None,
        )

    def run_beside(self, toolchain: Toolchain, folder: Path, _make: object) -> None:
        triples = ndk.TRIPLES if toolchain.kind == "ndk" else MACHINES
        (abi,) = (ABIS[each] for each, triple in triples.items() if toolchain.triple.startswith(triple))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / jni.SYMBOLS).unlink(missing_ok=True)
        (folder / BINDING).write_bytes(sample(f"{abi}-{BINDING}"))

    def run_runner(self, _job: RunnerJob) -> Path:
        return self.folder / "runner"


@pytest.fixture(name="recorded")
def fixture_recorded(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Lay out the sources, an NDK and a JDK, and take recorded libraries for built ones."""
    upstream = stages.folder / "onnxruntime"
    for name in ("java", "android"):
        (stages.folder / JAVA / name).mkdir(parents=True)
    (stages.folder / JAVA / "java" / "OnnxRuntime.java").touch()
    for name in ("LICENSE", "ThirdPartyNotices.txt"):
        (upstream / name).write_text("licence")
    (stages.folder / "ziglang").mkdir()
    (stages.folder / "ziglang" / "LICENSE").write_text("licence")
    for text in ("libcxx", "libcxxabi", "libunwind"):
        (stages.folder / "ziglang" / "lib" / text).mkdir(parents=True)
        (stages.folder / "ziglang" / "lib" / text / "LICENSE.TXT").write_text("licence")
    (stages.folder / "ziglang" / "lib" / "libcxx" / "include").mkdir()
    (stages.folder / "ziglang" / "lib" / "libcxx" / "include" / "__config").write_text(
        "#  define _LIBCPP_VERSION 220108\n"
    )
    fake_jdk(stages.folder / "jdk" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(stages.folder / "jdk"))
    monkeypatch.setenv("ANDROID_NDK_HOME", str(lay_out_ndk(stages.folder / "ndk")))
    monkeypatch.setattr(ndk, "_prebuilt", lambda: LINUX)
    builder = Recorded(stages.folder / "built")
    monkeypatch.setattr(building, "packages_folder", lambda *_: stages.folder)
    monkeypatch.setattr(building, "licences", lambda _: ())
    monkeypatch.setattr(building, "executor_for", lambda *_: builder)
    monkeypatch.setattr(building, "_build", lambda _planned, target, *_: builder.run(target.job))
    return builder


def android(stages: Stages, do: Callable[[Request, Console], tuple[VerifyReport, ...]] = build) -> list[VerifyReport]:
    return list(do(stages.request(BOTH, target="android"), stages.console))


def test_targets_without_an_assembly_are_packaged_alone() -> None:
    """And those of one together, where its first stands in the plan."""
    plan = sample_plan("linux-x64")
    (alone,) = plan.targets
    others = [
        replace(alone, job=replace(alone.job, target=replace(alone.job.target, identifier=name)))
        for name in ("a", "b", "c")
    ]
    assembly = AssemblyJob(identifier="android", targets=("a", "c"))
    mixed = replace(plan, targets=(others[0], alone, others[1], others[2]), assemblies=(assembly,))
    found = [[each.identifier for each in group.targets] for group in groups(mixed)]
    assert found == [["a", "c"], ["linux-x64"], ["b"]]
    assert [group.assembly for group in groups(mixed)] == [assembly, None, None]


def test_one_aar_is_made_of_all_abis(stages: Stages, recorded: Recorded) -> None:
    """It lies beside the folders of the targets, each of which has its report, with the gates and sizes of the AAR."""
    reports = android(stages)
    assert recorded.built == ["android-arm64-v8a", "android-x86_64"]
    folder = planned_for(stages.request(BOTH, target="android"), stages.console).folder
    for report in reports:
        aar = folder / report.target / report.package
        assert aar.resolve() == folder / "android" / "ortrim-sample-android-1.21.0" / aar.name
        assert report.package_bytes == aar.stat().st_size
        assert (folder / report.target / "report.html").is_file()
        assert {gate.name for gate in report.gates} >= {"manifest.json describes this AAR", "segments aligned to 16 KB"}
        assert {line.measure for line in report.comparisons} >= {"library", "libraries of the ABI", "app's download"}
        assert (report.verdict, report.devices) == (Verdict.NOT_JUDGED, ())
    said = stages.stdout.getvalue()
    assert "was not run" in said
    assert "ortrim:onnxruntime-android-sample:1.21.0-" in said


def test_an_aar_that_is_there_is_not_made_again(stages: Stages, recorded: Recorded) -> None:
    """Nor is anything built; when it was removed, it is."""
    first = android(stages)
    assert android(stages) == first
    assert len(recorded.built) == 2
    folder = planned_for(stages.request(BOTH, target="android"), stages.console).folder
    shutil.rmtree(folder / "android")
    assert [report.package for report in android(stages)] == [report.package for report in first]
    assert len(recorded.built) == 4


def test_the_models_are_in_the_aar_when_asked(stages: Stages, recorded: Recorded) -> None:
    android(stages)
    folder = planned_for(stages.request(BOTH, target="android"), stages.console).folder
    manifest = (folder / "android" / "ortrim-sample-android-1.21.0" / "manifest.json").read_text()
    assert '"assets/models/tiny.ort"' in manifest


def test_an_aar_with_a_bad_library_is_not_delivered(
    stages: Stages, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends with all that is wrong with it; there is neither package nor report."""

    def crooked(_planned: object, target: object, *_: object) -> JobResult:
        result = recorded.run(target.job)  # type: ignore[attr-defined]
        result.library.write_bytes(sample("small-pages.so"))
        return result

    monkeypatch.setattr(building, "_build", crooked)
    with pytest.raises(DiagnosticGroup) as caught:
        android(stages)
    assert {error.code for error in caught.value.diagnostics} >= {"segments-not-page-aligned", "abi-mismatch"}
    assert list((stages.folder / "artifacts").rglob("*.aar")) == []
    assert list((stages.folder / "artifacts").rglob("report.json")) == []


def test_a_shared_cxx_library_is_packaged_and_goes_along_to_devices(
    stages: Stages, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[Packaged] = []

    def noted(planned: Planned, packaged: Packaged, *others: Any) -> VerifyReport:
        verified.append(packaged)
        return verify(planned, packaged, *others)

    monkeypatch.setattr(building, "verify", noted)
    android(stages)
    assert [each.delivery.companions for each in verified] == [(), ()]
    shared = BOTH.replace("[android]", '[android]\nstl = "c++_shared"')
    found = build(stages.request(shared, target="android"), stages.console)
    assert [report.verdict for report in found] == [Verdict.NOT_JUDGED, Verdict.NOT_JUDGED]
    for each in verified[2:]:
        assert each.delivery.companions == (each.result.folder / CXX,)
        with zipfile.ZipFile(each.delivery.archive) as aar:
            assert f"jni/{ABIS[each.target.job.target.architecture]}/{CXX}" in aar.namelist()


def test_an_aar_is_verified_again(stages: Stages, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "compiled_before", lambda target, _: recorded.run(target.job))
    assert [report.target for report in android(stages, verify_again)] == ["android-arm64-v8a", "android-x86_64"]


def leave_recorded(stages: Stages, recorded: Recorded) -> set[str]:
    """Leave what a build of both ABIs leaves with the recorded libraries, and return the kinds of their toolchains."""
    planned = planned_for(stages.request(BOTH, target="android"), stages.console)
    for target in planned.plan.targets:
        leave_compiled(target)
        result = recorded.run(target.job)
        shutil.copyfile(result.library, finished_build(target.job) / RUNTIME)
        shutil.copytree(result.headers, finished_build(target.job) / "headers", dirs_exist_ok=True)
        record_entry(finished_build(target.job))
    return {target.job.toolchain.kind for target in planned.plan.targets}


def test_verifying_again_needs_no_ndk(stages: Stages, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been named for the build alone, or be in a container's image: nothing is compiled."""
    assert leave_recorded(stages, recorded) == {"ndk"}
    monkeypatch.delenv("ANDROID_NDK_HOME")
    assert [report.verdict for report in android(stages, verify_again)] == [Verdict.NOT_JUDGED, Verdict.NOT_JUDGED]


def test_what_zig_compiled_without_an_ndk_is_verified_again(
    stages: Stages, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANDROID_NDK_HOME")
    assert leave_recorded(stages, recorded) == {"zig"}
    assert [report.verdict for report in android(stages, verify_again)] == [Verdict.NOT_JUDGED, Verdict.NOT_JUDGED]


def test_verifying_again_what_is_compiled_in_part_asks_for_a_build(
    stages: Stages, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and not that there is no NDK, which `verify` could not be told of."""
    planned = planned_for(stages.request(BOTH, target="android"), stages.console)
    for target in planned.plan.targets:
        leave_build(target)
    monkeypatch.delenv("ANDROID_NDK_HOME")
    error = refused(Diagnostic, android, stages, verify_again)
    assert (error.code, error.exit_code) == ("not-built", ExitCode.VERIFY)
    assert error.hint == "run: invoke build"
    assert not list((stages.folder / "artifacts").rglob("report.json"))


def test_a_report_without_a_device_says_so(stages: Stages, recorded: Recorded) -> None:
    """Nobody takes it for proof that the library works."""
    report = android(stages)[0]
    stages.console.render(terminal_report(report))
    assert "no device was given" in stages.stdout.getvalue().split("report.html")[-1]
