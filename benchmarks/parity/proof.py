"""Whether the comparison notices damage: mutants of libraries and models, each run with all cases by itself."""

import hashlib
import random
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from executed_code import read_executed_bytes, traced

from ortrim.buildspec.buildspec import SessionSettings
from ortrim.buildspec.tolerances import SAME_GRAPH
from ortrim.devices.host import absolute
from ortrim.errors import VerifyError
from ortrim.parity.compare import compare
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import SavedOutputs
from ortrim.parity.runner import Repetition, RunRequest, runner_words
from parity.distribution import difference_of, pairs, saved_by
from parity.mutations import Mutation, code_mutations, constant_mutations, model_mutations, wide_code
from parity.subjects import Subject

CPU: Final = "Haswell"
"""The widest processor that qemu emulates well; what this machine has beyond it is in objects of its own."""
PATIENCE: Final = 60.0
"""Seconds that a mutant may take; the undamaged library takes less than one."""
ROUNDING: Final = ("FE_TOWARDZERO", "FE_UPWARD", "FE_DOWNWARD")
ROUNDS: Final = "processor rounds otherwise"
SEED: Final = 1
Outcome = Literal["same", "differs", "ended"]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    model: str
    quantized: bool
    kind: str
    place: str
    outcome: Outcome
    change: float
    by_reference: bool
    by_same_graph: bool

    @property
    def caught(self) -> bool:
        return self.outcome == "ended" or self.by_reference or self.by_same_graph


@dataclass(frozen=True, kw_only=True)
class Patient:
    """A library, a model that it runs, and what runs both; damaged copies and outputs lie below `folder`."""

    subject: Subject
    library: Path
    link_map: Path
    runner: Path
    session: SessionSettings
    folder: Path
    preloads: Mapping[str, Path]

    def mutants(self, bytes_each: int, of_each_kind: int) -> Iterator[Mutant]:
        """Yield what becomes of `bytes_each` bytes of code, of constants, and of so many mutations of each other kind.

        Raises `RuntimeError` when the undamaged library gives other outputs the second time, and `VerifyError` when it
        does not run.
        """
        healthy = saved_by(self._request(self.library, self.subject.converted.path, "healthy"))
        again = saved_by(self._request(self.library, self.subject.converted.path, "again"))
        if _digest(healthy.folder) != _digest(again.folder):
            raise RuntimeError(f"{self.subject.name}: two runs of the undamaged library differ")
        for mutation in self.mutations(bytes_each, of_each_kind):
            yield self._mutant(mutation, healthy)

    def mutations(self, bytes_each: int, of_each_kind: int) -> Iterator[Mutation]:
        draw = random.Random(SEED)  # noqa: S311 - to be repeatable, not secret
        executed = self._executed() | frozenset(wide_code(self.link_map))
        yield from code_mutations(self.library, self.link_map, executed, bytes_each, draw)
        yield from constant_mutations(self.library, self.link_map, bytes_each, draw)
        kinds: dict[str, list[Mutation]] = defaultdict(list)
        for mutation in model_mutations(self.subject.converted.path):
            kinds[mutation.kind].append(mutation)
        for every in kinds.values():
            yield from draw.sample(every, min(of_each_kind, len(every)))
        for mode in self.preloads:
            yield Mutation(kind=ROUNDS, place=mode, edits=())

    def _executed(self) -> frozenset[int]:
        """Return the addresses of the library's code that the model executes in an emulator."""
        log, request = self.folder / "log", self._request(self.library, self.subject.converted.path, "traced")
        traced(("qemu-x86_64-static", "-cpu", CPU), runner_words(request), log)
        with log.open(errors="replace") as lines:
            executed = read_executed_bytes(lines, self.library)
        log.unlink()
        return executed

    def _mutant(self, mutation: Mutation, healthy: SavedOutputs) -> Mutant:
        library, model = self._damaged(mutation)
        request = self._request(library, model, "damaged")
        preload = self.preloads.get(mutation.place)
        request = replace(request, companions=(preload,)) if preload else request
        try:
            ours = saved_by(request)
        except VerifyError:
            return self._judged(mutation, "ended", 1.0)
        if _digest(ours.folder) == _digest(healthy.folder):
            return self._judged(mutation, "same", 0.0)
        changes = (difference_of(*pair, output.element_type)[0] for _, output, pair in pairs(healthy, ours))
        return self._judged(mutation, "differs", max(changes), ours)

    def _damaged(self, mutation: Mutation) -> tuple[Path, Path]:
        """Return the library and the model, one of them a damaged copy."""
        library, model = self.library, self.subject.converted.path
        if not mutation.edits:
            return library, model
        source = library if mutation.of_library else model
        copy = self.folder / source.name
        copy.write_bytes(mutation.applied(source.read_bytes()))
        return (copy, model) if mutation.of_library else (library, copy)

    def _judged(self, mutation: Mutation, outcome: Outcome, change: float, ours: SavedOutputs | None = None) -> Mutant:
        by_reference, by_same_graph = judged(self.subject, ours) if ours else (False, False)
        return Mutant(
            model=self.subject.name,
            quantized=self.subject.reference.quantized,
            kind=mutation.kind,
            place=mutation.place,
            outcome=outcome,
            change=change,
            by_reference=by_reference,
            by_same_graph=by_same_graph,
        )

    def _request(self, library: Path, model: Path, outputs: str) -> RunRequest:
        folder = self.folder / outputs
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return absolute(
            RunRequest(
                runner=self.runner,
                library=library,
                model=model,
                cases=self.subject.cases,
                outputs=folder,
                session=self.session,
                repetition=Repetition(runs=1, warmup=0, timeout_seconds=PATIENCE),
            )
        )


def judged(subject: Subject, ours: SavedOutputs) -> tuple[bool, bool]:
    """Return whether outputs fail beside the original's, and beside the full runtime's of the converted model."""
    first, second = (
        any(each.verdict is Verdict.FAIL for each in parity)
        for parity in (
            compare(subject.name, subject.reference, ours, {}),
            compare(subject.name, subject.same_graph, ours, {}, defaults=SAME_GRAPH),
        )
    )
    return first, second


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("output_*")):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()
