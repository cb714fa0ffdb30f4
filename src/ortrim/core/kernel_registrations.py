"""Which operators' kernels a source of ONNX Runtime registers, told from its text. Pure.

Facts about the macros: `include/onnxruntime/core/framework/op_kernel.h` of 1.21.0. Of the 289 operators whose kernels
`cpu_execution_provider.cc` and `cpu_contrib_kernels.cc` name there, each is found in a source.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CALL: Final = re.compile(r"\b(?P<name>[A-Za-z_]\w*)\s*\(")
DEFINITION: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<body>(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
REGISTERS: Final = re.compile(r"ONNX_(CPU_)?OPERATOR_\w*KERNEL(_EX)?")
"""Upstream's own macros; those that only name a kernel's class end in `_CLASS_NAME`."""
INCLUDED: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"(?P<path>[^"\n]+)"', re.MULTILINE)


def cold_kernels(texts: Mapping[str, str], operators: Iterable[str]) -> tuple[str, ...]:
    """Return the sources that register kernels, of which no hot operator has use, in order.

    `texts` are kernels' sources and headers by the paths by which they include each other. `operators` are named
    `domain:OpType`; kernels of the same name in another domain count for them. In use is a source that registers one
    of them, and one whose header such a source includes, at whatever distance. Sources that register nothing stay out.
    """
    names = frozenset(operator.rpartition(":")[2] for operator in operators)
    words = {path: registering_words(text) for path, text in texts.items() if path.endswith(".cc")}
    used = _in_use(texts, [path for path, found in words.items() if not found.isdisjoint(names)])
    return tuple(sorted(path for path, found in words.items() if found and path not in used))


def registering_words(text: str) -> frozenset[str]:
    """Return all words that a source's registrations of kernels are given, the names of the operators among them.

    A registration is a call of upstream's macros or of one of the source's own that comes down to them. Empty for a
    source that registers nothing.
    """
    plain = COMMENT.sub(" ", text)
    macros = _registering_macros(plain)
    calls = (call for call in CALL.finditer(plain) if call["name"] in macros)
    return frozenset(word for call in calls for word in re.findall(r"\w+", _arguments(plain, call.end())))


def _registering_macros(text: str) -> frozenset[str]:
    """Return the names of the macros in a text that register kernels, upstream's and the source's own."""
    found = {call["name"] for call in CALL.finditer(text) if REGISTERS.fullmatch(call["name"])}
    words = {each["name"]: frozenset(re.findall(r"\w+", each["body"])) for each in DEFINITION.finditer(text)}
    while more := {name for name, body in words.items() if not body.isdisjoint(found)} - found:
        found |= more
    return frozenset(found)


def _arguments(text: str, start: int) -> str:
    """Return what stands between a call's parenthesis, which ends at `start`, and the one that closes it."""
    depth = 1
    for bracket in re.finditer(r"[()]", text[start:]):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return text[start : start + bracket.start()]
    return text[start:]


def _in_use(texts: Mapping[str, str], sources: Iterable[str]) -> frozenset[str]:
    """Return sources, what they include, and the sources that implement that, at whatever distance."""
    found, waiting = set(sources), list(sources)
    while waiting:
        path = waiting.pop()
        new = {each["path"] for each in INCLUDED.finditer(texts[path])} & texts.keys()
        new |= set(_implementing(texts, path))
        waiting += new - found
        found |= new
    return frozenset(found)


def _implementing(texts: Mapping[str, str], header: str) -> Iterator[str]:
    """Yield the sources beside a header whose names begin its own: `concat.cc` for `concatbase.h`."""
    path = PurePosixPath(header)
    for length in range(1, len(path.stem) + 1):
        source = str(path.with_name(f"{path.stem[:length]}.cc"))
        if path.suffix == ".h" and source in texts:
            yield source
