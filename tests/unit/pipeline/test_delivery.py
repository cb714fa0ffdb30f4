"""What is delivered, and which gates it passes through: those of the library, of the archive, and of the models."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aar_samples import ABIS, aar_inputs, fake_jdk
from ar_samples import ar_archive
from ort_samples import ort_model
from ortrim.binaries.elf import read_library
from ortrim.binaries.objects import hide_symbols
from ortrim.buildspec.buildspec import IN_PLACE, SessionSettings
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import ARCHIVE, BuildJob, JobResult, Package
from ortrim.package.manifest import PackageInputs
from ortrim.package.package import make_package
from ortrim.parity.measurements import Gate, Verdict
from ortrim.planning.planned import Planned, planned_for
from ortrim.platforms.android import aar as android
from ortrim.platforms.android.jni import JAVA
from ortrim.platforms.linux import delivery as linux
from ortrim.verify.target import Delivery
from sample_package import make_inputs

CROOKED, STRAIGHT = ort_model(7, 256, padding=4), ort_model(7, 256)
JOINED = (Path(__file__).parents[1] / "binaries" / "data" / "joined.o").read_bytes()


@pytest.fixture(name="planned")
def fixture_planned(stages: Any) -> Planned:
    return planned_for(stages.request(), stages.console)


@pytest.fixture(name="with_model")
def fixture_with_model(planned: Planned, tmp_path: Path) -> Callable[..., Planned]:

    def make(content: bytes, *, in_place: bool = False) -> Planned:
        path = tmp_path / "tiny.ort"
        path.write_bytes(content)
        converted = tuple(replace(model, path=path) for model in planned.models.converted)
        session = SessionSettings(load="map", configuration=(IN_PLACE,) if in_place else ())
        plans = tuple(replace(model, session=session) for model in planned.plan.models)
        return replace(
            planned, models=replace(planned.models, converted=converted), plan=replace(planned.plan, models=plans)
        )

    return make


def built(folder: Path, archive: bytes | None = None, **changes: Any) -> tuple[BuildJob, JobResult, Package]:
    inputs = make_inputs(folder / "built")
    job, result = replace(inputs.job, **changes), inputs.result
    if archive is not None:
        (folder / ARCHIVE).write_bytes(archive)
        job, result = replace(job, linkage="static"), replace(result, archive=folder / ARCHIVE)
    package = make_package(replace(inputs, job=job, result=result), folder / "out")
    return job, result, package


def part_of(planned: Planned, job: BuildJob, result: JobResult) -> PackageInputs:
    return PackageInputs(
        plan=planned.plan,
        job=job,
        result=result,
        models=planned.models.converted,
        operators=planned.models.operators,
        licence=Path(),
        notices=Path(),
        licences=(),
    )


def linux_delivery(planned: Planned, job: BuildJob, result: JobResult, package: Package) -> Delivery:
    return linux.delivery(part_of(planned, job, result), package)


def gate_of(delivered: Delivery, name: str) -> Gate:
    (gate,) = (gate for gate in delivered.gates if gate.name == name)
    return gate


def test_a_shared_library_is_what_the_package_holds(planned: Planned, tmp_path: Path) -> None:
    """Not what lies in the build's folder; on x86-64 nobody looks at where tensors lie."""
    job, result, package = built(tmp_path)
    delivered = linux_delivery(planned, job, result, package)
    assert delivered.archive == package.archive
    assert delivered.library == package.folder / "lib" / "libonnxruntime.so"
    assert delivered.size.file_bytes == delivered.library.stat().st_size
    assert {gate.name for gate in delivered.gates} >= {"machine", "stripped", "oldest glibc"}
    assert not [gate.name for gate in delivered.gates if gate.name.startswith(("tensors", "static"))]


def test_a_library_of_another_machine_fails_its_gate(planned: Planned, tmp_path: Path) -> None:
    job, result, package = built(tmp_path, target=TARGETS["linux-arm64"])
    assert gate_of(linux_delivery(planned, job, result, package), "machine").verdict is Verdict.FAIL


def test_the_systems_compilers_may_need_their_own_libraries(planned: Planned, tmp_path: Path) -> None:
    job, result, package = built(tmp_path)
    gcc = replace(job, toolchain=replace(job.toolchain, kind="gcc"))
    for each in (job, gcc):
        assert gate_of(linux_delivery(planned, each, result, package), "needed libraries").verdict is Verdict.PASS


@pytest.mark.parametrize(("hidden", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_every_object_of_an_archive_is_looked_at(
    planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, hidden: bool, verdict: Verdict
) -> None:
    content = hide_symbols(JOINED, frozenset({"offered"})) if hidden else JOINED
    job, result, package = built(tmp_path, archive=ar_archive({"all.o/": content}))
    real = read_library
    monkeypatch.setattr(linux, "read_library", lambda path: replace(real(path), exported=("offered",)))
    delivered = linux_delivery(planned, job, result, package)
    assert gate_of(delivered, "static library hides all else").verdict is verdict
    assert delivered.library == package.folder / "lib" / ARCHIVE
    assert delivered.size.file_bytes == result.library.stat().st_size


@pytest.mark.parametrize(
    ("content", "verdict"), [(STRAIGHT, Verdict.PASS), (CROOKED, Verdict.NOT_JUDGED)], ids=["straight", "crooked"]
)
def test_where_tensors_lie_is_told_for_armv7(
    with_model: Callable[[bytes], Planned], tmp_path: Path, content: bytes, verdict: Verdict
) -> None:
    """A model with crooked 8-byte data can be shipped, since nothing reads it in place; the report advises."""
    job, result, package = built(tmp_path, target=TARGETS["linux-armhf"])
    gate = gate_of(linux_delivery(with_model(content), job, result, package), "tensors of tiny")
    assert gate.verdict is verdict
    assert (IN_PLACE[0] in gate.detail) is (verdict is Verdict.NOT_JUDGED)


def test_with_settings_that_read_in_place_crooked_tensors_fail(
    with_model: Callable[..., Planned], tmp_path: Path
) -> None:
    job, result, package = built(tmp_path, target=TARGETS["linux-armhf"])
    gate = gate_of(linux_delivery(with_model(CROOKED, in_place=True), job, result, package), "tensors of tiny")
    assert gate.verdict is Verdict.FAIL


@pytest.mark.parametrize("abi", ["armeabi-v7a", "arm64-v8a"])
def test_on_android_the_gates_are_the_aars_and_the_models(
    with_model: Callable[[bytes], Planned], tmp_path: Path, abi: str
) -> None:
    """Of 32 bits alone; sizes are those of its ABI."""
    (tmp_path / "sources" / JAVA / "java").mkdir(parents=True)
    (tmp_path / "sources" / JAVA / "java" / "OnnxRuntime.java").touch()
    parts = aar_inputs(tmp_path / "in", ABIS).parts
    package, facts, gates = android.deliver_aar(
        parts, tmp_path / "sources", fake_jdk(tmp_path / "jdk"), tmp_path / "out"
    )
    part = next(part for part in parts if part.abi == abi)
    delivered = android.delivery(
        part_of(with_model(CROOKED), part.inputs.job, part.inputs.result), package.aar, facts, gates
    )
    assert delivered.gates[: len(gates)] == gates
    assert [gate.name for gate in delivered.gates[len(gates) :]] == (
        ["tensors of tiny"] if abi == "armeabi-v7a" else []
    )
    (size,) = (size for size in facts.sizes if size.abi == abi)
    assert [(line.measure, line.ours) for line in delivered.sizes] == [
        ("libraries of the ABI", size.library_bytes),
        ("libraries in the AAR", size.compressed_bytes),
        ("app's download", size.download_bytes),
    ]
    assert delivered.archive == package.aar
