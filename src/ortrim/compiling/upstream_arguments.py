"""`build.py`'s arguments that all platforms share, and execution providers: what each asks, what hinders it. Pure.

Facts about the flags: upstream's `tools/ci_build/` of 1.21.0, 1.22.0, 1.24.4, and main before 1.28 and 1.30.
"""

from collections.abc import Iterable
from typing import Final

from ortrim.buildspec.build_options import LINKS_WITH_LLD
from ortrim.buildspec.targets import Architecture, CLibrary, Target, version_numbers
from ortrim.compiling.dead_kernels import (
    AVX512_CONVOLUTIONS,
    AVX512_KERNELS,
    AVX512_NCHWC,
    DEPTHWISE,
    FLOAT16,
    FOUR_BITS,
    HARD_SWISH,
    NEON_CONVOLUTIONS,
    OF_UPSTREAM,
    WINOGRAD,
    WINOGRAD_AVX2,
)
from ortrim.compiling.plan import BuildJob, PlannedModel
from ortrim.errors import PlanError
from ortrim.models.operators import NCHWC, parse_config
from ortrim.pins.runtime import OPTIONAL, SourcePin

FLAGS: Final = {"coreml": "--use_coreml", "xnnpack": "--use_xnnpack"}

XNNPACK_SOURCES: Final = frozenset({"fxdiv", "pthreadpool", "xnnpack"})
XNNPACK_ARCHITECTURES: Final = (Architecture.X64, Architecture.X86, Architecture.ARM64)
XNNPACK_VERSION: Final = "1.21.0"
"""The only ONNX Runtime that was built with it: what is left out of XNNPACK is written for the one that it names."""
COREML_SOURCES: Final = frozenset({"coremltools", "fp16", "psimd"})


def minimal_build(job: BuildJob) -> tuple[str, ...]:
    """Return the kind of minimal build: a provider takes nodes and turns layouts around in an extended one alone.

    CoreML's CMake file stops without it; XNNPACK would get no node.
    """
    return ("--minimal_build", "extended") if job.providers else ("--minimal_build",)


FETCHED: Final = {"coreml": COREML_SOURCES, "xnnpack": XNNPACK_SOURCES}
"""The sources that a provider needs beside ONNX Runtime's own."""


def optional_sources(providers: Iterable[str]) -> frozenset[str]:
    """Return what has to be fetched beside what every library is made of, for libraries with these providers."""
    return frozenset({CPUINFO}).union(*(FETCHED[name] for name in providers))


def require_providers(job: BuildJob, models: Iterable[PlannedModel]) -> None:
    """Refuse providers that could not do their work."""
    for provider in job.providers:
        for model in models:
            _require_style(job, provider, model)
        require_possible(job.target, job.ort_version, provider)
        _require_sources(job, provider)


def _require_style(job: BuildJob, provider: str, model: PlannedModel) -> None:
    if model.style == "fixed" and model.level in ("extended", "all"):
        what = f"{provider} would be left few nodes of model {model.name}"
        why = f"style 'fixed' with level {model.level!r} fuses nodes into kernels that only the CPU provider has"
        hint = "give the model style = 'runtime', which leaves that to the device, or level = 'basic'"
        raise PlanError("provider-needs-runtime-style", what, where=job.target.identifier, why=why, hint=hint)


def require_possible(target: Target, version: str, provider: str) -> None:
    """Refuse an execution provider that no library for a target, of a version of ONNX Runtime, can have."""
    where, why = target.identifier, ""
    what = f"{provider} is not for this target"
    hint = f"leave it out: give the target {where} providers = []"
    if provider == "coreml" and target.is_elf:
        why = "CoreML is a framework of Apple's systems"
    if provider == "xnnpack" and target.architecture not in XNNPACK_ARCHITECTURES:
        why = "ortrim builds it for x86 and 64-bit ARM"
    elif provider == "xnnpack" and version != XNNPACK_VERSION:
        what = f"{provider} is not for ONNX Runtime {version}"
        why = f"ortrim builds it with ONNX Runtime {XNNPACK_VERSION} alone"
        hint = f"say onnxruntime.version = '{XNNPACK_VERSION}', or {hint}"
    if why:
        raise PlanError("provider-unsupported", what, where=where, why=why, hint=hint)


def _require_sources(job: BuildJob, provider: str) -> None:
    missing = FETCHED[provider] - {source.name for source in job.sources}
    if missing:
        what = f"{provider} cannot be compiled: its sources are not among the pinned ones"
        why = f"not there: {', '.join(sorted(missing))}"
        hint = f"take upstream's sources, which have them: onnxruntime.source = 'upstream', or leave {provider} out"
        raise PlanError("provider-sources-missing", what, where=job.target.identifier, why=why, hint=hint)


CPUINFO: Final = "cpuinfo"
CPUINFO_ARCHITECTURES: Final = (Architecture.ARM64, Architecture.ARM)
"""Where ONNX Runtime asks cpuinfo for what the kernel's own bits do not say; it has no use for it elsewhere."""

BUILD_ID: Final = "-Wl,--build-id=sha1"
NO_UNWINDING: Final = ("-Wl,--no-eh-frame-hdr", "-Wl,-T,../../hooks/no_unwind_tables.ld")
UNWINDING: Final = "-funwind-tables"
"""Upstream says `-fno-unwind-tables` of all C++ without exceptions; what is said later of a source overrules it."""
FRAMES: Final = "-fno-unwind-tables -fno-asynchronous-unwind-tables -fforce-dwarf-frame"
"""The same tables, in a section that is never loaded."""
FRAMES_OF_GCC: Final = "-g1"
"""gcc puts them there with what else debuggers read alone: so names and lines of functions come along."""
FRAMES_OF_LTO: Final = "-Wl,-mllvm,-force-dwarf-frame-section"
LTO_OBJECT: Final = "-Wl,--lto-obj-path=lto.o"
"""Where the linker leaves what it made of all that it optimised at once, for who looks what that asks for."""
UNREACHED: Final = "-Wl,-T,../../hooks/unreached.ld"
"""As the linker sees it from the folder that it runs in: a list of flags cannot hold a folder's name with spaces."""
UNROLLING: Final = {"-O2": ("-fno-unroll-loops",)}
"""Loops that are vectorized are as fast without, and kernels a tenth smaller; MLAS, where they are not, is left alone.

`-O3` is for who wants speed alone.
"""
NO_DEBUGGING: Final = "-g0"
"""zig adds what debuggers read as soon as it is told to optimise for speed, and a library is stripped of it anyway."""
UPSTREAM: Final = ("-Os", NO_DEBUGGING)
"""How upstream optimises; nothing is said of sources that are to be optimised so."""

RUNNER_SOURCES: Final = (
    "inputs.c", "measure.c", "model.c", "options.c", "outputs.c", "report.c", "runner.c", "runtime.c", "session.c",
    "tensor.c", "trace.c",
)  # fmt: skip

DEFINITIONS: Final = (
    "FETCHCONTENT_FULLY_DISCONNECTED=ON",
    "FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER",
    "ORTRIM_DEPENDENCIES=${sources}/dependencies.cmake",
    "safeint_SOURCE_DIR=${sources}/safeint",
    "CMAKE_DISABLE_FIND_PACKAGE_Git=TRUE",
    "FLATBUFFERS_BUILD_FLATC=OFF",
    "onnxruntime_BUILD_UNIT_TESTS=OFF",
    "onnxruntime_USE_TELEMETRY=OFF",
    "CMAKE_MAKE_PROGRAM=${tools}/bin/ninja",
    "CMAKE_AR=${wrappers}/ar",
    "CMAKE_RANLIB=${wrappers}/ranlib",
)
"""CMake definitions that keep the build to what was fetched and pinned, and the library from sending anything.

`FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER` keeps the distribution's packages out. Without git, upstream's
`CMakeLists.txt` writes neither the commit of whatever repository the cache lies in into the library, nor whether the
machine has git. flatc is a tool that the library does not need. Every version knows the word for telemetry; from 1.30
on (upstream's commit 4489503269) `build.py` has it on for builds with exceptions, which what is defined here overrules.
"""


def upstream_arguments(
    job: BuildJob, definitions: Iterable[str], *, system: tuple[str, ...] = (), demangler_apart: bool = True
) -> tuple[str, ...]:
    """Return `build.py`'s arguments for a minimal build with reduced operators and types.

    `system` are arguments, `definitions` CMake's that only the job's platform has. Without `demangler_apart` upstream's
    own sources have a small demangler. The phase, `--update` or `--build`, is the executor's.
    """
    disabled = tuple(kind for kind in job.without_types if kind in OF_UPSTREAM)
    taken = any(source.name == CPUINFO for source in job.sources)
    return (
        *("--build_dir", "${build}", "--config", "MinSizeRel", "--target", "onnxruntime"),
        *("--skip_submodule_sync", "--skip_tests", "--allow_running_as_root", "--compile_no_warning_as_error"),
        *("--cmake_generator", "Ninja", "--cmake_path", "${tools}/cmake/data/bin/cmake"),
        *("--ctest_path", "", "--path_to_protoc_exe", "${tools}/protoc/data/bin/protoc"),
        *("--build_shared_lib", *minimal_build(job), "--disable_rtti", *versioned_options(job.ort_version)),
        *(() if job.exceptions else ("--disable_exceptions",)),
        *(() if _needs_ml_operators(job) else ("--disable_ml_ops",)),
        *("--include_ops_by_config", "${config}", "--enable_reduced_operator_type_support"),
        *(("--disable_types", *disabled) if disabled else ()),
        *system,
        *(FLAGS[name] for name in job.providers),
        *("--cmake_extra_defines", *DEFINITIONS, f"onnxruntime_ENABLE_CPUINFO={'ON' if taken else 'OFF'}"),
        *_hook_definitions(job, demangler_apart=demangler_apart),
        *definitions,
    )


def runner_arguments(job: BuildJob, flags: Iterable[str], libraries: Iterable[str]) -> tuple[str, ...]:
    """Return the compiler's arguments for the runner: plain C, with the system's `libraries`."""
    define, archive = (("-DORTRIM_LINKED",), ("${archive}",)) if job.linkage == "static" else ((), ())
    include = "-I${sources}/onnxruntime/include/onnxruntime/core/session"
    sources = (f"${{runner}}/{name}" for name in RUNNER_SOURCES)
    return ("-std=c11", "-O2", *flags, include, *define, *sources, *archive, "-o", "${build}/runner", *libraries)


def compiled_sources(
    target: Target, sources: tuple[SourcePin, ...], providers: tuple[str, ...] = ()
) -> tuple[SourcePin, ...]:
    """Return those of the sources that a target's library is made from, with these execution providers."""
    needed = frozenset[str]().union(*(FETCHED[name] for name in providers), {CPUINFO} if takes_cpuinfo(target) else ())
    return tuple(source for source in sources if source.name not in OPTIONAL or source.name in needed)


def takes_cpuinfo(target: Target) -> bool:
    """Whether a target's library has cpuinfo compiled in. With musl upstream has never been tried with it."""
    return target.architecture in CPUINFO_ARCHITECTURES and target.c_library is not CLibrary.MUSL


def _hook_definitions(job: BuildJob, *, demangler_apart: bool) -> tuple[str, ...]:
    """Return the CMake definitions that let ortrim's `units.cmake` choose what is compiled, and how.

    The precompiled header changes the order of a few functions and nothing else; the profile `upstream` goes without,
    because its bytes are to be upstream's own.
    """
    hook = ("CMAKE_PROJECT_onnxruntime_INCLUDE=${hooks}/units.cmake", "ORTRIM_SELECTION=${hooks}/selection.cmake")
    musl = job.target.c_library is CLibrary.MUSL
    switches = {"PRECOMPILED": job.build_options.precompiled_headers, "MUSL": musl, "LINK_TIME": job.build_options.lto}
    switches["WITHOUT_FLOAT16"] = FLOAT16 in job.without_types
    switches["FRAMES"] = keeps_frames(job)
    switches["MESSAGES"] = bool(job.build_options.lean_errors)
    switches["TERSE"] = job.build_options.lean_errors == "places"
    switches["API"] = job.build_options.api != "all" or keeps_blocks(job)
    switches["KEEPS_BLOCKS"] = keeps_blocks(job)
    runtime = ("ORTRIM_RUNTIME=${tools}/ziglang/lib",) if job.build_options.libcxx_no_exceptions else ()
    surrogates = ";".join(_surrogates(job, demangler_apart=demangler_apart))
    own = (*_optimization(job), *runtime, *((f"ORTRIM_SURROGATES={surrogates}",) if surrogates else ()))
    return (*hook, *(f"ORTRIM_{name}=ON" for name, on in switches.items() if on), *own)


def keeps_blocks(job: BuildJob) -> bool:
    """Whether all that calls operator new is compiled into the library; a Mac's loader joins it over libraries."""
    return job.build_options.libcxx_no_exceptions and job.target.is_elf


def folding_flags(job: BuildJob) -> tuple[str, ...]:
    """Return how lld folds and orders functions, and leaves out unwind tables and unreached kernels."""
    folding = ("-Wl,--icf=all",) if job.build_options.icf else ()
    order = ("-Wl,--bp-compression-sort=both",) if job.build_options.compression_ordering else ()
    kernels = (UNREACHED,) if job.build_options.dead_kernel_elimination else ()
    tables = NO_UNWINDING if keeps_frames(job) and job.toolchain.kind in LINKS_WITH_LLD else ()
    late = (LTO_OBJECT,) if job.build_options.lto else ()
    frames = (FRAMES_OF_LTO,) if keeps_frames(job) and job.build_options.lto else ()
    return (*folding, *order, *tables, *late, *frames, *kernels)


def symbol_flags(job: BuildJob) -> tuple[str, ...]:
    """Return what keeps the linker from leaving out symbols, which upstream asks for; frames: see `units.cmake`."""
    return () if keeps_frames(job) else ("-Wl,--strip-debug",)


def keeps_frames(job: BuildJob) -> bool:
    """Whether the unwind tables are kept beside the symbols, for debuggers; exceptions need them loaded."""
    return job.build_options.unwind_tables in {False, "compressed"}


def wide_sources(job: BuildJob) -> tuple[str, ...]:
    """Return our own sources that put kernels into MLAS's table: some for speed, some that laid-out models need."""
    return (*_wide_surrogates(job), *laid_out_sources(job))


def laid_out_sources(job: BuildJob) -> tuple[str, ...]:
    """Return those for the models' own convolutions and products; no argument names them: trees serve all models."""
    plain = (DEPTHWISE,) if job.depthwise and job.profile != "upstream" else ()
    multiplied = parse_config(job.operator_config).multiplies_by_few_bits
    few_bits = (FOUR_BITS,) if multiplied and job.target.architecture is Architecture.ARM64 else ()
    return (*plain, *few_bits, *_for_blocks(job))


def _for_blocks(job: BuildJob) -> tuple[str, ...]:
    """Return those for models in NCHWc layout with block size 8."""
    if job.nchwc_block_size != 8 or NCHWC not in job.operator_config:
        return ()
    names = {each.name for each in parse_config(job.operator_config).operators}
    swish = (HARD_SWISH,) if names.issuperset({"HardSigmoid", "Mul"}) else ()
    if job.target.architecture is Architecture.ARM64:
        return (NEON_CONVOLUTIONS, *((WINOGRAD,) if job.tiled else ()), *swish)
    wide = (AVX512_CONVOLUTIONS,) if job.build_options.avx512_kernels else ()
    tiled = (WINOGRAD_AVX2, WINOGRAD) if job.tiled and job.toolchain.kind != "gcc" else ()
    return (*wide, *tiled, *swish)


def _wide_surrogates(job: BuildJob) -> tuple[str, ...]:
    vectors = (AVX512_KERNELS,) if job.build_options.avx512_kernels else ()
    return (*vectors, *((AVX512_NCHWC,) if job.nchwc_block_size == 16 else ()))


def _optimization(job: BuildJob) -> tuple[str, ...]:
    pointers = () if job.build_options.frame_pointers else ("-fomit-frame-pointer",)
    levels = {"ORTRIM_COLD": job.build_options.cold, "ORTRIM_HOT": job.build_options.hot}
    words = {name: (level, *UNROLLING.get(level, ()), *pointers, *_tables(job)) for name, level in levels.items()}
    return tuple(f"{name}={' '.join(flags)}" for name, flags in words.items() if flags != UPSTREAM)


def _tables(job: BuildJob) -> tuple[str, ...]:
    """Return how sources keep unwind tables, and nothing else that debuggers read."""
    if keeps_frames(job):
        return (FRAMES_OF_GCC,) if job.toolchain.kind == "gcc" else (FRAMES, NO_DEBUGGING)
    return (UNWINDING, NO_DEBUGGING) if job.build_options.unwind_tables and not job.exceptions else (NO_DEBUGGING,)


def _surrogates(job: BuildJob, *, demangler_apart: bool) -> tuple[str, ...]:
    """Return small sources that stand in for the toolchain's, large or absent: a link takes what comes first."""
    unreached = ("unreached.c",) if job.build_options.dead_kernel_elimination else ()
    kernels = (*unreached, *_wide_surrogates(job))
    options = job.build_options
    apart = demangler_apart and not options.demangler and not options.libcxx_no_exceptions
    closed = job.toolchain.kind == "zig" and job.target.system == "linux"
    return (*kernels, *(("no_demangler.c",) if apart else ()), *(("close_library.c",) if closed else ()))


def _needs_ml_operators(job: BuildJob) -> bool:
    operators = parse_config(job.operator_config)
    return operators.everything or "ai.onnx.ml" in operators.domains


OPTIONS: Final = {
    # KleidiAI's kernels are on by default for every arm64 and want its sources. Most are for processors with SME, and
    # the rest are MatMulNBits'. Upstream's commit 90c5ffb585; 1.22 itself only asks whether the compiler could.
    "--no_kleidiai": "1.22",
    # Elementwise kernels for arm64 processors with SVE, on Linux, asked for by a `-march` that zig refuses: without
    # them every toolchain compiles the same kernels. Upstream's commit 79a2d250de.
    "--no_sve": "1.24",
}
"""Options of `build.py` that not every version has, and the first that does.

They are passed for every target: where one would change nothing, it spares a warning of CMake's.
"""


def versioned_options(version: str) -> tuple[str, ...]:
    """Return those of `OPTIONS` that a version of ONNX Runtime has."""
    return tuple(option for option, first in OPTIONS.items() if version_numbers(first) <= version_numbers(version))
