"""From builds to an AAR: made when it passes every gate, gone when it does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from aar_samples import ABIS, aar_inputs, fake_jdk
from android_samples import BINDING, RUNTIME, sample
from ortrim.core.artifacts import JobResult
from ortrim.core.plan import BuildJob
from ortrim.errors import BinaryError, DiagnosticGroup, PackageError
from ortrim.executors.jni import JAVA, JniLibrary
from ortrim.executors.workspace import Inputs
from ortrim.package.android.inputs import AarPart
from ortrim.pipeline import android_package
from ortrim.pipeline.android_package import aar_part, deliver_aar


@pytest.fixture(name="sources")
def fixture_sources(tmp_path: Path) -> Path:
    """Return a source tree with a Java file where upstream's are."""
    for name in ("java", "android"):
        (tmp_path / "sources" / JAVA / name).mkdir(parents=True)
    (tmp_path / "sources" / JAVA / "java" / "OnnxRuntime.java").touch()
    return tmp_path / "sources"


def parts_of(folder: Path) -> tuple[AarPart, ...]:
    """Return the parts of an AAR of all ABIs."""
    return aar_inputs(folder).parts


def test_a_sound_aar_is_delivered(tmp_path: Path, sources: Path) -> None:
    """With the NDK's version from the toolchain of the jobs, the models inside when asked."""
    jdk = fake_jdk(tmp_path / "jdk")
    package = deliver_aar(parts_of(tmp_path / "in"), sources, jdk, tmp_path / "out", models_as_assets=True)
    assert package.aar.is_file()
    assert package.manifest.ndk == "27.2.12479018"
    assert "assets/models/vad.ort" in {entry.path for entry in package.manifest.files}


def test_an_unsound_aar_is_not_delivered(tmp_path: Path, sources: Path) -> None:
    """Everything that is wrong is told at once, and nobody finds the package."""
    parts = parts_of(tmp_path / "in")
    parts[0].inputs.result.library.write_bytes(sample("small-pages.so"))
    parts[1].binding.write_bytes(sample("no-build-id.so"))
    with pytest.raises(DiagnosticGroup) as caught:
        deliver_aar(parts, sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    found = {error.reference for error in caught.value.diagnostics}
    assert {"segments-not-page-aligned", "abi-mismatch", "build-id-missing", "jni-exports-missing"} <= found
    assert all(isinstance(error, BinaryError) for error in caught.value.diagnostics)
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == []


def test_the_budget_of_the_targets_is_a_gate(tmp_path: Path, sources: Path) -> None:
    """The largest one, when every ABI has one."""
    parts = parts_of(tmp_path / "in")
    plan = parts[0].inputs.plan
    targets = tuple(replace(each, budgets=replace(each.budgets, library_bytes=5000)) for each in plan.targets)
    small = replace(plan, targets=targets)
    strict = [replace(part, inputs=replace(part.inputs, plan=small)) for part in parts]
    with pytest.raises(DiagnosticGroup) as caught:
        deliver_aar(strict, sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    assert {error.reference for error in caught.value.diagnostics} == {"libraries-too-large"}
    lax = replace(plan, targets=(*targets[:-1], plan.targets[-1]))
    without = [replace(part, inputs=replace(part.inputs, plan=lax)) for part in parts]
    assert deliver_aar(without, sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out").aar.is_file()


def test_no_parts_make_no_aar(tmp_path: Path, sources: Path) -> None:
    """As the package itself says."""
    with pytest.raises(PackageError) as caught:
        deliver_aar((), sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    assert caught.value.reference == "no-abi"


def test_a_part_has_the_symbols_that_builds_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runtime and of the JNI library, where there are any."""
    inputs = aar_inputs(tmp_path, ABIS[:1]).parts[0].inputs
    made = JniLibrary(library=tmp_path / BINDING, symbols=tmp_path / f"{BINDING}.sym")

    def build(job: BuildJob, result: JobResult, *_: object) -> JniLibrary:
        assert (job, result) == (inputs.job, inputs.result)
        return made

    monkeypatch.setattr(android_package, "build_jni_library", build)
    folder = tmp_path / "none"
    workspace = Inputs(sources=folder, tools=folder, runner=folder, hooks=folder)
    assert aar_part(inputs, workspace, fake_jdk(tmp_path / "jdk")).symbols == ()
    (inputs.result.folder / f"{RUNTIME}.sym").touch()
    (tmp_path / f"{BINDING}.sym").touch()
    part = aar_part(inputs, workspace, fake_jdk(tmp_path / "jdk"))
    assert [path.name for path in part.symbols] == [f"{RUNTIME}.sym", f"{BINDING}.sym"]
    assert part.binding == made.library
