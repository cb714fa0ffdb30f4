"""A package with a static library in place of the shared one."""

from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.base.checksums import check_sums
from ortrim.errors import PackageError
from ortrim.package.manifest import PackageInputs
from ortrim.package.package import make_package
from sample_package import make_inputs

ARCHIVE = b"!<arch>\n"


@pytest.fixture
def inputs(tmp_path: Path) -> PackageInputs:
    """Lay out what a build with a static library leaves."""
    made = make_inputs(tmp_path / "built")
    archive = tmp_path / "built" / "libonnxruntime.a"
    archive.write_bytes(ARCHIVE)
    job = replace(made.job, linkage="static", cpu="x86-64-v3")
    return replace(made, job=job, result=replace(made.result, archive=archive))


def test_the_archive_stands_in_place_of_the_library(inputs: PackageInputs, tmp_path: Path) -> None:
    """A linker that is asked for `-lonnxruntime` can take nothing else; everything besides is as ever."""
    package = make_package(inputs, tmp_path / "out")
    libraries = sorted(path.name for path in (package.folder / "lib").iterdir() if path.is_file())
    assert libraries == ["libonnxruntime.a"]
    assert (package.folder / "lib" / "libonnxruntime.a").read_bytes() == ARCHIVE
    check_sums(package.folder)
    assert (package.manifest.linkage, package.manifest.cpu) == ("static", "x86-64-v3")


def test_programs_are_reported_what_they_need_besides(inputs: PackageInputs, tmp_path: Path) -> None:
    """The system's libraries and no C++: pkg-config and CMake both say so."""
    folder = make_package(inputs, tmp_path / "out").folder / "lib"
    assert (
        "Libs: -L${libdir} -lonnxruntime -ldl -lpthread -lm\n" in (folder / "pkgconfig/libonnxruntime.pc").read_text()
    )
    config = (folder / "cmake/onnxruntime/onnxruntimeConfig.cmake").read_text()
    assert "add_library(onnxruntime::onnxruntime STATIC IMPORTED)" in config
    assert 'IMPORTED_LINK_INTERFACE_LANGUAGES "C"' in config
    assert 'INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};pthread;m"' in config
    assert "SONAME" not in config


def test_a_shared_library_asks_for_nothing(tmp_path: Path) -> None:
    """Its own needs are its own affair."""
    folder = make_package(make_inputs(tmp_path / "built"), tmp_path / "out").folder / "lib"
    assert "Libs: -L${libdir} -lonnxruntime\n" in (folder / "pkgconfig/libonnxruntime.pc").read_text()
    assert "INTERFACE_LINK_LIBRARIES" not in (folder / "cmake/onnxruntime/onnxruntimeConfig.cmake").read_text()


def test_an_archive_that_is_gone_is_named(inputs: PackageInputs, tmp_path: Path) -> None:
    """As any other input."""
    assert inputs.result.archive is not None
    inputs.result.archive.unlink()
    with pytest.raises(PackageError) as caught:
        make_package(inputs, tmp_path / "out")
    assert caught.value.code == "package-input-missing"
    assert not (tmp_path / "out").exists()
