"""The memory that a run takes by ONNX Runtime's own plan of buffers, without an arena.

The rules are those of 1.21.0: the plan of `allocation_planner.cc` (`ComputeSingleStreamReusePlan`), and the order of
`graph_viewer.cc` and `Graph::ReverseDFSFrom`. What they do that lifetimes alone do not say: a buffer that nothing reads
any more is not given back when a later tensor of the same shape is to lie in it.
"""

from collections import Counter, deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from ortrim.core.lifetimes import Moment, peak_over
from ortrim.core.model_cost import Peak
from ortrim.models.static_shapes import Kinds


def planned_peak(
    moments: Sequence[Moment],
    sizes: Mapping[str, int],
    kinds: Kinds,
    *,
    inputs: Collection[str],
    outputs: Sequence[str],
) -> Peak:
    """Return the most memory that a run takes at a time, kernels' own included, and while which node.

    `sizes` in bytes are those of activations; what is not in it takes nothing. A tensor without a kind gets a buffer
    of its own. `inputs` and `outputs` are counted through the whole run and from when they are made.
    """
    ordered = [moments[number] for number in running_order(moments)]
    plan = _Plan(uses=_uses(ordered, inputs, outputs), kinds=kinds, outputs=frozenset(outputs))
    for moment in ordered:
        plan.place(moment)
    owners = {name: name for name in inputs} | plan.owners
    owners = {name: owner for name, owner in owners.items() if owner in sizes}
    return peak_over(ordered, sizes, owners, kept=(inputs, outputs))


def running_order(moments: Sequence[Moment]) -> tuple[int, ...]:
    """Return the numbers of the moments in the order in which ONNX Runtime runs them.

    From the nodes whose results no node reads, backwards and depth first; of several inputs' nodes the one that stands
    last in the file first.
    """
    makers = {name: number for number, moment in enumerate(moments) for name in moment.makes}
    before = [sorted({makers[name] for name in moment.reads if name in makers}) for moment in moments]
    read = {number for numbers in before for number in numbers}
    stack = [(number, False) for number in range(len(moments)) if number not in read]
    seen: set[int] = set()
    order: list[int] = []
    while stack:
        number, left = stack.pop()
        if left:
            order.append(number)
        elif number not in seen:
            seen.add(number)
            stack.append((number, True))
            stack += [(each, False) for each in before[number] if each not in seen]
    return (*order, *(number for number in range(len(moments)) if number not in seen))


def _uses(moments: Sequence[Moment], inputs: Collection[str], outputs: Collection[str]) -> Counter[str]:
    """Count what keeps a tensor: its maker and each reader, and the caller, to whom inputs and outputs belong."""
    uses = Counter((*inputs, *outputs))
    for moment in moments:
        uses.update((*moment.makes, *moment.reads))
    return uses


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Whose buffer each tensor lies in, how often each buffer is still used, and the buffers that are free."""

    uses: Counter[str]
    kinds: Kinds
    outputs: frozenset[str]
    owners: dict[str, str] = field(default_factory=dict)
    free: deque[str] = field(default_factory=deque)

    def place(self, moment: Moment) -> None:
        """Give a moment's results their buffers, then set free what is used for the last time."""
        for number, name in enumerate(moment.makes):
            source = None if name in self.outputs else self._source(moment, number, name)
            self.owners[name] = name if source is None else source
            if source is not None:
                self.uses[source] += self.uses[name]
        for name in (*moment.reads, *moment.makes):
            owner = self.owners.get(name, name)
            self.uses[owner] -= 1
            if self.uses[owner] == 0:
                self.free.appendleft(owner)

    def _source(self, moment: Moment, number: int, name: str) -> str | None:
        """Return the buffer of an earlier tensor that a result is to lie in."""
        if number == 0 and moment.view and moment.reads:
            return self.owners.get(moment.reads[0], moment.reads[0])
        kind = self.kinds.get(name)
        if kind is None:
            return None
        given = moment.in_place if number == 0 else ()
        owners = ((self.owners.get(each, each), each) for each in given)
        own = next((owner for owner, each in owners if self.uses[owner] == 1 and self.kinds.get(each) == kind), None)
        return own if own is not None or self.uses[name] < 2 else self._freed(kind)

    def _freed(self, kind: Hashable) -> str | None:
        """Take the buffer of this kind that was freed last."""
        found = next((owner for owner in self.free if self.kinds.get(owner) == kind), None)
        if found is not None:
            self.free.remove(found)
        return found
