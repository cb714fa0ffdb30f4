"""A buildspec's file as TOML data, before anything is known of its keys."""

import re
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

from ortrim.errors import SpecError
from ortrim.spec.problems import shown_file

LARGEST_BYTES: Final = 1 << 20
NOT_A_MODEL: Final = "--spec takes a buildspec, a TOML file that names models; see docs/buildspec.md"


def read_document(file: Path) -> dict[str, Any]:
    """Return the TOML data of a file.

    Raises `SpecError` (`spec-missing`, `spec-unreadable`, `spec-too-large`, `not-utf8`, `not-toml`).
    """
    return _parsed(_text(_content(file), shown_file(file)), shown_file(file))


def _content(file: Path) -> bytes:
    where = shown_file(file)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SpecError("spec-missing", "is not a plain file", where=where, hint=NOT_A_MODEL)
        if status.st_size > LARGEST_BYTES:
            what = f"has {status.st_size:,} bytes; a buildspec has at most {LARGEST_BYTES:,}"
            raise SpecError("spec-too-large", what, where=where, hint=NOT_A_MODEL)
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "check the path of the buildspec"
        raise SpecError("spec-missing", "does not exist", where=where, hint=hint) from error
    except (OSError, ValueError) as error:
        raise SpecError("spec-unreadable", "cannot be read", where=where, why=str(error)) from error


def _text(content: bytes, where: str) -> str:
    """Decode, without the byte order mark that some editors put in front."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 text (byte {error.start})"
        hint = f"save the file as UTF-8; {NOT_A_MODEL}"
        raise SpecError("not-utf8", what, where=where, hint=hint) from error


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise SpecError("not-toml", "is nested too deeply to be read", where=where) from error
    except ValueError as error:  # beside TOMLDecodeError, what int() says of a number of over 4,300 digits
        why, place = _split(str(error))
        raise SpecError("not-toml", f"is not TOML {place}".rstrip(), where=where, why=why) from error


def _split(message: str) -> tuple[str, str]:
    """Split tomllib's `Invalid value (at line 1, column 5)` into the cause and the place."""
    match = re.fullmatch(r"(.*) \((at [^()]*)\)", message, flags=re.DOTALL)
    return (match[1], match[2]) if match else (message, "")
