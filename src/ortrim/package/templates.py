"""Files of packages that are written from templates."""

import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Final

from ortrim.package.contents import PackagedFile
from ortrim.storage.shipped import shipped_folder

TEMPLATE: Final = ".j2"


def rendered(template: str, values: Mapping[str, object]) -> bytes:
    """Return a template of `data/package` with its values filled in; what is XML is escaped."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - slow to import, and needed only when packaging

    text = (files("ortrim") / "data" / "package" / template).read_text(encoding="utf-8")
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, autoescape=template.endswith(".xml.j2")
    )
    return environment.from_string(text).render(values).encode()


def project_paths(folder: str) -> tuple[str, ...]:
    """Return the files of a folder of `data/package`, with their paths below it, in order."""
    place = shipped_folder("package") / folder
    return tuple(sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()))


def project_files(folder: str, values: Mapping[str, object]) -> tuple[PackagedFile, ...]:
    """Return the files of a folder of `data/package`, each from its template or as it is."""
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
