"""The demo in profile `size`: how large it is, and what programs meet that call what was left out of it."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.compiling.mechanisms import INFERENCE

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("g++")]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 1800.0
STATUS: Final = re.compile(r"^\s*(?:ORT_API2_STATUS\(\s*|OrtStatus\* ?\(ORT_API_CALL\* )(\w+)", re.MULTILINE)
"""Entries of `struct OrtApi` that return a status, as its header declares them."""
NOT_IMPLEMENTED: Final = 9
NO_STATUS: Final = {"CreateStatus"}

CALLS: Final = """\
#include <cstdio>
#include "onnxruntime_c_api.h"
static const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
template <typename... Arguments>
static void call(const char* name, OrtStatus* (*function)(Arguments...) noexcept) {
  OrtStatus* status = function(Arguments{}...);
  if (status == nullptr) {
    std::printf("%%s: no status\\n", name);
    return;
  }
  std::printf("%%d %%s\\n", api->GetErrorCode(status), api->GetErrorMessage(status));
  api->ReleaseStatus(status);
}
int main() {
%s}
"""


@dataclass(frozen=True, kw_only=True)
class Sized:
    """The report of the build, and its package, unpacked."""

    report: dict[str, Any]
    package: Path


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sized]:
    """Build the demo in profile `size` and verify it here."""
    output = tmp_path_factory.mktemp("size")
    words = (sys.executable, "-m", "invoke", "build", "--profile", "size", "--json", "--output", str(output))
    done = run(words, cwd=ROOT, timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (archive,) = output.rglob(report["package"])
    yield Sized(report=report, package=archive.with_name(archive.name.removesuffix(".tar.gz")))
    shutil.rmtree(output)


def compiled(sized: Sized, tmp_path: Path, text: str) -> Path:
    (tmp_path / "app.cc").write_text(text, encoding="utf-8")
    headers, library = sized.package / "include" / "onnxruntime", sized.package / "lib"
    words = ("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", headers, tmp_path / "app.cc")
    done = run((*words, "-L", library, "-lonnxruntime", f"-Wl,-rpath,{library}", "-o", tmp_path / "app"))
    assert done.returncode == 0, done.stderr
    return tmp_path / "app"


def ran(program: Path, *words: str) -> Completed:
    done = run((str(program), *words))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_demo_is_small_and_in_parity(sized: Sized) -> None:
    assert sized.report["verdict"] == "pass"
    assert sized.report["size"]["file_bytes"] <= 600_000
    assert sized.report["size"]["compressed_bytes"] <= 300_000


def test_every_function_that_was_left_out_says_so(sized: Sized, tmp_path: Path) -> None:
    """All that the header declares with a status, called without a single argument that it could use."""
    header = (sized.package / "include" / "onnxruntime" / "onnxruntime_c_api.h").read_text(encoding="utf-8")
    table = header[header.index("struct OrtApi {") : header.index("\n};", header.index("struct OrtApi {"))]
    names = [name for name in STATUS.findall(table) if name not in INFERENCE | NO_STATUS]
    assert len(names) > 100
    calls = "".join(f'  call("{name}", api->{name});\n' for name in names)
    said = ran(compiled(sized, tmp_path, CALLS % calls)).stdout.splitlines()
    why = "not in this library, which ortrim built without it (build_options.api)"
    assert said == [f"{NOT_IMPLEMENTED} {name}: {why}" for name in names]


def test_a_program_that_loads_runs_and_asks_meets_nothing_left_out(sized: Sized, tmp_path: Path) -> None:
    """Upstream's C++ API, a call of each that an app makes for inference; an error is the place that it comes from."""
    source = (Path(__file__).parent / "data" / "inference_calls.cc").read_text(encoding="utf-8")
    said = ran(compiled(sized, tmp_path, source), str(sized.package / "models" / "silero-vad.ort")).stdout
    *lines, error = said.splitlines()
    assert "1 ORT" in lines
    assert "three 5" in lines
    assert lines[-1] == "1", "both sessions agree"
    assert re.fullmatch(r"2 inference_session\.cc:\d+", error)
