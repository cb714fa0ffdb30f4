"""No call of ours needs a newer Python than Debian 12's 3.11.2: mypy and ruff know minor versions alone."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
NAMES: Final = frozenset(
    {
        *("AbsoluteLinkError", "AbsolutePathError", "FilterError", "LinkOutsideDestinationError"),  # tarfile, 3.11.4
        *("OutsideDestinationError", "SpecialFileError", "extraction_filter"),
        *("data_filter", "fully_trusted_filter", "tar_filter"),
        *("GetReparseDeferralEnabled", "SetReparseDeferralEnabled"),  # xml.parsers.expat, 3.11.9
        *("ALLOW_MISSING", "LinkFallbackError"),  # os.path and tarfile, 3.11.13
        *("pickle_by_enum_name", "pickle_by_global_name"),  # enum, after 3.11.2
    }
)
"""What releases of 3.11 added, by what `dir` says of 3.11.2 and 3.11.7, and by CPython's documents for later ones."""
PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "extract": frozenset({"filter"}),  # tarfile, 3.11.4
    "extractall": frozenset({"filter"}),
    "unpack_archive": frozenset({"filter"}),  # shutil, 3.11.4
    "replace": frozenset({"deep", "gid", "gname", "linkname", "mode", "mtime", "uid", "uname"}),  # TarInfo, 3.11.4
    "getaddresses": frozenset({"strict"}),  # email.utils, 3.11.10
    "parseaddr": frozenset({"strict"}),
}
"""Functions that have these parameters in newer releases alone; `TarInfo.replace` is the one with parameters alone."""

SUSPECT: Final = re.compile("|".join((*NAMES, *(f"{word}=" for words in PARAMETERS.values() for word in words))))


def newer_calls(text: str) -> Iterator[str]:
    """Yield what of a module 3.11.2 has not, with its line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name) if name in NAMES:
                yield f"{node.lineno}: {name}"
            case ast.Call(func=ast.Attribute(attr="replace"), args=[_, *_]):
                pass  # `dataclasses.replace`
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
                given = {keyword.arg for keyword in keywords if keyword.arg} & PARAMETERS.get(name, frozenset())
                yield from (f"{node.lineno}: {name}({parameter}=)" for parameter in sorted(given))
            case _:
                pass


def test_nothing_newer_is_called() -> None:
    tops = ("src", "tests", "benchmarks")
    modules = [ROOT / "tasks.py", ROOT / ".ci" / "windows"]
    modules += [module for top in tops for module in (ROOT / top).rglob("*.py")]
    texts = {module.relative_to(ROOT).as_posix(): module.read_text("utf-8") for module in modules}
    found = {name: [*newer_calls(text)] for name, text in texts.items() if SUSPECT.search(text)}
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("member.replace(uid=0, mtime=0)", ["1: replace(mtime=)", "1: replace(uid=)"]),
        ("archive.extractall(folder, filter='data')", ["1: extractall(filter=)"]),
        ("import tarfile\ntarfile.data_filter(member, folder)", ["2: data_filter"]),
        ("from os.path import ALLOW_MISSING", ["1: ALLOW_MISSING"]),
        ("from shutil import unpack_archive\nunpack_archive('a', filter='tar')", ["2: unpack_archive(filter=)"]),
        ("dataclasses.replace(entry, mode=1)\ntext.replace('a', 'b')\nmoment.replace(hour=1)", []),
        ("archive.extractall(folder)\narchive.add(path, filter=of_nobody)", []),
    ],
)
def test_what_counts_as_newer(text: str, calls: list[str]) -> None:
    """Names, imported or not, and parameters; what only looks alike does not count."""
    assert [*newer_calls(text)] == calls
