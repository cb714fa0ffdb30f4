import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_kernels import AFTER, BEFORE, CONTRIB, CPU, TYPED, allowed, make_kernels, write_overrides
from ortrim.compiling.execution import JobPaths
from ortrim.compiling.upstream import HEADER, type_folder, typed_units, write_type_control

OPERATORS = ("Cast", "CastLike", "Crop", "Gather", "Gemm", "Max", "Min", "Pow")
GLOBAL = "ORT_SPECIFY_OP_KERNEL_GLOBAL_ALLOWED_TYPES(float, int64_t);\n"
ARITHMETIC, CAST, CROP = f"{CPU}/math/element_wise_ops.cc", f"{CPU}/tensor/cast_op.cc", f"{CONTRIB}/crop.cc"


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    """Make the sources."""
    return make_kernels(tmp_path)


def header(paths: JobPaths, name: str) -> Path:
    """Return the place of a unit's own type control."""
    return type_folder(paths, paths.sources / name) / HEADER


def lines_of(paths: JobPaths, name: str) -> list[str]:
    """Return what a unit's own type control says between upstream's marks; all else must be upstream's."""
    text = header(paths, name).read_text()
    assert text.startswith(BEFORE)
    assert text.endswith(AFTER)
    return text[len(BEFORE) : -len(AFTER)].splitlines(keepends=True)


def test_sources_with_type_control_are_found(paths: JobPaths) -> None:
    """In both folders of kernels for the processor, in order; no header, no other text, no other provider."""
    assert typed_units(paths) == tuple(paths.sources / name for name in TYPED)


def test_sources_in_any_encoding_are_read(paths: JobPaths) -> None:
    """A name in Latin 1 in a comment is no reason to fail."""
    (paths.sources / CAST).write_bytes(b"// Beno\xeet\n" + TYPED[CAST].encode())
    write_overrides(paths, [allowed("Cast"), allowed("Pow")])
    write_type_control(paths, typed_units(paths))
    assert lines_of(paths, CAST) == [allowed("Cast")]


def test_a_tree_without_kernels_has_none(tmp_path: Path) -> None:
    """Nothing there, nothing to do."""
    paths = JobPaths(**dict.fromkeys(("sources", "build", "tools", "wrappers", "config", "runner", "hooks"), tmp_path))
    assert typed_units(paths) == ()
    write_type_control(paths, ())
    assert list(tmp_path.iterdir()) == []


def test_each_unit_has_the_lines_of_its_own_operators(paths: JobPaths) -> None:
    """An operator whose name begins like another's is another, and so is one of a comment in upstream's header."""
    write_overrides(paths, [allowed("Cast"), allowed("CastLike"), allowed("Gather"), allowed("Max"), allowed("Pow")])
    write_type_control(paths, typed_units(paths))
    assert lines_of(paths, ARITHMETIC) == [allowed("Max"), allowed("Pow")]
    assert lines_of(paths, CAST) == [allowed("Cast"), allowed("CastLike")]
    assert lines_of(paths, CROP) == []


def test_an_operator_of_any_domain_is_recognised_by_its_name(paths: JobPaths) -> None:
    """The same name in another domain costs a compilation at most."""
    write_overrides(paths, [allowed("Pow", domain="kMSDomain"), allowed("Gelu", domain="kMSDomain")])
    write_type_control(paths, typed_units(paths))
    assert lines_of(paths, ARITHMETIC) == [allowed("Pow", domain="kMSDomain")]


def test_types_that_are_allowed_globally_are_everybodys(paths: JobPaths) -> None:
    """They are what a source without operators of its own depends on."""
    write_overrides(paths, [GLOBAL])
    write_type_control(paths, typed_units(paths))
    assert [lines_of(paths, name) for name in TYPED] == [[GLOBAL]] * len(TYPED)


def test_no_two_units_share_a_folder(paths: JobPaths) -> None:
    """Sources of the same name in different folders have type controls of their own, all below the build folder."""
    twin = paths.sources / CPU / "nn" / "cast_op.cc"
    folders = {type_folder(paths, unit) for unit in (*typed_units(paths), twin)}
    assert len(folders) == len(TYPED) + 1
    assert {folder.parent for folder in folders} == {paths.build / "types"}


def old(paths: JobPaths) -> None:
    """Make all type controls look old."""
    for name in TYPED:
        os.utime(header(paths, name), (1, 1))


def young(paths: JobPaths) -> set[str]:
    """Return the units whose type control was written since."""
    return {name for name in TYPED if header(paths, name).stat().st_mtime > 1}


def test_types_of_one_operator_touch_the_units_that_name_it(paths: JobPaths) -> None:
    """Another type of Cast's compiles one file; an operator that no unit names compiles none."""
    write_overrides(paths, [allowed("Cast"), allowed("Pow")])
    write_type_control(paths, typed_units(paths))
    old(paths)
    write_overrides(paths, [allowed("Cast", types="float, int64_t"), allowed("Gather"), allowed("Pow")])
    write_type_control(paths, typed_units(paths))
    assert young(paths) == {CAST}
    old(paths)
    write_overrides(paths, [allowed("Cast", types="float, int64_t"), allowed("Pow")])
    write_type_control(paths, typed_units(paths))
    assert young(paths) == set()


def test_without_upstreams_header_nothing_is_written(paths: JobPaths) -> None:
    """A build with all types has none; what an earlier one left stays as it is."""
    write_type_control(paths, typed_units(paths))
    assert not (paths.build / "types").exists()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(required=st.lists(st.sampled_from(OPERATORS), unique=True), everywhere=st.booleans())
def test_a_unit_has_exactly_the_lines_of_operators_that_it_names(
    paths: JobPaths, required: list[str], everywhere: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    """For any set of operators, in any order, with types that are allowed globally or without."""
    lines = [*([GLOBAL] if everywhere else []), *map(allowed, required)]
    write_overrides(paths, lines)
    write_type_control(paths, typed_units(paths))
    for name, text in TYPED.items():
        named = [operator for operator in required if re.search(rf"\b{operator}\b", text)]
        assert lines_of(paths, name) == [*([GLOBAL] if everywhere else []), *map(allowed, named)]
