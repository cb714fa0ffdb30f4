from dataclasses import replace
from functools import partial

from device_samples import MACHINE, LocalTransport
from ortrim.devices.facts import Thermal
from ortrim.devices.remote import Probes, RemoteDevice, probed_machine
from ortrim.parity.measurements import HostFacts


def described(answer: str) -> HostFacts:
    return replace(MACHINE, model=answer.strip())


PROBES = Probes(
    facts="echo 'a board'",
    read_facts=described,
    heat="echo 3",
    read_heat=lambda answer: Thermal(status=int(answer), battery_celsius=None),
    keeps_time=lambda answer: answer.strip() == "a board",
)
asked = partial(probed_machine, name="local:1", base="/base", cores=())


def test_what_is_known_of_a_machine_comes_from_its_answers() -> None:
    """Its facts and its heat are asked for whenever they are wanted, whether its times count at once and once."""
    transport = LocalTransport()
    machine = asked(transport, PROBES)
    assert transport.commands == [("sh", "-c", "echo 'a board'")]
    assert (machine.name, machine.base, machine.cores, machine.time_meaningful) == ("local:1", "/base", (), True)
    assert (machine.describe().model, machine.thermal().status) == ("a board", 3)
    assert [words[2] for words in transport.commands[1:]] == ["echo 'a board'", "echo 3"]


def test_a_machine_whose_times_mean_nothing() -> None:
    """The answer decides, whatever it is."""
    assert not asked(LocalTransport(), replace(PROBES, facts="exit 1")).time_meaningful


def test_a_machine_under_user_emulation() -> None:
    """Its programs are the emulator's processes: neither times nor memory say anything of a real machine."""
    probes = replace(PROBES, read_facts=lambda answer: replace(described(answer), kind="user-emulation"))
    machine = asked(LocalTransport(), probes)
    assert (machine.memory_meaningful, machine.time_meaningful) == (False, False)
    device = RemoteDevice(machine)
    assert (device.memory_meaningful, device.time_meaningful) == (False, False)
    assert (device.facts().memory_meaningful, device.facts().time_meaningful) == (False, False)
    assert asked(LocalTransport(), PROBES).memory_meaningful
