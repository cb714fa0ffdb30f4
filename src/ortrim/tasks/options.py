"""The command line's words, checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from ortrim.errors import UsageError
from ortrim.pipeline.converted import Request
from ortrim.storage.shipped import shipped_folder

DEMO: Final = "silero-vad.toml"

HELP: Final[Mapping[str, str]] = {
    "spec": f"buildspec to build (default: the demo, {DEMO})",
    "target": "target identifier, glob, or prefix such as 'linux' (default: this host's)",
    "executor": "where to compile: native",
    "profile": "balanced or upstream (default: the buildspec's)",
    "jobs": "compilations at a time (default: as cores and memory allow)",
    "output": "folder for packages and reports (default: artifacts)",
    "plan-only": "print the plan and stop",
    "json": "print one JSON document on standard output and nothing else there",
}


def help_for(*names: str) -> dict[str, str]:
    """Return the help texts of a task's options."""
    return {name: HELP[name] for name in names}


def request_from(
    spec: str | None,
    *,
    target: str | None = None,
    profile: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
) -> Request:
    """Return what a task was asked for. Raises `UsageError` (`bad-option`)."""
    return Request(
        spec=demo_spec() if spec is None else Path(spec),
        target=target,
        profile=_profile(profile),
        jobs=_jobs(jobs),
        output=Path(output),
    )


def demo_spec() -> Path:
    """Return the demo buildspec: this folder's, or the one that travels with ortrim."""
    own = Path("buildspecs") / DEMO
    return own if own.is_file() else shipped_folder("buildspecs") / DEMO


def require_native(executor: str) -> None:
    """Refuse an executor that this version does not have. Raises `UsageError` (`bad-option`)."""
    if executor != "native":
        raise _bad("executor", executor, "this version of ortrim builds with 'native' only")


def _profile(profile: str | None) -> Literal["balanced", "upstream"] | None:
    match profile:
        case None | "balanced" | "upstream":
            return profile
        case _:
            raise _bad("profile", profile, "choose balanced or upstream")


def _jobs(jobs: str | None) -> int | None:
    if jobs is None:
        return None
    if len(jobs) <= 4 and jobs.isascii() and jobs.isdecimal() and int(jobs) > 0:
        return int(jobs)
    raise _bad("jobs", jobs, "give a whole number from 1 to 9999")


def _bad(option: str, value: str, hint: str) -> UsageError:
    return UsageError("bad-option", f"{value!r} is not possible here", where=f"--{option}", hint=hint)
