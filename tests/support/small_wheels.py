"""Wheels of one module, made on the spot."""

import hashlib
import zipfile
from pathlib import Path


def write_wheel(folder: Path, name: str, version: str) -> str:
    """Make a wheel of one module, the same at any time, and return its line of a requirements file."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    information = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/RECORD": f"{name}.py,,\n{information}/METADATA,,\n{information}/WHEEL,,\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for inside, content in files.items():
            wheel.writestr(zipfile.ZipInfo(inside), content)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
