"""Whether the comparison notices damage: mutants of libraries and models, each run with all cases by itself."""

import hashlib
import random
import re
import shutil
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from elftools.elf.elffile import ELFFile
from executed_code import read_executed_bytes, traced
from numpy.typing import NDArray

from ortrim.binaries.link_map import MapInput, read_link_map
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.buildspec.tolerances import SAME_GRAPH, SAME_GRAPH_CONVOLVED
from ortrim.devices.host import absolute
from ortrim.errors import VerifyError
from ortrim.models.ort_format import Table, graphs_of, read, root_of
from ortrim.parity.compare import compare
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import SavedOutputs
from ortrim.parity.runner import Repetition, RunRequest, runner_words
from parity.distribution import difference_of, pairs, saved_by
from parity.subjects import Subject

KERNELS: Final = re.compile(r"libonnxruntime_(?:mlas|providers)\.a\(")
"""The archives with the code of kernels, as a link map names them."""
WIDE: Final = "Avx512"
"""In the names of objects whose code runs on this machine, and in no emulator."""
FLOAT, UINT8, INT8, FLOAT16 = 1, 2, 3, 10
"""`TensorDataType` of ORT format's schema, as are the numbers of fields below."""
WEIGHTS, NODES, ATTRIBUTES, INPUTS = 0, 2, 10, 8
FLOAT_ATTRIBUTE, INT_ATTRIBUTE, STRING_ATTRIBUTE, FLOATS_ATTRIBUTE = 1, 2, 3, 6
QUANTIZED: Final = re.compile(r"Q|Integer|Dequantize")
ACTIVATION: Final = re.compile(r"alpha|beta|activation_\w+|min|max")
LARGEST: Final = 1e30
SMALL, LARGE = 1e-3, 0.05
MODES: Final = {
    "round_prefer_floor": "round_prefer_ceil", "floor": "ceil", "asymmetric": "half_pixel", "half_pixel": "asymmetric",
    "linear": "cubic", "align_corners": "asymmetric", "pytorch_half_pixel": "asymmetric",
}  # fmt: skip
"""Modes of Resize, each with another that is no longer."""
CODE, CONSTANTS = "one byte of executed kernel code", "one byte of the kernels' constants"


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One piece of damage to a library or a model: bytes that replace as many, by their offsets in the file."""

    of_library: bool = False
    kind: str
    place: str
    edits: tuple[tuple[int, bytes], ...]

    def applied(self, content: bytes) -> bytes:
        damaged = bytearray(content)
        for offset, new in self.edits:
            damaged[offset : offset + len(new)] = new
        return bytes(damaged)


def code_mutations(
    library: Path, link_map: Path, executed: Iterable[int], count: int, draw: random.Random
) -> Iterator[Mutation]:
    inputs = sorted(_kernels(link_map, ".text"), key=lambda each: each.address)
    starts = [each.address for each in inputs]
    named = ((address, _function(inputs, starts, address)) for address in sorted(executed))
    yield from _bytes(CODE, [(address, name) for address, name in named if name], library, count, draw)


def constant_mutations(library: Path, link_map: Path, count: int, draw: random.Random) -> Iterator[Mutation]:
    inputs = [each for each in _kernels(link_map, ".rodata") if each.size_bytes]
    places = [
        (address, each.section) for each in inputs for address in range(each.address, each.address + each.size_bytes)
    ]
    yield from _bytes(CONSTANTS, places, library, count, draw)


def wide_code(link_map: Path) -> Iterator[int]:
    """Yield the addresses of all code for AVX-512."""
    for each in _kernels(link_map, ".text"):
        if WIDE in each.file:
            yield from range(each.address, each.address + each.size_bytes)


def _kernels(link_map: Path, section: str) -> Iterator[MapInput]:
    parts = (part for part in read_link_map(link_map) if part.name == section)
    return (each for part in parts for each in part.inputs if KERNELS.search(each.file))


def _function(inputs: Sequence[MapInput], starts: Sequence[int], address: int) -> str:
    at = bisect_right(starts, address) - 1
    if at < 0 or address >= starts[at] + inputs[at].size_bytes:
        return ""
    before = [symbol.name for symbol in inputs[at].symbols if symbol.address <= address]
    return before[-1] if before else inputs[at].file


def _bytes(
    kind: str, places: Sequence[tuple[int, str]], library: Path, count: int, draw: random.Random
) -> Iterator[Mutation]:
    content, offset_of = library.read_bytes(), _offsets(library)
    for address, name in draw.sample(places, min(count, len(places))):
        offset = offset_of(address)
        old = content[offset]
        flipped, other = old ^ (1 << draw.randrange(8)), (old + draw.randrange(1, 256)) % 256
        new = flipped if draw.random() < 1 / 2 else other
        place = f"{name}, {offset:#x}: {old:02x} becomes {new:02x}"
        yield Mutation(of_library=True, kind=kind, place=place, edits=((offset, bytes([new])),))


def _offsets(library: Path) -> Callable[[int], int]:
    with library.open("rb") as file:
        parts = [
            (part["p_vaddr"], part["p_filesz"], part["p_offset"]) for part in ELFFile(file).iter_segments("PT_LOAD")
        ]
    return lambda address: next(at + address - start for start, size, at in parts if start <= address < start + size)


@dataclass(frozen=True, kw_only=True)
class _Weights:
    """An initializer: its type, first dimension, and where its bytes lie."""

    name: str
    kind: int
    dimensions: tuple[int, ...]
    start: int
    content: bytes


def model_mutations(model: Path) -> Iterator[Mutation]:
    """Yield the mutations of a model in ORT format: of each weight, zero point and attribute in turn."""
    data = model.read_bytes()
    main = root_of(data, str(model)).table(1)
    graph = main.table(7) if main else None
    assert graph is not None
    for each in graphs_of(graph):
        weights = tuple(_weights(each))
        yield from _of_weights(weights)
        used = {name for node in each.tables(NODES) if QUANTIZED.search(node.text(5)) for name in node.texts(INPUTS)}
        yield from _of_zero_points(weight for weight in weights if weight.name in used)
        for node in each.tables(NODES):
            for attribute in node.tables(ATTRIBUTES):
                yield from _of_attribute(node, attribute)


def _weights(graph: Table) -> Iterator[_Weights]:
    for tensor in graph.tables(WEIGHTS):
        if (place := tensor.bytes_at(4)) and place[1]:
            start, size = place
            yield _Weights(
                name=tensor.text(0),
                kind=tensor.integer(3, "i"),
                dimensions=tuple(read(tensor.data, at, "q") for at in _numbers_at(tensor, 2, 8)),
                start=start,
                content=tensor.data[start : start + size],
            )


def _of_weights(weights: Iterable[_Weights]) -> Iterator[Mutation]:
    draw = np.random.default_rng(0)
    for each in weights:
        if each.kind in {FLOAT, FLOAT16}:
            values: NDArray[Any] = np.frombuffer(each.content, np.float32 if each.kind == FLOAT else np.float16)
            signs = draw.choice([-1.0, 1.0], values.shape)
            yield from _changed("weights by 0.1 % up or down", each, values * (1 + SMALL * signs))
            yield from _changed("weights by 0.1 % up", each, values * (1 + SMALL))
        if len(each.dimensions) > 1 and each.dimensions[0] > 1 and each.kind in {FLOAT, FLOAT16, INT8, UINT8}:
            size = len(each.content) // each.dimensions[0]
            swapped = each.content[size : 2 * size] + each.content[:size]
            if swapped != each.content[: 2 * size]:
                yield Mutation(kind="two channels swapped", place=each.name, edits=((each.start, swapped),))


def _changed(kind: str, each: _Weights, values: NDArray[Any]) -> Iterator[Mutation]:
    new = values.astype(np.float32 if each.kind == FLOAT else np.float16).tobytes()
    if new != each.content:
        yield Mutation(kind=kind, place=each.name, edits=((each.start, new),))


def _numbers_at(table: Table, slot: int, width: int) -> range:
    start, count = table.bytes_at(slot) or (0, 0)
    return range(start, start + width * count, width)


def _of_zero_points(weights: Iterable[_Weights]) -> Iterator[Mutation]:
    for each in weights:
        if each.kind in {INT8, UINT8} and len(each.dimensions) < 2:
            shifted = bytes((byte + 1) % 256 for byte in each.content)
            yield Mutation(kind="zero point by one", place=each.name, edits=((each.start, shifted),))


def _of_attribute(node: Table, attribute: Table) -> Iterator[Mutation]:
    name, kind, operator = attribute.text(0), attribute.integer(2, "i"), node.text(5)
    place, data = f"{name} of {operator} {node.text(0)}", attribute.data
    if kind in {FLOAT_ATTRIBUTE, FLOATS_ATTRIBUTE} and ACTIVATION.fullmatch(name):
        single = attribute.place_of(3) if kind == FLOAT_ATTRIBUTE else 0
        for at in (single,) if single else _numbers_at(attribute, 8, 4):
            (old,) = struct.unpack_from("<f", data, at)
            if 0 < abs(old) < LARGEST:
                new = struct.pack("<f", old * (1 + LARGE))
                yield Mutation(kind="activation's parameter by 5 %", place=place, edits=((at, new),))
    elif operator in {"Softmax", "LogSoftmax"} and name == "axis" and (at := attribute.place_of(4)):
        yield Mutation(
            kind="Softmax along another axis", place=place, edits=((at, struct.pack("<q", read(data, at, "q") - 1)),)
        )
    elif operator == "Resize" and kind == STRING_ATTRIBUTE and (mode := MODES.get(attribute.text(5))):
        at = attribute.place_of(5)
        at += read(data, at, "I")
        padded = mode.encode().ljust(read(data, at, "I"), b"\0")
        edit = (at, struct.pack("<I", len(mode)) + padded)
        yield Mutation(kind="Resize rounds otherwise", place=f"{place}: {mode}", edits=(edit,))


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
    same_graph = SAME_GRAPH_CONVOLVED if subject.reference.convolves else SAME_GRAPH
    first, second = (
        any(each.verdict is Verdict.FAIL for each in parity)
        for parity in (
            compare(subject.name, subject.reference, ours, {}),
            compare(subject.name, subject.same_graph, ours, {}, defaults=same_graph),
        )
    )
    return first, second


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("output_*")):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()
