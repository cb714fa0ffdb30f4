"""Packages for Apple's systems of the recorded libraries: the inputs that a real one is made from."""

import hashlib
import stat
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from apple_slices import TRIPLES, recorded
from ortrim.buildspec.buildspec import AppleSpec, TargetSpec
from ortrim.compiling.plan import BuildPlan
from ortrim.package.manifest import ComponentLicence
from ortrim.platforms.apple.framework import AppleInputs, ApplePart
from sample_package import MODEL, lay_out, part_inputs
from sample_plans import MODELS, SAMPLE_APPLE, sample_plan

TARGETS: Final = tuple(TRIPLES)
HEADERS: Final = ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h", "onnxruntime_float16.h", "coreml_provider_factory.h")
SOURCES: Final = (
    "cxx_api.h", "ort_env.mm", "ort_session.mm", "ort_training_session.mm", "ort_checkpoint_internal.h",
    "assert_arc_enabled.mm", "ReadMe.md", "include/onnxruntime.h", "include/ort_env.h",
    "include/onnxruntime_training.h", "test/ort_env_test.mm",
)  # fmt: skip
"""Some of the files of upstream's Objective-C API, by name."""


def apple_plan(targets: tuple[str, ...] = TARGETS, apple: AppleSpec = SAMPLE_APPLE) -> BuildPlan:
    model = replace(MODELS[0], name="vad", style="runtime", ort_sha256=hashlib.sha256(MODEL).hexdigest())
    selected = tuple(TargetSpec(id=target) for target in targets)
    return sample_plan(selected=selected, models=(model,), apple=apple)


def apple_inputs(folder: Path, targets: tuple[str, ...] = TARGETS, apple: AppleSpec = SAMPLE_APPLE) -> AppleInputs:
    plan = apple_plan(targets, apple)
    for name in SOURCES:
        (folder / "objectivec" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "objectivec" / name).write_text(f"// {name}\n")
    lay_out(folder, HEADERS)
    parts = tuple(_part(folder, plan, target, number) for number, target in enumerate(targets))
    return AppleInputs(parts=parts, objective_c=folder / "objectivec")


def unzipped(archive: Path, folder: Path) -> Path:
    """Unpack a zip as Apple's tools do, links and modes included, and return the folder."""
    with zipfile.ZipFile(archive) as content:
        for entry in content.infolist():
            path, mode = folder / entry.filename, entry.external_attr >> 16
            path.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISLNK(mode):
                path.symlink_to(content.read(entry).decode())
            else:
                path.write_bytes(content.read(entry))
                path.chmod(mode & 0o777)
    return folder


def _part(folder: Path, plan: BuildPlan, target: str, number: int) -> ApplePart:
    built = folder / "builds" / target
    built.mkdir(parents=True)
    for name in ("libonnxruntime.so", "libonnxruntime.dylib.dwarf"):
        (built / name).write_bytes(recorded(target))
    licence = ComponentLicence(component="eigen", identifier="MPL-2.0", path=folder / "COPYING")
    inputs = part_inputs(folder, plan, number, built / "libonnxruntime.so", licence)
    return ApplePart(inputs=inputs, symbols=built / "libonnxruntime.dylib.dwarf")
