"""What `api` finds in apps, with the real headers and bindings; a compiler says what apps of C++ really call."""

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from ortrim.analysis.api import SESSION, AppApi, api_of
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.compiling.mechanisms import FOR_PROVIDERS, INFERENCE
from ortrim.pins.runtime import default_version, runtime_pins
from ortrim.sources.sources import fetch_sources

pytestmark = pytest.mark.network

ROOT: Final = Path(__file__).parents[2]
DATA: Final = Path(__file__).parent / "data" / "app_calls"
INFERS: Final = (DATA / "infers.cc").read_text(encoding="utf-8")
EXTENDS: Final = (DATA / "extends.cc").read_text(encoding="utf-8")
SWIFT: Final = """
import onnxruntime_objc
let env = try ORTEnv(loggingLevel: .warning)
let session = try ORTSession(env: env, modelPath: path, sessionOptions: try ORTSessionOptions())
let outputs = try session.run(withInputs: ["x": input], outputNames: ["y"], runOptions: nil)
let data = try outputs["y"]!.tensorData()
"""


def found(*apps: Path) -> AppApi:
    """Return what `api` finds with the headers of the default version."""
    return api_of(apps, None, default_version(), Console())


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def linked_by_name(folder: Path) -> Path:
    """Write headers whose `OrtApi` has functions in the place of pointers, so that objects name what they call."""
    shutil.copytree(fetch_sources(runtime_pins(default_version()), "auto").folder / "onnxruntime" / SESSION, folder)
    header = folder / "onnxruntime_c_api.h"
    before, table, after = re.split(r"^(struct OrtApi \{.*?^\};)", header.read_text(), flags=re.DOTALL | re.MULTILINE)
    table = re.sub(r"//[^\n]*|/\*.*?\*/", "", table, flags=re.DOTALL)
    table = re.sub(r"ORT_API2_STATUS\((\w+),", r"static OrtStatus* \1(", table)
    table = re.sub(r"ORT_CLASS_RELEASE\((\w+)\)", r"static void Release\1(Ort\1* input)", table)
    table = re.sub(r"^([^\n()]*)\(ORT_API_CALL\s*\*\s*(\w+)\s*\)", r"static \1 \2", table, flags=re.MULTILINE)
    header.write_text(before + table + after)
    return folder


@pytest.mark.needs("g++")
@pytest.mark.parametrize("text", [INFERS, EXTENDS], ids=["infers", "extends"])
def test_everything_that_a_compiler_calls_is_found(tmp_path: Path, text: str) -> None:
    """An app that only infers has no more than a few others, and nothing that is not among those for inference."""
    app = written(tmp_path / "app.cc", text)
    words = ("-std=c++17", "-O0", "-Wno-deprecated-declarations", "-I", linked_by_name(tmp_path / "headers"))
    compiled = run(["g++", *words, "-c", app, "-o", tmp_path / "app.o"])
    assert compiled.returncode == 0, compiled.stderr
    real = set(re.findall(r"OrtApi::(\w+)\(", run(["nm", "-uC", tmp_path / "app.o"]).stdout))
    called = found(app)
    assert len(real) > 20
    assert real - called.calls.keys() == set()
    assert len(called.calls.keys() - real) <= len(real) / 2
    assert bool(called.beyond) == (text is EXTENDS)


def test_a_session_needs_no_binding(tmp_path: Path) -> None:
    """Though its method `Run` may take one."""
    called = found(written(tmp_path / "app.cc", INFERS)).calls
    assert {"CreateEnv", "CreateSession", "Run", "ReleaseSession", "ReleaseEnv", "ReleaseValue"} <= called.keys()
    assert {"CreateIoBinding", "RunWithBinding", "CreatePrepackedWeightsContainer"}.isdisjoint(called)


def test_our_own_runner_is_found_whole() -> None:
    """Each call of its sources, which are for inference but for `--trace` and `--provider`."""
    calls = {name for file in (ROOT / "runner").glob("*.c") for name in re.findall(r"api->(\w+)", file.read_text())}
    called = found(ROOT / "runner")
    assert len(calls) > 30
    assert calls - called.calls.keys() == set()
    assert set(called.calls) - INFERENCE == FOR_PROVIDERS


def test_bindings_are_for_inference(tmp_path: Path) -> None:
    """An app of Java and one of Swift need nothing else, and have what runs a model."""
    java = ROOT / "tests/integration/data/android_app/src/main/java/ortrim/app/JavaApi.java"
    for app in (java, written(tmp_path / "App.swift", SWIFT)):
        called = found(app)
        assert called.beyond == ()
        assert {"CreateEnv", "CreateSession", "Run", "ReleaseSession", "ReleaseEnv"} <= called.calls.keys()
        assert len(called.spare) > 40
