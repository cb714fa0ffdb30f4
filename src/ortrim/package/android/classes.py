"""`classes.jar`: upstream's Java API, compiled from the sources that the library is built from."""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ortrim.errors import PackageError
from ortrim.package.contents import PackagedFile
from ortrim.package.zips import JAR_MANIFEST, fill_zip
from ortrim.storage.files import storage_errors
from ortrim.tools.javac import Jdk, compile_java

FOLDERS: Final = ("java", "android")
"""Of `java/src/main`: the API, and what stands in for a desktop's Java, as in upstream's `build-android.gradle`."""
MANIFEST: Final = b"Manifest-Version: 1.0\r\n\r\n"


def classes_jar(jdk: Jdk, folders: Sequence[Path]) -> bytes:
    """Compile all Java files below some folders, and return the classes as a jar.

    The same sources and the same version of javac give the same bytes. Raises `PackageError` (`java-sources-missing`)
    and `BuildError` as `compile_java` does.
    """
    sources = sorted(path for folder in folders for path in folder.rglob("*.java"))
    if not sources:
        where, hint = ", ".join(map(str, folders)), "fetch the sources again: invoke sources"
        raise PackageError("java-sources-missing", "there are no Java files", where=where, hint=hint)
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-java-") as work:
        classes = Path(work) / "classes"
        classes.mkdir()
        compile_java(jdk, sources, classes, Path(work) / "headers")
        return _jar(classes)


def _jar(classes: Path) -> bytes:
    found = sorted(classes.rglob("*.class"))
    files = [PackagedFile(path=path.relative_to(classes).as_posix(), content=path) for path in found]
    buffer = io.BytesIO()
    fill_zip(buffer, (PackagedFile(path=JAR_MANIFEST, content=MANIFEST), *files))
    return buffer.getvalue()
