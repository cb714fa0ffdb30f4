"""The decorator that makes a task of a function, and texts of options that several tasks have."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields, is_dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, Final

from invoke.context import Context
from invoke.tasks import Task

from ortrim.buildspec.build_options import PROFILE_NAMES
from ortrim.cli.boundary import boundary

LETTERS: Final[Mapping[str, str]] = {
    "spec": "s", "target": "t", "profile": "p", "output": "o", "jobs": "j", "device": "d",
}  # fmt: skip
"""The letters of options, the same in every task. Invoke chooses by order, for `token-file` it chose `--`."""


class OrtrimTask(Task[Any]):
    """A task whose options have the letters of `LETTERS`, and no others."""

    def arg_opts(self, name: str, default: str, taken_names: set[str]) -> dict[str, Any]:
        """Return Invoke's choices for an option, with its letter."""
        choices = super().arg_opts(name, default, taken_names)
        choices["names"] += [letter for letter in (LETTERS.get(choices["names"][0]),) if letter]
        return choices


DEMO: Final = "silero-vad.toml"
PROFILES_IN_WORDS: Final = f"{', '.join(PROFILE_NAMES[:-1])} or {PROFILE_NAMES[-1]}"

HELP: Final[Mapping[str, str]] = {
    "spec": f"a buildspec (default: the demo, {DEMO})",
    "target": "identifiers, globs or prefixes such as 'linux', separated by commas (default: this host's); "
    "names such as linux-amd64 also work",
    "executor": "where to compile: native, container or github (default: native)",
    "engine": "container engine: docker, podman or buildah (default: the first that works)",
    "mount": "also mount SRC:DST[:ro] into the container, may be repeated",
    "package": "also make this: wheel (Python, of each Linux target), unity (one package of all); may be repeated",
    "engine-flag": "argument for the engine's run command, such as --engine-flag=--memory=8g; may be repeated",
    "given": "use a buildspec's original models (default: the models after their steps, as they are shipped)",
    "profile": f"{PROFILES_IN_WORDS} (default: the buildspec's)",
    "dim": "size of a dynamic dimension of a model's file, as NAME=SIZE or INPUT:AXIS=SIZE; may be repeated",
    "jobs": "number of parallel compilations (default: as cores and memory allow)",
    "cores": "cores to pin runs to, such as 4-7 or 0,4-7, on host, adb and ssh devices",
    "trace": "also write a profile of single operators for each model on each device, which opens in Perfetto",
    "output": "folder for packages and reports (default: artifacts)",
    "ndk": "folder of Android's NDK (default: ANDROID_NDK_HOME, ANDROID_NDK_ROOT, or the one in ANDROID_HOME/ndk)",
    "bundle": "file that `invoke bundle` wrote, to build from without a network (default: ORTRIM_BUNDLE)",
    "verify-cache": "check the digest of every file read from the cache (default: of changed files; on CI, of all)",
    "plan-only": "print the plan and stop",
    "training-run": "name of the training run of the models, for the history",
    "json": "print only one JSON document on standard output",
}
"""Texts of options that several tasks have; a task may say more of one."""
SEVERAL: Final = re.compile(r"\b(list|Sequence)\[str\]")
"""In the type of an option that may be repeated."""


def option(text: str, default: Any = None) -> Any:
    """Return the field of a group of options: a dataclass whose fields are options of each task that takes it."""
    return field(default=default, metadata={"help": text})


def task(
    *,
    name: str | None = None,
    help: Mapping[str, str] = MappingProxyType({}),  # noqa: A002 - Invoke's name
    without: Collection[str] = (),
    in_options: bool = False,
) -> Callable[[Callable[..., None]], Task[Any]]:
    """Make a task of a function whose first parameter is the console; the others are options, or groups of these.

    Options of groups in `without` are none of the task's. The error boundary is around the function; `in_options` says
    that options stand for a buildspec's keys, and a group may say so, too.
    """

    def made(body: Callable[..., None]) -> Task[Any]:
        own = inspect.signature(body)
        (_, *parameters) = own.parameters.values()
        groups: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}
        grouped = {group: [each for each in fields(groups[group]) if each.name not in without] for group in groups}
        shared = [each for group in grouped.values() for each in group]

        @wraps(body)
        def run(_context: Context, **words: Any) -> None:
            for group, its in grouped.items():
                words[group] = groups[group](**{each.name: words.pop(each.name) for each in its})
            as_keys = in_options or any(getattr(words[group], "in_options", False) for group in groups)
            with boundary(json_mode=words.get("json", False), in_options=as_keys) as console:
                body(console, **words)

        context = inspect.Parameter("_context", inspect.Parameter.POSITIONAL_ONLY)
        options = [each for each in parameters if each.name not in groups] + [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in shared
        ]
        run.__signature__ = own.replace(parameters=[context, *options])  # type: ignore[attr-defined]
        several = [each.name for each in options if SEVERAL.search(str(each.annotation))]
        names = {each.name.replace("_", "-") for each in options}
        texts = {each.name.replace("_", "-"): each.metadata["help"] for each in shared}
        return OrtrimTask(
            run,
            name=name,
            positional=[each.name for each in options if each.default is each.empty and each.name not in several],
            iterable=several,
            auto_shortflags=False,
            help={**{each: text for each, text in HELP.items() if each in names}, **texts, **help},
        )

    return made
