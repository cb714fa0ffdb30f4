"""Keys of a buildspec that the hints of diagnostics name: written as the hint says, the buildspec is read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
from ortrim.planning.request import Request, load
from source_words import ANY, SOURCES, worded_rules, words_of

ASSIGNED: Final = re.compile(
    r"(?<![\w(])([a-z_][a-z_0-9.]*) = ('[^']*'|\"[^\"]*\"|true|false|\d+|\[[^\]]*\]|\{(?:[^{}]|\{[^{}]*\})*\})"
)
NAMED: Final = re.compile(
    r"\b((?:android|apple|budgets|build_options|models|onnxruntime|package|session|targets)\.[a-z_]+)\b(?! = )"
)
MODEL: Final = '[[models]]\nname = "m"\npath = "m.onnx"\n'
IN_MODEL: Final = MODEL + "{}\n"
IN_CASE: Final = MODEL + '[[models.cases]]\nname = "c"\n{}\n'
IN_STEP: Final = MODEL + '[[models.steps]]\nuse = "simplify"\n{}\n'
IN_TARGET: Final = MODEL + '[[targets]]\nid = "linux-x64"\n{}\n'
ANDROID: Final = MODEL + '[[targets]]\nid = "android-arm64-v8a"\n{}\n'
APPLE: Final = "{}\n" + MODEL + '[[targets]]\nid = "macos-arm64"\n'
AT_TOP: Final = "{}\n" + MODEL
HOMES: Final = {
    "allow_links": IN_MODEL,
    "android.api": ANDROID,
    "android.ndk": AT_TOP,
    "android.stl": AT_TOP,
    "android.toolchain": AT_TOP,
    "apple.xcode": APPLE,
    "cases": IN_MODEL,
    "compiler": IN_TARGET,
    "dimensions": IN_CASE,
    "exceptions": AT_TOP,
    "expect": IN_MODEL,
    "in_place": MODEL + "[models.session]\n{}\n",
    "inputs": IN_CASE,
    "layout": MODEL + 'level = "all"\n{}\n',
    "level": IN_MODEL,
    "linkage": IN_TARGET,
    "models.steps": MODEL + '[[models.steps]]\nuse = "simplify"\n',
    "onnxruntime.path": AT_TOP,
    "onnxruntime.source": AT_TOP,
    "onnxruntime.version": AT_TOP,
    "optional": IN_STEP,
    "providers": IN_TARGET,
    "states": IN_CASE + 'after = "d"\n[[models.cases]]\nname = "d"\n',
    "source": '[onnxruntime]\npath = "there"\n{}\n' + MODEL,
    "style": IN_MODEL,
}
VALUES: Final = {
    "android.api": "24",
    "android.ndk": '"27.2.12479018"',
    "android.stl": '"c++_static"',
    "apple.xcode": '"16.4"',
    "cases": '[{ name = "c", dimensions = { n = 2 } }]',
    "dimensions": "{ n = 160 }",
    "inputs": "{ x = { shape = [1, 3] } }",
    "level": '"basic"',
    "onnxruntime.path": '"there"\nonnxruntime.source = "path"',
    "onnxruntime.version": '"1.27.0"',
}
"""For keys that are named without a value, or with one that is made."""
NO_KEYS: Final = {
    "locale": "an attribute in the model: test_refusals.py exports it so",
    "onnxruntime.xcframework": "a file",
}


def hints() -> Iterator[str]:
    """Yield what the sources give as hints: arguments, variables and what functions of such a name return."""
    yield from (rule["hint"] for rule in worded_rules() if "hint" in rule)
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.keyword(arg="hint", value=found):
                    yield words_of(found)
                case ast.Assign(targets=[ast.Name(id=name)], value=found) if "hint" in name.lower():
                    yield words_of(found)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as found) if "hint" in name.lower():
                    yield words_of(found)
                case ast.FunctionDef(name=name) if "hint" in name or "advice" in name:
                    yield from (
                        words_of(each.value) for each in ast.walk(node) if isinstance(each, ast.Return) and each.value
                    )


def assignments() -> dict[str, set[str]]:
    """Return the values that hints give to keys of a buildspec; empty for a key that is named alone."""
    found: dict[str, set[str]] = {}
    for hint in hints():
        for key, given in ASSIGNED.findall(hint):
            found.setdefault(key, set()).add(given)
        for key in NAMED.findall(hint):
            found.setdefault(key, set()).add("")
    return found


ASSIGNMENTS: Final = assignments()


def test_every_key_that_a_hint_names_has_its_place() -> None:
    """A new one cannot land without an example in which it is written."""
    assert set(ASSIGNMENTS) == {*HOMES, *NO_KEYS}


@pytest.mark.parametrize("key", HOMES)
def test_a_buildspec_takes_what_a_hint_says(key: str, tmp_path: Path) -> None:
    for number, given in enumerate(sorted(ASSIGNMENTS[key])):
        said = VALUES.get(key, "") if not given or ANY in given else given
        write(tmp_path / "m.onnx", relu())
        (tmp_path / "there").mkdir(exist_ok=True)
        path = tmp_path / f"spec{number}.toml"
        path.write_text(HOMES[key].replace("{}", f"{key} = {said}"), encoding="utf-8")
        assert load(Request(spec=path)).models[0].name == "m"
