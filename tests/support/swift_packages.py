"""`Package.swift` as a parser of Swift reads it: its binary targets. SwiftPM itself is not to be had here."""

import json
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder

REQUIREMENTS: Final = Path(__file__).parents[1] / "integration" / "data" / "swift-grammar.txt"
READER: Final = """\
import json, sys
from tree_sitter import Language, Parser
import tree_sitter_swift

def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)

def value(node):
    text = node.text.decode()
    return json.loads(text) if node.type == "line_string_literal" else text

def arguments(call):
    given = [node for node in call.children if node.type == "call_suffix"]
    for node in given[0].children[0].children if given else ():
        if node.type == "value_argument" and node.children[0].type == "value_argument_label":
            yield node.children[0].text.decode(), value(node.children[-1])

tree = Parser(Language(tree_sitter_swift.language())).parse(open(sys.argv[1], "rb").read()).root_node
assert not tree.has_error, "no Swift"
calls = [node for node in walk(tree) if node.type == "call_expression"]
print(json.dumps([dict(arguments(call)) for call in calls if call.children[0].text == b".binaryTarget"]))
"""


def binary_targets(package_swift: Path) -> list[dict[str, str]]:
    """Return the arguments of each binary target by their labels: what a string says, other expressions as text."""
    grammar = packages_folder("swift-grammar", REQUIREMENTS.read_text())
    done = run((*ISOLATED_PYTHON, "-c", READER, package_swift), environment=environment_with(grammar))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found
