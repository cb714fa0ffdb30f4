"""No folder of the machine that built a package is named in it: for privacy, and for the same bytes everywhere."""

from collections.abc import Iterator
from pathlib import Path

from ortrim.errors import PackageError
from ortrim.package.contents import PackagedFile
from ortrim.package.inputs import PackageInputs


def refuse_machine_paths(inputs: PackageInputs, files: tuple[PackagedFile, ...]) -> None:
    """Look for the folders of the build and the sources in every file. Raises `PackageError` (`machine-path`)."""
    folders = sorted({str(path).encode() for path in _folders(inputs)})
    for file in files:
        content = file.content if isinstance(file.content, bytes) else file.content.read_bytes()
        found = next((folder for folder in folders if folder in content), None)
        if found is not None:
            hint = "compile with -ffile-prefix-map, so that messages name source files without their folders"
            why = f"it contains {found.decode(errors='replace')}"
            raise PackageError(
                "machine-path", "a file names a folder of this machine", where=file.path, why=why, hint=hint
            )


def _folders(inputs: PackageInputs) -> Iterator[Path]:
    """Yield the folders that could be named, unless so short (`/tmp`, `/src`) that they could occur by chance."""
    texts = (inputs.licence, inputs.notices, *(licence.path for licence in inputs.licences))
    given = (inputs.result.folder, *(path.parent for path in texts), *(model.path.parent for model in inputs.models))
    for folder in given:
        for spelled in (folder, folder.resolve()):
            if spelled.is_absolute() and len(spelled.parts) > 2:
                yield spelled
