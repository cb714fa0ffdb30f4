import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.translation_units import LARGEST_INDEX, UnitIndex, read_index, render_index, select_units
from ortrim.errors import ExitCode, SourcesError
from ortrim.models.operators import required_operators
from unit_samples import VARIANT, indices, sample_index

EVERYTHING = required_operators((), no_operators_means_all=True)
TEXT = render_index(sample_index())
Step = str | int


def refused(text: str | bytes) -> SourcesError:
    """Read a text that must be refused."""
    with pytest.raises(SourcesError) as caught:
        read_index(text, "index.json")
    assert (caught.value.code, caught.value.exit_code) == ("bad-unit-index", ExitCode.SOURCES)
    assert (caught.value.where, bool(caught.value.why)) == ("index.json", True)
    return caught.value


def changed(steps: tuple[Step, ...], value: Any) -> str:
    """Return the sample index as JSON with one place changed."""
    data = json.loads(TEXT)
    place = data
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    return json.dumps(data)


@given(indices)
def test_what_is_written_reads_back(index: UnitIndex) -> None:
    """Any index survives writing and reading; equal indices have equal bytes."""
    text = render_index(index)
    assert read_index(text) == read_index(text.encode()) == index
    assert render_index(read_index(text)) == text


def test_each_unit_and_operator_has_a_line() -> None:
    """A difference between two indices shows the units and operators that differ."""
    lines = TEXT.splitlines()
    assert sum('"path":' in line for line in lines) == len(sample_index().units)
    assert sum(line.startswith('["ai.onnx:') for line in lines) == 2
    assert max(map(len, lines)) < 400


def test_file_is_named_after_what_the_index_was_made_with() -> None:
    """Version, target, toolchain and exceptions tell indices apart."""
    assert VARIANT.stem == "onnxruntime-1.21.0-linux-x64-zig"
    data = json.loads(changed(("variant", "exceptions"), value=True))
    assert read_index(json.dumps(data)).variant.stem == "onnxruntime-1.21.0-linux-x64-zig-exceptions"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "onnxruntime/a.cc",
        "${sources}",
        "${sources}/",
        "${sources}//a.cc",
        "${sources}/../a.cc",
        "${sources}/a/../../b.cc",
        "${sources}/./a.cc",
        "${sources}/a/..",
        "${sources}a.cc",
        "${tools}/a.cc",
        "${build}/a.cc\n",
        "${build}/a;b.cc",
        '${build}/a"b.cc',
        "${build}/a\\b.cc",
        "${build}/a b.cc",
        "${build}/${HOME}/a.cc",
        "${build}/$ENV{HOME}.cc",
        "${build}/$<TARGET_FILE:x>",
        "${build}/a#b.cc",
        "${build}/a(b.cc",
        "${build}/a'b.cc",
        "${build}/a\0.cc",
        "${build}/\N{LATIN SMALL LETTER A WITH DIAERESIS}.cc",
        "${build}/" + "a" * 1000,
        7,
        None,
    ],
)
def test_path_that_could_do_harm_is_refused(path: object) -> None:
    """No path leads out of the two folders or holds what CMake, ninja or a shell reads as anything but a name."""
    data = json.loads(TEXT)
    data["units"] = [{"needs": [], "path": path, "provides": []}]
    data["roots"], data["kernels"] = [0], []
    assert "units.0.path" in refused(json.dumps(data)).why


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        (("schema",), "ortrim-units/2"),
        (("variant", "ort_version"), "../1.21.0"),
        (("variant", "target"), "linux/x64"),
        (("variant", "toolchain"), ""),
        (("variant", "exceptions"), 1),
        (("variant", "ml_ops"), True),
        (("extra",), []),
        (("roots",), []),
        (("roots",), [7]),
        (("roots",), [-1]),
        (("roots",), [0, 0]),
        (("roots",), [1, 0]),
        (("roots",), ["0"]),
        (("roots",), [0.0]),
        (("roots",), [True]),
        (("roots",), [10**400]),
        (("roots",), {"0": 0}),
        (("units",), []),
        (("units", 0, "needs"), [1, 1]),
        (("units", 0, "needs"), [99]),
        (("units", 0, "provides"), ["b", "a"]),
        (("units", 0, "provides"), ["a b"]),
        (("units", 0, "provides"), [""]),
        (("units", 0, "provides"), ["a" * 10_001]),
        (("units", 1, "path"), "${build}/MinSizeRel/generated_source.c"),
        (("units", 1, "path"), "${build}/MinSizeRel/a.c"),
        (("kernels", 0), ["ai.onnx:Add", [99]]),
        (("kernels", 0), ["ai.onnx:Add", [2, 1]]),
        (("kernels", 0), ["ai.onnx;Add", [1]]),
        (("kernels", 0), ["ai.onnx:Zoo", [1]]),
        (("kernels", 0), ["ai.onnx:Gemm", [1]]),
        (("kernels", 0), ["ai.onnx:Add"]),
    ],
)
def test_index_that_contradicts_itself_is_refused(steps: tuple[Step, ...], value: object) -> None:
    """Numbers out of range, repetitions, other orders, other types and unknown fields do not load."""
    refused(changed(steps, value))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "{" * 100_000, "[" * 100_000, TEXT[:-3], TEXT + TEXT, b"\xff\xfe", b"\x7fELF", "NaN"],
)
def test_other_files_are_refused(text: str | bytes) -> None:
    """What is not an index at all is refused without a traceback."""
    refused(text)


def test_huge_file_is_refused_unread() -> None:
    """A file far larger than any index is not parsed."""
    assert f"{LARGEST_INDEX:,}" in refused(b" " * (LARGEST_INDEX + 1)).why


def test_many_faults_are_reported_by_the_first() -> None:
    """A file of nothing but faults is refused at the first, not after a list of all."""
    data = json.loads(TEXT)
    data["units"][0]["needs"] = ["x"] * 1_000_000
    assert refused(json.dumps(data)).why.startswith("units.0.needs.0:")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats()
    | st.sampled_from(["", "a", "${sources}/a.cc", "${sources}/..", "ai.onnx:Add", "ortrim-units/1"])
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["needs", "path"]), inner, max_size=2),
    max_leaves=5,
)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Return the sample index as JSON with one place, anywhere, replaced, removed or repeated."""
    data = place = json.loads(TEXT)
    while True:
        step = draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
        if not place[step] or not isinstance(place[step], dict | list) or draw(st.booleans()):
            break
        place = place[step]
    action = draw(st.sampled_from(["replace", "remove", "repeat"]))
    if action == "replace":
        place[step] = draw(json_values)
    elif action == "remove":
        del place[step]
    elif isinstance(place, list):
        place.insert(draw(st.integers(0, len(place))), place[step])
    return json.dumps(data)


def check_read_or_refused(text: str) -> None:
    """Assert that a text gives a valid index, from which only its own units are selected, or the diagnostic."""
    try:
        index = read_index(text)
    except SourcesError as error:
        assert error.code == "bad-unit-index"  # noqa: PT017 - both outcomes are right
        return
    assert read_index(render_index(index)) == index
    assert set(select_units(index, EVERYTHING)) <= {unit.path for unit in index.units}


@given(mutations())
def test_any_mutation_is_read_or_refused(text: str) -> None:
    """Whatever is changed, the answer is an index that keeps every rule, or the diagnostic."""
    check_read_or_refused(text)


@given(st.integers(0, len(TEXT)), st.integers(0, 20), st.text(max_size=5))
def test_any_damage_to_the_text_is_read_or_refused(start: int, length: int, replacement: str) -> None:
    """The same for characters that are lost or exchanged."""
    check_read_or_refused(TEXT[:start] + replacement + TEXT[start + length :])


@given(st.integers(0, len(TEXT) - 2))
def test_truncated_index_is_always_refused(length: int) -> None:
    """However much is missing at the end, nothing is taken of the rest."""
    refused(TEXT[:length])
