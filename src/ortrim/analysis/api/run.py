"""Which C functions an app calls, by its own sources, ONNX Runtime's headers, and the sources of its bindings."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ortrim.analysis.api.closure import Closure
from ortrim.analysis.api.declared import Declared, c_functions, code_of, opaque_types, words_of
from ortrim.base.console import Console
from ortrim.compiling.mechanisms import ALWAYS, INFERENCE
from ortrim.errors import UsageError
from ortrim.pins.runtime import runtime_pins
from ortrim.sources.sources import fetch_sources

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
    folder with the public ones. Raises `UsageError` (`no-app-sources`, `app-unreadable`, `no-api-headers`,
    `no-api-use`) and as `fetch_sources` does.
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
