"""Filling in the pins of actions: the newest tag of each, and the commit that it names."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError
from ortrim.pins.actions import ACTIONS_FILE, read_action_pins
from ortrim.pins.shipped import pin_text, writable_pins_folder
from ortrim.sources.git import git, tagged_commit
from ortrim.sources.mirrored import Mirrors, mirrored
from ortrim.storage.files import write_atomically

HOST: Final = "https://github.com/"
TABLE: Final = re.compile(r'^\[actions\."(?P<name>[^"]+)"\]')
RELEASE: Final = re.compile(r"^[0-9a-f]{40}\trefs/tags/(v(\d+)\.(\d+)\.(\d+))$", re.MULTILINE)
FILLED: Final = re.compile(r"^(tag|commit)\s*=")


def update_action_pins(*, mirrors: Mirrors, announce: Callable[[str], None]) -> Path:
    """Pin the newest release of each action that the pins name, by its commit, and return the file that was written.

    `mirrors` are pairs of a beginning of addresses and what to read instead. Raises `SourcesError` (`no-release`,
    `git-failed`, `bad-pin-file`); nothing is written unless all were found.
    """
    text = pin_text(ACTIONS_FILE)
    assert text is not None
    found = {}
    for name in read_action_pins(text):
        announce(f"ask for the releases of {name}")
        found[name] = _newest(mirrored(f"{HOST}{name}", mirrors))
    updated = "".join(_updated(text, found))
    read_action_pins(updated)
    path = writable_pins_folder() / ACTIONS_FILE
    write_atomically(path, updated)
    return path


def _newest(url: str) -> tuple[str, str]:
    """Return the tag and the commit of a repository's newest release, by its number."""
    printed = git(Path(), "ls-remote", "--tags", "--refs", "--", url)
    releases = {tag: tuple(map(int, numbers)) for tag, *numbers in RELEASE.findall(printed)}
    if not releases:
        raise SourcesError("no-release", "the repository has no tag such as v1.2.3", where=url)
    tag = max(releases, key=releases.__getitem__)
    return tag, tagged_commit(url, tag)


def _updated(text: str, found: dict[str, tuple[str, str]]) -> list[str]:
    """Return the lines of the file, comments as they were, with new tags and commits below each heading."""
    lines = []
    for line in text.splitlines(keepends=True):
        heading = TABLE.match(line)
        if heading:
            tag, commit = found[heading["name"]]
            lines.append(f'{line.rstrip()}\ntag = "{tag}"\ncommit = "{commit}"\n')
        elif not FILLED.match(line):
            lines.append(line)
    return lines
