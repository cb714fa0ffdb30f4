"""The objects of a tree as ninja and the objects themselves tell of them."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_library import NINJA, OBJECTS, SYMBOLS
from ortrim.compiling.execution import JobPaths, prepare_workspace
from ortrim.compiling.relink import LONGEST_REASON, read_objects, undefined_in
from ortrim.compiling.translation_units import ObjectSymbols
from ortrim.errors import BinaryError, BuildError, ExitCode, ToolError
from workshop import Workshop


@pytest.fixture
def paths(workshop: Workshop) -> JobPaths:
    """Make a tree that ninja describes with the content of `compdb.json`."""
    workshop.tool("ninja", NINJA)
    (workshop.folder / "work").mkdir()
    paths = prepare_workspace(workshop.folder / "work", workshop.executor().inputs, workshop.job.toolchain)
    paths.configured.mkdir()
    return paths


def describe(paths: JobPaths, text: str) -> None:
    """Let ninja print a text."""
    (paths.configured / "compdb.json").write_text(text)


def refused(paths: JobPaths) -> BuildError:
    """Return what is said of a tree that ninja cannot tell about."""
    with pytest.raises(BuildError) as caught:
        read_objects(paths)
    assert (caught.value.code, caught.value.exit_code) == ("objects-unknown", ExitCode.BUILD)
    assert caught.value.where == str(paths.configured)
    assert str(paths.build) in caught.value.hint
    return caught.value


def entry(paths: JobPaths, source: str, output: str) -> str:
    """Return an entry of ninja's database, with the fields that are of no use here."""
    return f'{{"directory": "{paths.configured}", "command": "cc", "file": "{source}", "output": "{output}"}}'


def test_an_object_is_named_by_its_source(paths: JobPaths) -> None:
    """What was not compiled, is no object or comes from elsewhere is left out."""
    (paths.configured / "add.o").write_bytes((OBJECTS / "add.o").read_bytes())
    steps = (
        entry(paths, f"{paths.sources}/onnxruntime/add.cc", "add.o"),
        entry(paths, f"{paths.sources}/onnxruntime/gone.cc", "gone.o"),
        entry(paths, "/usr/share/check.c", "add.o"),
        entry(paths, "libx.a", "libx.so"),
    )
    describe(paths, f"[{', '.join(steps)}]")
    defined, undefined = SYMBOLS["add"]
    wanted = ObjectSymbols(unit="${sources}/onnxruntime/add.cc", defined=defined, undefined=undefined)
    assert read_objects(paths) == (wanted,)


def test_a_tree_without_objects_has_none(paths: JobPaths) -> None:
    """That is no error."""
    describe(paths, "[]")
    assert read_objects(paths) == ()


def test_what_ninja_says_is_shown(paths: JobPaths, workshop: Workshop) -> None:
    """Its first words, however many there are."""
    workshop.tool("ninja", "echo 'ninja: error: build.ninja:7: bad'; exit 1")
    assert refused(paths).why == "ninja: error: build.ninja:7: bad"
    workshop.tool("ninja", f"echo {'x' * 9000} >&2; exit 1")
    assert len(refused(paths).why) == LONGEST_REASON


def test_no_ninja_is_a_tools_diagnostic(paths: JobPaths, workshop: Workshop) -> None:
    """As everywhere."""
    (workshop.folder / "tools" / "bin" / "ninja").unlink()
    with pytest.raises(ToolError) as caught:
        read_objects(paths)
    assert caught.value.code == "tool-missing"


@pytest.mark.parametrize("content", [b"", b"BC\xc0\xde", b"\x7fELF", (OBJECTS / "add.o").read_bytes()[:200]])
def test_a_damaged_object_is_named(paths: JobPaths, content: bytes) -> None:
    """Cut off by a full disk, or another compiler's format."""
    (paths.configured / "add.o").write_bytes(content)
    describe(paths, f"[{entry(paths, f'{paths.sources}/add.cc', 'add.o')}]")
    with pytest.raises(BinaryError) as caught:
        read_objects(paths)
    assert caught.value.where == str(paths.configured / "add.o")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from('[]{}",:1afile output\\n\\u0000')))
def test_nonsense_of_ninjas_is_a_diagnostic(paths: JobPaths, text: str) -> None:
    """Whatever it prints: no objects, or the diagnostic."""
    describe(paths, text)
    with suppress(BuildError):
        assert read_objects(paths) == ()


def test_what_nobody_defines_is_undefined() -> None:
    """Of what the roots lead to: an object that the link does not take may lack what it likes."""
    one = ObjectSymbols(unit="a", defined=frozenset({"f"}), undefined=frozenset({"g", "h"}))
    other = ObjectSymbols(unit="b", defined=frozenset({"g"}), undefined=frozenset({"f"}))
    idle = ObjectSymbols(unit="c", defined=frozenset({"i"}), undefined=frozenset({"f", "j"}))
    assert undefined_in((one, other, idle), {"a"}) == undefined_in((one, other, idle), {"b"}) == {"h"}
    assert undefined_in((one, other, idle), {"c"}) == {"h", "j"}
    assert undefined_in((), {"a"}) == frozenset()
