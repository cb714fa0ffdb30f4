"""What single values of a buildspec may look like, and how a text is written into one."""

import json
from typing import Annotated, Final

from pydantic import ConfigDict, Field

CONFIG = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False)
NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SHA256: Final = r"^[0-9a-f]{64}$"
VERSION: Final = r"^([0-9]+\.[0-9]+(\.[0-9]+)?|newest)$"
GLIBC: Final = r"^2\.[0-9]+$"
NDK: Final = r"^[1-9][0-9](\.[0-9]{1,2}\.[0-9]{6,9})?$"
XCODE: Final = r"^[1-9][0-9]\.[0-9]{1,2}(\.[0-9]{1,2})?$"
APPLE_VERSION: Final = r"^[1-9][0-9]?\.[0-9]{1,2}$"
PROVIDER: Final = r"^[A-Za-z0-9]{1,64}$"
REQUIREMENT: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.+!_-]*$"
"""`name==version`; a leading dash is refused, since pip would take it for an option."""
Name = Annotated[str, Field(pattern=NAME)]
Sha256 = Annotated[str, Field(pattern=SHA256)]
Dimension = Annotated[int, Field(ge=0, le=2**31 - 1)]
Scalar = bool | int | float | str
Text = Annotated[str, Field(min_length=1)]


def toml_string(text: str) -> str:
    """Return a text as TOML's basic string, whose escapes are those of JSON but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
