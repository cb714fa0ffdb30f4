"""The part of upstream's `build.py` arguments that all platforms share. Pure.

Facts about the flags: upstream's `tools/ci_build/build.py` of 1.21.0 and `cmake/external/`.
"""

from typing import Final

from ortrim.core.operator_config import parse_config
from ortrim.core.plan import BuildJob

# Name in the source tree -> name in CMake's FETCHCONTENT_SOURCE_DIR_<NAME>.
FETCHED: Final = (
    "abseil_cpp", "protobuf", "flatbuffers", "onnx", "nlohmann_json", "gsl", "date", "re2", "eigen", "utf8_range",
    "safeint", "mp11",
)  # fmt: skip


PRECOMPILING: Final = ("zig", "clang")

RUNNER_SOURCES: Final = (
    "inputs.c", "measure.c", "options.c", "outputs.c", "report.c", "runner.c", "runtime.c", "tensor.c",
)  # fmt: skip

DEFINITIONS: Final = (
    "FETCHCONTENT_FULLY_DISCONNECTED=ON",
    "FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER",
    *(f"FETCHCONTENT_SOURCE_DIR_{name.upper()}=${{sources}}/{name}" for name in FETCHED),
    "safeint_SOURCE_DIR=${sources}/safeint",
    "FLATBUFFERS_BUILD_FLATC=OFF",
    "onnxruntime_BUILD_UNIT_TESTS=OFF",
    "onnxruntime_ENABLE_CPUINFO=OFF",
    "CMAKE_MAKE_PROGRAM=${tools}/bin/ninja",
    "CMAKE_AR=${wrappers}/ar",
    "CMAKE_RANLIB=${wrappers}/ranlib",
)
"""CMake definitions that keep the build to what was fetched and pinned.

`FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER` keeps the distribution's packages out. flatc is a tool that the library
does not need. cpuinfo is not among the pinned sources; without it ONNX Runtime asks the processor itself.
"""


def common_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the arguments that make a minimal build with reduced operators and types.

    The phase, `--update` or `--build`, is the executor's.
    """
    return (
        *("--build_dir", "${build}", "--config", "MinSizeRel", "--target", "onnxruntime"),
        *("--skip_submodule_sync", "--skip_tests", "--allow_running_as_root", "--compile_no_warning_as_error"),
        *("--cmake_generator", "Ninja", "--cmake_path", "${tools}/cmake/data/bin/cmake"),
        *("--ctest_path", "", "--path_to_protoc_exe", "${tools}/protoc/data/bin/protoc"),
        *("--build_shared_lib", "--minimal_build", "--disable_rtti"),
        *(() if job.exceptions else ("--disable_exceptions",)),
        *(() if _needs_ml_operators(job) else ("--disable_ml_ops",)),
        *("--include_ops_by_config", "${config}", "--enable_reduced_operator_type_support"),
    )


def hook_definitions(job: BuildJob) -> tuple[str, ...]:
    """Return the CMake definitions that let ortrim's `units.cmake` choose what is compiled.

    The header is precompiled where the toolchain's wrapper can do it. It changes the order of a few functions in the
    library and nothing else; the profile `upstream` goes without, because its bytes are to be upstream's own.
    """
    hook = ("CMAKE_PROJECT_onnxruntime_INCLUDE=${hooks}/units.cmake", "ORTRIM_SELECTION=${hooks}/selection.cmake")
    precompiled = job.toolchain.kind in PRECOMPILING and job.profile != "upstream"
    return (*hook, "ORTRIM_PRECOMPILED=ON") if precompiled else hook


def _needs_ml_operators(job: BuildJob) -> bool:
    operators = parse_config(job.operator_config)
    return operators.everything or "ai.onnx.ml" in operators.domains
