import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ortrim import errors
from ortrim.errors import Diagnostic, DiagnosticGroup, ExitCode, SpecError

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"


def subclasses(kind: type[Diagnostic]) -> Iterator[type[Diagnostic]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_the_document_lists_every_exit_code() -> None:
    """Code and name of each class stand in the table, in order, and no others do."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| \S.* \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == [(str(code.value), code.name) for code in ExitCode]


def test_each_class_has_an_exit_code_of_its_own() -> None:
    classes = [
        kind for kind in subclasses(Diagnostic) if kind.__module__ == errors.__name__ and kind is not DiagnosticGroup
    ]
    codes = [kind.exit_code for kind in classes]
    assert len(set(codes)) == len(codes)
    assert set(codes) == set(ExitCode) - {ExitCode.OK, ExitCode.UNEXPECTED}


def test_codes_of_shells_are_left_alone() -> None:
    assert [code.name for code in ExitCode if code >= 126] == ["INTERRUPTED"]


def test_a_group_ends_like_its_members() -> None:
    """Several diagnostics of one class are printed one after another and end with that class's code."""
    group = DiagnosticGroup((SpecError("a-b", "first"), SpecError("c-d", "second", where="x.toml")))
    assert group.exit_code is ExitCode.SPEC
    assert str(group) == "error: a-b\n  first\nerror: c-d\n  x.toml: second"


def test_a_diagnostic_is_printed_in_its_layout() -> None:
    """Reference, where and what, why with its lines aligned, hint."""
    error = Diagnostic("unknown-key", "is not a key", where="x.toml", why="one\ntwo", hint="did you mean 'abis'?")
    lines = ["error: unknown-key", "  x.toml: is not a key", "  why: one", "       two", "  hint: did you mean 'abis'?"]
    assert str(error).splitlines() == lines


@pytest.mark.parametrize("kind", sorted(subclasses(Diagnostic), key=str))
def test_diagnostics_are_documented(kind: type[Diagnostic]) -> None:
    """Each class says in one sentence what it stands for."""
    assert kind.__doc__
