"""Upstream's Java API on a trimmed library: compiled without Gradle, run by a real virtual machine with the demo."""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from ortrim.binaries.android_elf import read_native_library
from ortrim.binaries.java_classes import read_class
from ortrim.console import Console
from ortrim.core.android import NativeMethod
from ortrim.core.plan import BuildJob
from ortrim.executors.jni import JAVA
from ortrim.package.android.classes import FOLDERS, classes_jar
from ortrim.pipeline.builders import executor_for
from ortrim.pipeline.planned import Planned, make_planned
from ortrim.storage.zips import open_zip
from ortrim.tasks.options import request_from
from ortrim.tools.command import run
from ortrim.tools.javac import Jdk, find_jdk

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("javac", "java")]

PROGRAM: Final = Path(__file__).with_name("data") / "RunModel.java"
DESKTOP: Final = ("java", "jvm")
"""What upstream's `build.gradle` compiles for a desktop's Java."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """The demo for this machine: its plan, its libraries in one folder, the Java API, and a program that uses it."""

    planned: Planned
    job: BuildJob
    libraries: Path
    jar: Path
    program: Path
    java: Path
    jdk: Jdk


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the demo, or take what was built of it, and compile all that Java needs."""
    folder, console, jdk = tmp_path_factory.mktemp("java"), Console(), find_jdk()
    request = request_from(None, target="linux-x64", output=str(folder / "artifacts"))
    planned = make_planned(request, console, to_run=True)
    (target,) = planned.plan.targets
    with console.step("build") as step:
        executor = executor_for(planned, target, request, step)
        result = executor.run(target.job)
    binding = executor.run_jni(target.job, result, jdk)
    libraries = folder / "libraries"
    libraries.mkdir()
    for path in (result.library, binding.library):
        (libraries / path.name).symlink_to(path)
    java = planned.sources.folder / JAVA
    (folder / "onnxruntime.jar").write_bytes(classes_jar(jdk, [java / name for name in DESKTOP]))
    done = run((jdk.javac, "-classpath", folder / "onnxruntime.jar", "-d", folder / "program", PROGRAM))
    assert done.returncode == 0, done.stderr
    return Built(
        planned=planned,
        job=target.job,
        libraries=libraries,
        jar=folder / "onnxruntime.jar",
        program=folder / "program",
        java=java,
        jdk=jdk,
    )


def run_in_java(
    built: Built, folder: Path, inputs: dict[str, npt.NDArray[np.generic]], how: str
) -> dict[str, npt.NDArray[np.float32]]:
    """Run the demo model in a virtual machine and return its outputs."""
    folder.mkdir()
    words = []
    for name, value in inputs.items():
        value.tofile(folder / f"{name}.raw")
        words.append(f"{name}:{value.dtype}:{','.join(map(str, value.shape))}")
    java = built.jdk.javac.with_name("java")
    machine = (java, f"-Donnxruntime.native.path={built.libraries}", "-Xcheck:jni")
    classes = ("-classpath", f"{built.jar}{os.pathsep}{built.program}", "RunModel")
    model = built.planned.models.converted[0].path
    done = run((*machine, *classes, how, model, folder, *words), timeout_seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout, done.stdout
    assert f"version {built.job.ort_version}" in done.stdout.splitlines()
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("output ")]
    return {name: np.fromfile(folder / f"{name}.raw", dtype=np.float32) for name in names}


def test_the_demo_runs_in_java_with_the_full_runtimes_outputs(built: Built, tmp_path: Path) -> None:
    """Every case of the demo, on the trimmed library, through JNI with its checks on; the model copied or mapped."""
    (prepared,) = built.planned.models.prepared
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    full = onnxruntime.InferenceSession(prepared.path, options)
    names = [each.name for each in full.get_inputs()]
    cases = built.planned.cases[0]
    assert len(cases) >= 8
    for number, case in enumerate(cases):
        inputs = dict(zip(names, [np.load(path) for path in sorted(case.folder.glob("input_*.npy"))], strict=True))
        expected = dict(zip([each.name for each in full.get_outputs()], full.run(None, inputs), strict=True))
        outputs = run_in_java(built, tmp_path / case.name, inputs, ("copied", "mapped")[number % 2])
        assert outputs.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(
                outputs[name], value.ravel(), rtol=1e-4, atol=1e-5, err_msg=f"{case.name} {name}"
            )


def test_every_native_method_of_the_api_is_bound(built: Built) -> None:
    """Of what Android gets, too: the classes and the JNI library come from the same sources."""
    data = (built.libraries / "libonnxruntime4j_jni.so").read_bytes()
    library = read_native_library(data, "jni/x86_64/libonnxruntime4j_jni.so", 0, 0)
    assert library.facts.soname == "libonnxruntime4j_jni.so"
    assert library.facts.stripped
    assert library.build_id
    assert library.source_paths == ()
    assert all(name.startswith(("Java_ai_onnxruntime_", "JNI_On")) for name in library.facts.exported)
    for folders in (DESKTOP, FOLDERS):
        methods = natives(classes_jar(built.jdk, [built.java / name for name in folders]))
        assert len(methods) > 140
        exported = set(library.facts.exported)
        assert [method for method in methods if not exported & {method.short_symbol, method.long_symbol}] == []


def natives(jar: bytes) -> list[NativeMethod]:
    """Return the native methods of all classes of a jar."""
    with open_zip(io.BytesIO(jar), "jar") as archive:
        classes = [read_class(archive.read(name), name) for name in archive.members if name.endswith(".class")]
    assert {each.version for each in classes} == {52}
    return [method for each in classes for method in each.native_methods]
