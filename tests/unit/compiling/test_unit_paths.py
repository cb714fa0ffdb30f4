import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.translation_units import compiled_names, symbolic_path

SOURCES = "/home/me/.cache/ortrim/sources/1d9a"
BUILD = "/home/me/.cache/ortrim/builds/9d65.work/out"
NINJA = f"{BUILD}/MinSizeRel"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (f"{SOURCES}/onnxruntime/cmake/a+b.cc", "${sources}/onnxruntime/cmake/a+b.cc"),
        (f"{SOURCES}/abseil_cpp/absl/../absl//base/log.cc", "${sources}/abseil_cpp/absl/base/log.cc"),
        (f"{NINJA}/generated_source.c", "${build}/MinSizeRel/generated_source.c"),
        ("onnx/onnx-ml.pb.cc", "${build}/MinSizeRel/onnx/onnx-ml.pb.cc"),
        ("../../../sources/1d9a/re2/re2/re2.cc", None),
        ("../../../../sources/1d9a/re2/re2/re2.cc", "${sources}/re2/re2/re2.cc"),
        (f"{SOURCES}x/re2/re2/re2.cc", None),
        (SOURCES, None),
        ("/usr/include/stdio.h", None),
        ("/", None),
    ],
)
def test_source_has_the_name_that_it_has_everywhere(file: str, expected: str | None) -> None:
    """Absolute and relative paths give the symbolic one; what lies elsewhere has none."""
    assert symbolic_path(file, NINJA, sources=SOURCES, build=BUILD) == expected
    assert symbolic_path(file, NINJA, sources=SOURCES + "/", build=BUILD + "/") == expected


@pytest.mark.parametrize(
    "inside",
    ["onnxruntime/core/providers/cpu/cpu_execution_provider.cc", "onnxruntime/contrib_ops/cpu/cpu_contrib_kernels.cc"],
)
def test_reduced_copy_is_the_same_unit(inside: str) -> None:
    """A registration file has one name, whether the build compiles upstream's file or the copy with fewer operators."""
    copy = symbolic_path(f"op_reduction.generated/{inside}", NINJA, sources=SOURCES, build=BUILD)
    assert copy == "${sources}/onnxruntime/" + inside
    assert compiled_names(copy) == (copy, f"${{build}}/MinSizeRel/op_reduction.generated/{inside}")


def test_other_units_are_compiled_under_their_own_name() -> None:
    """Only registration files have copies."""
    for unit in ("${build}/MinSizeRel/generated_source.c", "${sources}/onnxruntime/onnxruntime/core/graph/graph.cc"):
        assert compiled_names(unit) == (unit,)


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b.cc"]), max_size=8))
def test_name_never_climbs(parts: list[str]) -> None:
    """A symbolic path has no part that leads out of its folder."""
    path = symbolic_path("/".join(parts), NINJA, sources=SOURCES, build=BUILD)
    assert path is None or ".." not in path.split("/")
