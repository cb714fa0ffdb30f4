"""Sources fetched for real, through the host's own apt and pip."""

from pathlib import Path

import pytest

from ortrim.pins.runtime import COMPONENTS, runtime_pins
from ortrim.sources import archives
from ortrim.sources.sources import fetch_sources, licences


def fail_on_use(*_: object, **__: object) -> None:
    pytest.fail("a tree in the cache needs no network")


@pytest.mark.network
@pytest.mark.needs("apt-get")
def test_debian_sources_come_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through apt and pip alone, without root's folders, all components arrive; a second run takes no time."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path))
    announced: list[str] = []
    tree = fetch_sources(runtime_pins("1.21.0"), "debian", None, announced.append)
    assert "fetch 10 archives through apt" in announced
    for name, wanted in {
        "onnxruntime": "cmake/external/onnx_minimal.cmake",
        "abseil_cpp": "absl/base/config.h",
        "protobuf": "cmake/protobuf-config.cmake.in",
        "flatbuffers": "include/flatbuffers/flatbuffers.h",
        "onnx": "onnx/onnx-ml.proto",
        "nlohmann_json": "include/nlohmann/json.hpp",
        "gsl": "include/gsl/gsl",
        "date": "include/date/date.h",
        "re2": "re2/re2.h",
        "eigen": "include/Eigen/Core",
        "safeint": "SafeInt.hpp",
        "mp11": "include/boost/mp11.hpp",
    }.items():
        assert (tree.folder / name / wanted).is_file(), name
    assert (tree.folder / "onnxruntime/tools/ci_build/build.py").is_file()
    assert (tree.folder / "utf8_range").is_dir()
    assert "ALIAS" in (tree.folder / "eigen/CMakeLists.txt").read_text()
    assert [name for name, _, path in licences(tree) if path.stat().st_size > 300] == list(COMPONENTS)
    assert not list((tmp_path / "apt/trixie").glob("*"))

    monkeypatch.setattr(archives, "download_wheels", fail_on_use)
    monkeypatch.setattr(archives, "fetch_debian", fail_on_use)
    assert fetch_sources(runtime_pins("1.21.0"), "debian").folder == tree.folder
