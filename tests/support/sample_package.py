"""A small but real package: a library that zig linked, and everything else as a build leaves it."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.buildspec.build_options import PROFILES
from ortrim.buildspec.buildspec import Budgets
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob, BuildPlan, JobResult, PlannedModel, PlannedTarget, RunnerJob, Toolchain
from ortrim.models.models import OrtModel
from ortrim.models.operators import OperatorId, OperatorTypes, required_operators
from ortrim.package.manifest import ComponentLicence, PackageInputs
from ortrim.pins.runtime import SourcePin
from sample_plans import OPERATORS

LIBRARY = Path(__file__).parents[1] / "unit" / "binaries" / "data" / "tiny.so"
MODEL = b"\x18\0\0\0ORTM" + bytes(range(256))
SOURCES = (
    SourcePin(name="onnxruntime", version="1.21.0", kind="debian", digest="3" * 64, licence="MIT"),
    SourcePin(name="abseil_cpp", version="20240722.0", kind="git", digest="a" * 40, licence="Apache-2.0"),
    SourcePin(name="eigen", version="3.4.0", kind="upstream", digest="e" * 64, licence="MPL-2.0 AND BSD-3-Clause"),
)


def build_job() -> BuildJob:
    """Return a job as planning makes it: all paths symbolic."""
    toolchain = Toolchain(kind="zig", version="0.17.0", triple="x86_64-linux-gnu.2.28", environment=(), wrappers=())
    return BuildJob(
        target=TARGETS["linux-x64"],
        ort_version="1.21.0",
        profile="balanced",
        build_options=PROFILES["balanced"],
        exceptions=False,
        minimum_glibc="2.28",
        operator_config="ai.onnx;13;Gemm\n",
        toolchain=toolchain,
        tools=(("cmake", "3.31.6"), ("ziglang", "0.17.0")),
        hooks_sha256="d" * 64,
        sources=SOURCES,
        arguments=("--minimal_build", "--path_to_protoc_exe", "${tools}/bin/protoc"),
    )


def runner_job(job: BuildJob) -> RunnerJob:
    return RunnerJob(
        target=job.target,
        toolchain=job.toolchain,
        headers=job.sources[0],
        runner_sha256="2" * 64,
        arguments=("${runner}/runner.c",),
    )


def make_inputs(folder: Path) -> PackageInputs:
    headers, texts = folder / "headers", folder / "texts"
    for made in (headers, texts):
        made.mkdir(parents=True)
    (folder / "libonnxruntime.so").write_bytes(LIBRARY.read_bytes())
    for name in ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h", "onnxruntime_float16.h"):
        (headers / name).write_text(f"#pragma once  // {name}\n")
    (headers / "CMakeLists.txt").write_text("not a header\n")
    (folder / "model.ort").write_bytes(MODEL)
    (texts / "LICENSE").write_bytes(b"MIT License\r\n\r\nCopyright (c) Microsoft Corporation\r\n")
    (texts / "ThirdPartyNotices.txt").write_text("THIRD PARTY NOTICES\n")
    (texts / "COPYING.eigen").write_bytes(b"Beno\xeet Jacob\n")
    (texts / "LICENSE.libcxx").write_text("LLVM\n")
    digest = hashlib.sha256(MODEL).hexdigest()
    planned = PlannedModel(
        name="vad",
        onnx_sha256="0" * 64,
        ort_sha256=digest,
        style="fixed",
        level="extended",
        tests_sha256="1" * 64,
    )
    job = build_job()
    return PackageInputs(
        plan=BuildPlan(
            ortrim_version="0.1.0",
            spec_name="demo",
            ort_version="1.21.0",
            models=(planned,),
            targets=(PlannedTarget(job=job, runner=runner_job(job), budgets=Budgets()),),
        ),
        job=job,
        result=JobResult(
            folder=folder,
            library=folder / "libonnxruntime.so",
            link_map=None,
            headers=headers,
            log=folder / "build.log",
            seconds=1.0,
            compiler_cache=None,
        ),
        models=(
            OrtModel(
                name="vad",
                path=folder / "model.ort",
                sha256=digest,
                size_bytes=len(MODEL),
                ort_version="1.21.0",
                style="fixed",
                level="extended",
                config="",
            ),
        ),
        operators=required_operators(
            [OperatorId(domain="ai.onnx", opset=13, name="Gemm")],
            {("ai.onnx", "Gemm"): OperatorTypes(inputs=((0, ("float",)),))},
        ),
        licence=texts / "LICENSE",
        notices=texts / "ThirdPartyNotices.txt",
        licences=(
            ComponentLicence(
                component="libc++",
                identifier="Apache-2.0 WITH LLVM-exception",
                path=texts / "LICENSE.libcxx",
                version="22.1.8",
            ),
            ComponentLicence(component="eigen", identifier="MPL-2.0", path=texts / "COPYING.eigen"),
        ),
    )


def with_library(inputs: PackageInputs, content: bytes) -> PackageInputs:
    library = inputs.result.folder / "other.so"
    library.write_bytes(content)
    return replace(inputs, result=replace(inputs.result, library=library))


@contextmanager
def another_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set another time zone, umask and time of sources, none of which may be in a package."""
    old = os.umask(0o077)
    try:
        with monkeypatch.context() as own:
            own.setenv("TZ", "Pacific/Kiritimati")
            own.setenv("SOURCE_DATE_EPOCH", "1")
            time.tzset()
            yield
    finally:
        os.umask(old)
        time.tzset()


def content_of(folder: Path) -> dict[str, bytes | str]:
    """Return the content of all files in a folder, and where its links lead, by their paths."""
    found = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.readlink().as_posix() if path.is_symlink() else path.read_bytes()
        for path in found
    }


def lay_out(folder: Path, headers: Iterable[str]) -> None:
    """Lay out what a package of several targets has of its sources: headers, licences, and a model."""
    (folder / "headers").mkdir()
    for name in headers:
        (folder / "headers" / name).write_text(f"#pragma once  // {name}\n")
    for name in ("LICENSE", "ThirdPartyNotices.txt", "COPYING"):
        (folder / name).write_text(f"{name}\n")
    (folder / "model.ort").write_bytes(MODEL)


def part_inputs(folder: Path, plan: BuildPlan, number: int, library: Path, licence: ComponentLicence) -> PackageInputs:
    """Return the inputs of one target of a package, of what `lay_out` left and a library that was built."""
    result = JobResult(
        folder=library.parent, library=library, link_map=None, headers=folder / "headers",
        log=library.parent / "build.log", seconds=1.0, compiler_cache=None,
    )  # fmt: skip
    (planned,) = plan.models
    model = OrtModel(
        name=planned.name, path=folder / "model.ort", sha256=planned.ort_sha256, size_bytes=len(MODEL),
        ort_version="1.21.0", style=planned.style, level="extended", config="",
    )  # fmt: skip
    return PackageInputs(
        plan=plan,
        job=plan.targets[number].job,
        result=result,
        models=(model,),
        operators=OPERATORS,
        licence=folder / "LICENSE",
        notices=folder / "ThirdPartyNotices.txt",
        licences=(licence,),
    )
