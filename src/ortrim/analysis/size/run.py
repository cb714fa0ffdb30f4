"""`size`: where the bytes of a library are, whatever it is named by, and what tells two of them apart."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.analysis.size.content import Sized
from ortrim.base.cache import cache_folder, is_kept
from ortrim.base.console import Console
from ortrim.base.files import sha256_of, storage_errors
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.compiling.size.accounting import Accounting, account
from ortrim.compiling.size.library import comparable
from ortrim.compiling.translation_units import UnitIndex, Variant, shipped_index
from ortrim.compiling.trees import DYLIB, LIBRARY
from ortrim.errors import BinaryError, UsageError
from ortrim.pipeline.executors import built_before
from ortrim.planning.planned import plan_for
from ortrim.planning.request import Request

MAP: Final = "link.map"
PLACES: Final = (LIBRARY, f"lib/{LIBRARY}", DYLIB, f"lib/{DYLIB}")
"""Where a library lies in the folder of a finished build and in that of a package."""
ELSEWHERE: Final = (LIBRARY, DYLIB, "onnxruntime.framework/onnxruntime")
"""What a library is called deeper in a folder; a framework for a Mac has a link to it there."""
BUILT: Final = (LIBRARY, DYLIB)
"""What a library is called in a finished build, whatever name it has elsewhere (`libonnxruntime.so.1` in a package)."""
ONE_MAPPED: Final = "only one of the two has a link map, so that both are divided only by section and symbol"


@dataclass(frozen=True, kw_only=True)
class Located:
    """A library, its link map if one was found, and the name by which it is shown."""

    name: str
    library: Path
    link_map: Path | None


def size_of(word: str, request: Request, link_map: Path | None, console: Console) -> Sized:
    """Account for all bytes of the library that `word` names: a file, a folder that holds one, or a buildspec.

    For a buildspec it is the finished build of the request's one target. Raises `BinaryError` (`no-library` and what
    `account` raises), `UsageError` (`one-target`, `bad-option`), `VerifyError` (`not-built`), `StorageError`.
    """
    return _sized(_located(word, request, link_map, console))


def sizes_of_two(words: tuple[str, str], request: Request, console: Console) -> tuple[Sized, Sized]:
    """Account for two libraries in the same terms, so that they can be compared. Raises as `size_of` does."""
    first, second = (_located(word, request, None, console) for word in words)
    mapped = (first.link_map is None) == (second.link_map is None)
    if not mapped:
        console.warn(ONE_MAPPED)
    before, after = _sized(first, mapped=mapped), _sized(second, mapped=mapped)
    old, new = comparable(before.accounting, after.accounting, _units())
    return replace(before, accounting=old), replace(after, accounting=new)


def _sized(located: Located, *, mapped: bool = True) -> Sized:
    accounting: Accounting = account(located.library, located.link_map if mapped else None, _units())
    return Sized(name=located.name, library=located.library, link_map=located.link_map, accounting=accounting)


def _units() -> UnitIndex | None:
    """Return an index that says which files serve which operators; of kernels, those of all targets say the same."""
    variant = Variant(ort_version=RuntimeSpec().version, target="linux-x64", toolchain="zig", exceptions=False)
    return shipped_index(variant)


def _located(word: str, request: Request, link_map: Path | None, console: Console) -> Located:
    path = Path(word)
    if path.suffix == ".toml":
        return _of_buildspec(path, request, console)
    library = _library_in(path) if path.is_dir() else path
    return Located(name=word, library=library, link_map=link_map or _map_of(library))


def _of_buildspec(spec: Path, request: Request, console: Console) -> Located:
    """Return the finished build of a buildspec's one target."""
    targets = plan_for(replace(request, spec=spec), console).targets
    if len(targets) != 1:
        names = ", ".join(target.job.target.identifier for target in targets)
        hint = f"choose one with --target: {names}"
        raise UsageError("one-target", "the size is that of one target", where=str(spec), hint=hint)
    (target,) = targets
    result = built_before(target.job)
    return Located(name=f"{spec.stem} {target.job.target.identifier}", library=result.library, link_map=result.link_map)


def _library_in(folder: Path) -> Path:
    """Return the one library of a folder. Raises `BinaryError` (`no-library`)."""
    with storage_errors(folder):
        for place in PLACES:
            if (folder / place).is_file():
                return folder / place
        found = sorted(path for name in ELSEWHERE for path in folder.rglob(name) if path.is_file())
    if len(found) == 1:
        return found[0]
    what = f"the folder has {len(found)} libraries of ONNX Runtime; one was expected"
    raise BinaryError("no-library", what, where=str(folder), hint="name the library itself")


def _map_of(library: Path) -> Path | None:
    """Return the link map beside a library, or that of the finished build with the same bytes."""
    beside = library.with_name(MAP)
    if beside.is_file():
        return beside
    if not library.is_file():
        return None
    with storage_errors(library):
        size, digest = library.stat().st_size, ""
        for build in sorted(path for name in BUILT for path in cache_folder("builds").glob(f"*/{name}")):
            with suppress(FileNotFoundError):  # Another process may remove a damaged build.
                if build.with_name(MAP).is_file() and build.stat().st_size == size:
                    digest = digest or sha256_of(library)
                    if sha256_of(build) == digest and is_kept(build.parent):
                        return build.with_name(MAP)
    return None
