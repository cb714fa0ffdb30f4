"""Packages whose bytes depend on nothing but what is in them: the folder of one target, its files, and archives."""

import gzip
import hashlib
import json
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import IO, Final

from ortrim.base.cache import locked, publish_folder
from ortrim.base.checksums import SUMS, changed_since_made, checksums_text, is_plain_path
from ortrim.base.files import (
    disk_full,
    ran_out_of_space,
    require_space,
    shipped_folder,
    storage_errors,
    temporary_beside,
    write_atomically,
)
from ortrim.binaries.elf import read_library
from ortrim.buildspec.buildspec import session_json
from ortrim.buildspec.targets import Architecture, Target
from ortrim.compiling.plan import Package
from ortrim.errors import PackageError, StorageError
from ortrim.package import manifest as manifests
from ortrim.package.manifest import FILE_MODE, SOURCE_DATE_EPOCH, PackagedFile, PackageInputs
from ortrim.pins.origins import Origin, origin_of


def write_archive(folder: Path, destination: Path) -> None:
    """Write `folder` as a `tar.gz` whose only top-level entry is its name; `destination` appears when it is complete.

    Entries are in order of their paths without owner and time; files are 0644, or 0755 when executable.
    """
    with (
        new_archive(destination) as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.rglob("*"), key=lambda each: each.relative_to(folder).as_posix()):
            if path.is_symlink() or not path.is_dir():
                _add(archive, folder, path)


@contextmanager
def new_archive(destination: Path) -> Iterator[IO[bytes]]:
    """Open an archive for writing; `destination` appears when it is complete, and nothing is left when it is not."""
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(destination, f".{destination.name}.") as temporary:
            with temporary.open("xb") as file:
                yield file
            temporary.chmod(0o644)
            temporary.replace(destination)
    except OSError as error:
        raise _not_written("archive-not-written", "the archive cannot be written", error, destination) from error


def _not_written(code: str, what: str, error: OSError, destination: Path) -> StorageError:
    if ran_out_of_space(error, destination):
        return disk_full("there is no space left", destination, why=str(error))
    return StorageError(code, what, where=str(destination), why=str(error))


def _add(archive: tarfile.TarFile, folder: Path, path: Path) -> None:
    entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
    entry.mtime = SOURCE_DATE_EPOCH
    if path.is_symlink():
        target = path.readlink()
        if target.is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
            why = f"it leads to {target}, outside the package"
            raise PackageError("not-archivable", "a link cannot be packaged", where=str(path), why=why)
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target.as_posix(), 0o777
        archive.addfile(entry)
        return
    if not path.is_file():
        raise PackageError("not-archivable", "only files, folders and links can be packaged", where=str(path))
    entry.size, entry.mode = path.stat().st_size, 0o755 if path.stat().st_mode & 0o100 else 0o644
    with path.open("rb") as content:
        archive.addfile(entry, content)


PROGRAM_MODE: Final = 0o755


@dataclass(frozen=True, kw_only=True)
class PackagedLink:
    """A symbolic link of the package and the name, in the same folder, that it leads to."""

    path: str
    target: str


def check_paths(paths: Iterable[str]) -> None:
    """Refuse paths that leave the package or occur twice."""
    seen: set[str] = set()
    for path in paths:
        if not is_plain_path(path) or path in seen:
            why = "it exists twice" if path in seen else "it is not a plain path inside the package"
            raise PackageError("bad-package-path", "a file cannot be packaged", where=path, why=why)
        seen.add(path)


def write_contents(folder: Path, files: Iterable[PackagedFile], links: Iterable[PackagedLink]) -> None:
    """Write files and links into an empty folder; the modes do not depend on the umask."""
    for file in files:
        destination = folder / file.path
        destination.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(file.content, bytes):
            destination.write_bytes(file.content)
        else:
            shutil.copyfile(file.content, destination)
        destination.chmod(file.mode)
    for link in links:
        (folder / link.path).symlink_to(link.target)
    for inner in folder.rglob("*/"):
        inner.chmod(PROGRAM_MODE)


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` of all files in a folder into it; nothing else may be written there afterwards."""
    written = (path for path in folder.rglob("*") if path.is_file())
    entries = [PackagedFile(path=path.relative_to(folder).as_posix(), content=path).entry for path in written]
    (folder / SUMS).write_text(checksums_text(entries), encoding="utf-8", newline="\n")
    (folder / SUMS).chmod(FILE_MODE)


EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can hold; given to all members
REGULAR: Final = 0o100000
LINK_MODE: Final = 0o120777
"""A symbolic link, whose content is where it leads: what `ditto`, `unzip` and Swift's package manager restore."""
JAR_MANIFEST: Final = "META-INF/MANIFEST.MF"  # `JarInputStream` finds it as the first or second member only


def write_zip(destination: Path, files: Iterable[PackagedFile], links: Iterable[PackagedLink] = ()) -> None:
    """Write files and links as a zip archive that appears at `destination` when it is complete.

    Members are deflated, in order, with no time, owner or folder. The bytes also depend on Python's zlib.
    """
    with new_archive(destination) as file:
        fill_zip(file, files, links)


def fill_zip(file: IO[bytes], files: Iterable[PackagedFile], links: Iterable[PackagedLink] = ()) -> None:
    """Write the archive that `write_zip` writes into an open file."""
    members: list[PackagedFile | PackagedLink] = [*files, *links]
    ordered = sorted(members, key=lambda each: (each.path != JAR_MANIFEST, each.path))
    check_paths(each.path for each in ordered)
    with zipfile.ZipFile(file, "w") as archive:
        for each in ordered:
            _zips_add(archive, each)


def _zips_add(archive: zipfile.ZipFile, each: PackagedFile | PackagedLink) -> None:
    entry = zipfile.ZipInfo(each.path, date_time=EPOCH)
    entry.create_system = 3
    if isinstance(each, PackagedLink):
        entry.external_attr = LINK_MODE << 16
        archive.writestr(entry, each.target, compress_type=zipfile.ZIP_STORED)
        return
    entry.external_attr = (REGULAR | each.mode) << 16
    archive.writestr(entry, each.data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)


def write_in_place(destination: Path, files: Sequence[PackagedFile], owned: str) -> None:
    """Write files into a folder, those that differ; nothing else stays below the inner folder `owned`."""
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
    with locked(destination), storage_errors(destination):
        _remove_others(destination, owned, {file.path for file in files})
        for file in files:
            path = destination / file.path
            if not (path.is_file() and PackagedFile(path=file.path, content=path).entry == file.entry):
                write_atomically(path, file.data)


def _remove_others(destination: Path, owned: str, wanted: set[str]) -> None:
    """Remove files that are not wanted any more, links, and folders that are empty then."""
    for path in sorted((destination / owned).rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.is_symlink() or path.relative_to(destination).as_posix() not in wanted:
            path.unlink()


def json_content(value: object) -> bytes:
    """Return what packages have of JSON files that other programs define."""
    return (json.dumps(value, indent=2) + "\n").encode()


TEMPLATE: Final = ".j2"


def rendered(template: str, values: Mapping[str, object]) -> bytes:
    """Return a template of `resources/package` with its values filled in; what is XML is escaped."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - slow to import, and needed only when packaging

    text = (files("ortrim") / "resources" / "package" / template).read_text(encoding="utf-8")
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, autoescape=template.endswith(".xml.j2")
    )
    return environment.from_string(text).render(values).encode()


def project_paths(folder: str) -> tuple[str, ...]:
    """Return the files of a folder of `resources/package`, with their paths below it, in order."""
    place = shipped_folder("package") / folder
    return tuple(sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()))


def project_files(folder: str, values: Mapping[str, object]) -> tuple[PackagedFile, ...]:
    """Return the files of a folder of `resources/package`, each from its template or as it is."""
    place = shipped_folder("package") / folder
    return tuple(
        PackagedFile(path=name.removesuffix(TEMPLATE), content=rendered(f"{folder}/{name}", values))
        if name.endswith(TEMPLATE)
        else PackagedFile(path=name, content=place / name)
        for name in project_paths(folder)
    )


def stamp_of(files: Iterable[PackagedFile]) -> bytes:
    """Return what changes with any of a project's files, their places among it: a digest in letters."""
    listed = "".join(f"{file.entry.sha256}  {file.path}\n" for file in files).encode()
    return hashlib.sha256(listed).hexdigest().encode()


LIBRARY: Final = "libonnxruntime.so"
ARCHIVE: Final = "libonnxruntime.a"
SONAME: Final = re.compile(r"libonnxruntime\.so[.0-9]*")
PROCESSORS: Final = {
    Architecture.X64: ("x86_64", "AMD64", "amd64"),
    Architecture.ARM64: ("aarch64", "arm64", "ARM64"),
    Architecture.ARM: ("armv7.*", "armv8l", "armhf", "arm"),
    Architecture.RISCV64: ("riscv64",),
}
"""What CMake may call the processor of a build for each architecture, as regular expressions."""
SYSTEM: Final = "Linux"
"""CMake's name of the system that such a package is for; packages for others have forms of their own."""
TEMPLATES: Final = {
    "lib/cmake/onnxruntime/onnxruntimeConfig.cmake": "onnxruntimeConfig.cmake.j2",
    "lib/cmake/onnxruntime/onnxruntimeConfigVersion.cmake": "onnxruntimeConfigVersion.cmake.j2",
    "lib/pkgconfig/libonnxruntime.pc": "libonnxruntime.pc.j2",
}


def library_files(inputs: PackageInputs) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    """Return the library and what leads to it: the link for linkers, CMake's and pkg-config's files.

    The shared library's file is called by its soname, which programs ask for at run time.
    """
    if inputs.result.archive is not None:
        archive = PackagedFile(path=f"lib/{ARCHIVE}", content=inputs.result.archive)
        return (archive, *_development_files(inputs.job.target, inputs.job.ort_version, ARCHIVE, "")), ()
    soname = read_library(inputs.result.library).soname
    if soname and not SONAME.fullmatch(soname):
        hint = "the library of a build is called libonnxruntime.so, with or without a version"
        where = str(inputs.result.library)
        raise PackageError("bad-soname", f"the library calls itself {soname!r}", where=where, hint=hint)
    name = soname or LIBRARY
    library = PackagedFile(path=f"lib/{name}", content=inputs.result.library, mode=PROGRAM_MODE)
    links = () if name == LIBRARY else (PackagedLink(path=f"lib/{LIBRARY}", target=name),)
    return (library, *_development_files(inputs.job.target, inputs.job.ort_version, name, soname)), links


def _development_files(target: Target, version: str, library: str, soname: str) -> tuple[PackagedFile, ...]:
    values = {
        "version": version,
        "major": version.split(".", maxsplit=1)[0],
        "target": target.identifier,
        "system": SYSTEM,
        "processors": PROCESSORS[target.architecture],
        "library": library,
        "is_static": library == ARCHIVE,
        "soname": soname,
    }
    return tuple(PackagedFile(path=path, content=rendered(name, values)) for path, name in TEMPLATES.items())


MODELS: Final = "models"
SESSION: Final = "session.json"


def model_files(inputs: PackageInputs, folder: str = MODELS) -> tuple[PackagedFile, ...]:
    """Return the converted models of a package and `session.json`, all in one folder."""
    settings = {
        model.name: replace(model.session, providers=inputs.job.provider_names)
        for model in inputs.plan.models_for(inputs.job.target)
    }
    text = session_json(inputs.plan.ort_version, settings)
    return (
        *(PackagedFile(path=f"{folder}/{model.name}.ort", content=model.path) for model in inputs.models),
        PackagedFile(path=f"{folder}/{SESSION}", content=text.encode()),
    )


RULE: Final = "_" * 100


def notices_text(inputs: PackageInputs) -> bytes:
    """Return upstream's notices, then the licence of each component; the MPL's with their address (its section 3.2)."""
    sources = {pin.name: origin_of("components", pin.name, pin.version) for pin in inputs.job.sources}
    ordered = sorted(inputs.licences, key=lambda each: (each.component.lower(), each.identifier, each.path.name))
    sections = [
        f"{RULE}\n\n{each.component} ({each.identifier})\n\n{_source_line(each, sources)}{_text(each.path)}"
        for each in ordered
    ]
    return "\n".join([_text(inputs.notices), *sections]).encode()


def _source_line(licence: manifests.ComponentLicence, sources: Mapping[str, Origin]) -> str:
    if "MPL" not in licence.identifier:
        return ""
    origin = sources[licence.component]
    return f"Source: {origin.repository}, {origin.revision}\n\n"


def plain_text(path: Path) -> bytes:
    """Return a text with Unix line ends and as UTF-8, whatever it was."""
    return _text(path).encode()


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # never fails; old licence files are Latin-1 when they are not UTF-8
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


def make_package(inputs: PackageInputs, destination: Path, note: Callable[[str], None] = lambda _: None) -> Package:
    """Make the package's folder, `ortrim-<spec>-<target>-<version>`, and its `.tar.gz` in the folder `destination`.

    The same inputs give the same bytes on any machine. Folder and archives (`<name>-symbols.tar.gz`) appear when they
    are complete; a folder that is exactly what would be made is kept; `note` is told of one that
    was changed since.
    """
    manifests.check_inputs(inputs)
    with writing(destination):
        return _make(inputs, destination, note)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Refuse a package that cannot be written at its place (`package-not-written`, or `disk-full`)."""
    try:
        yield
    except OSError as error:
        raise _not_written("package-not-written", "the package cannot be written", error, place) from error


def _make(inputs: PackageInputs, destination: Path, note: Callable[[str], None]) -> Package:
    payload, links = _payload(inputs)
    manifests.refuse_machine_paths(inputs, (*payload, *((inputs.symbols,) if inputs.symbols else ())))
    files, manifest = manifests.described(inputs, inputs.name, payload, partial(manifests.make_manifest, inputs))
    sums = PackagedFile(path=SUMS, content=checksums_text((*manifest.files, files[-1].entry)).encode())
    files = (*files, sums)
    folder, archive = destination / inputs.name, destination / f"{inputs.name}.tar.gz"
    if folder.is_dir():
        changed = changed_since_made(folder)
        if changed:
            note(f"{changed}, so it is made again")
        same = not changed and (folder / SUMS).read_bytes() == sums.content
        if not (same and all((folder / link.path).is_symlink() for link in links)):
            shutil.rmtree(folder)
    if not folder.is_dir():
        # The archive is smaller than the files, by how much is not known before.
        require_space(destination, sum(file.entry.size_bytes for file in files), "the package")
    publish_folder(folder, lambda temporary: write_contents(temporary, files, links))
    write_archive(folder, archive)
    if symbols := inputs.symbols:
        with tempfile.TemporaryDirectory(prefix="ortrim-symbols-") as work:
            write_contents(Path(work), (symbols,), ())
            write_archive(Path(work) / manifests.BUILD_IDS, destination / f"{inputs.name}{manifests.SYMBOLS}")
    return Package(archive=archive, folder=folder, manifest=manifest)


def _payload(inputs: PackageInputs) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    library, links = library_files(inputs)
    files = (
        *library,
        *(PackagedFile(path=f"include/onnxruntime/{path.name}", content=path) for path in inputs.headers),
        *model_files(inputs),
        PackagedFile(path="LICENSE", content=plain_text(inputs.licence)),
        PackagedFile(path="ThirdPartyNotices.txt", content=notices_text(inputs)),
    )
    check_paths((*(file.path for file in files), *(link.path for link in links)))
    return files, links
