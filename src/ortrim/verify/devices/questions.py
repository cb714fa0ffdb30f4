"""What a machine is asked before and between runs, and what is known of it from the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ortrim.core.measurements import Host
from ortrim.verify.devices.pinning import check_pinning
from ortrim.verify.devices.remote import RemoteMachine
from ortrim.verify.devices.thermal import Thermal
from ortrim.verify.devices.transport import Transport

ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Questions:
    """How machines of one kind are asked: scripts for all facts and for the heat alone, and readers of their answers.

    `keeps_time` says from the answer to `facts` whether times there say anything of a real machine.
    """

    facts: str
    read_facts: Callable[[str], Host]
    heat: str
    read_heat: Callable[[str], Thermal]
    keeps_time: Callable[[str], bool]


def asked_machine(
    transport: Transport, questions: Questions, *, name: str, base: str, cores: tuple[int, ...]
) -> RemoteMachine:
    """Return a machine that answers these questions, ready to run on `cores` (all, when empty).

    Raises what `check_pinning` raises, and what the transport raises.
    """
    check_pinning(lambda words, seconds: transport.execute(words, timeout_seconds=seconds), cores, name)

    def ask(script: str) -> str:
        return transport.execute(("sh", "-c", script), timeout_seconds=ANSWER_SECONDS).stdout

    return RemoteMachine(
        name=name,
        transport=transport,
        base=base,
        describe=lambda: questions.read_facts(ask(questions.facts)),
        thermal=lambda: questions.read_heat(ask(questions.heat)),
        cores=cores,
        time_meaningful=questions.keeps_time(ask(questions.facts)),
    )
