"""Who is measured with one model: the official wheel, twice, and our libraries; and in which order. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.json import to_canonical_json
from ortrim.buildspec.build_options import PROFILE_NAMES, ProfileName
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.errors import UsageError
from ortrim.parity.inputs import Case
from ortrim.parity.runner import DEFAULT_REPETITION, Repetition, RunRequest

WHEEL: Final = "wheel"
"""The official library with the original model, which it optimizes as it does by default."""
WHEEL_ORT: Final = "wheel, .ort"
"""The official library with the converted model, optimized as far as ours."""
UPSTREAM: Final = "upstream"
DEFAULT: Final = "balanced"
KEY_DIGITS: Final = 16


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One library with one model's file and the settings to load it with; digests are those of the files."""

    name: str
    library: Path
    library_sha256: str
    model: Path
    model_sha256: str
    session: SessionSettings


@dataclass(frozen=True, kw_only=True)
class Contest:
    """All that is measured of one model of a spec, in one runner."""

    spec: str
    model: str
    runner: Path
    runner_sha256: str
    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...]
    repetition: Repetition = DEFAULT_REPETITION

    @property
    def key(self) -> str:
        """What the measurement depends on: with another library or case, everything is measured anew."""
        words = [f"{each.name} {each.library_sha256} {each.model_sha256}" for each in self.contenders]
        words += [to_canonical_json(each.session) for each in self.contenders]
        words += [self.runner_sha256, to_canonical_json(self.repetition), *(case.digest for case in self.cases)]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:KEY_DIGITS]

    def order(self, number: int) -> tuple[Contender, ...]:
        first = (number - 1) % len(self.contenders)
        return self.contenders[first:] + self.contenders[:first]

    def request(self, contender: Contender) -> RunRequest:
        return RunRequest(
            runner=self.runner,
            library=contender.library,
            model=contender.model,
            cases=self.cases,
            session=contender.session,
            repetition=self.repetition,
        )


def chosen_profiles(words: str) -> tuple[ProfileName, ...]:
    """Return the profiles named in a list with commas, upstream's recipe first; all of them without a name."""
    names = [word.strip() for word in words.split(",") if word.strip()]
    unknown: Sequence[str] = [name for name in names if name not in PROFILE_NAMES]
    if unknown:
        hint = f"choose among: {', '.join(PROFILE_NAMES)}"
        what = f"there is no profile {', '.join(map(repr, unknown))}"
        raise UsageError("bad-option", what, where="--profiles", hint=hint)
    wanted = [name for name in PROFILE_NAMES if not names or name in names]
    return tuple(sorted(wanted, key=lambda name: name != UPSTREAM))
