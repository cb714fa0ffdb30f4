"""Where on another machine our folders are made: the usual place of its kind, or one that the environment names."""

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from ortrim.errors import UsageError

VARIABLES: Final[Mapping[str, str]] = MappingProxyType({"adb": "ORTRIM_ADB_FOLDER", "ssh": "ORTRIM_SSH_FOLDER"})
FOLDER: Final = re.compile(r"/[^\x00-\x1f\x7f]{0,1000}")
NEEDED: Final = "a folder there that can be written to and has programs run from it"


def base_folder(kind: Literal["adb", "ssh"], usual: str) -> str:
    """Return the folder on machines of a kind below which ours is made. Raises `UsageError` `bad-folder`."""
    named = os.environ.get(VARIABLES[kind], "")
    if named and not FOLDER.fullmatch(named):
        hint = f"give a whole path on the device, such as {usual}"
        raise UsageError("bad-folder", f"{named[:100]!r} is not such a path", where=VARIABLES[kind], hint=hint)
    return named or usual


def other_folder(name: str) -> str:
    """Return the hint to name another base folder for a device, by its name in reports."""
    kind = name.partition(":")[0]
    return f"name {NEEDED} in {VARIABLES.get(kind, ' or '.join(VARIABLES.values()))}"
