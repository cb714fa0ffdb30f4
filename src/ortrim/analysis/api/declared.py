"""What ONNX Runtime's headers and the sources of its bindings declare: functions, classes, and what each of them names.

Read by names, unlike a compiler: blocks in braces and what stands before them, of C, C++, Objective-C and Java. Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

NO_CODE: Final = re.compile(
    r'//(?:\\[ \t]*\n|[^\n])*|/\*.*?(?:\*/|\Z)|\b(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"'
    r'|"""(?:\\.|.)*?"""|"(?:\\.|[^"\\\n])*"|(?<!\w)\d[\w\'.]*|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
"""Comments, literals of strings and characters, and numbers, whose digits C++ groups with `'`."""
WORD: Final = re.compile(r"[A-Za-z_]\w*")
ORT_API: Final = re.compile(r"^struct OrtApi \{(.*?)^\};", re.DOTALL | re.MULTILINE)
C_NAMES: Final = re.compile(
    r"\bORT_API2_STATUS\(\s*(\w+)|\bORT_CLASS_RELEASE\d?\(\s*(?P<released>\w+)|ORT_API_CALL\s*\*\s*(\w+)\s*\)\s*\("
)
OPAQUE: Final = re.compile(r"\bORT_RUNTIME_CLASS\(\s*(\w+)\s*\)")
API_CALL: Final = re.compile(r"[aA]pi_?(?:\(\))?\s*(?:->|\.)\s*(\w+)")
"""A call of a C function in ONNX Runtime's own sources: `GetApi().Run`, `api->Run`, `ort_api_->Run`."""
NOT_BUILT: Final = re.compile(r"^#\s*ifdef ENABLE_EXTENSION_CUSTOM_OPS\b[^#]*^#\s*endif\b", re.MULTILINE)
ALTERNATIVE: Final = re.compile(r"^[ \t]*#\s*else\b([^#]*)^[ \t]*#\s*endif\b", re.MULTILINE)
DIRECTIVE: Final = re.compile(r"^[ \t]*#(?:\\[ \t]*\n|[^\n])*", re.MULTILINE)
MACRO: Final = re.compile(r"#\s*define\s+(?!ORT_DEFINE_RELEASE)(\w+)(?:\([^)]*\))?(.*)", re.DOTALL)
CLASS: Final = re.compile(
    r"\b(?:class|struct|interface|enum)\s+(\w+)\s*(?:<.*?>)?\s*(?:final\s*)?((?::(?!:)|extends\b|implements\b).*)?$",
    re.DOTALL,
)
ALIAS: Final = re.compile(r"\busing\s+(\w+)\s*=(.*)$", re.DOTALL)
METHOD: Final = re.compile(r"(?:^|\s)[-+]\s*\([^()]*\)\s*(\w+)")
"""Of Objective-C."""
FUNCTION: Final = re.compile(r"(?:(\w+)\s*(?:<[^<>()]*>)?\s*::\s*)?(~?[A-Za-z_]\w*|operator\s*[^\w\s]+)\s*\(")
NATIVE: Final = re.compile(r"Java_\w*?([^\W_]+)(?:__\w*)?")
"""A Java method in C, which has its name last, and then perhaps its types."""
OWNED: Final = re.compile(r"(?<!Unowned)<\s*Ort(\w+)\s*>")
"""In a class's bases: the C type that its destructor releases."""
SWIFT: Final = re.compile(r"(?:With|Using)[A-Z].*")
"""What Swift makes a label of, and no part of a method's name."""


def code_of(text: str) -> str:
    """Return a source without comments and literals."""
    return NO_CODE.sub(" ", text)


def words_of(code: str) -> frozenset[str]:
    """Return the identifiers and keywords of code."""
    return frozenset(WORD.findall(code))


def c_functions(header: str) -> frozenset[str]:
    """Return the names of the functions of `struct OrtApi`, none when the text does not declare it."""
    table = ORT_API.search(code_of(header))
    found = C_NAMES.finditer(table[1]) if table else ()
    return frozenset(f"Release{each['released']}" if each["released"] else each[1] or each[3] for each in found)


def opaque_types(header: str) -> frozenset[str]:
    """Return the C types that an app has only pointers to."""
    return frozenset(f"Ort{name}" for name in OPAQUE.findall(code_of(header)))


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function, of a class where it has an `owner`: the names in its parameters and elsewhere, and its C `calls`.

    It is `implied` if it is called without its name: constructors, destructors, operators, initializers.
    """

    owner: str
    name: str
    implied: bool
    parameters: frozenset[str] = frozenset()
    words: frozenset[str]
    calls: frozenset[str]


@dataclass
class Declared:
    """What sources declare; `bases` has, of each class and alias, the text of what it is made of."""

    functions: list[Function] = field(default_factory=list)
    bases: dict[str, str] = field(default_factory=dict)
    explicit: set[str] = field(default_factory=set)
    implicit: set[str] = field(default_factory=set)

    @property
    def named_only(self) -> frozenset[str]:
        """The classes of which an app makes no object without their names: those without an implicit constructor."""
        return frozenset(self.explicit - self.implicit)

    def read(self, text: str) -> None:
        """Add what a source declares."""
        code = NOT_BUILT.sub("", code_of(text))
        code = ALTERNATIVE.sub(lambda found: found[0] if found[1].count("{") == found[1].count("}") else "", code)
        for directive in DIRECTIVE.findall(code):
            if macro := MACRO.match(directive.strip()):
                self._add("", macro[1], macro[2])
        self._read(DIRECTIVE.sub("", code), "")

    def _read(self, code: str, owner: str) -> None:
        for head, body in _blocks(code):
            if body is not None and (found := CLASS.search(head)):
                self.bases[found[1]] = f"{self.bases.get(found[1], '')} {found[2] or ''}"
                self._read(body, found[1])
            elif (found := ALIAS.search(head)) and not owner:
                self.bases[found[1]] = found[2]
            elif body is not None and (found := METHOD.search(head)):
                for name in sorted({found[1], SWIFT.sub("", found[1])}):
                    self._add("", name, f"{head[found.end() :]} {body}", implied=name.startswith("init"))
            elif (found := FUNCTION.search(head)) and "=" not in head[: found.start()]:
                self._function(head, found, owner, body)
            elif body is not None and "=" not in head and head.strip() != "static":
                self._read(body, owner)
            elif owner:
                self._add(owner, owner, f"{head} {body or ''}")

    def _function(self, head: str, found: re.Match[str], owner: str, body: str | None) -> None:
        end = _closing(head, found.end(), "()")
        before, parameters = head[: found.start()], head[found.end() : end]
        if found[2] == owner and f"{owner}&" not in parameters.replace(" ", ""):
            (self.explicit if "explicit" in before.split() else self.implicit).add(owner)
        if body is not None:
            self._add(found[1] or owner, found[2], f"{before} {head[end:]} {body}", parameters)

    def _add(self, owner: str, name: str, code: str, parameters: str = "", *, implied: bool = False) -> None:
        native = NATIVE.fullmatch(name)
        function = Function(
            owner=owner,
            name=native[1] if native else name,
            implied=implied or (name == owner) or name.startswith(("~", "operator")),
            parameters=words_of(parameters),
            words=words_of(API_CALL.sub(" ", code)),
            calls=frozenset(API_CALL.findall(code)),
        )
        self.functions.append(function)


def _blocks(code: str) -> Iterator[tuple[str, str | None]]:
    """Yield what stands before each `;` and each block, and the block. Blocks of initializers belong to the head."""
    start = place = depth = 0
    while place < len(code):
        letter = code[place]
        depth += (letter == "(") - (letter == ")")
        place += 1
        if depth > 0 or letter not in "{;}":
            continue
        body = None
        head = code[start : place - 1]
        if letter == "{":
            end = _closing(code, place, "{}")
            body, place = code[place:end], end + 1
            if "(" in head and code[place:].lstrip()[:1] in {",", "{"}:
                continue
        yield head, body
        start, depth = place, 0


def _closing(code: str, place: int, pair: str) -> int:
    """Return where what was opened before `place` is closed, or the end of code that does not close it."""
    depth = 1
    for found in re.compile(f"[{re.escape(pair)}]").finditer(code, place):
        depth += 1 if found[0] == pair[0] else -1
        if depth == 0:
            return found.start()
    return len(code)
