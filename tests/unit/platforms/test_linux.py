"""What is asked of upstream's build for Linux."""

from pathlib import Path, PurePosixPath

import pytest

from ortrim.core.plan import BuildJob
from ortrim.core.targets import OperatingSystem
from ortrim.platforms import PLATFORMS, linux
from ortrim.platforms.upstream import DEFINITIONS, FETCHED, RUNNER_SOURCES
from ortrim.storage.shipped import shipped_folder
from sample_plans import FOREST, OPERATORS, sample_plan, system_gcc


def job(**changes: object) -> BuildJob:
    """Return the job of the sample, changed."""
    return sample_plan(**changes).targets[0].job  # type: ignore[arg-type]


def linker_flags(planned: BuildJob) -> list[str]:
    """Return the flags with which the library is linked."""
    (flags,) = (word for word in planned.arguments if word.startswith("CMAKE_SHARED_LINKER_FLAGS="))
    return flags.partition("=")[2].split()


def test_every_operating_system_has_its_module() -> None:
    """A target whose system nobody can build for does not exist."""
    assert set(PLATFORMS) == set(OperatingSystem)


def test_the_runners_sources_are_all_that_there_are() -> None:
    """The list in the plan and the folder agree, so that no file is forgotten or gone."""
    assert sorted(RUNNER_SOURCES) == sorted(path.name for path in shipped_folder("runner").glob("*.c"))


def test_every_definition_is_one_definition() -> None:
    """Each is NAME=VALUE without a space: build.py hands them to CMake one by one."""
    for definition in DEFINITIONS:
        name, equals, value = definition.partition("=")
        assert name.isidentifier()
        assert equals
        assert value
        assert " " not in definition
    assert len({definition.partition("=")[0] for definition in DEFINITIONS}) == len(DEFINITIONS)
    assert len(set(FETCHED)) == len(FETCHED)


def test_arm64_names_its_processor_and_x64_does_not() -> None:
    """CMake has to be told of a processor that is not the host's; naming x64 would make CMake think it crosses."""
    arguments = sample_plan("linux-arm64").targets[0].job.arguments
    assert "CMAKE_SYSTEM_PROCESSOR=aarch64" in arguments
    assert "CMAKE_SYSTEM_NAME=Linux" in arguments
    assert not [word for word in job().arguments if word.startswith("CMAKE_SYSTEM")]


def test_exceptions_are_off_unless_asked_for() -> None:
    """Off costs an abort and saves the tables; on keeps both the switch and the tables' header away."""
    assert "--disable_exceptions" in job().arguments
    assert "-Wl,--no-eh-frame-hdr" in linker_flags(job())
    assert "--disable_exceptions" not in job(exceptions=True).arguments
    assert "-Wl,--no-eh-frame-hdr" not in linker_flags(job(exceptions=True))


@pytest.mark.parametrize("exceptions", [True, False])
def test_the_upstream_profile_adds_nothing_to_the_linking(exceptions: bool) -> None:  # noqa: FBT001
    """It refuses an executable stack and writes a map, as every build; what saves bytes is balanced's alone."""
    assert linker_flags(job(profile="upstream", exceptions=exceptions)) == ["-Wl,-z,noexecstack", "-Wl,--print-map"]


def test_classical_operators_are_kept_when_a_model_needs_them() -> None:
    """The domain ai.onnx.ml is compiled out unless a model has an operator of it."""
    assert "--disable_ml_ops" in job(operators=OPERATORS).arguments
    assert "--disable_ml_ops" not in job(operators=FOREST).arguments


def test_only_zig_writes_a_map() -> None:
    """The system's linker is not asked for what it spells differently, and the plan does not expect it."""
    gcc = job(toolchain=system_gcc())
    assert "-Wl,--print-map" not in linker_flags(gcc)
    assert gcc.expected_outputs == (PurePosixPath("MinSizeRel/libonnxruntime.so.1.21.0"),)
    assert job().expected_outputs == (*gcc.expected_outputs, PurePosixPath("link.map"))


def test_only_zig_promises_a_glibc() -> None:
    """What gcc makes loads where its own glibc does; the plan does not claim otherwise."""
    assert job().minimum_glibc == "2.28"
    assert job(toolchain=system_gcc()).minimum_glibc == ""


def test_a_linux_package_is_not_assembled() -> None:
    """One architecture, one package."""
    assert linux.assembly([job()]) is None


def test_nothing_is_fetched_behind_our_back() -> None:
    """Every dependency comes from what was pinned: neither the network nor the distribution is asked."""
    arguments = job().arguments
    assert "FETCHCONTENT_FULLY_DISCONNECTED=ON" in arguments
    assert "FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER" in arguments
    assert "--skip_submodule_sync" in arguments
    assert Path("${sources}/eigen").as_posix() in " ".join(arguments)
