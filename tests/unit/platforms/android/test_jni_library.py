"""The JNI library: what is compiled with what, kept and taken again, and what is told when it fails."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from aar_samples import fake_jdk
from finished_builds import leave_jni
from native_builds import native_executor
from ortrim.base.cache import cache_folder, record_entry
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import BuildJob, JobResult, Toolchain
from ortrim.errors import BuildError, ExitCode, StorageError
from ortrim.platforms.android.jni import JAVA, Jdk, build_jni_library, finished_jni
from ortrim.platforms.android.ndk import SDK_VARIABLES, VARIABLES
from refusing import refused
from sample_plans import sample_plan

COMPILER = """#!/bin/sh
echo "$@" >> {log}
ls headers >> {log}
for last do :; done
echo linked > "$last"
"""
STRIPPER = """#!/bin/sh
echo "objcopy $@" >> {log}
cp "$2" "$3"
"""


@pytest.fixture(name="jdk")
def fixture_jdk(tmp_path: Path) -> Jdk:
    jdk = fake_jdk(tmp_path / "jdk" / "bin")
    (tmp_path / "jdk" / "include" / "linux").mkdir(parents=True)
    (tmp_path / "jdk" / "include" / "jni.h").touch()
    (tmp_path / "jdk" / "include" / "linux" / "jni_md.h").touch()
    jdk.javac.write_text(jdk.javac.read_text() + 'mkdir -p "$(dirname "$folder")/headers"\n')
    return jdk


@pytest.fixture(name="executor")
def fixture_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Executor:
    """Return what runs jobs on this machine, with the folders of a job and a cache of its own."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    for name in ("native", "java", "android"):
        (tmp_path / "sources" / JAVA / name).mkdir(parents=True)
    (tmp_path / "sources" / JAVA / "native" / "OrtJniUtil.c").touch()
    (tmp_path / "sources" / JAVA / "java" / "OnnxRuntime.java").touch()
    (tmp_path / "tools").mkdir()
    return native_executor(tmp_path / "sources", tmp_path / "build.log", tools=tmp_path / "tools")


def job_with(log: Path, **wrappers: str) -> BuildJob:
    texts = tuple((name, text.format(log=log)) for name, text in wrappers.items())
    kind: Literal["gcc", "ndk"] = "ndk" if "objcopy" in wrappers else "gcc"
    toolchain = Toolchain(kind=kind, version="12", triple="", environment=(), wrappers=texts)
    target = {"gcc": "linux-x64", "ndk": "android-x86_64"}[kind]
    return replace(sample_plan(target).targets[0].job, toolchain=toolchain)


def result_in(folder: Path) -> JobResult:
    (folder / "libonnxruntime.so").write_text("library")
    return JobResult(
        folder=folder, library=folder / "libonnxruntime.so", link_map=None, headers=folder, log=folder / "log",
        seconds=1.0, compiler_cache=None,
    )  # fmt: skip


def test_it_is_compiled_once_with_all_that_it_includes(executor: Executor, jdk: Jdk, tmp_path: Path) -> None:
    """Against the library of the build; the second time it is taken from the cache."""
    job, log = job_with(tmp_path / "log", cc=COMPILER), tmp_path / "log"
    made = build_jni_library(job, result_in(tmp_path), executor, jdk)
    assert made.read_text() == "linked\n"
    said = log.read_text()
    assert f"-c {tmp_path}/sources/{JAVA}/native/OrtJniUtil.c -o OrtJniUtil.o\n" in said
    assert "OrtJniUtil.o libonnxruntime.so -o libonnxruntime4j_jni.so\n" in said
    assert {"jni.h", "jni_md.h", "onnxruntime_config.h"} <= set(said.split())
    assert build_jni_library(job, result_in(tmp_path), executor, jdk) == made
    assert log.read_text() == said
    assert [path.name for path in made.parent.iterdir()] == [made.name]


def test_other_headers_of_jni_or_another_job_make_another(executor: Executor, jdk: Jdk, tmp_path: Path) -> None:
    """Whatever could change its bytes is part of its name in the cache; the JDK's version is not."""
    job = job_with(tmp_path / "log", cc=COMPILER)
    first = finished_jni(job, jdk)
    assert finished_jni(job, replace(jdk, version="21")) == first
    (tmp_path / "jdk" / "include" / "jni.h").write_text("/* of another kit */")
    assert len({first, finished_jni(job, jdk), finished_jni(replace(job, ort_version="1.22.0"), jdk)}) == 3


def test_an_android_library_is_the_same_for_every_kit(executor: Executor, jdk: Jdk) -> None:
    """Its jni.h is the NDK's, so that what was compiled elsewhere is found here, with or without a JDK."""
    (target,) = sample_plan("android-arm64-v8a").targets
    assert finished_jni(target.job, jdk) == finished_jni(target.job)
    (other,) = sample_plan("android-x86_64").targets
    assert finished_jni(other.job) != finished_jni(target.job)


def test_what_was_compiled_elsewhere_needs_no_ndk(
    executor: Executor, jdk: Jdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*VARIABLES, *SDK_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    (target,) = sample_plan("android-arm64-v8a").targets
    folder = leave_jni(target)
    made = build_jni_library(target.job, result_in(tmp_path), executor, jdk)
    assert made.parent == folder
    made.unlink()
    record_entry(folder)
    caught = refused(StorageError, build_jni_library, target.job, result_in(tmp_path), executor, jdk)
    assert (caught.code, caught.where) == ("jni-damaged", str(folder))


def test_symbols_are_kept_where_the_toolchain_can_take_them_apart(executor: Executor, jdk: Jdk, tmp_path: Path) -> None:
    """As the NDK's: what ships has none, and beside it lies what has them."""
    job = job_with(tmp_path / "log", cc=COMPILER, objcopy=STRIPPER)
    made = build_jni_library(job, result_in(tmp_path), executor, jdk)
    assert made.with_name("libonnxruntime4j_jni.so.sym").is_file()
    stripping = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("objcopy")]
    assert stripping == [
        "objcopy --strip-all linked.so libonnxruntime4j_jni.so",
        "objcopy --strip-debug linked.so libonnxruntime4j_jni.so.sym",
    ]


def test_what_the_compiler_says_is_reported(executor: Executor, jdk: Jdk, tmp_path: Path) -> None:
    """Nothing half-made stays in the cache."""
    failing = "#!/bin/sh\necho 'OrtJniUtil.c:7:10: error: no jni.h' >&2\nexit 1\n"
    caught = refused(
        BuildError, build_jni_library, job_with(tmp_path / "log", cc=failing), result_in(tmp_path), executor, jdk
    )
    assert (caught.code, caught.exit_code) == ("jni-not-compiled", ExitCode.BUILD)
    assert "no jni.h" in caught.why
    assert [path for path in cache_folder("jni").iterdir() if path.is_dir()] == []


def test_a_kit_without_jni_is_refused(executor: Executor, jdk: Jdk, tmp_path: Path) -> None:
    (tmp_path / "jdk" / "include" / "jni.h").unlink()
    caught = refused(
        BuildError, build_jni_library, job_with(tmp_path / "log", cc=COMPILER), result_in(tmp_path), executor, jdk
    )
    assert caught.code == "jni-headers-missing"
