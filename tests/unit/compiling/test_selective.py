"""Cold kernels of a source tree: found in its text, and told to CMake."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fake_kernels import CONTRIB, CPU, TYPED, make_kernels
from ortrim.buildspec.build_options import BuildOptions
from ortrim.buildspec.buildspec import PROVIDER_NAMES, AndroidSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.dead_kernels import KINDS
from ortrim.compiling.plan import CompiledUnits
from ortrim.compiling.selective import (
    SELECTION,
    SelectiveBuild,
    cold_kernel_sources,
    mentioning,
    variant_of,
    write_selection,
)
from ortrim.compiling.translation_units import Variant
from ortrim.compiling.upstream import CompileOutcome, type_folder
from ortrim.compiling.workspace import JobPaths
from ortrim.errors import StorageError
from refusing import refused
from sample_plans import MODELS, sample_plan, system_gcc
from unit_samples import GEMM, INTERFACE, PROVIDER, SGEMM

AWKWARD = ("plain", "a b", "a[1]", "a=b", "[==[a]=]", "$HOME", "a#b", 'a"b', "a\\b", "${sources}", "ü")
"""Folder names of users. A semicolon or a single bracket breaks every list of CMake, upstream's own too."""


@pytest.fixture(params=AWKWARD)
def paths(request: pytest.FixtureRequest, tmp_path: Path) -> JobPaths:
    return make_kernels(tmp_path / request.param)


def read_lists(text: str) -> dict[str, list[str]]:
    """Read `set(NAME [==[value]==] ...)` as CMake does: nothing between the brackets means anything."""
    found = {}
    for name, body in re.findall(r"^set\((\w+)\n(.*?)^\)\n", text, re.MULTILINE | re.DOTALL):
        found[name] = re.findall(r"^  \[==\[(.*?)\]==\]$", body, re.MULTILINE)
        assert "".join(f"  [==[{value}]==]\n" for value in found[name]) == body
    assert "".join(f"set({name}\n" for name in found) == "".join(re.findall(r"^set\(\w+\n", text, re.MULTILINE))
    return found


def selection_of(paths: JobPaths) -> dict[str, list[str]]:
    return read_lists((paths.hooks / SELECTION).read_text())


def test_units_are_named_by_where_they_lie_here(paths: JobPaths) -> None:
    write_selection(paths, [INTERFACE, GEMM])
    assert selection_of(paths)["ORTRIM_OMITTED"] == [
        f"{paths.build}/MinSizeRel/generated_source.c",
        f"{paths.sources}/onnxruntime/onnxruntime/core/providers/cpu/math/gemm.cc",
    ]


def test_registrations_are_left_out_with_their_reduced_copies(paths: JobPaths) -> None:
    """Upstream compiles the copy; the original is listed as well, for a build that does not reduce."""
    write_selection(paths, [PROVIDER])
    name = "onnxruntime/core/providers/cpu/cpu_execution_provider.cc"
    assert selection_of(paths)["ORTRIM_OMITTED"] == [
        f"{paths.sources}/onnxruntime/{name}",
        f"{paths.build}/MinSizeRel/op_reduction.generated/{name}",
    ]


def test_each_typed_unit_has_its_folder_beside_it(paths: JobPaths) -> None:
    write_selection(paths, [SGEMM])
    lists = selection_of(paths)
    assert lists["ORTRIM_COLD_KERNELS"] == lists["ORTRIM_LEFT_OUT"] == []
    units = [paths.sources / name for name in TYPED]
    assert lists["ORTRIM_CUT_UNITS"] == list(map(str, units))
    assert lists["ORTRIM_CUT_FOLDERS"] == [str(type_folder(paths, unit)) for unit in units]


@pytest.fixture
def plain(tmp_path: Path) -> JobPaths:
    return make_kernels(tmp_path)


def test_nothing_is_left_out_unless_it_is_named(plain: JobPaths) -> None:
    """CMake finds an empty list, not that of an earlier selection; type control stays."""
    write_selection(plain, [GEMM])
    write_selection(plain, ())
    lists = selection_of(plain)
    assert lists["ORTRIM_OMITTED"] == []
    assert len(lists["ORTRIM_CUT_UNITS"]) == len(TYPED)


def test_the_same_selection_keeps_its_time(plain: JobPaths) -> None:
    """CMake configures again when the file is newer, and only then."""
    write_selection(plain, [GEMM])
    os.utime(plain.hooks / SELECTION, (1, 1))
    write_selection(plain, [GEMM])
    assert (plain.hooks / SELECTION).stat().st_mtime == 1
    write_selection(plain, [GEMM, SGEMM])
    assert (plain.hooks / SELECTION).stat().st_mtime > 1


def test_a_jobs_variant_is_what_its_index_must_have_been_made_with() -> None:
    """Version, target, kind of compiler and exceptions; neither the operators nor the glibc."""
    job = sample_plan().targets[0].job
    expected = Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=False)
    assert variant_of(job) == expected
    assert variant_of(replace(job, operator_config="", minimum_glibc="2.17", profile="upstream")) == expected


def test_types_that_are_left_out_make_a_variant_of_their_own() -> None:
    """Its sources define less: what is learnt of them serves no build with all types."""
    job = replace(sample_plan().targets[0].job, without_types=("float8", "optional", "sparsetensor"))
    assert variant_of(job).stem == "onnxruntime-1.21.0-linux-x64-zig-without-float8-optional-sparsetensor"


@pytest.mark.parametrize("target", TARGETS)
def test_every_job_has_a_variant(target: str) -> None:
    """With all providers that there are, and without all kinds of types: its name is not too long."""
    job = sample_plan(target).targets[0].job
    assert variant_of(replace(job, providers=tuple(PROVIDER_NAMES), without_types=KINDS, exceptions=True)).stem


@pytest.mark.parametrize(
    ("changes", "stem"),
    [
        ({"exceptions": True}, "onnxruntime-1.21.0-linux-x64-zig-exceptions"),
        ({"target": "linux-arm64"}, "onnxruntime-1.21.0-linux-arm64-zig"),
        ({"toolchain": system_gcc()}, "onnxruntime-1.21.0-linux-x64-gcc"),
    ],
    ids=["exceptions", "target", "toolchain"],
)
def test_other_flags_are_another_variant(changes: dict[str, object], stem: str) -> None:
    assert variant_of(sample_plan(**changes).targets[0].job).stem == stem  # type: ignore[arg-type]


def test_execution_providers_have_an_index_of_their_own() -> None:
    """What they add is in no index of a build without them; neither level nor NDK makes another."""
    models = (replace(MODELS[0], style="runtime"),)
    jobs = [
        sample_plan("android-x86_64", android=options, models=models).targets[0].job
        for options in (AndroidSpec(), AndroidSpec(api=30, ndk="28.0.13004108"))
    ]
    plain, newer, other = map(variant_of, (*jobs, replace(jobs[0], providers=("xnnpack",))))
    assert plain == newer
    assert plain.stem == "onnxruntime-1.21.0-android-x86_64-ndk"
    assert other.stem == "onnxruntime-1.21.0-android-x86_64-ndk-xnnpack"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ld.lld: error: undefined symbol: cpuinfo_initialize", {"c"}),
        (
            "ld.lld: error: undefined symbol: absl::lts_20250512::raw_log::RawLog(absl::LogSeverity, char const*)",
            {"log"},
        ),
        (
            "ld.lld: error: undefined symbol: onnxruntime::Memcpy::Compute(onnxruntime::OpKernelContext*) const",
            {"memcpy"},
        ),
        ("ld.lld: error: undefined symbol: vtable for onnxruntime::Memcpy", {"memcpy", "user"}),
        ("ld.lld: error: undefined symbol: void onnxruntime::Transpose<float, Span<int>>(float)", {"user"}),
        ("ld: a.cc:(.text.f[f]+0x1): undefined reference to `onnxruntime::Memcpy::Compute(int)'", {"memcpy"}),
        ('  "_cpuinfo_initialize", referenced from:', {"c"}),
        ('  "onnxruntime::Memcpy::Compute(onnxruntime::OpKernelContext*) const", referenced from:', {"memcpy"}),
        ("ld.lld: error: undefined symbol: nowhere", set()),
        ("a.cc:1: error: use of undeclared identifier 'cpuinfo_initialize'", set()),
        (">>> referenced by cpuinfo_initialize", set()),
    ],
)
def test_the_unfound_is_looked_for_in_the_sources(tmp_path: Path, line: str, found: set[str]) -> None:
    """By its name and its class, in the words of three linkers."""
    paths = make_kernels(tmp_path)
    texts = {
        "c": "bool cpuinfo_initialize(void) {}",
        "log": "namespace raw_log { void RawLog(LogSeverity) {} }",
        "memcpy": "namespace onnxruntime { Status Memcpy::Compute(OpKernelContext*) {} }",
        "user": "namespace onnxruntime { Memcpy copy; Transpose<int>(1); }",
        "other": "cpuinfo_initialize_more, Compute, RawLog",
    }
    for name, text in texts.items():
        (paths.sources / f"{name}.cc").write_text(text)
    units = {f"${{sources}}/{name}.cc" for name in (*texts, "gone")}
    assert mentioning(paths, units, ["FAILED: lib.so", line]) == {f"${{sources}}/{name}.cc" for name in found}


def test_an_unfound_kernel_of_assembly_is_looked_for_by_the_end_of_its_name(tmp_path: Path) -> None:
    """Macros put the name together, so that no file has it: 1.25 and later compare an entry with one of AVX-512."""
    paths = make_kernels(tmp_path)
    units = {f"${{sources}}/{name}" for name in ("SconvKernelAvx512F.S", "SconvKernelAvx.S", "plan_avx512f.cc")}
    line = "ld.lld: error: undefined symbol: MlasConvNchwFloatKernelAvx512F"
    assert mentioning(paths, units, [line]) == {"${sources}/SconvKernelAvx512F.S"}


KERNELS = {f"{CPU}/nn/conv.cc": "Conv", f"{CPU}/nn/lstm.cc": "LSTM", f"{CONTRIB}/bert/attention.cc": "Attention"}
ELSEWHERE = "onnxruntime/onnxruntime/core/providers/cuda/conv.cc"


@pytest.fixture
def paths_hot_kernels(tmp_path: Path) -> JobPaths:
    paths_hot_kernels = make_kernels(tmp_path)
    for name, operator in {**KERNELS, ELSEWHERE: "Conv"}.items():
        (paths_hot_kernels.sources / name).parent.mkdir(parents=True, exist_ok=True)
        (paths_hot_kernels.sources / name).write_bytes(
            b"// \xff\nONNX_CPU_OPERATOR_KERNEL(" + operator.encode() + b", 1, B);\n"
        )
    return paths_hot_kernels


def test_kernels_of_other_operators_are_cold(paths_hot_kernels: JobPaths) -> None:
    cold = cold_kernel_sources(paths_hot_kernels, ["ai.onnx:LSTM"])
    assert cold == (
        paths_hot_kernels.sources / CONTRIB / "bert/attention.cc",
        paths_hot_kernels.sources / CPU / "nn/conv.cc",
    )


def test_without_hot_operators_nothing_is_read(paths_hot_kernels: JobPaths) -> None:
    (paths_hot_kernels.sources / CPU / "nn/conv.cc").chmod(0)
    assert cold_kernel_sources(paths_hot_kernels, ()) == ()


def test_cmake_is_told(paths_hot_kernels: JobPaths) -> None:
    write_selection(paths_hot_kernels, (), ["ai.onnx:Conv", "com.microsoft:Attention"])
    text = (paths_hot_kernels.hooks / SELECTION).read_text()
    assert f"set(ORTRIM_COLD_KERNELS\n  [==[{paths_hot_kernels.sources / CPU / 'nn/lstm.cc'}]==]\n)\n" in text


def test_a_source_that_cannot_be_read_is_a_diagnostic(paths_hot_kernels: JobPaths) -> None:
    """A folder in its place is not taken for a source without kernels."""
    (paths_hot_kernels.sources / CPU / "nn/conv.cc").unlink()
    (paths_hot_kernels.sources / CPU / "nn/conv.cc").mkdir()
    caught = refused(StorageError, cold_kernel_sources, paths_hot_kernels, ["ai.onnx:LSTM"])
    assert caught.code == "path-in-the-way"


GOOD = CompileOutcome(code=0, lines=())
SELECTED, WHOLE = CompiledUnits(compiled=3, total=9), CompiledUnits(compiled=4, total=9)
UNFOUND_KERNEL = CompileOutcome(code=1, lines=("ld.lld: error: undefined symbol: MlasQuant",))


@pytest.mark.parametrize(
    ("links", "compiled", "result"),
    [((GOOD,), 0, GOOD), ((UNFOUND_KERNEL, GOOD), 1, GOOD), ((UNFOUND_KERNEL, UNFOUND_KERNEL), 1, UNFOUND_KERNEL)],
)
def test_kernels_that_are_asked_for_all_the_same_are_compiled(
    monkeypatch: pytest.MonkeyPatch, links: tuple[CompileOutcome, ...], compiled: int, result: CompileOutcome
) -> None:
    """Once, with all that the index selects, and then what nothing reaches is looked for again."""
    made, outcomes = list[bool](), iter(links)

    def compile_selected(_self: SelectiveBuild, _index: object, *, with_unread: bool) -> tuple[CompileOutcome, Any]:
        made.append(with_unread)
        return GOOD, WHOLE

    monkeypatch.setattr("ortrim.compiling.selective.relink.leave_out_unreached", lambda *_, **__: next(outcomes))
    monkeypatch.setattr(SelectiveBuild, "compile_selected", compile_selected)
    monkeypatch.setattr(SelectiveBuild, "_table", None)
    monkeypatch.setattr(SelectiveBuild, "mechanisms", None)
    job = replace(sample_plan().targets[0].job, build_options=BuildOptions(dead_kernel_elimination=True))
    build = SelectiveBuild(job=job, upstream=Mock(), cache=None, on_note=list[str]().append)
    assert build.without_unreached(GOOD, SELECTED) == (result, WHOLE if compiled else SELECTED)
    assert made == [True] * compiled
