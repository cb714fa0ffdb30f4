"""A plan as one input of a dispatch: compressed text, small enough for GitHub, and read back without trust.

The reader has only the text's word for what it is. It bounds how far the text unpacks and takes nothing but what a
writer of the same version would have written; whether the plan is one that should be built, its caller decides.
"""

import base64
import binascii
import json
import lzma
from typing import Final

from pydantic import ValidationError

from ortrim.core.plan import BuildPlan
from ortrim.core.serialization import from_json, to_canonical_json
from ortrim.errors import PlanError
from ortrim.github.dispatch import LARGEST_INPUTS

MOST_LETTERS: Final = LARGEST_INPUTS - 4096
"""What a dispatch can carry; the rest is for the other inputs."""
MOST_OUTPUT_LETTERS: Final = 120_000
"""What a job's output can carry: GitHub takes 1 MB of them, but Linux 128 KiB in one variable of the environment."""
LARGEST_PLAN: Final = 16 << 20
DECODER_MEMORY: Final = 32 << 20
FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
SCHEMA: Final = "ortrim-plan/1"
WHERE: Final = "the plan among the inputs"


def encode_plan(plan: BuildPlan, *, most_letters: int = MOST_LETTERS) -> str:
    """Return a plan as text of letters, digits, `-` and `_`: the same plan gives the same text.

    xz, since the bytes that zlib writes differ between its builds. Raises `PlanError` (`plan-too-large`).
    """
    packed = lzma.compress(to_canonical_json(plan).encode(), lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=FILTERS)
    text = base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
    if len(text) > most_letters:
        what = f"comes to {len(text):,} letters, and GitHub takes {most_letters:,}"
        hint = "build fewer targets or models at once: --target takes a glob"
        raise PlanError("plan-too-large", what, where=plan.spec_name, hint=hint)
    return text


def decode_plan(text: str) -> BuildPlan:
    """Read back what `encode_plan` wrote.

    Raises `PlanError`: `plan-damaged` (no such text, or cut short), `plan-too-large` (unpacks too far),
    `plan-other-schema` (of another version, or with more or less in it than this version knows).
    """
    if len(text) > MOST_OUTPUT_LETTERS:
        what = f"has {len(text):,} letters, and {MOST_OUTPUT_LETTERS:,} are the most"
        raise PlanError("plan-too-large", what, where=WHERE)
    content = _unpacked(_packed(text))
    plan = _read(content)
    if to_canonical_json(plan).encode() != content:
        raise _other("it holds what this version does not know")
    return plan


def _packed(text: str) -> bytes:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _damaged("no base64url") from None
    return data


def _unpacked(data: bytes) -> bytes:
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, DECODER_MEMORY)
        content = unpacker.decompress(data, LARGEST_PLAN + 1)
    except (lzma.LZMAError, EOFError):
        raise _damaged("no xz stream, or not a sound one") from None
    if len(content) > LARGEST_PLAN:
        raise PlanError("plan-too-large", f"unpacks to more than {LARGEST_PLAN:,} bytes", where=WHERE)
    if not unpacker.eof or unpacker.unused_data:
        raise _damaged("cut short, or with something behind it")
    return content


def _read(content: bytes) -> BuildPlan:
    """Read a plan; what does not fit is not repeated in the diagnostic."""
    try:
        return from_json(BuildPlan, content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        words = f"{'.'.join(str(part) for part in first['loc'])}: {first['type']}"
    raise _other(words if _schema(content) == SCHEMA else "it is of another schema")


def _schema(content: bytes) -> object:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return data.get("schema") if isinstance(data, dict) else None


def _damaged(why: str) -> PlanError:
    return PlanError("plan-damaged", "cannot be read", where=WHERE, why=why)


def _other(why: str) -> PlanError:
    hint = "send and read it with the same version of ortrim"
    return PlanError("plan-other-schema", f"is not what {SCHEMA} says", where=WHERE, why=why, hint=hint)
