"""`prefab/`: how CMake projects of apps find the library and its headers, by `find_package(onnxruntime)`.

Format: schema version 2 of google.github.io/prefab.
"""

import json
from pathlib import Path
from typing import Any, Final

from ortrim.package.android.inputs import RUNTIME, AarInputs, AarPart
from ortrim.package.contents import PackagedFile

MODULE: Final = "onnxruntime"
SCHEMA_VERSION: Final = 2


def prefab_files(inputs: AarInputs, headers: tuple[Path, ...]) -> tuple[PackagedFile, ...]:
    """Return the package's and the module's metadata, its headers, and each ABI's library with what it was built for.

    The version is upstream's alone, since CMake takes numbers only.
    """
    top = f"prefab/modules/{MODULE}"
    about = {
        "name": MODULE,
        "schema_version": SCHEMA_VERSION,
        "dependencies": [],
        "version": inputs.first.plan.ort_version,
    }
    module = {"export_libraries": [], "library_name": RUNTIME.removesuffix(".so"), "android": {}}
    return (
        PackagedFile(path="prefab/prefab.json", content=_json(about)),
        PackagedFile(path=f"{top}/module.json", content=_json(module)),
        *(PackagedFile(path=f"{top}/include/{path.name}", content=path) for path in headers),
        *(file for part in inputs.parts for file in _library(part, inputs.ndk, f"{top}/libs/android.{part.abi}")),
    )


def _library(part: AarPart, ndk: str, folder: str) -> tuple[PackagedFile, ...]:
    # A C++ library inside, which nothing of the interface shows, is none to Prefab: it refuses `c++_static` to all.
    stl = "none" if part.android.stl == "c++_static" else part.android.stl
    about = {"abi": part.abi, "api": part.android.api, "ndk": int(ndk.partition(".")[0]), "stl": stl, "static": False}
    return (
        PackagedFile(path=f"{folder}/abi.json", content=_json(about)),
        PackagedFile(path=f"{folder}/{RUNTIME}", content=part.inputs.result.library),
    )


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
