"""Small sources that look like ONNX Runtime's, for tests that must not fetch anything."""

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from ortrim.pins.runtime import COMPONENTS, CommitPin, ComponentPin, RuntimePins, SourceSet

NO_LINKS: Mapping[str, str] = MappingProxyType({})
RUNTIME_FILES = {"VERSION_NUMBER": "1.21.0\n", "tools/ci_build/build.py": "# build\n", "LICENSE": "MIT\n"}


def tarball(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"top/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


class FakeSources:
    """Archives of all components in a folder of downloads, and the pins that fit them."""

    def __init__(self, downloads: Path) -> None:
        self.downloads = downloads
        self.components: dict[str, ComponentPin] = {}
        for name in COMPONENTS:
            self.add(name, RUNTIME_FILES if name == "onnxruntime" else {"LICENSE": name, "include/x.h": name})

    def add(self, name: str, files: dict[str, str]) -> ComponentPin:
        """Make a component's archive and put it where the cache keeps downloads."""
        return self._keep(name, tarball(files))

    def add_zip(self, name: str, files: dict[str, str], links: Mapping[str, str] = NO_LINKS) -> ComponentPin:
        """Make a component's archive as git makes zips, with symbolic links."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for path, text in (*files.items(), *links.items()):
                info = zipfile.ZipInfo(f"top/{path}")
                info.external_attr = (0o120755 if path in links else 0o100644) << 16
                archive.writestr(info, text)
        return self._keep(name, buffer.getvalue())

    def _keep(self, name: str, content: bytes) -> ComponentPin:
        digest = hashlib.sha256(content).hexdigest()
        pin = ComponentPin(
            name=name, version="1", licence="MIT", origin="url", location=f"http://127.0.0.1:9/{name}",
            file=f"{name}.tar.gz", sha256=digest, strip=1,
        )  # fmt: skip
        self.downloads.mkdir(parents=True, exist_ok=True)
        (self.downloads / f"{digest[:16]}-{pin.file}").write_bytes(content)
        self.components[name] = pin
        return pin

    def change(self, name: str, **changes: object) -> None:
        self.components[name] = replace(self.components[name], **changes)  # type: ignore[arg-type]

    def runtime(self, commit: CommitPin | None = None) -> RuntimePins:
        """Return the pins of version 1.21.0: the archives as a distribution's set, and upstream's commit if given."""
        components = tuple(self.components.values())
        return RuntimePins(
            version="1.21.0",
            converter_requirements=None,
            commit=commit,
            debian=SourceSet(suite="trixie", components=components),
        )


def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
