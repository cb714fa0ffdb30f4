"""Runs single cases: prepares the cache that a case starts from, does its work in a fresh process, keeps what it left.

Below `folder` lie `cache` (where builds happen), `state` (a copy of it after the first build with the compiler cache),
`elsewhere` and `verified` (other caches), each with a tree of the sources.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from build_time.cases import COLD_CACHE, Case, Recipe, Start
from build_time.record import Library, Measurement, load_average
from build_time.subject import Pair, Subject, operator_types
from build_time.worker import Built, Done, Work
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import stream
from ortrim.base.console import Step
from ortrim.base.files import sha256_of
from ortrim.base.json import from_json, to_json
from ortrim.binaries.elf import read_library
from ortrim.errors import BuildError
from ortrim.size.library import differences, library_size

FETCHED: Final = ("apt", "cases", "conversions", "downloads", "models", "packages", "runners", "zig")
"""Kinds of things in a cache that every case finds there: none of them holds a compiled part of a library."""
SOURCES: Final = "sources"
COMPILER: Final = "compiler"


def empty_cache(folder: Path) -> Path:
    """Make `folder` a cache, `ORTRIM_CACHE` for one case, that has what is fetched in this user's and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for kind in FETCHED:
        (folder / kind).symlink_to(cache_folder(kind))
    return folder


def with_sources(folder: Path, sources: Path) -> Path:
    """Return a cache's own tree of the same sources, where `invoke build` has them: beside the build trees."""
    own = folder / SOURCES / sources.name
    publish_folder(own, lambda temporary: _link(sources, temporary))
    return own


def save(folder: Path, copy: Path) -> None:
    """Keep a copy of a cache without its sources, times included; links stay links."""
    shutil.rmtree(copy, ignore_errors=True)
    publish_folder(copy, lambda temporary: _copy(folder, temporary))


def restore(copy: Path, folder: Path) -> Path:
    """Bring a cache back to where it was: build trees hold their own paths."""
    shutil.rmtree(folder, ignore_errors=True)
    _copy(copy, folder)
    return folder


def other_cache(copy: Path, folder: Path) -> Path:
    """Make `folder` an empty cache with the compiled objects of a saved one."""
    empty_cache(folder)
    if (copy / COMPILER).is_dir():
        _copy(copy / COMPILER, folder / COMPILER)
    return folder


def read_through(*folders: Path) -> int:
    """Read all files below some folders, so that no case pays for the disk; return the bytes."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                total += len(path.read_bytes())
    return total


def forget_others(folder: Path) -> None:
    """Remove the folders beside `folder`: what was kept for jobs that are not measured any more."""
    for other in folder.parent.iterdir() if folder.parent.is_dir() else ():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _copy(folder: Path, copy: Path) -> None:
    def skipped(where: str, _names: list[str]) -> list[str]:
        return [SOURCES] if Path(where) == folder else []

    shutil.copytree(folder, copy, symlinks=True, dirs_exist_ok=True, ignore=skipped)


def _link(folder: Path, copy: Path) -> None:
    shutil.copytree(folder, copy, symlinks=True, dirs_exist_ok=True, copy_function=_link_file)


def _link_file(source: str, destination: str) -> None:
    try:
        os.link(source, destination, follow_symlinks=False)
    except OSError:  # another disk
        shutil.copy2(source, destination, follow_symlinks=False)


NAME: Final = "libonnxruntime.so"
OTHERS: Final = (("unpruned", "every file compiled"), ("upstream", "upstream's recipe"))


def keep_library(library: Path, link_map: Path | None, folder: Path) -> Library:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, folder / NAME)
    if link_map is not None:
        shutil.copyfile(link_map, folder / "link.map")
    size = library_size(folder / NAME, None)
    return Library(
        size_bytes=size.file_bytes,
        sha256=sha256_of(folder / NAME),
        exports=read_library(folder / NAME).exported,
        sections=tuple(sorted((section.component, section.size_bytes) for section in size.components)),
    )


def comparisons(folder: Path) -> Iterator[str]:
    """Yield in words how ortrim's library differs from the other recipes', of those that one spec's folder holds."""
    own = folder / "ortrim" / NAME
    for case, recipe in OTHERS:
        other = folder / case / NAME
        if own.is_file() and other.is_file():
            found = differences(other, own)
            yield f"{folder.name}: the library of {recipe}, and ortrim's: {'not the same' if found else 'identical'}"
            yield from (f"  {line}" for line in found)


BENCHMARKS: Final = Path(__file__).resolve().parents[1]
WORKER: Final = "build_time.worker"
PROGRAM: Final = "from ortrim.cli.program import main; main()"
STEP: Final = re.compile(r"^(\d+) (\d+) (.*)$")
KEPT_LINES: Final = 20
LIBRARIES: Final = "libraries"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where and how the cases of one spec are measured."""

    pair: Pair
    folder: Path
    output: Path
    jobs: int

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def prepare(self, case: Case, step: Step) -> Path:
        """Return the cache that a case starts from, made ready. Raises as `work` does."""
        forget_others(self.folder)
        if case.start is Start.EMPTY:
            return empty_cache(self.folder / "cache")
        if not self.state.is_dir():
            self._build_state(step)
        if case.start is Start.BUILT:
            return restore(self.state, self.folder / "cache")
        if case.start is Start.ELSEWHERE:
            return other_cache(self.state, self.folder / "elsewhere")
        return self._verified(case, step)

    def measure(self, case: Case, cache: Path, number: int, busy: float, step: Step) -> Measurement:
        load, started = load_average(), datetime.now(tz=UTC).isoformat(timespec="seconds")
        done = self.work(case, cache, step)
        assert done.cost is not None
        measurement = Measurement(
            spec=self.pair.own.name,
            case=case.name,
            round=number,
            key=self.pair.key(case),
            commit=self.pair.commit,
            started=started,
            load_average=load,
            busy_processors=busy,
            operator_types=operator_types(self.pair.job(case)),
            cost=done.cost,
            steps=done.steps,
            units=done.built.units,
            cache=done.built.cache,
            library=self._library(case, done.built),
        )
        if case == COLD_CACHE:
            save(cache, self.state)
        if not case.cached:
            shutil.rmtree(cache)
        return measurement

    def work(self, case: Case, cache: Path, step: Step) -> Done:
        """Do a case's work in a process of its own. Raises `BuildError` (`case-failed`, `worker-failed`)."""
        with tempfile.TemporaryDirectory(prefix="build-time-") as name:
            request, result = Path(name) / "request.json", Path(name) / "result.json"
            request.write_text(to_json(self._request(case, cache)), encoding="utf-8")
            said: list[str] = []
            words = (sys.executable, "-m", WORKER, str(request), str(result))
            code = stream(words, lambda line: _show(line, said, step), environment=_environment(cache))
            if code != 0 or not result.is_file():
                raise BuildError("worker-failed", "the measuring process failed", where=case.name, why="\n".join(said))
            done = from_json(Done, result.read_bytes())
        if done.error:
            where = f"{self.pair.subject(case).name}, {case.name}"
            raise BuildError("case-failed", "the case could not be measured", where=where, why=done.error)
        return done

    def _library(self, case: Case, built: Built) -> Library | None:
        if built.library is None:
            return None
        return keep_library(built.library, built.link_map, self.output / LIBRARIES / self.pair.own.name / case.name)

    def _build_state(self, step: Step) -> None:
        step.note("builds once first, to have something to start from")
        cache = empty_cache(self.folder / "cache")
        self.work(COLD_CACHE, cache, step)
        save(cache, self.state)

    def _verified(self, case: Case, step: Step) -> Path:
        """Run the commands that come before a command: this spec's, then the other's when the case switches back."""
        cache = self.folder / "verified"
        if not cache.is_dir():
            other_cache(self.state, cache)
        for other in (False, True) if case.switches else (False,):
            before = Case(name=f"before {case.name}", text="", recipe=Recipe.COMMAND, other=other)
            step.note(f"runs invoke build of {self.pair.subject(before).name} first")
            self.work(before, cache, step)
        return cache

    def _request(self, case: Case, cache: Path) -> Work:
        subject = self.pair.subject(case)
        log = self.output.absolute() / "logs" / f"{self.pair.own.name}-{case.name.replace(' ', '-')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        return Work(
            recipe=case.recipe,
            job=self.pair.job(case),
            sources=with_sources(cache, subject.sources),
            cached=case.cached,
            jobs=self.jobs,
            log=log,
            command=self._command(subject),
        )

    def _command(self, subject: Subject) -> tuple[str, ...]:
        words = ("build", "--spec", str(subject.file), "--jobs", str(self.jobs))
        return (sys.executable, "-c", PROGRAM, *words, "--output", str(self.folder / "artifacts"))


def _environment(cache: Path) -> dict[str, str]:
    """Return the environment of a worker: this process's own, with the case's cache and these modules."""
    path = os.pathsep.join(filter(None, (str(BENCHMARKS), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "ORTRIM_CACHE": str(cache), "PYTHONPATH": path}


def _show(line: str, said: list[str], step: Step) -> None:
    """Pass on how far the work is, and keep the last lines in case it fails."""
    said.append(line)
    del said[:-KEPT_LINES]
    if found := STEP.match(line):
        step.progress(int(found[1]), int(found[2]), found[3])
