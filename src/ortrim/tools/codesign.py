"""Apple's `codesign`: an xcframework signed with an identity of this Mac's keychain."""

import shutil
from pathlib import Path
from typing import Final

from ortrim.errors import PackageError, ToolError
from ortrim.tools.command import run

SIGN_SECONDS: Final = 600
"""A time stamp comes from a server of Apple's."""
VERIFY_SECONDS: Final = 120


def find_codesign(search_path: str | None = None) -> Path:
    """Return the program: from PATH, or from the folders of `search_path`. Raises `ToolError` `codesign-missing`."""
    found = shutil.which("codesign", path=search_path)
    if found is None:
        what = "Apple's codesign is needed to sign an xcframework"
        hint = "sign it on a Mac: codesign --timestamp --sign IDENTITY onnxruntime.xcframework"
        raise ToolError("codesign-missing", what, where="codesign", hint=hint)
    return Path(found)


def sign(codesign: Path, identity: str, path: Path) -> None:
    """Sign a bundle with an identity, by its name or its fingerprint, and check the signature.

    Raises `PackageError` `not-signed`.
    """
    _run(path, SIGN_SECONDS, (codesign, "--force", "--timestamp", "--sign", identity, path))
    _run(path, VERIFY_SECONDS, (codesign, "--verify", "--strict", path))


def _run(path: Path, seconds: float, command: tuple[str | Path, ...]) -> None:
    done = run(command, timeout_seconds=seconds)
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip()[-500:]
        hint = "run: security find-identity -v -p codesigning; it lists what this Mac can sign with"
        raise PackageError("not-signed", "the xcframework could not be signed", where=path.name, why=why, hint=hint)
