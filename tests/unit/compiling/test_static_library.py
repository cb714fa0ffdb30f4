"""What a static library is joined from, and what is said when it cannot be."""

from pathlib import Path

import pytest

from ortrim.compiling.execution import JobPaths
from ortrim.compiling.native import linked_files, write_static_library
from ortrim.compiling.plan import BuildJob
from ortrim.errors import BinaryError, BuildError, ExitCode
from sample_plans import sample_plan

BINARIES = Path(__file__).parents[1] / "binaries" / "data"
TINY = BINARIES / "tiny.so"


@pytest.fixture
def job() -> BuildJob:
    """Return a job whose library is to be static."""
    return sample_plan(linkage="static").targets[0].job


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    """Leave what a link leaves: the shared library and its map."""
    made = JobPaths(
        **{name: tmp_path / name for name in ("sources", "build", "tools", "wrappers", "config", "runner", "hooks")}
    )
    made.configured.mkdir(parents=True)
    (made.build / "libonnxruntime.so").write_bytes(TINY.read_bytes())
    (made.build / "link.map").write_bytes((BINARIES / "tiny.map").read_bytes())
    return made


def zig(paths: JobPaths, script: str) -> None:
    """Put a program in zig's place."""
    program = paths.tools / "ziglang" / "zig"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_static_library_is_joined_from_what_the_link_took() -> None:
    """In its order, each once; the linker's sections are no file, and the compiler's runtime is the application's."""
    found = linked_files(BINARIES / "onnxruntime-excerpt.map")
    names = [Path(file).name for file in found]
    assert len(names) == len(set(names))
    assert {"libonnxruntime_session.a", "libonnxruntime_mlas.a", "libc++.a", "libc++abi.a"} <= set(names)
    assert not {"libcompiler_rt.a", "libc_nonshared.a", "libubsan_rt.a", "<internal>"} & set(names)


def test_zig_joins_then_archives(job: BuildJob, paths: JobPaths) -> None:
    """One object with the exported names as roots, what it offers hidden but for those, in a deterministic archive."""
    joined = BINARIES / "joined.o"
    zig(paths, f'echo "$@" >> {paths.build}/calls; [ "$1" = ar ] || cp {joined} {paths.build}/joined.o')
    with pytest.raises(BinaryError) as caught:
        write_static_library(job, paths)
    assert caught.value.code == "symbol-missing"  # the recorded object offers another name than the library
    (call,) = (paths.build / "calls").read_text().splitlines()
    assert call.startswith("ld.lld -r --gc-sections --force-group-allocation --strip-debug -u OrtGetApiBase -T ")
    assert "/hooks/unreached.ld -o " in call
    assert not (paths.build / "libonnxruntime.a").exists()


def test_a_linker_that_fails_is_a_failed_build(job: BuildJob, paths: JobPaths) -> None:
    """With the linker's own words, and the way to go on without."""
    zig(paths, "echo 'ld.lld: error: no room' >&2; exit 1")
    with pytest.raises(BuildError) as caught:
        write_static_library(job, paths)
    error = caught.value
    assert (error.code, error.exit_code, error.where) == ("build-failed", ExitCode.BUILD, "linux-x64")
    assert "ld.lld failed" in error.what
    assert error.why == "ld.lld: error: no room"
    assert "linkage = 'shared'" in error.hint
    assert not (paths.build / "libonnxruntime.a").exists()
