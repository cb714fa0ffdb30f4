"""Small bundles for builds without a network."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ortrim.base.build_bundle import LAYOUT, BundleManifest, new_bundle

FILES = {"archives/a.zip": b"archive", "commits/c.tar.gz": b"commit" * 1000}
MADE = BundleManifest(
    layout=LAYOUT,
    ortrim="1.0",
    version="1.24.4",
    targets=("linux-x64", "linux-arm64"),
    buildspec="demo",
    python="cp311-linux",
    files={},
)


def write_bundle(path: Path, files: Mapping[str, bytes] = FILES) -> Path:
    with path.open("wb") as file, new_bundle(file) as writer:
        for name, content in files.items():
            (path.parent / "content").write_bytes(content)
            writer.add(name, path.parent / "content")
        writer.finish(replace(MADE, files=writer.files))
    (path.parent / "content").unlink(missing_ok=True)
    return path
