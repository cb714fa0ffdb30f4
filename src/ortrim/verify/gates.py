"""Properties without which a library or a package is not fit to ship, whatever it measures."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypedDict, TypeVar

from ortrim.base.console import counted
from ortrim.base.files import shipped_words
from ortrim.binaries.elf import LibraryFacts
from ortrim.buildspec.targets import Architecture, version_numbers
from ortrim.errors import BinaryError, Diagnostic, DiagnosticGroup
from ortrim.parity.measurements import Gate, Verdict

PUBLIC_API: Final = frozenset({"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"})
"""What upstream's own version script exports from a CPU build."""
SYSTEM_LIBRARIES: Final = re.compile(r"(lib(c|m|dl|pthread|rt)|ld-linux[a-z0-9-]*)\.so\.\d+|libc\.so")
"""Of glibc, and musl's one library, under the name that programs need it by."""
COMPILER_LIBRARIES: Final = re.compile(r"lib(gcc_s|stdc\+\+)\.so\.\d+")
PAGE_BYTES: Final = {
    Architecture.X64.value: 4096, Architecture.ARM64.value: 65536,
    Architecture.ARM.value: 4096, Architecture.RISCV64.value: 4096, Architecture.X86.value: 4096,
}  # fmt: skip
"""The largest pages of the kernels that run an architecture."""
CXX_PREFIXES: Final = ("_ZNSt", "_ZNKSt", "_ZSt", "_Znw", "_Zna", "_Zdl", "_Zda", "__cxa_throw", "__gxx_personality")
"""What begins the names of the C++ library and its runtime, all of which an archive brings itself."""
TENSORS: Final = "tensors of"
LEAVE_OFF: Final = (
    "leave session.use_ort_model_bytes_for_initializers off for this processor, so that they are copied, or have such "
    "tensors as int32 or float32 in the model"
)
FAULT_HINT: Final = (
    'do not ship it; with a compiler of your own look at what it adds, and with ortrim\'s own (compiler = "zig", or '
    "the NDK) report this"
)
HINTS: Final = {
    "oldest glibc": 'raise the minimum glibc, or build with compiler = "zig", which links for an older one',
    "needed libraries": 'build with compiler = "zig", which links statically what not every system has',
}
"""Gates that the buildspec can mend."""
VERSION: Final = re.compile(r"GLIBC_(\d+(?:\.\d+)+)")


def check_library(
    facts: LibraryFacts, *, architecture: str, minimum_glibc: str, compiler_libraries: bool
) -> tuple[Gate, ...]:
    """Return each property that a library must have, and whether it has it.

    `architecture` is `x64` or `arm64`. `minimum_glibc` is the oldest C library on which it has to load; empty when
    nothing was promised. `compiler_libraries` says whether it may need the compiler's own (`libstdc++`,
    `libgcc_s`), as what the system's compilers build does.
    """
    pages = PAGE_BYTES.get(architecture, 4096)
    aligned = facts.load_alignment >= pages and facts.load_alignment % pages == 0
    stack = "requires an executable stack" if facts.executable_stack else "PT_GNU_STACK is not executable"
    return (
        _gate("machine", facts.machine == architecture, f"{facts.machine}, built for {architecture}"),
        _gate("no executable stack", not facts.executable_stack, stack),
        _gate("no text relocations", not facts.text_relocations, "has" if facts.text_relocations else "has none"),
        _gate("stripped", facts.stripped, "no symbol table" if facts.stripped else "there is a symbol table"),
        _exports(facts),
        _needed(facts, compiler_libraries=compiler_libraries),
        _oldest_glibc(facts, minimum_glibc),
        _gate("load alignment", aligned, f"{counted(facts.load_alignment, 'byte')}, pages have up to {pages:,}"),
    )


def check_archive(offered: frozenset[str], asked: frozenset[str], shared: LibraryFacts) -> Gate:
    """Return whether an object of a static library offers the shared one's functions and no other name.

    `asked` are the names that a program that links it has to have from elsewhere.
    """
    name = "static library hides all else"
    others = sorted(offered.symmetric_difference(shared.exported))
    cxx = sorted(symbol for symbol in asked if symbol.startswith(CXX_PREFIXES))
    if others:
        return _gate(name, passed=False, detail=f"differs from the shared library in {some(others)}")
    if cxx:
        return _gate(name, passed=False, detail=f"asks for C++ names: {some(cxx)}")
    return _gate(name, passed=True, detail=f"offers {counted(len(offered), 'name')}, asks for {len(asked):,}")


def check_tensors(model: str, misaligned: tuple[str, ...], *, in_place: bool) -> Gate:
    """Return whether a model's tensors lie where a processor without unaligned access can read them.

    It faults on crooked ones (upstream's issues 26772 and 4103) when they are read `in_place`, in the file's bytes.
    Otherwise they are copied to where they are aligned: there is nothing to judge, and an application is advised.
    """
    name = f"{TENSORS} {model}"
    if not misaligned:
        return _gate(name, passed=True, detail="all are aligned")
    detail = f"not at a multiple of their elements: {some(misaligned)}"
    if in_place:
        return _gate(name, passed=False, detail=detail)
    return Gate(name=name, verdict=Verdict.NOT_JUDGED, detail=f"{detail}; {LEAVE_OFF}")


def gate_hint(gate: Gate) -> str:
    """Return what to do about a gate that failed."""
    if gate.name.startswith(TENSORS):
        return LEAVE_OFF
    return HINTS.get(gate.name, FAULT_HINT)


def _gate(name: str, passed: bool, detail: str) -> Gate:  # noqa: FBT001 - a verdict is what it is about
    return Gate(name=name, verdict=Verdict.PASS if passed else Verdict.FAIL, detail=detail)


def _exports(facts: LibraryFacts) -> Gate:
    """Every other exported name could clash with an application's own."""
    others = [name for name in facts.exported if name not in PUBLIC_API]
    name = "public API only"
    if others:
        detail = f"exports {counted(len(others), 'other symbol')}: {some(others)}"
        return _gate(name, passed=False, detail=detail)
    detail = f"exports {', '.join(facts.exported) or 'nothing'}"
    return _gate(name, "OrtGetApiBase" in facts.exported, detail)


def _needed(facts: LibraryFacts, *, compiler_libraries: bool) -> Gate:
    allowed = [SYSTEM_LIBRARIES, COMPILER_LIBRARIES] if compiler_libraries else [SYSTEM_LIBRARIES]
    others = [name for name in facts.needed if not any(pattern.fullmatch(name) for pattern in allowed)]
    detail = f"not on every system: {some(others)}" if others else ", ".join(facts.needed) or "nothing"
    return _gate("needed libraries", not others, detail)


def _oldest_glibc(facts: LibraryFacts, minimum_glibc: str) -> Gate:
    name = "oldest glibc"
    found = [match.group(1) for match in map(VERSION.fullmatch, facts.symbol_versions) if match]
    # DT_RELR needs GLIBC_ABI_DT_RELR, which glibc has since 2.36.
    found += ["2.36"] if "GLIBC_ABI_DT_RELR" in facts.symbol_versions else []
    newest = max(found, key=version_numbers, default="")
    needs = f"needs GLIBC_{newest}" if newest else "needs no version"
    if not minimum_glibc:
        return Gate(name=name, verdict=Verdict.NOT_JUDGED, detail=f"{needs}; none was promised")
    passed = not newest or version_numbers(newest) <= version_numbers(minimum_glibc)
    return _gate(name, passed, f"{needs}; {minimum_glibc} was promised")


Facts = TypeVar("Facts")
Promise = TypeVar("Promise")
SHOWN: Final = 3
"""How many breaches a gate lists; a diagnostic lists each."""


Breaches = Iterable[tuple[str, str]]
"""Files of a package, each with what was found there; empty for one in which a rule is not broken."""


class RuleWords(TypedDict):
    """What stands of a rule in `resources/rules`: `name` says a property, `what` its absence, `hint` how to get it."""

    name: str
    what: str
    hint: str


BUDGET_GATE: Final[str] = shipped_words("rules/xcframework")["slice-over-budget"]["name"]
"""The one gate that is about a budget."""


def never(_facts: object, _promise: object) -> str:
    """Doubt no package."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[Facts, Promise]):
    """A property that every package of a kind must have; its words are those of `RuleWords`.

    `doubt` returns why a package cannot be judged by it, empty when it can; `told` what was found in one that has it.
    """

    code: str
    name: str
    what: str
    hint: str
    search: Callable[[Facts, Promise], Breaches]
    told: Callable[[Facts], str]
    doubt: Callable[[Facts, Promise], str]

    def gate(self, facts: Facts, promise: Promise) -> Gate:
        """Return whether a package has the property."""
        if reason := self.doubt(facts, promise):
            return Gate(name=self.name, verdict=Verdict.NOT_JUDGED, detail=reason)
        found = [f"{where}: {why}" for where, why in self.search(facts, promise) if why]
        if not found:
            return Gate(name=self.name, verdict=Verdict.PASS, detail=self.told(facts))
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        detail = f"{self.code}: {'; '.join(found[:SHOWN])}{more}"
        return Gate(name=self.name, verdict=Verdict.FAIL, detail=detail)

    def diagnostics(self, facts: Facts, promise: Promise) -> list[BinaryError]:
        """Return one diagnostic for each place where the rule is broken."""
        if self.doubt(facts, promise):
            return []
        return [
            BinaryError(self.code, self.what, where=where, why=why, hint=self.hint)
            for where, why in self.search(facts, promise)
            if why
        ]


class RuleBook(Generic[Facts, Promise]):
    """The `rules` for one kind of package, with the words of `resources/rules`; `told` is what a rule tells of one."""

    def __init__(self, kind: str, told: Callable[[Facts], str]) -> None:
        self.rules: tuple[Rule[Facts, Promise], ...] = ()
        self._words: Mapping[str, RuleWords] = shipped_words(f"rules/{kind}")
        self._told = told

    def rule(
        self,
        code: str,
        search: Callable[[Facts, Promise], Breaches],
        *,
        told: Callable[[Facts], str] | None = None,
        doubt: Callable[[Facts, Promise], str] = never,
    ) -> Rule[Facts, Promise]:
        """Return a rule with its words."""
        return Rule(code=code, search=search, told=told or self._told, doubt=doubt, **self._words[code])

    def check(self, facts: Facts, promise: Promise) -> tuple[Gate, ...]:
        """Return each property that a package must have, and whether it has it."""
        return tuple(rule.gate(facts, promise) for rule in self.rules)

    def broken(self, gates: Sequence[Gate]) -> tuple[str, ...]:
        """Return the references of the rules whose gates fail, in the order of the gates."""
        references = {rule.name: rule.code for rule in self.rules}
        return tuple(references[gate.name] for gate in gates if gate.verdict is Verdict.FAIL)

    def require(self, facts: Facts, promise: Promise) -> None:
        """Refuse a package that is not fit to ship."""
        found: tuple[Diagnostic, ...] = tuple(each for rule in self.rules for each in rule.diagnostics(facts, promise))
        if found:
            raise DiagnosticGroup(found)


def some(names: Iterable[str], most: int = 5) -> str:
    """Return the first names of a list, and how many there are when it is longer."""
    shown = list(names)
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
