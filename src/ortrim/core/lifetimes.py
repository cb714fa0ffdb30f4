"""The most memory that the tensors of a run take at a time, by when each is made and last read."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ortrim.core.model_cost import LiveTensor, Peak

WORKSPACE: Final = "(the kernel's own)"
"""Stands among tensors for what a kernel takes for itself."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One node's turn: the tensors that it reads and makes, and what it needs besides, as the graphs inside it do.

    `view` says that the first output is the first input under another shape. `in_place` are inputs whose memory the
    first output may take over when nothing reads them any more and both are of one size. `workspace` is the memory in
    bytes that the kernel itself takes while it runs.
    """

    node: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    view: bool = False
    in_place: tuple[str, ...] = ()
    inside: Peak | None = None
    workspace: int = 0


def peak_of(
    moments: Sequence[Moment], sizes: Mapping[str, int], *, inputs: Collection[str], outputs: Collection[str]
) -> Peak:
    """Return the peak over all moments. `sizes` in bytes are those of activations; what is not in it takes nothing.

    `inputs` and `outputs` belong to who runs the model: the ones are there from the first moment to the last, the
    others from when they are made to the last.
    """
    owners = _owners(moments, sizes, kept={*inputs, *outputs})
    return peak_over([replace(each, workspace=0) for each in moments], sizes, owners, kept=(inputs, outputs))


def peak_over(
    moments: Sequence[Moment],
    sizes: Mapping[str, int],
    owners: Mapping[str, str],
    *,
    kept: tuple[Collection[str], Collection[str]],
) -> Peak:
    """Return the peak over moments in their order when `owners` says whose memory each tensor lies in.

    `kept` are the inputs and the outputs of the run.
    """
    inputs, outputs = kept
    last = _last_reads(moments, owners, kept={*inputs, *outputs})
    live = {name: sizes[name] for name in inputs if name in sizes}
    best = Peak(size_bytes=sum(live.values()), node="", tensors=_tensors(live))
    timeline = []
    for number, moment in enumerate(moments):
        live |= {owners[name]: sizes[owners[name]] for name in moment.makes if name in owners}
        inside = moment.inside
        outside = sum(live.values())
        total = outside + (inside.size_bytes if inside else 0) + moment.workspace
        within = inside.timeline if inside else ()
        timeline += [(name, outside + size) for name, size in within] or [(moment.node, total)]
        if total > best.size_bytes:
            own = (LiveTensor(name=WORKSPACE, size_bytes=moment.workspace),) if moment.workspace else ()
            tensors = (*_tensors(live), *own, *(inside.tensors if inside else ()))
            best = Peak(size_bytes=total, node=inside.node if inside and inside.node else moment.node, tensors=tensors)
        live = {name: size for name, size in live.items() if last.get(name, -1) > number}
    return replace(best, timeline=tuple(timeline))


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """Whose memory each tensor lies in, and in which moment that of an owner is last read, as far as is known."""

    sizes: Mapping[str, int]
    owners: dict[str, str]
    freed: dict[str, int]

    def source(self, moment: Moment, number: int) -> str | None:
        """Return the owner of the memory that a moment's first output may lie in, None for one of its own."""
        if not moment.makes or (made := moment.makes[0]) not in self.sizes:
            return None
        if moment.view and moment.reads and moment.reads[0] in self.sizes:
            return self.owners[moment.reads[0]]
        for owner in (self.owners[name] for name in moment.in_place if name in self.owners):
            if self.freed.get(owner, number) <= number and self.sizes[owner] == self.sizes[made]:
                return owner
        return None


def _owners(moments: Sequence[Moment], sizes: Mapping[str, int], *, kept: Collection[str]) -> dict[str, str]:
    """Return whose memory each tensor lies in: its own, or that of an earlier one that it views or takes over."""
    own = {name: name for name in sizes}
    reads = _last_reads(moments, own, kept=kept)
    memory = _Memory(sizes=sizes, owners=own, freed=dict(reads))
    for number, moment in enumerate(moments):
        source = memory.source(moment, number)
        if source is not None:
            made = moment.makes[0]
            memory.owners[made] = source
            memory.freed[source] = max(memory.freed.get(source, number), reads.get(made, number))
    return memory.owners


def _last_reads(moments: Sequence[Moment], owners: Mapping[str, str], *, kept: Collection[str]) -> dict[str, int]:
    """Return the number of the moment in which each owner's memory is last read; those `kept` outlive the run."""
    last = {}
    for number, moment in enumerate(moments):
        for name in _named(moment):
            if name in owners:
                last[owners[name]] = number
    return last | {owners[name]: len(moments) for name in kept if name in owners}


def _named(moment: Moment) -> Iterator[str]:
    yield from moment.makes
    yield from moment.reads


def _tensors(live: Mapping[str, int]) -> tuple[LiveTensor, ...]:
    largest = sorted(live.items(), key=lambda each: (-each[1], each[0]))
    return tuple(LiveTensor(name=name, size_bytes=size) for name, size in largest)
