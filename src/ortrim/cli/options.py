"""The command line's options, checked."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from ortrim.base.files import shipped_folder
from ortrim.base.processor_cores import MOST_CORES, read_cores
from ortrim.buildspec.build_options import PROFILE_NAMES, ProfileName
from ortrim.compiling.container_engines import ContainerOptions, engine_named
from ortrim.compiling.containers import parse_flags, parse_mounts
from ortrim.errors import SpecError, UsageError, bad_option
from ortrim.pins.runtime import exact_version, known_version
from ortrim.planning.request import Request

LONGEST: Final = 200
Name = TypeVar("Name", bound=str)


def run_name(word: str) -> str:
    """Return what identifies the run that made the models. Raises `UsageError` (`bad-option`)."""
    if len(word) <= LONGEST and word.isprintable():
        return word
    hint = f"give at most {LONGEST} printable characters"
    raise UsageError("bad-option", "this cannot name a training run", where="--training-run", hint=hint)


DEMO: Final = "silero-vad.toml"
PROFILES_IN_WORDS: Final = f"{', '.join(PROFILE_NAMES[:-1])} or {PROFILE_NAMES[-1]}"

HELP: Final[Mapping[str, str]] = {
    "spec": f"a buildspec (default: the demo, {DEMO})",
    "target": "identifiers, globs or prefixes such as 'linux', separated by commas (default: this host's); "
    "names such as linux-amd64 also work",
    "executor": "where to compile: native, container or github (default: native)",
    "repo": "GitHub's repository, as [host/]owner/name (default: GITHUB_REPOSITORY, or git's remote origin)",
    "ref": "branch or tag to run the workflow of (default: this branch if GitHub has it, else the default branch)",
    "workflow": "workflow that compiles: build.yml, or one of the repository that calls it (default: build.yml)",
    "token-file": "file with a GitHub token (default: GH_TOKEN, GITHUB_TOKEN, or what gh auth token says)",
    "engine": "container engine: docker, podman or buildah (default: the first that works)",
    "mount": "also mount SRC:DST[:ro] into the container, may be repeated",
    "engine-flag": "argument for the engine's run command, such as --engine-flag=--memory=8g; may be repeated",
    "given": "use a buildspec's original models (default: the models after their steps, as they are shipped)",
    "profile": f"{PROFILES_IN_WORDS} (default: the buildspec's)",
    "dim": "size of a dynamic dimension of a model's file, as NAME=SIZE or INPUT:AXIS=SIZE; may be repeated",
    "jobs": "number of parallel compilations (default: as cores and memory allow)",
    "device": "device to verify on, may be repeated: host, qemu-user[:CPU], qemu-system[:CPU][@MIB], adb[:SERIAL], "
    "ssh:[USER@]HOST[:PORT], or a device farm's: firebase:, devicefarm: (default: the host, else the "
    "emulators)",
    "cores": "cores to pin runs to, such as 4-7 or 0,4-7, on host, adb and ssh devices",
    "least-memory": "find the least memory in which each model runs, on each qemu-system device (about ten starts)",
    "trace": "also write a profile of single operators for each model on each device, which opens in Perfetto",
    "training-run": "name of the training run of the models, for the history",
    "output": "folder for packages and reports (default: artifacts)",
    "ndk": "folder of Android's NDK (default: ANDROID_NDK_HOME, ANDROID_NDK_ROOT, or the one in ANDROID_HOME/ndk)",
    "bundle": "file that `invoke bundle` wrote, to build from without a network (default: ORTRIM_BUNDLE)",
    "verify-cache": "check the digest of every file read from the cache (default: of changed files; on CI, of all)",
    "plan-only": "print the plan and stop",
    "json": "print only one JSON document on standard output",
}
CONTAINERS: Final = ("executor", "engine", "mount", "engine-flag")
"""Options of where to compile."""
REMOTE: Final = ("repo", "ref", "workflow", "token-file")
"""Options of builds at GitHub."""
VERIFYING: Final = ("device", "cores", "least-memory", "trace", "training-run")
"""Options of the tasks that verify."""


def help_for(*names: str) -> dict[str, str]:
    """Return the help texts of a task's options."""
    return {name: HELP[name] for name in names}


def request_from(
    spec: str | None = None,
    *,
    target: str | None = None,
    profile: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
    ndk: str | None = None,
    container: ContainerOptions | None = None,
    devices: Sequence[str] = (),
    cores: str | None = None,
    least_memory: bool = False,
    trace: bool = False,
    training_run: str = "",
) -> Request:
    """Return the request of a task. Raises `UsageError` (`bad-option`)."""
    return Request(
        spec=demo_spec() if spec is None else Path(spec),
        target=target,
        profile=profile_option(profile),
        jobs=None if jobs is None else whole_number(jobs, "jobs"),
        output=Path(output),
        ndk=None if ndk is None else Path(ndk),
        container=container,
        devices=tuple(devices),
        cores=_cores(cores),
        least_memory=least_memory,
        trace=trace,
        training_run=run_name(training_run),
    )


def demo_spec() -> Path:
    """Return the demo buildspec: this folder's, or the one that ortrim ships."""
    own = Path("buildspecs") / DEMO
    return own if own.is_file() else shipped_folder("buildspecs") / DEMO


def container_options(
    executor: str, engine: str | None, mounts: Sequence[str], flags: Sequence[str]
) -> ContainerOptions | None:
    """Return how to build in a container, None for another executor. Raises `UsageError` (`bad-option`)."""
    match executor:
        case "container":
            if engine is not None:
                engine_named(engine)
            return ContainerOptions(engine=engine, mounts=parse_mounts(mounts), flags=parse_flags(flags))
        case "native" | "github":
            words = {"engine": engine, "mount": next(iter(mounts), None), "engine-flag": next(iter(flags), None)}
            for option, word in words.items():
                if word is not None:
                    raise bad_option(option, word, "it goes with --executor container")
            return None
        case _:
            raise bad_option("executor", executor, "choose native, container or github")


def require_possible(executor: str, **words: str | None) -> None:
    """Refuse options that go with `--executor github` alone. Raises `UsageError` (`bad-option`)."""
    for option, word in words.items():
        if word is not None and executor != "github":
            raise bad_option(option.replace("_", "-"), word, "it goes with --executor github")


def name_option(option: str, word: str, names: Sequence[Name], in_words: str) -> Name:
    """Return which of the names an option says. Raises `UsageError` (`bad-option`), which shows them `in_words`."""
    for name in names:
        if name == word:
            return name
    raise bad_option(option, word, f"choose {in_words}")


def profile_named(word: str) -> ProfileName:
    """Return the profile of a name. Raises `UsageError` (`bad-option`)."""
    return name_option("profile", word, PROFILE_NAMES, PROFILES_IN_WORDS)


def version_option(word: str | None) -> str | None:
    """Return the version of ONNX Runtime that `--ort-version` means. Raises `UsageError` for one that is not known."""
    if word is None:
        return None
    try:
        known_version(version := exact_version(word))
    except SpecError as error:
        raise UsageError(error.code, error.what, where="--ort-version", why=error.why, hint=error.hint) from error
    return version


def profile_option(word: str | None) -> ProfileName | None:
    """Return the profile of a name, None without one. Raises `UsageError` (`bad-option`)."""
    return None if word is None else profile_named(word)


def _cores(cores: str | None) -> tuple[int, ...]:
    found = () if cores is None else read_cores(cores)
    if cores is not None and not found:
        raise bad_option(
            "cores", cores[:100], f"give numbers and ranges from 0 to {MOST_CORES - 1}, such as 4-7 or 0,4-7"
        )
    return found


LARGEST_SIZE: Final = 2**31 - 1


def count_option(word: str, option: str) -> int | None:
    """Return the number that an option says, None for an empty word. Raises `UsageError` (`bad-option`)."""
    return whole_number(word, option, most=999_999) if word else None


def whole_number(word: str, option: str, *, least: int = 1, most: int = 9999) -> int:
    """Return the whole number that an option says. Raises `UsageError` (`bad-option`)."""
    if len(word) <= len(str(most)) and word.isascii() and word.isdecimal() and int(word) >= least:
        return int(word)
    raise bad_option(option, word, f"give a whole number from {least} to {most}")


def number_in(word: str) -> float:
    """Return the number that a word says, not-a-number for any other word."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def size_option(word: str) -> tuple[str, int]:
    """Read the size of a dimension, `NAME=SIZE`. Raises `UsageError` (`bad-option`)."""
    name, _, size = word.rpartition("=")
    if not (name and len(size) <= 10 and size.isascii() and size.isdecimal() and int(size) <= LARGEST_SIZE):
        raise bad_option("dim", word[:100], "write --dim batch=1")
    return name, int(size)
