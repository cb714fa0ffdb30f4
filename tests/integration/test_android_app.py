"""An app with our AAR, by Android's Gradle plugin and R8: each model in Java and in C++, on a phone and as far as here.

Without Google's repositories its instrumentation is compiled for Android, and run by a plain Java virtual machine with
stand-ins for Android's classes (`data/android_jvm`) and the demo's library for this machine.
"""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from aar_samples import aar_inputs, fake_jdk
from harness_java import android_jar
from java_demo import java_demo
from kotlin_compiler import kotlinc
from ortrim.base.command import Completed, run
from ortrim.base.console import Console
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.elf import read_library
from ortrim.buildspec.buildspec import session_json
from ortrim.buildspec.targets import TARGETS
from ortrim.buildspec.tolerances import SAME_GRAPH_ELSEWHERE
from ortrim.cli.options import demo_spec, request_from
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.parity.compare import compare, with_same_graph
from ortrim.parity.inputs import load_array, numpy_type, save_array
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput
from ortrim.pins.shipped import tool_requirements, tool_versions
from ortrim.pipeline.building import build
from ortrim.pipeline.verification import _subjects
from ortrim.planning.planned import Planned, planned_for
from ortrim.platforms.android.aar import FOLDERS, classes_jar, make_android_package
from ortrim.platforms.android.arguments import zig_android_toolchain
from ortrim.platforms.android.bionic import sysroot_of
from ortrim.platforms.android.jni import JAVA, find_jdk
from ortrim.verify.judge import parity_of
from ortrim.verify.target import ModelUnderTest
from own_caches import zig_of_tests
from program_files import write_program

PROJECT: Final = Path(__file__).parents[1] / "integration" / "data" / "android_app"
MAIN: Final = PROJECT / "src" / "main"
LEVELS: Final = {"ORT_DISABLE_ALL": 0, "ORT_ENABLE_ALL": 99}
MODES: Final = {"ORT_SEQUENTIAL": 0, "ORT_PARALLEL": 1}
HEAD: Final = re.compile(rb"([0-9 ]+)\n")
"""Of a tensor: how many dimensions, their sizes, and how many bytes follow."""
MEDIA: Final = "/sdcard/Android/media/ortrim.app"
APIS: Final = ("java", "cpp")


def subjects_of(planned: Planned) -> tuple[ModelUnderTest, ...]:
    with Console().step("references") as step:
        return _subjects(planned, planned.plan.targets[0].job.target, step)


def write_requests(folder: Path, session: str, subjects: Sequence[ModelUnderTest]) -> None:
    settings = json.loads(session)["models"]
    folder.mkdir(parents=True)
    for subject in subjects:
        one = settings[subject.prepared.name]
        entries = one["session_configuration"]
        words = (
            LEVELS[one["graph_optimization_level"]], MODES[one["execution_mode"]],
            one["intra_op_num_threads"], one["inter_op_num_threads"],
            int(one["enable_cpu_mem_arena"]), int(one["enable_mem_pattern"]),
            len(entries), *(word for entry in entries.items() for word in entry),
            len(subject.cases),
        )  # fmt: skip
        text = "".join(f"{word}\n" for word in words).encode()
        inputs = (path for case in subject.cases for path in sorted(case.folder.glob("input_*")))
        (folder / subject.prepared.name).write_bytes(text + b"".join(map(_tensor, inputs)))


def _tensor(path: Path) -> bytes:
    array = load_array(path)
    assert array.dtype != np.dtype(object), "the app gives models no strings"
    content = array.tobytes()
    return " ".join(map(str, (array.ndim, *array.shape, len(content)))).encode() + b"\n" + content


def parity(subject: ModelUnderTest, results: Path, folder: Path) -> tuple[OutputParity, ...]:
    data = results.read_bytes()
    cases = []
    for case in subject.cases:
        (folder / case.name).mkdir(parents=True)
        outputs = []
        for number, info in enumerate(subject.prepared.facts.outputs):
            found = HEAD.match(data)
            assert found
            _, *shape, size = map(int, found[1].split())
            content, data = data[found.end() : found.end() + size], data[found.end() + size :]
            array = np.frombuffer(content, numpy_type(info.element_type)).reshape(shape)
            file = save_array(folder / case.name, f"output_{number:03}", array)
            outputs.append(
                SavedOutput(name=info.name, element_type=info.element_type, shape=array.shape, file=file.name)
            )
        cases.append(CaseOutputs(name=case.name, outputs=tuple(outputs)))
    assert data == b""
    ours = SavedOutputs(folder=folder, cases=tuple(cases))
    name, tolerances = subject.prepared.name, subject.spec.tolerances
    again = compare(name, subject.same_graph, ours, tolerances, defaults=SAME_GRAPH_ELSEWHERE)
    return with_same_graph(compare(name, subject.reference, ours, tolerances), again)


def write_app(folder: Path, package: Path, subjects: Sequence[ModelUnderTest]) -> None:
    manifest = json.loads((package / "manifest.json").read_text())
    shutil.copytree(PROJECT, folder)
    shutil.copytree(package / "maven", folder / "maven")
    with (folder / "gradle.properties").open("a") as properties:
        properties.write(f"ortrim.coordinates={manifest['coordinates']}\n")
    session = (package / "models" / "session.json").read_text()
    write_requests(folder / "src" / "main" / "assets" / "requests", session, subjects)


def run_app(project: Path, results: Path) -> None:
    """Have Gradle make the app, run it on the phone that adb reaches, and fetch what it left into a new folder."""
    done(("gradle", "--no-daemon", "assembleRelease"), cwd=project)
    done(("adb", "install", "-r", project / "build/outputs/apk/release/ortrim-app-release.apk"))
    told = done(("adb", "shell", "am", "instrument", "-w", "ortrim.app/.RunModels"))
    if "INSTRUMENTATION_CODE: -1" not in told.stdout:
        log = run(("adb", "logcat", "-d", "-t", "300"), timeout_seconds=60).stdout
        raise AssertionError(f"{told.stdout}\n{log}")
    done(("adb", "pull", MEDIA, results))


def done(words: tuple[str | Path, ...], cwd: Path | None = None) -> Completed:
    completed = run(words, cwd=cwd, timeout_seconds=1800)
    assert completed.returncode == 0, completed.stdout[-5000:] + completed.stderr[-5000:]
    return completed


pytestmark = pytest.mark.network

STAND_INS: Final = PROJECT.with_name("android_jvm")
CONFIG: Final = """\
add_library(onnxruntime::onnxruntime SHARED IMPORTED)
set_target_properties(onnxruntime::onnxruntime PROPERTIES
  IMPORTED_LOCATION "{library}" INTERFACE_INCLUDE_DIRECTORIES "{headers}")
"""
LIBRARY: Final = "void *OrtGetApiBase(void) { return 0; }\n"
SONAME: Final = "libonnxruntime.so.1"
"""Of the demo's library for Linux; Android's has no number."""


@pytest.fixture(name="demo", scope="module")
def fixture_demo(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    request = request_from(None, target="linux-x64", output=str(tmp_path_factory.mktemp("demo")))
    return planned_for(request, Console())


def require_parity(subjects: Sequence[ModelUnderTest], results: Path, folder: Path) -> None:
    for subject in subjects:
        for api in APIS:
            found = parity(subject, results / f"{subject.prepared.name}.{api}", folder / api / subject.prepared.name)
            assert len(found) == len(subject.cases) * len(subject.prepared.facts.outputs)
            assert parity_of(found) is Verdict.PASS, [output for output in found if output.verdict is Verdict.FAIL]


@pytest.mark.needs("javac", "apt-get", "dpkg-deb")
def test_the_instrumentation_compiles_for_android(demo: Planned, tmp_path: Path) -> None:
    """Against Android's real classes of API level 23, and those of an AAR."""
    android = android_jar()
    if android is None:
        pytest.skip("Debian's mirrors do not have Android's classes any more")
    jdk, jar = find_jdk(), tmp_path / "classes.jar"
    jar.write_bytes(classes_jar(jdk, [demo.sources.folder / JAVA / name for name in FOLDERS]))
    words = ("-Xlint:all,-options", "-Werror", "-source", "8", "-target", "8", "-bootclasspath", android)
    done((jdk.javac, *words, "-classpath", jar, "-d", tmp_path / "classes", *sorted(MAIN.rglob("*.java"))))


@pytest.mark.needs("javac", "bionic")
def test_the_cpp_compiles_for_android(demo: Planned, tmp_path: Path) -> None:
    """By the pinned compiler, with bionic's headers; it needs the runtime and Android's own libraries alone."""
    toolchain = zig_android_toolchain(TARGETS["android-x86_64"], 24, dict(tool_versions())["ziglang"])
    inputs = BuildInputs(
        sources=tmp_path,
        tools=packages_folder("tools", tool_requirements()),
        runner=tmp_path,
        hooks=shipped_folder("cmake"),
        installed=lambda known, _: {"bionic": sysroot_of(known)},
    )
    paths = prepare_workspace(tmp_path / "tree", inputs, toolchain, zig=zig_of_tests())
    environment = job_environment(paths, toolchain)
    (tmp_path / "runtime.c").write_text(LIBRARY)
    runtime, models = tmp_path / "libonnxruntime.so", tmp_path / "libmodels.so"
    headers = demo.sources.folder / "onnxruntime" / "include" / "onnxruntime" / "core" / "session"
    shared = ("-shared", "-fPIC", "-Werror", "-Wl,--no-undefined")
    folders = [word for folder in (headers, *find_jdk().includes) for word in ("-isystem", str(folder))]
    for compiler, *words in (
        ("cc", *shared, str(tmp_path / "runtime.c"), "-Wl,-soname,libonnxruntime.so", "-o", str(runtime)),
        ("c++", *shared, *folders, str(MAIN / "cpp" / "models.cc"), str(runtime), "-o", str(models)),
    ):
        ended = run((paths.wrappers / compiler, *words), environment=environment)
        assert ended.returncode == 0, ended.stderr
    assert set(read_library(models).needed) - {"libc.so", "libdl.so", "libm.so"} == {"libonnxruntime.so"}


@pytest.mark.build
@pytest.mark.needs("javac", "java")
def test_both_apis_give_parity_in_a_virtual_machine(tmp_path: Path) -> None:
    """Every case of the demo, on its trimmed library, by the instrumentation itself; the model mapped from a file."""
    demo = java_demo(tmp_path)
    subjects = subjects_of(demo.planned)
    plan, assets = demo.planned.plan, tmp_path / "assets"
    session = session_json(plan.ort_version, {model.name: model.session for model in plan.models})
    write_requests(assets / "requests", session, subjects)
    (assets / "models").mkdir()
    for model in demo.planned.models.converted:
        (assets / "models" / f"{model.name}.ort").symlink_to(model.path)
    demo.compile(sorted([*MAIN.rglob("*.java"), *STAND_INS.rglob("*.java")]), tmp_path / "classes")
    native = built_by_cmake(demo.libraries / "libonnxruntime.so", demo.headers, tmp_path / "native")
    (tmp_path / "results").mkdir()
    java, *words = demo.words("android.app.Instrumentation", tmp_path / "classes")
    options = (f"-Djava.library.path={native}", "--add-opens=java.base/java.io=ALL-UNNAMED")
    ended = done((java, *options, *words, "ortrim.app.RunModels", assets, tmp_path / "results"))
    assert "INSTRUMENTATION_CODE: -1" in ended.stdout
    assert "WARNING" not in ended.stdout, ended.stdout
    require_parity(subjects, tmp_path / "results", tmp_path / "outputs")


def built_by_cmake(library: Path, headers: Path, folder: Path) -> Path:
    tools = packages_folder("tools", tool_requirements())
    prefab = folder / "prefab"
    prefab.mkdir(parents=True)
    (prefab / SONAME).symlink_to(library.resolve())
    (prefab / "onnxruntimeConfig.cmake").write_text(CONFIG.format(library=prefab / SONAME, headers=headers))
    compiler = write_program(folder / "c++", f'exec "{tools}/ziglang/zig" c++ "$@"')
    jni = " ".join(f"-isystem{include}" for include in find_jdk().includes)
    cmake = tools / "cmake" / "data" / "bin" / "cmake"
    definitions = {
        "CMAKE_CXX_COMPILER": compiler, "CMAKE_CXX_FLAGS": f"-Wall -Wextra -Werror {jni}",
        "CMAKE_BUILD_TYPE": "Release", "onnxruntime_DIR": prefab,
    }  # fmt: skip
    done((cmake, "-S", MAIN / "cpp", "-B", folder, *(f"-D{name}={value}" for name, value in definitions.items())))
    done((cmake, "--build", folder))
    return folder


def test_the_project_has_the_package_s_repository(tmp_path: Path) -> None:
    """By the coordinates that the manifest says, with the models' requests among the assets."""
    package = make_android_package(aar_inputs(tmp_path / "built"), fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    write_app(tmp_path / "app", package.folder, ())
    *_, line = (tmp_path / "app" / "gradle.properties").read_text().splitlines()
    assert line == f"ortrim.coordinates={package.manifest.coordinates}"
    group, name, version = package.manifest.coordinates.split(":")
    assert (tmp_path / "app" / "maven" / group / name / version / f"{name}-{version}.aar").is_file()


@pytest.mark.needs("java", "apt-get", "dpkg-deb")
@pytest.mark.parametrize("name", ["build", "settings"])
def test_gradles_scripts_are_kotlin(tmp_path: Path, name: str) -> None:
    source = tmp_path / f"{name}.kt"
    source.write_text(f"fun script() {{\n{(PROJECT / f'{name}.gradle.kts').read_text()}}}\n")
    faults = [line for line in kotlinc(source, (), tmp_path / "out").stderr.splitlines() if ": error: " in line]
    assert faults
    assert [line for line in faults if "unresolved reference" not in line] == []


@pytest.mark.build
@pytest.mark.needs("android-phone", "gradle", "javac")
def test_both_apis_give_parity_on_a_phone(tmp_path: Path) -> None:
    """The AAR from its repository, models and all, in an app that R8 has shrunk, on the phone that adb reaches."""
    spec = tmp_path / "app.toml"
    spec.write_text(f"{demo_spec().read_text()}\n[android]\nmodels_as_assets = true\n")
    request = request_from(str(spec), target="android-x86_64", output=str(tmp_path / "artifacts"))
    planned = planned_for(request, Console())
    build(request, Console(), planned)
    (manifest,) = planned.folder.glob("android/*/manifest.json")
    subjects = subjects_of(planned)
    write_app(tmp_path / "app", manifest.parent, subjects)
    run_app(tmp_path / "app", tmp_path / "results")
    require_parity(subjects, tmp_path / "results", tmp_path / "outputs")
