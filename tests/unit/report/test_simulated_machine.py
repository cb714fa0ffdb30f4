from ortrim.parity.measurements import HostFacts
from ortrim.report.content import machine_facts, measures_memory, measures_time
from sample_reports import on_device, recorded_report

SIMULATED = HostFacts(
    system="Darwin",
    machine="arm64",
    cpu="Apple M1 of the Mac (macOS 15.5)",
    cores=8,
    memory_bytes=16 << 30,
    kind="simulator",
    model="iPhone 17, simulated on Macmini9,1",
    os_version="iOS 26.1",
    memory_meaningful=False,
    time_meaningful=False,
)


def test_a_report_says_that_a_simulator_is_a_mac() -> None:
    (device,) = on_device(recorded_report(), device="simctl:iPhone 17", host=SIMULATED).devices
    facts = dict(machine_facts(device))
    assert facts["host"] == "Darwin, arm64, Apple M1 of the Mac (macOS 15.5)"
    assert facts["device"] == "iPhone 17, simulated on Macmini9,1 · simulator"
    assert facts["system"] == "iOS 26.1"
    assert (measures_memory(device), measures_time(device)) == (False, False)
