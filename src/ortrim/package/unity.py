"""A package for Unity's package manager: the native libraries of several targets, and the models as text assets."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.cache import publish_folder
from ortrim.buildspec.buildspec import UNITY
from ortrim.errors import PackageError
from ortrim.package import manifest as manifests
from ortrim.package import package
from ortrim.package.manifest import SBOM, PackagedFile, PackageInputs

TOP: Final = "package"
"""The one folder of an archive of npm's form, which Unity reads."""
PLUGINS: Final = "Plugins"
DOCUMENTS: Final = "Documentation~"
"""What ends in a tilde Unity does not import."""
OLDEST_UNITY: Final = "2022.3"
PLAYERS: Final = {
    "Android": "Android",
    "Editor": "Editor",
    "Linux64": "Standalone",
    "OSXUniversal": "Standalone",
    "Win": "Standalone",
    "Win64": "Standalone",
    "iOS": "iPhone",
}
"""What may load a native library -> the group that a `PluginImporter` has it in."""


@dataclass(frozen=True, kw_only=True)
class UnityPlugin(PackagedFile):
    """A file below `Plugins`; `players` are those that load it, with Unity's settings: none of what is not imported."""

    players: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def unity_name(spec_name: str) -> str:
    """Return the name that a project's manifest has for the package."""
    return f"com.ortrim.{spec_name.lower()}"


def make_unity_package(parts: Sequence[PackageInputs], plugins: Sequence[UnityPlugin], folder: Path) -> Path:
    """Make the package of the plugins of all `parts` in the folder `folder`, which appears whole, and return its path.

    Raises `PackageError` `models-differ` when the parts have other models. The same inputs give the same bytes.
    """
    inputs = manifests.joined_inputs(parts)
    _require_same_models(parts)
    name = unity_name(inputs.plan.spec_name)
    archive = f"{name}-{inputs.plan.ort_version}.tgz"
    files = (
        PackagedFile(path="package.json", content=package.json_content(_about(inputs, name))),
        *(PackagedFile(path=each.path, content=each.content, mode=each.mode) for each in plugins),
        *_models(inputs),
        PackagedFile(path=f"{DOCUMENTS}/LICENSE", content=package.plain_text(inputs.licence)),
        PackagedFile(path=f"{DOCUMENTS}/ThirdPartyNotices.txt", content=package.notices_text(inputs)),
    )
    package.check_paths(each.path for each in files)
    bill = manifests.sbom_text(inputs, archive.removesuffix(".tgz"), tuple(each.entry for each in files))
    whole = (*files, PackagedFile(path=f"{DOCUMENTS}/{SBOM}", content=bill.encode()))

    def fill(temporary: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            content = Path(place) / TOP
            content.mkdir()
            package.write_contents(content, (*whole, *_metas(name, whole, plugins)), ())
            package.write_archive(content, temporary / archive)
        package.write_sums(temporary)

    shutil.rmtree(folder, ignore_errors=True)
    publish_folder(folder, fill)
    return folder / archive


def _require_same_models(parts: Sequence[PackageInputs]) -> None:
    first, *others = parts
    wanted = [model.sha256 for model in first.models]
    for part in others:
        if [model.sha256 for model in part.models] != wanted:
            targets = f"{first.job.target.identifier} and {part.job.target.identifier}"
            what = f"{targets} have other models, and a package for Unity has one file of each for all"
            hint = "give models layout = 'plain', or build the targets from separate buildspecs"
            raise PackageError("models-differ", what, where=UNITY, hint=hint)


def _about(inputs: PackageInputs, name: str) -> dict[str, str]:
    return {
        "name": name,
        "version": inputs.plan.ort_version,
        "displayName": f"ONNX Runtime for {inputs.plan.spec_name}",
        "description": "Native libraries of ONNX Runtime with what these models need, and the models",
        "unity": OLDEST_UNITY,
        "license": " AND ".join(manifests.all_licences(inputs)),
    }


def _models(inputs: PackageInputs) -> Iterable[PackagedFile]:
    for each in package.model_files(inputs, "Models"):
        suffix = ".bytes" if each.path.endswith(".ort") else ""  # what makes a text asset of any file
        yield PackagedFile(path=f"{each.path}{suffix}", content=each.content)


def _metas(name: str, files: Sequence[PackagedFile], plugins: Sequence[UnityPlugin]) -> Iterable[PackagedFile]:
    """Yield what Unity wants beside every file and folder that it imports, each with an identifier that stays."""
    players = {each.path: each.players for each in plugins}
    imported = [PurePosixPath(each.path) for each in files if "~/" not in each.path]
    folders = {folder for each in imported for folder in each.parents} - {PurePosixPath()}
    for path in sorted({*imported, *folders}):
        guid = hashlib.sha256(f"{name}/{path}".encode()).hexdigest()[:32]
        if players.get(str(path)):
            content = package.rendered(
                "unity/plugin.meta.j2", {"guid": guid, "groups": PLAYERS, "players": players[str(path)]}
            )
        else:
            content = f"fileFormatVersion: 2\nguid: {guid}\n".encode() + (
                b"folderAsset: yes\n" if path in folders else b""
            )
        yield PackagedFile(path=f"{path}.meta", content=content)
