"""The libraries with their symbol tables, for who reads crashes; apart from what ships, and found by build-id."""

from ortrim.binaries.android_elf import read_native_library
from ortrim.errors import PackageError
from ortrim.package.android.inputs import SYMBOLS_SUFFIX, AarInputs, AarPart
from ortrim.package.contents import PackagedFile


def symbol_files(inputs: AarInputs) -> tuple[PackagedFile, ...]:
    """Return the unstripped libraries, twice by name: as debuggers look for them, and as Play's console takes them.

    `.build-id/ab/cdef.debug` is what lldb, llvm-symbolizer and debuginfod look for; `<abi>/<library>.sym` is the layout
    of a symbols zip that Play takes. Raises `PackageError` (`symbols-differ`) for those of another link.
    """
    return tuple(file for part in inputs.parts for file in _of_part(part))


def _of_part(part: AarPart) -> list[PackagedFile]:
    shipped = {name: _build_id(path.read_bytes(), name) for name, path in part.libraries}
    files = []
    for path in part.symbols:
        name = path.name.removesuffix(SYMBOLS_SUFFIX)
        found = _build_id(path.read_bytes(), name)
        if not found or shipped.get(name) != found:
            why = f"build-id {found or 'none'}; the library that ships has {shipped.get(name) or 'none'}"
            hint = "build the target again: both come from one link"
            what = "these are the symbols of another library"
            raise PackageError("symbols-differ", what, where=str(path), why=why, hint=hint)
        files.append(PackagedFile(path=f".build-id/{found[:2]}/{found[2:]}.debug", content=path))
        files.append(PackagedFile(path=f"{part.abi}/{path.name}", content=path))
    return files


def _build_id(data: bytes, name: str) -> str:
    return read_native_library(data, f"jni/symbols/{name}", 0, 0).build_id
