"""Which C functions an app calls, by its own sources, ONNX Runtime's headers, and the sources of its bindings."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.compiling.mechanisms import ALWAYS, INFERENCE
from ortrim.errors import UsageError
from ortrim.pins.runtime import runtime_pins
from ortrim.sources.sources import fetch_sources

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


class Closure:
    """What is reached: `calls` has each C function and what first led to it."""

    def __init__(self, declared: Declared, opaque: Iterable[str], words: Iterable[str], classes: Iterable[str]) -> None:
        self.calls: dict[str, str] = {}
        self._bases = declared.bases
        self._words = set(words)
        self._classes = set[str]()
        self._reached = set[Function]()
        self._guarded = declared.named_only.union(opaque)
        key = attrgetter("owner", "name")
        self._overloads = [tuple(each) for _, each in groupby(sorted(declared.functions, key=key), key)]
        self._mention(classes)
        while self._grow(unfit=False) or self._grow(unfit=True):
            pass

    def _mention(self, words: Iterable[str]) -> None:
        """Take up the classes among words, with all that they are made of."""
        for name in sorted(set(words) & self._bases.keys() - self._classes):
            self._classes.add(name)
            for owned in OWNED.findall(self._bases[name]):
                self.calls.setdefault(f"Release{owned}", f"~{name}")
            self._words |= words_of(self._bases[name])
            self._mention(words_of(self._bases[name]))

    def _grow(self, *, unfit: bool) -> bool:
        """Take up what can be called now, and return whether there was more of it.

        Of overloads, those count for whose parameters the app can have objects; `unfit`: all, where none of them does.
        """
        before = len(self._reached)
        for overloads in self._overloads:
            owner, name = overloads[0].owner, overloads[0].name
            if owner in self._bases and owner not in self._classes:  # else it is a namespace's, or nobody's
                continue
            if not (overloads[0].implied or name in self._words):
                continue
            fit = [each for each in overloads if each.parameters & self._guarded <= self._words]
            for each in overloads if unfit and not fit else fit:
                self._reach(each)
        return len(self._reached) > before

    def _reach(self, function: Function) -> None:
        if function in self._reached:
            return
        self._reached.add(function)
        for name in sorted(function.calls):
            self.calls.setdefault(name, "::".join(filter(None, (function.owner, function.name))))
        self._words |= function.words
        self._mention(function.words | function.parameters)


JVM: Final = frozenset({".java", ".kt", ".kts"})
OTHERS: Final = frozenset({".c", ".cc", ".cpp", ".cxx", ".m", ".mm", ".h", ".hpp", ".hxx", ".swift"})
SOURCES: Final = (
    f"sources are files named {', '.join(sorted(JVM | OTHERS))}; libraries and packages (ELF, Mach-O, APK) \
are not read: they call by offset in a table, so that nothing in them has a function's name"
)
SESSION: Final = Path("include/onnxruntime/core/session")
C_HEADER: Final = "onnxruntime_c_api.h"
CXX_HEADERS: Final = ("onnxruntime_cxx_api.h", "onnxruntime_cxx_inline.h")
CUSTOM_OPERATORS: Final = "onnxruntime_lite_custom_op.h"
"""A header of the wrapper that packages may lack."""
OBJECTIVE_C: Final = frozenset({"ORTEnv", "ORTSession", "ORTValue", "onnxruntime_objc", "OnnxRuntimeBindings"})
C_TYPES: Final = re.compile(r"Ort(?:[A-Z]\w*)?")
QUALIFIED: Final = re.compile(r"\bOrt(?:\s*::\s*\w+)+|\busing\s+namespace\s+Ort\b|\bnamespace\s+\w+\s*=\s*(?:::)?Ort\b")
OPTIONAL: Final = re.compile(r"OnnxSparseTensor|OrtLoraAdapter|Ort(?:Training|Checkpoint)\w*|Ort\w+ProviderOptions")
"""Classes of the Java API that count only where an app names them."""
UNNAMED: Final = frozenset({"close", "iterator"})
"""Methods that Java calls in statements that do not name them."""


@dataclass(frozen=True, kw_only=True)
class AppApi:
    """What an app calls: each C function, and where, or by what of ONNX Runtime's it is called; `known` are all."""

    files: int
    calls: Mapping[str, str]
    known: frozenset[str]

    @property
    def beyond(self) -> tuple[str, ...]:
        """What is called, and is not in `inference`."""
        return tuple(name for name in self.calls if name not in INFERENCE)

    @property
    def spare(self) -> tuple[str, ...]:
        """What `inference` keeps, and is not called."""
        return tuple(sorted((INFERENCE & self.known) - self.calls.keys() - ALWAYS))


def api_of(apps: Iterable[Path], headers: Path | None, version: str, console: Console) -> AppApi:
    """Return what an app calls, by its files and folders.

    The sources of ONNX Runtime `version` are fetched where they are needed: for a binding, and without `headers`, a
    folder with the public ones.
    """
    files = {path: code_of(_text(path, "app-unreadable")) for path in _sources(apps)}
    jvm, others = ({path: code for path, code in files.items() if path.suffix in each} for each in (JVM, OTHERS))
    java = any("ai.onnxruntime" in code for code in jvm.values())
    names, objective_c = _words(others), not OBJECTIVE_C.isdisjoint(_words(others))
    if not (java or objective_c or any(map(C_TYPES.fullmatch, names))):
        what = f"nothing in {len(files):,} source files uses ONNX Runtime"
        hint = "name the folder with the code that calls it; code that loads it by another binding is not known here"
        raise UsageError("no-api-use", what, hint=hint)

    @cache
    def tree() -> Path:
        with console.step("fetch sources") as step:
            return fetch_sources(runtime_pins(version), "auto", announce=step.note).folder / "onnxruntime"

    folder = headers or tree() / SESSION
    c_header = _text(folder / C_HEADER, "no-api-headers")
    if not (known := c_functions(c_header)):
        what, hint = "does not declare struct OrtApi", "name the folder include/onnxruntime of a package"
        raise UsageError("no-api-headers", what, where=str(folder / C_HEADER), hint=hint)
    calls = {name: str(path) for path, code in sorted(others.items(), reverse=True) for name in words_of(code) & known}
    if objective_c or "Ort" in names:
        wrapper = _declared(folder / name for name in CXX_HEADERS)
        if (folder / CUSTOM_OPERATORS).is_file():
            wrapper.read(_text(folder / CUSTOM_OPERATORS, "no-api-headers"))
        calls = _by_wrapper(others, wrapper, opaque_types(c_header), tree if objective_c else None) | calls
    if java:
        calls = _by_java(jvm, tree()) | calls
    return AppApi(files=len(files), calls={name: calls[name] for name in sorted(calls.keys() & known)}, known=known)


def _by_wrapper(
    files: Mapping[Path, str], declared: Declared, opaque: Iterable[str], tree: Callable[[], Path] | None
) -> dict[str, str]:
    """Return what the C++ wrapper calls for an app, or for the Objective-C binding that the app uses."""
    words = _words(files)
    qualified = [found for code in files.values() for found in QUALIFIED.findall(code)]
    everywhere = any("namespace" in found for found in qualified)
    if tree:
        for path in sorted((tree() / "objectivec").glob("*.mm")):
            if not re.search("training|checkpoint", path.name):
                declared.read(_text(path, "no-api-headers"))
    return Closure(declared, opaque, words, words if everywhere else words_of(" ".join(qualified))).calls


def _by_java(files: Mapping[Path, str], tree: Path) -> dict[str, str]:
    """Return what the Java binding calls for an app: native methods, by way of the Java methods that the app names."""
    words = _words(files) | UNNAMED
    words |= {prefix + word[:1].upper() + word[1:] for word in words for prefix in ("get", "set", "is")}  # Kotlin's
    paths = [*(tree / "java/src/main/java").rglob("*.java"), *(tree / "java/src/main/native").glob("*.c")]
    declared = _declared(
        path for path in sorted(paths) if all(name in words for name in OPTIONAL.findall(path.stem.replace("_", " ")))
    )
    calls = Closure(declared, (), words, declared.bases).calls
    left_out = "Training" if "OnnxSparseTensor" in words else "Training|Sparse"  # reached, and never asked for
    return {name: reason for name, reason in calls.items() if not re.search(left_out, name)}


def _declared(paths: Iterable[Path]) -> Declared:
    declared = Declared()
    for path in paths:
        declared.read(_text(path, "no-api-headers"))
    return declared


def _words(files: Mapping[Path, str]) -> frozenset[str]:
    return frozenset().union(*map(words_of, files.values()))


def _sources(apps: Iterable[Path]) -> Iterator[Path]:
    """Yield the sources of an app, but not ONNX Runtime's own headers in it."""
    for app in apps:
        found = sorted(_below(app)) if app.is_dir() else [app]
        named = [path for path in found if path.suffix.lower() in JVM | OTHERS]
        if not app.exists() or not named:
            what = "has no sources that are read" if app.exists() else "does not exist"
            raise UsageError("no-app-sources", what, where=str(app), hint=SOURCES)
        yield from (path for path in named if not path.name.startswith("onnxruntime_"))


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root) / name for name in names)


def _text(path: Path, code: str) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "let this user read it, or name the files without it"
        raise UsageError(
            code, "cannot be read", where=str(path), why=error.strerror or str(error), hint=hint
        ) from error
