"""The folder of a test in Cloud Storage: what lies there, fetched and removed with `gcloud storage`.

Test Lab writes below `gs://BUCKET/FOLDER/MODEL-VERSION-LOCALE-ORIENTATION/`: `logcat`, `instrumentation.results`,
`test_result_1.xml`, and what was to be pulled from the device below `artifacts/`.
"""

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.tools.gcloud import Gcloud
from ortrim.verify.devices.farms.firebase_commands import ask
from ortrim.verify.devices.farms.results import LARGEST_RESULTS, unpack_log

LOG: Final = "logcat"
FETCH_SECONDS: Final = 1800.0


@dataclass(frozen=True, kw_only=True)
class BucketFolder:
    """What one device left in a bucket. `address` ends without a slash; `names` are paths below it, with sizes."""

    address: str
    names: tuple[tuple[str, int], ...]

    def below(self, folder: str) -> tuple[tuple[str, int], ...]:
        """Return what lies below a folder."""
        return tuple((name, size) for name, size in self.names if name.startswith(f"{folder}/"))


def look(gcloud: Gcloud, bucket: str, folder: str, axis: str, where: str) -> BucketFolder:
    """Return what a device left in the bucket. Raises `VerifyError` (`farm-results-missing`, ...), `NetworkError`."""
    address = f"gs://{bucket}/{folder}/{axis}"
    try:
        printed = _asked(gcloud, where, address, "storage", "ls", "--recursive", "--json", f"{address}/**")
    except VerifyError as error:
        if "matched no objects" not in error.why:
            raise
        raise missing(where, f"there is nothing at {address}") from error
    return BucketFolder(address=address, names=_names(printed, f"{folder}/{axis}/", where))


def fetch(gcloud: Gcloud, found: BucketFolder, results: str, destination: Path, where: str) -> Path:
    """Copy the device's log, as `logcat`, and a folder of its into a new folder; return the copy of that folder.

    When Test Lab could not read the folder, the results are those that the harness printed into the log. Raises
    `VerifyError` (`farm-results-missing`), `NetworkError` (`farm-unreachable`), `StorageError`.
    """
    folder = f"artifacts/{PurePosixPath(results).relative_to('/')}"
    files = found.below(folder)
    _check(files, where)
    wanted = [f"{found.address}/{name}" for name in (folder,) if files]
    wanted += [f"{found.address}/{name}" for name, _ in found.names if name == LOG]
    destination.mkdir()
    if wanted:
        _asked(gcloud, where, found.address, "storage", "cp", "--recursive", *wanted, f"{destination}/")
    if files:
        return destination / PurePosixPath(folder).name
    unpacked = destination / "unpacked"
    if (destination / LOG).is_file() and unpack_log(destination / LOG, unpacked, where):
        return unpacked
    others = ", ".join(name for name, _ in found.names[:5])
    raise missing(where, f"nothing was written to {results}; there is: {others}")


def remove(gcloud: Gcloud, addresses: tuple[str, ...], where: str) -> str:
    """Remove objects; return why that failed, empty when it did not. What is not there counts as removed."""
    try:
        ask(gcloud, where, "storage", "rm", *addresses)
    except Diagnostic as error:
        return "" if "matched no objects" in error.why else error.why or error.what
    return ""


def missing(where: str, why: str) -> VerifyError:
    """Return the diagnostic of a test that left no results."""
    what = "the test ended without leaving results"
    hint = "the app or its test may have ended early; the device's log is in Test Lab's page of the test"
    return VerifyError("farm-results-missing", what, where=where, why=why, hint=hint)


def _asked(gcloud: Gcloud, where: str, address: str, *words: str) -> str:
    """Return what gcloud prints; a connection that is lost after the test is told with where the results still are."""
    try:
        return ask(gcloud, where, *words, timeout_seconds=FETCH_SECONDS).stdout
    except NetworkError as error:
        what = "the test ended, but its results cannot be fetched"
        hint = f"they are still there: gcloud storage cp --recursive {address} ."
        raise NetworkError(error.reference, what, where=where, why=error.why, hint=hint) from error


def _names(printed: str, prefix: str, where: str) -> tuple[tuple[str, int], ...]:
    try:
        objects = [entry["metadata"] for entry in json.loads(printed) if entry["type"] == "cloud_object"]
        return tuple((str(entry["name"]).removeprefix(prefix), int(entry["size"])) for entry in objects)
    except (ValueError, TypeError, KeyError) as error:
        what = "gcloud did not print a list of files"
        why = f"{error}: {printed[:200]}"
        raise VerifyError("farm-trouble", what, where=where, why=why, hint="try: gcloud storage ls --json") from error


def _check(files: tuple[tuple[str, int], ...], where: str) -> None:
    """Refuse names that lead elsewhere and sizes that would fill the disk."""
    for name, _ in files:
        if not {"", ".", ".."}.isdisjoint(name.removesuffix("/").split("/")):
            raise missing(where, f"a file has a name that leads elsewhere: {name}")
    size = sum(size for _, size in files)
    if size > LARGEST_RESULTS:
        raise missing(where, f"the device wrote {size} bytes, more than the {LARGEST_RESULTS} that are fetched")
