"""Hot operators: those in whose kernels models spend nearly all of their time.

A file beside the buildspec names them: `kws.toml` has `kws.hot.toml`, which `invoke hot` writes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ortrim.buildspec.load import read_document
from ortrim.buildspec.problems import Problem, as_error, kind, nearest, shown
from ortrim.errors import DiagnosticGroup, SpecError
from ortrim.models.operators import RequiredOperators

HOT_SHARE: Final = 0.95
"""A model's hot operators are the fewest that together make this part of its time."""
OPERATOR: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}:[A-Za-z_][A-Za-z0-9_]{0,127}")
"""How an operator is named: `domain:OpType`, the empty ONNX domain as `ai.onnx`."""
MOST_OPERATORS: Final = 1000
SUFFIX: Final = ".hot.toml"
KEY: Final = "operators"
"""The one key of the file."""


@dataclass(frozen=True, kw_only=True)
class RankedOperator:
    """One operator, the largest part of the time that it takes in a model, which model that is, and whether it is hot.

    Hot is what is hot in any of the models.
    """

    operator: str
    share: float
    model: str
    hot: bool


def shares_of(times: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each operator's part of a model's time from its times in each case; every case counts alike."""
    timed = [case for case in times if sum(case.values()) > 0]
    shares: dict[str, float] = {}
    for case in timed:
        for operator, time in case.items():
            shares[operator] = shares.get(operator, 0.0) + time / sum(case.values()) / len(timed)
    return shares


def ranked(models: Mapping[str, Mapping[str, float]]) -> tuple[RankedOperator, ...]:
    """Rank the operators of all models by their largest share; `models` has each one's shares, which make 1."""
    hot = frozenset(operator for shares in models.values() for operator in fewest(shares, HOT_SHARE))
    largest: dict[str, tuple[float, str]] = {}
    for model, shares in models.items():
        for operator, share in shares.items():
            largest[operator] = max(largest.get(operator, (0.0, "")), (share, model))
    rows = [
        RankedOperator(operator=operator, share=share, model=model, hot=operator in hot)
        for operator, (share, model) in largest.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.share, row.operator)))


def named_in(name: str, operators: RequiredOperators) -> tuple[str, ...]:
    """Return the operators of a name, whose domain a runtime's profile does not tell; rarely more than one."""
    return tuple(sorted({f"{each.domain}:{each.name}" for each in operators.operators if each.name == name}))


def required_of(hot: Iterable[str], operators: RequiredOperators) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part hot operators into those that are required, and those that no model uses any more; both sorted."""
    asked = {f"{each.domain}:{each.name}" for each in operators.operators}
    known = frozenset(hot) if operators.everything else frozenset(hot) & asked
    return tuple(sorted(known)), tuple(sorted(frozenset(hot) - known))


def render_hot(rows: Iterable[RankedOperator], about: Iterable[str]) -> str:
    """Return the text of the file: lines of comment `about` it, and the hot operators, the one with most time first."""

    def printable(text: str) -> str:
        """Leave out what TOML has in no comment, such as line ends in what a processor calls itself."""
        return "".join(letter for letter in text if letter.isprintable())

    lines = [f"# {printable(line)}\n" for line in about]
    hot = (row for row in rows if row.hot)
    listed = [f'    "{row.operator}",  # {100 * row.share:.1f} % of {printable(row.model)}\n' for row in hot]
    return "".join([*lines, f"{KEY} = [\n", *listed, "]\n"])


def fewest(parts: Mapping[str, float], share: float) -> Iterator[str]:
    """Yield the names with the largest parts, as many as together make that share of the sum."""
    total, reached = sum(parts.values()), 0.0
    for name, part in sorted(parts.items(), key=lambda item: (-item[1], item[0])):
        if reached >= share * total:
            return
        yield name
        reached += part


AGAIN: Final = "write it again with: invoke hot; or delete it, and every kernel is compiled for speed"


def hot_file(spec: Path) -> Path:
    """Return where the hot operators of a buildspec are named."""
    return spec.with_name(f"{spec.stem}{SUFFIX}")


def read_hot(file: Path) -> tuple[str, ...]:
    """Return the hot operators that a file names, as `domain:OpType`, each once; none when there is no such file."""
    if not file.is_symlink() and not _exists(file):
        return ()
    try:
        document = read_document(file)
    except SpecError as error:
        raise SpecError(error.code, error.what, where=error.where, why=error.why, hint=AGAIN) from error
    problems = [
        Problem(code="unknown-key", location=(key,), what="is not a known key", hint=nearest(key, [KEY], AGAIN))
        for key in document
        if key != KEY
    ]
    if problems := [*problems, *_wrong(document)]:
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


def _wrong(document: dict[str, Any]) -> list[Problem]:
    if KEY not in document:
        return [Problem(code="missing-key", location=(KEY,), what="is missing", hint=AGAIN)]
    named = document[KEY]
    if not isinstance(named, list):
        what = f"must be an array, not {kind(named)}"
        return [Problem(code="wrong-type", location=(KEY,), what=what, hint=AGAIN)]
    if not 0 < len(named) <= MOST_OPERATORS:
        what = f"has {len(named):,} operators; it must have from 1 to {MOST_OPERATORS:,}"
        return [Problem(code="bad-value", location=(KEY,), what=what, hint=AGAIN)]
    return [problem for index, name in enumerate(named) for problem in _wrong_name(index, name)]


def _wrong_name(index: int, name: Any) -> list[Problem]:
    if not isinstance(name, str):
        what = f"must be a string, not {kind(name)}"
        return [Problem(code="wrong-type", location=(KEY, index), what=what)]
    if not OPERATOR.fullmatch(name):
        what = f"must be an operator as in 'ai.onnx:Conv', not {shown(name)}"
        return [Problem(code="bad-value", location=(KEY, index), what=what)]
    return []
