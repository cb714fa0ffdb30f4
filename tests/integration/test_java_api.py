"""Upstream's Java API on a trimmed library: compiled without Gradle, run by a real virtual machine with the demo."""

import io
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from java_demo import DESKTOP, JavaDemo, java_demo
from ortrim.base.archives import open_zip
from ortrim.base.command import run
from ortrim.binaries.android import NativeMethod
from ortrim.binaries.android_libraries import read_class, read_native_library
from ortrim.platforms.android.aar import FOLDERS, classes_jar

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("javac", "java")]

PROGRAM: Final = Path(__file__).with_name("data") / "RunModel.java"


@pytest.fixture(name="demo", scope="module")
def fixture_demo(tmp_path_factory: pytest.TempPathFactory) -> JavaDemo:
    return java_demo(tmp_path_factory.mktemp("java"))


@pytest.fixture(name="program", scope="module")
def fixture_program(demo: JavaDemo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    demo.compile([PROGRAM], folder)
    return folder


def run_in_java(
    demo: JavaDemo, program: Path, folder: Path, inputs: dict[str, npt.NDArray[np.generic]], how: str
) -> dict[str, npt.NDArray[np.float32]]:
    folder.mkdir()
    words = []
    for name, value in inputs.items():
        value.tofile(folder / f"{name}.raw")
        words.append(f"{name}:{value.dtype}:{','.join(map(str, value.shape))}")
    model = demo.planned.models.converted[0].path
    done = run((*demo.words("RunModel", program), how, model, folder, *words), timeout_seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout, done.stdout
    assert f"version {demo.job.ort_version}" in done.stdout.splitlines()
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("output ")]
    return {name: np.fromfile(folder / f"{name}.raw", dtype=np.float32) for name in names}


def test_the_demo_runs_in_java_with_the_full_runtimes_outputs(demo: JavaDemo, program: Path, tmp_path: Path) -> None:
    """Every case of the demo, on the trimmed library, through JNI with its checks on; the model copied or mapped."""
    (prepared,) = demo.planned.models.prepared
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    full = onnxruntime.InferenceSession(prepared.path, options)
    names = [each.name for each in full.get_inputs()]
    cases = demo.planned.cases[0]
    assert len(cases) >= 8
    for number, case in enumerate(cases):
        inputs = dict(zip(names, [np.load(path) for path in sorted(case.folder.glob("input_*.npy"))], strict=True))
        expected = dict(zip([each.name for each in full.get_outputs()], full.run(None, inputs), strict=True))
        outputs = run_in_java(demo, program, tmp_path / case.name, inputs, ("copied", "mapped")[number % 2])
        assert outputs.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(
                outputs[name], value.ravel(), rtol=1e-4, atol=1e-5, err_msg=f"{case.name} {name}"
            )


def test_every_native_method_of_the_api_is_bound(demo: JavaDemo) -> None:
    """Of what Android gets, too: the classes and the JNI library come from the same sources."""
    data = (demo.libraries / "libonnxruntime4j_jni.so").read_bytes()
    library = read_native_library(data, "jni/x86_64/libonnxruntime4j_jni.so", 0, 0)
    assert library.facts.soname == "libonnxruntime4j_jni.so"
    assert library.facts.stripped
    assert library.build_id
    assert library.source_paths == ()
    assert all(name.startswith(("Java_ai_onnxruntime_", "JNI_On")) for name in library.facts.exported)
    for folders in (DESKTOP, FOLDERS):
        methods = natives(classes_jar(demo.jdk, [demo.java / name for name in folders]))
        assert len(methods) > 140
        exported = set(library.facts.exported)
        assert [method for method in methods if not exported & {method.short_symbol, method.long_symbol}] == []


def natives(jar: bytes) -> list[NativeMethod]:
    with open_zip(io.BytesIO(jar), "jar") as archive:
        classes = [read_class(archive.read(name), name) for name in archive.members if name.endswith(".class")]
    assert {each.version for each in classes} == {52}
    return [method for each in classes for method in each.native_methods]
