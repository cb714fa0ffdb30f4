import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.devices.facts import SECTION, SURVEY, THERMAL_SURVEY, ssh_host, ssh_thermal

COOL = "zone 48312\npassive 75000"


def answer(**sections: str) -> str:
    return "".join(f"\n{SECTION}{name}\n{text}\n" for name, text in sections.items())


def test_a_board() -> None:
    """A Raspberry Pi is named by its device tree and its distribution."""
    host = ssh_host(
        answer(
            system="Linux",
            release="6.6.31+rpt-rpi-2712",
            machine="aarch64",
            board="Raspberry Pi 5 Model B Rev 1.0\0",
            cpu="processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n",
            distribution='PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"',
            throttled="0",
        )
    )
    assert (host.model, host.kind, host.cpu) == ("Raspberry Pi 5 Model B Rev 1.0", "physical", "Cortex-A76")
    assert host.os_version == "Debian GNU/Linux 12 (bookworm), Linux 6.6.31+rpt-rpi-2712"
    assert (host.thermal_after, host.battery_celsius) == (0, None)


@pytest.mark.parametrize(
    ("zones", "throttled", "status"),
    [
        ("", "", None),
        ("zone 48312", "", None),
        (COOL, "", 0),
        ("zone 75000\npassive 75000", "", 1),
        ("zone 40000\npassive 75000\nzone 90000\npassive 85000", "", 1),
        ("zone 90000\nzone 40000\npassive 75000", "", 0),
        ("zone x\npassive 75000", "", None),
        ("zone 90000\npassive 0", "", None),
        ("", "0", 0),
        ("", "50000", 0),
        ("", "50005", 1),
        (COOL, "4", 1),
        ("", "nonsense", None),
    ],
)
def test_heat(zones: str, throttled: str, status: int | None) -> None:
    """A zone at its passive trip point throttles, as does a firmware that says so of now, not of the past."""
    assert ssh_thermal(answer(zones=zones, throttled=throttled)).status == status


def test_this_machine_answers() -> None:
    done = run(("sh", "-c", SURVEY))
    assert done.stderr == ""
    assert ssh_host(done.stdout).system == "Linux"
    assert "\n" not in SURVEY + THERMAL_SURVEY


@given(st.text(max_size=300))
def test_any_answer_can_be_read(printed: str) -> None:
    host = ssh_host(answer(zones=printed, throttled=printed, distribution=printed, board=printed))
    assert host.thermal_after in {None, 0, 1}
