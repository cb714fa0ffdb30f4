"""Upstream's Java API on a trimmed library: compiled without Gradle, run by a real virtual machine with the demo."""

import io
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from android_tools import proguard
from java_demo import DESKTOP, JavaDemo, java_demo
from ortrim.base.archives import open_zip
from ortrim.base.command import run
from ortrim.binaries.android import NativeMethod
from ortrim.binaries.android_libraries import read_class, read_native_library
from ortrim.buildspec.tolerances import SAME_GRAPH_CONVOLVED
from ortrim.platforms.android.aar import FOLDERS, KEEP_RULES, classes_jar

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


def full_runtime(demo: JavaDemo) -> onnxruntime.InferenceSession:
    (prepared,) = demo.planned.models.prepared
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(prepared.path, options)


def inputs_of(case: Path, full: onnxruntime.InferenceSession) -> dict[str, npt.NDArray[np.generic]]:
    arrays = [np.load(path) for path in sorted(case.glob("input_*.npy"))]
    return dict(zip([each.name for each in full.get_inputs()], arrays, strict=True))


def test_the_demo_runs_in_java_with_the_full_runtimes_outputs(demo: JavaDemo, program: Path, tmp_path: Path) -> None:
    """Every case of the demo, on the trimmed library, through JNI with its checks on; the model copied or mapped."""
    full = full_runtime(demo)
    cases = demo.planned.cases[0]
    assert len(cases) >= 8
    for number, case in enumerate(cases):
        inputs = inputs_of(case.folder, full)
        expected = dict(zip([each.name for each in full.get_outputs()], full.run(None, inputs), strict=True))
        outputs = run_in_java(demo, program, tmp_path / case.name, inputs, ("copied", "mapped")[number % 2])
        assert outputs.keys() == expected.keys()
        for name, value in expected.items():
            own = SAME_GRAPH_CONVOLVED["float32"]
            most = own.scale * np.abs(value).max() + own.rounding
            np.testing.assert_allclose(
                outputs[name], value.ravel(), rtol=1e-4, atol=most, err_msg=f"{case.name} {name}"
            )


@pytest.mark.needs("apt-get", "dpkg-deb")
def test_an_app_runs_after_shrinking_by_the_rules_of_the_aar(
    demo: JavaDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What JNI looks for keeps its name; an app that is shrunk without the rules does not even start."""
    jar, compiled = tmp_path / "app.jar", tmp_path / "compiled"
    java8 = ("--release", "8", "-Xlint:-options")  # the newest that Debian's ProGuard reads is Java 13's
    done = run((demo.jdk.javac, *java8, "-classpath", demo.jar, "-d", compiled, PROGRAM))
    assert done.returncode == 0, done.stderr
    shutil.copy(demo.jar, jar)
    with zipfile.ZipFile(jar, "a") as archive:
        for path in compiled.glob("*.class"):
            archive.write(path, path.name)
    entry = f"-keep class {PROGRAM.stem} {{ public static void main(java.lang.String[]); }}\n"
    apps = {}
    for name, rules in {"kept": KEEP_RULES.decode(), "renamed": ""}.items():
        (tmp_path / f"{name}.txt").write_text(rules + entry)
        apps[name] = replace(demo, jar=tmp_path / f"{name}.jar")
        # Both read Java's own classes, which are not given to it.
        done = proguard(jar, tmp_path / f"{name}.txt", apps[name].jar, "-dontoptimize", "-dontpreverify")
        assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote")
    case, full, absent = demo.planned.cases[0][0], full_runtime(demo), tmp_path / "absent"
    inputs = inputs_of(case.folder, full)
    outputs = run_in_java(apps["kept"], absent, tmp_path / "kept", inputs, "copied")
    for name, value in zip(outputs, full.run(list(outputs), inputs), strict=True):
        np.testing.assert_allclose(outputs[name], value.ravel(), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError, match="UnsatisfiedLinkError"):
        run_in_java(apps["renamed"], absent, tmp_path / "renamed", inputs, "copied")


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
