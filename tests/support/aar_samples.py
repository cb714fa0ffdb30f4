"""AARs of the recorded libraries: as files of any content, and as inputs that a real one is made from."""

import hashlib
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from android_samples import BINDING, RECORDED, RUNTIME, TRIPLES, sample
from ortrim.buildspec.buildspec import AndroidSpec, RuntimeSpec, TargetSpec
from ortrim.compiling.plan import BuildPlan, PlannedModel
from ortrim.package.aar_contents import AarFacts, read_aar
from ortrim.package.manifest import ComponentLicence
from ortrim.planning.planner import Contents, PlanInput, make_plan
from ortrim.platforms.android.aar import AarInputs, AarPart
from ortrim.platforms.android.jni import Jdk
from program_files import write_program
from sample_package import MODEL, lay_out, part_inputs
from sample_plans import OPERATORS, SOURCES, sample_spec, sample_toolchain
from zips import zipped

ABIS: Final = tuple(TRIPLES)
MANIFEST: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="ai.onnxruntime">
    <uses-sdk android:minSdkVersion="24" />
    <application/>
</manifest>
"""
CLASS: Final = (RECORDED / "OnnxRuntime.class").read_bytes()
NDK: Final = "27.2.12479018"
JAVAC: Final = """#!/bin/sh
[ "$1" = -version ] && {{ echo javac 17.0.15; exit; }}
while [ $# -gt 0 ]; do
  case "$1" in
  -d) folder=$2 ;;
  esac
  shift
done
mkdir -p "$folder/ai/onnxruntime"
cp "{recorded}" "$folder/ai/onnxruntime/OnnxRuntime.class"
"""


def members(abis: tuple[str, ...] = ABIS) -> dict[str, bytes]:
    return {
        "AndroidManifest.xml": MANIFEST,
        "R.txt": b"",
        "classes.jar": zipped({"ai/onnxruntime/OnnxRuntime.class": CLASS}),
        "proguard.txt": b"-keep class ai.onnxruntime.** { *; }\n",
        **{f"jni/{abi}/{name}": sample(f"{abi}-{name}") for abi in abis for name in (RUNTIME, BINDING)},
    }


def facts_of(folder: Path, content: Mapping[str, bytes]) -> AarFacts:
    path = folder / "library.aar"
    path.write_bytes(zipped(content))
    return read_aar(path)


def with_program_header(library: bytes, kind: int, field: int, value: int) -> bytes:
    """Return a 64-bit library with 8 bytes (4 in the first two fields) of its first header of a kind replaced."""
    (start,), (count,) = struct.unpack_from("<Q", library, 32), struct.unpack_from("<H", library, 56)
    headers = range(start, start + 56 * count, 56)
    header = next(place for place in headers if struct.unpack_from("<I", library, place)[0] == kind)
    offset, form = (4 * field, "<I") if field < 2 else (8 * (field - 1), "<Q")
    changed = bytearray(library)
    struct.pack_into(form, changed, header + offset, value)
    return bytes(changed)


def with_program_header_32(library: bytes, kind: int, field: int, value: int) -> bytes:
    """Do the same with a 32-bit library."""
    (start,), (count,) = struct.unpack_from("<I", library, 28), struct.unpack_from("<H", library, 44)
    headers = range(start, start + 32 * count, 32)
    header = next(place for place in headers if struct.unpack_from("<I", library, place)[0] == kind)
    changed = bytearray(library)
    struct.pack_into("<I", changed, header + 4 * field, value)
    return bytes(changed)


def fake_jdk(folder: Path) -> Jdk:
    """Return a Java compiler that makes the recorded class of whatever it is given."""
    folder.mkdir(parents=True, exist_ok=True)
    program = write_program(folder / "javac", JAVAC.format(recorded=RECORDED / "OnnxRuntime.class"))
    return Jdk(javac=program, version="17.0.15")


def android_plan(abis: tuple[str, ...] = ABIS, version: str = "1.21.0", **android: Any) -> BuildPlan:
    targets = tuple(TargetSpec(id=f"android-{abi}") for abi in abis)
    spec = sample_spec(targets=targets, android=AndroidSpec(**android), onnxruntime=RuntimeSpec(version=version))
    planned = PlannedModel(
        name="vad", onnx_sha256="0" * 64, ort_sha256=hashlib.sha256(MODEL).hexdigest(), tests_sha256="1" * 64,
        style="fixed", level="extended",
    )  # fmt: skip
    return make_plan(
        PlanInput(spec=spec, contents=Contents(operators=OPERATORS, models=(planned,))),
        sources=SOURCES,
        tools=(("cmake", "3.31.10"), ("ninja", "1.13.2")),
        toolchains={each.id: sample_toolchain(spec, each) for each in targets},
        runner_sha256="4" * 64,
        hooks_sha256="d" * 64,
        ortrim_version="0.1.0",
    )


def aar_inputs(
    folder: Path, abis: tuple[str, ...] = ABIS, version: str = "1.21.0", *, assets: bool = False, **android: Any
) -> AarInputs:
    plan = android_plan(abis, version, **android)
    (folder / "java" / "ai").mkdir(parents=True)
    (folder / "java" / "ai" / "OnnxRuntime.java").write_bytes((RECORDED / "OnnxRuntime.java").read_bytes())
    lay_out(folder, ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h"))
    parts = tuple(_part(folder, plan, abi, number) for number, abi in enumerate(abis))
    return AarInputs(parts=parts, java=(folder / "java",), ndk=NDK, models_as_assets=assets)


def _part(folder: Path, plan: BuildPlan, abi: str, number: int) -> AarPart:
    built = folder / "builds" / abi
    built.mkdir(parents=True)
    for name in (RUNTIME, BINDING):
        (built / name).write_bytes(sample(f"{abi}-{name}"))
    licence = ComponentLicence(
        component="libc++", identifier="Apache-2.0 WITH LLVM-exception", path=folder / "COPYING", version=NDK
    )
    inputs = part_inputs(folder, plan, number, built / RUNTIME, licence)
    return AarPart(inputs=inputs, binding=built / BINDING)
