"""Every command that README, the documents, `--help` and messages show, read by both programs.

What is asked of programs themselves (`--list`, `--help TASK`, a completion script) runs to its end. A task is replaced
at one place, where its options are handed to it: what it then does is the matter of its own tests.
"""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.cli.namespace import namespace_for
from ortrim.cli.task import OrtrimTask
from program_runs import CHECKOUT, Run
from source_words import ANY, SOURCES, worded_rules, words_of

PAGES: Final = (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md")))
COMMAND: Final = re.compile(r"(?:\$ )?(?:\w+=\S* )*(?:\./bootstrap )?(?:ortrim|invoke) (?P<words>.*)")
SHELL: Final = {"|", ">", ">>", "&&", ";", "2>&1"}
"""Words behind which something else begins."""
MADE_UP: Final = {"...", "TASK", "COMMAND", "[options]"}
"""Words that stand for others."""
STANDING: Final = r"(?=\S*[A-Z]|'|\S+/)\S+"
"""A word of a message that stands for one of the user's."""
BENCHMARKS: Final = "measure"
"""The tasks that only a checkout has."""


def blocks(page: Path) -> Iterator[str]:
    """Yield the lines of code blocks, and code in sentences unless it is a task's name alone."""
    text = page.read_text(encoding="utf-8")
    for number, part in enumerate(re.split(r"^ *```.*$", text, flags=re.MULTILINE)):
        if number % 2:
            yield from re.sub(r"\\\n *", "", part).splitlines()
        else:
            code = (" ".join(each.split()) for each in re.findall(r"`([^`]+)`", part))
            yield from (each for each in code if each.count(" ") > 1)


def helps() -> Iterator[str]:
    """Yield the lines of what tasks say of themselves."""
    namespace = namespace_for(())
    for name in namespace.task_names:
        yield from (namespace[name].__doc__ or "").splitlines()


def commands(lines: Iterator[str]) -> Iterator[tuple[str, ...]]:
    """Yield the words of commands, without the program's name and what a shell does with the rest."""
    for line in lines:
        found = COMMAND.fullmatch(line.strip())
        if not found:
            continue
        words = shlex.split(found["words"], comments=True)
        end = next((number for number, word in enumerate(words) if word in SHELL), len(words))
        if words and MADE_UP.isdisjoint(words) and not words[0].endswith("*"):
            yield tuple(words[:end])


def texts() -> Iterator[str]:
    """Yield the texts of the sources, without docstrings."""
    for rule in worded_rules():
        yield from rule.values()
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = tuple(ast.walk(tree))
        others = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
        others |= {id(part) for each in nodes if isinstance(each, ast.JoinedStr) for part in each.values}
        yield from (
            words_of(each)
            for each in nodes
            if isinstance(each, ast.Constant | ast.JoinedStr) and id(each) not in others
        )


TEXTS: Final = tuple(texts())


def in_messages() -> Iterator[tuple[str, ...]]:
    """Yield the commands that messages name, each until its sentence goes on."""
    flags = {each.name: each.flags for each in namespace_for(()).to_contexts()}
    for text in TEXTS:
        for task, rest in re.findall(r"\binvoke ([a-z][a-z.-]*[a-z])((?: [^\s`)]+)*)", text):
            found, is_value = [task], False
            for word in rest.split():
                stands = re.fullmatch(STANDING, word) and not (word == found[-1] == ANY)
                if not (is_value or word.startswith("-") or stands):
                    break
                found.append(word.rstrip(".,;:").strip("'"))
                flag = flags[task].get(word) if task in flags else None
                is_value = flag is not None and flag.takes_value
            yield tuple(found)


IN_MESSAGES: Final = tuple(sorted(set(in_messages())))  # sorted: each of xdist's workers collects the same order
ON_PAGES: Final = tuple(each for page in PAGES for each in commands(blocks(page)))
EXAMPLES: Final = tuple(dict.fromkeys((*ON_PAGES, *commands(helps()), *(each for each in IN_MESSAGES if each[1:]))))


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Return what tasks are called with, by their names."""
    calls: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(OrtrimTask, "__call__", lambda task, _, **options: calls.append((task.name, options)))
    return calls


def test_examples_are_found() -> None:
    assert len(EXAMPLES) > 100
    assert {"build", "convert", "reduce", "lint", "bench", "fetch"} <= {words[0] for words in EXAMPLES}
    assert {("build", "--executor", "github", "--target", "NAME"), ("init", "MODEL.onnx")} <= set(IN_MESSAGES)


def test_messages_name_tasks() -> None:
    """Also those that they name alone; for the program that a user called, they are written for `invoke`."""
    known = namespace_for(()).task_names
    assert {each[0] for each in IN_MESSAGES} <= set(known)
    tasks = "|".join(map(re.escape, known))
    said = re.compile(rf"(?:run|with|yours|again|it|one|name \S+|folder|elsewhere|or|by)[:,]? `?ortrim (?:{tasks})\b")
    assert [text for text in TEXTS if said.search(text)] == []


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_both_programs_take_an_example(
    ortrim: Run, called: list[tuple[str, dict[str, Any]]], words: tuple[str, ...]
) -> None:
    """And hand the same to its task."""
    only_here = any(word.startswith(BENCHMARKS) for word in words)
    given = []
    for name in ("invoke",) if only_here else ("invoke", "ortrim"):
        called.clear()
        ended = ortrim(*words, name=name)
        assert (ended.code, ended.err) == (0, "")
        given.append(list(called))
    assert all(each == given[0] for each in given)
    assert given[0] or words[0].startswith("-")
