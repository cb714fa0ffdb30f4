"""What GitHub's own actions do, for workflows that `act` runs here: a program that composite actions call."""

import glob
import json
import os
import shutil
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from ortrim.base.checksums import check_sums
from ortrim.base.command import run
from ortrim.sources.commits import git
from package_index import python_with_index_tools
from workflow_runner import take_packages_of_the_tests

FOLDER: Final = Path(os.environ["ACT_STAND_INS"])
WORKSPACE: Final = Path(os.environ["GITHUB_WORKSPACE"])
ARTIFACTS: Final = FOLDER / "artifacts"


def given(name: str, default: str = "") -> str:
    return os.environ.get(f"INPUT_{name.upper()}", "") or default


def checkout() -> None:
    """Clone what was pushed, at the commit of the run or another; packages of ortrim itself are those of the tests."""
    git(WORKSPACE, "clone", "--quiet", str(FOLDER / "origin.git"), ".")
    git(WORKSPACE, "checkout", "--quiet", given("ref", os.environ["GITHUB_SHA"]))
    if (WORKSPACE / "bootstrap").exists():
        packages(WORKSPACE)
    own, shared = FOLDER / f"cache-of-{os.environ['GITHUB_JOB']}", FOLDER / "cache"
    (WORKSPACE / ".ortrim").symlink_to((own if own.exists() else shared).resolve())


def packages(checkout: Path) -> None:
    take_packages_of_the_tests(checkout, (FOLDER / "start-up.py").read_text())


def upload() -> None:
    """Keep files that are not hidden: below the folder that they have in common, and from the first wildcard on."""
    paths = [WORKSPACE / line for line in given("path").splitlines() if line.strip()]
    plain = [Path(str(path).partition("*")[0] + "x").parent if "*" in str(path) else path for path in paths]
    root = Path(os.path.commonpath(plain))
    found = [Path(name) for path in paths for name in glob.glob(str(path))]  # noqa: PTH207 - patterns are absolute
    files = [each for path in found for each in ([path] if path.is_file() else path.rglob("*")) if _is_kept(each)]
    if not files and given("if-no-files-found") == "error":
        raise SystemExit(f"No files were found with the provided path: {given('path')}. No artifacts will be uploaded.")
    kept = ARTIFACTS / given("name", "artifact")
    if kept.exists() and str(kept) in (FOLDER / "uploaded").read_text().splitlines():
        raise SystemExit("Failed to CreateArtifact: an artifact with this name already exists on the workflow run")
    shutil.rmtree(kept, ignore_errors=True)  # an earlier attempt's
    with (FOLDER / "uploaded").open("a") as uploaded:
        uploaded.write(f"{kept}\n")
    for path in files:
        target = kept / path.relative_to(root.parent if root.is_file() else root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _is_kept(path: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(WORKSPACE).parts)


def download() -> None:
    """Bring one artifact, or each that a pattern names, in a folder of its own or merged."""
    to, name = WORKSPACE / given("path", "."), given("name")
    if name:
        if not (ARTIFACTS / name).is_dir():
            raise SystemExit(f"Unable to download artifact(s): Artifact not found for name: {name}")
        shutil.copytree(ARTIFACTS / name, to, dirs_exist_ok=True)
        return
    to.mkdir(parents=True, exist_ok=True)
    for kept in sorted(ARTIFACTS.glob("*")):
        if fnmatch(kept.name, given("pattern", "*")):
            own = to if given("merge-multiple") == "true" else to / kept.name
            shutil.copytree(kept, own, dirs_exist_ok=True)


def restore() -> None:
    """Write down the keys that were asked for, of which none is there: the cache is that of this machine."""
    note("restored", [given("key"), *given("restore-keys").split()])


def save() -> None:
    assert (WORKSPACE / given("path")).is_dir(), given("path")
    note("saved", given("key"))


def attest() -> None:
    """Check that the sums are of files that are there, and write down how many."""
    sums = WORKSPACE / given("subject-checksums")
    check_sums(sums.parent)
    note("attested", sums.read_text().splitlines())


def publish() -> None:
    """Check and upload what is in `dist/`, to the index that takes PyPI's place."""
    twine = python_with_index_tools("-m", "twine")
    files = sorted((WORKSPACE / "dist").iterdir())
    for words in (("check", "--strict"), ("upload", "--repository-url", os.environ["ACT_INDEX"], "-u", "x", "-p", "x")):
        done = run((*twine.words, *words, *files), environment=twine.environment)
        sys.stdout.write(done.stdout + done.stderr)
        assert done.returncode == 0


def note(name: str, what: object) -> None:
    with (FOLDER / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    works: tuple[Callable[..., None], ...] = (checkout, packages, upload, download, restore, save, attest, publish)
    {work.__name__: work for work in works}[sys.argv[1]](*map(Path, sys.argv[2:]))
