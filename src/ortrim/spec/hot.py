"""The file of hot operators beside a buildspec: `kws.toml` has `kws.hot.toml`. `invoke hot` writes it."""

from pathlib import Path
from typing import Any, Final

from ortrim.core.hot_operators import KEY, MOST_OPERATORS, OPERATOR, SUFFIX
from ortrim.errors import DiagnosticGroup, SpecError
from ortrim.spec.document import read_document
from ortrim.spec.problems import Problem, as_error, kind, nearest, shown

AGAIN: Final = "write it anew with: invoke hot; or delete it, and every kernel is compiled for speed"


def hot_file(spec: Path) -> Path:
    """Return where the hot operators of a buildspec are named."""
    return spec.with_name(f"{spec.stem}{SUFFIX}")


def read_hot(file: Path) -> tuple[str, ...]:
    """Return the hot operators that a file names, as `domain:OpType`, each once; none when there is no such file.

    Raises `SpecError` as `read_document` does when there is no TOML to look at, else a `DiagnosticGroup` of one for
    each problem: `unknown-key`, `missing-key`, `wrong-type`, `bad-value`.
    """
    if not file.is_symlink() and not _exists(file):
        return ()
    try:
        document = read_document(file)
    except SpecError as error:
        raise SpecError(error.reference, error.what, where=error.where, why=error.why, hint=AGAIN) from error
    problems = [*_stray(document), *_wrong(document)]
    if problems:
        raise DiagnosticGroup(tuple(as_error(problem, file) for problem in problems))
    return tuple(dict.fromkeys(document[KEY]))


def _exists(file: Path) -> bool:
    """Whether something of this name is there; what the system does not let one ask is for the reader to tell."""
    try:
        file.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _stray(document: dict[str, Any]) -> list[Problem]:
    return [
        Problem(reference="unknown-key", location=(key,), what="is not a known key", hint=nearest(key, [KEY], AGAIN))
        for key in document
        if key != KEY
    ]


def _wrong(document: dict[str, Any]) -> list[Problem]:
    if KEY not in document:
        return [Problem(reference="missing-key", location=(KEY,), what="is missing", hint=AGAIN)]
    named = document[KEY]
    if not isinstance(named, list):
        what = f"must be an array, not {kind(named)}"
        return [Problem(reference="wrong-type", location=(KEY,), what=what, hint=AGAIN)]
    if not 0 < len(named) <= MOST_OPERATORS:
        what = f"has {len(named):,} operators; it must have from 1 to {MOST_OPERATORS:,}"
        return [Problem(reference="bad-value", location=(KEY,), what=what, hint=AGAIN)]
    return [problem for index, name in enumerate(named) for problem in _wrong_name(index, name)]


def _wrong_name(index: int, name: Any) -> list[Problem]:
    if not isinstance(name, str):
        what = f"must be a string, not {kind(name)}"
        return [Problem(reference="wrong-type", location=(KEY, index), what=what)]
    if not OPERATOR.fullmatch(name):
        what = f"must be an operator as in 'ai.onnx:Conv', not {shown(name)}"
        return [Problem(reference="bad-value", location=(KEY, index), what=what)]
    return []
