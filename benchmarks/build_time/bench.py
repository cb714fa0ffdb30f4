"""Runs single cases: prepares the cache that a case starts from, does its work in a fresh process, keeps what it left.

Below `folder` lie `cache` (where builds happen), `state` (a copy of it after the first build with the compiler cache),
`elsewhere` and `verified` (other caches), each with a tree of the sources.
"""

import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from build_time.cases import COLD_CACHE, Case, Recipe, Start
from build_time.jobs import operator_types
from build_time.library import keep_library
from build_time.machine import load_average
from build_time.record import Library, Measurement
from build_time.scratch import empty_cache, forget_others, other_cache, restore, save, with_sources
from build_time.subject import Pair, Subject
from build_time.worker import Built, Done, Work
from ortrim.base.command import stream
from ortrim.base.console import Step
from ortrim.base.json import from_json, to_json
from ortrim.errors import BuildError

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
