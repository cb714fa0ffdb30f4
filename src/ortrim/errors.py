"""Diagnostics: what went wrong, where, why, and what to do about it. Imports nothing of ortrim."""

from enum import IntEnum

MOST_TOLD = 20
"""So many diagnostics of one group are printed; `--json` has all."""


class ExitCode(IntEnum):
    """The program's exit codes, one per class of diagnostic. Documented in `docs/reference/errors.md`."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    BUDGET = 3
    PARITY = 4
    REGRESSION = 5
    INCONCLUSIVE = 6
    SPEC = 10
    MODEL = 11
    CONVERT = 12
    OPERATORS = 13
    SOURCES = 14
    PLAN = 15
    TOOL = 16
    BUILD = 17
    PACKAGE = 18
    VERIFY = 19
    BINARY = 20
    NETWORK = 21
    STORAGE = 22
    MEMORY = 23
    INTERRUPTED = 130


class Diagnostic(Exception):
    """An error meant for the user's eyes.

    `code` is a kebab-case name that stays stable and can be searched for; `where` names the file, the
    dotted path or the job concerned; `what` is one sentence; `why` the cause or the tool's own words; `hint`
    what to do next.
    """

    exit_code = ExitCode.UNEXPECTED

    def __init__(self, code: str, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.where = where
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error: {self.code}", f"  {self.where}: {self.what}" if self.where else f"  {self.what}"]
        if self.why:
            lines += [f"  why: {line}" if n == 0 else f"       {line}" for n, line in enumerate(self.why.splitlines())]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class DiagnosticGroup(Diagnostic):
    """Several diagnostics of one class found in one pass, mended in one go; `told` are the first."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        first = diagnostics[0]
        super().__init__(first.code, first.what, where=first.where, why=first.why, hint=first.hint)
        self.diagnostics = diagnostics
        self.exit_code = first.exit_code
        self.told = diagnostics[:MOST_TOLD]

    def __str__(self) -> str:
        rest = len(self.diagnostics) - len(self.told)
        more = [f"and {rest:,} more error{'s' * (rest > 1)}"] if rest else []
        return "\n".join([*map(str, self.told), *more])


class UsageError(Diagnostic):
    """The command line names something that does not exist."""

    exit_code = ExitCode.USAGE


class BudgetMissed(Diagnostic):
    """A measurement misses the buildspec's budget."""

    exit_code = ExitCode.BUDGET


class ParityError(Diagnostic):
    """The trimmed runtime's outputs differ from the full runtime's by more than the tolerance."""

    exit_code = ExitCode.PARITY


class Inconclusive(Diagnostic):
    """No output could be judged, so that nothing shows whether the trimmed runtime is right."""

    exit_code = ExitCode.INCONCLUSIVE


class Regression(Diagnostic):
    """A build is larger or slower than the one that was accepted last, or uses more memory, by more than is allowed."""

    exit_code = ExitCode.REGRESSION


class SpecError(Diagnostic):
    """The buildspec is not valid."""

    exit_code = ExitCode.SPEC


class ModelError(Diagnostic):
    """A model is missing, damaged, or outside what ortrim can build for."""

    exit_code = ExitCode.MODEL


class ConvertError(Diagnostic):
    """A model could not be converted to ORT format."""

    exit_code = ExitCode.CONVERT


class OperatorsError(Diagnostic):
    """The required operators cannot be derived, read or satisfied."""

    exit_code = ExitCode.OPERATORS


class SourcesError(Diagnostic):
    """The sources cannot be obtained or are not what was pinned."""

    exit_code = ExitCode.SOURCES


class PlanError(Diagnostic):
    """The buildspec is valid but cannot be planned."""

    exit_code = ExitCode.PLAN


class ToolError(Diagnostic):
    """A tool is absent, too old, or not permitted to do its work."""

    exit_code = ExitCode.TOOL


class BuildError(Diagnostic):
    """Compiling or linking failed."""

    exit_code = ExitCode.BUILD


class PackageError(Diagnostic):
    """The package cannot be made or read."""

    exit_code = ExitCode.PACKAGE


class VerifyError(Diagnostic):
    """Verification could not be carried out: the runner failed, crashed or hung."""

    exit_code = ExitCode.VERIFY


class BinaryError(Diagnostic):
    """A library is not what a user could load: wrong format, executable stack, wrong exports."""

    exit_code = ExitCode.BINARY


class NetworkError(Diagnostic):
    """A download failed for a reason outside the project."""

    exit_code = ExitCode.NETWORK


class StorageError(Diagnostic):
    """The disk is full, a folder is not writable, or stored data is damaged."""

    exit_code = ExitCode.STORAGE


class MemoryShortage(Diagnostic):
    """Memory ran out, by a limit or for good; no model is at fault."""

    exit_code = ExitCode.MEMORY


class Interrupted(Diagnostic):
    """The user pressed Ctrl-C; what was finished stays and the next run resumes."""

    exit_code = ExitCode.INTERRUPTED


def bad_option(option: str, value: str, hint: str) -> UsageError:
    """Return the diagnostic of an option whose value is not possible."""
    return UsageError("bad-option", f"{value!r} is not possible here", where=f"--{option}", hint=hint)
