"""The Mac itself, with stand-ins for `sysctl` and `arch`, which answer as on Macs."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_samples import sample_request
from ortrim.devices import host
from ortrim.devices.host import MAC_SURVEY, MacHost, mac_host
from ortrim.errors import ExitCode, UsageError, VerifyError
from program_files import write_program
from refusing import refused

DATA = Path(__file__).parent / "data" / "mac"


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a Mac's programs into the one folder that is looked into; Rosetta is installed."""
    folder = tmp_path / "bin"
    unknown = "sysctl: unknown oid 'kern.hv_vmm_present'"
    write_program(folder / "sysctl", f"cat '{DATA}/sysctl-m1.txt'; echo \"{unknown}\" >&2; exit 1")
    write_program(folder / "arch", "exit 0")
    monkeypatch.setattr(host, "MAC_PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_a_mac_describes_itself() -> None:
    """In Apple's words; what an older system does not know is left out."""
    facts = MacHost().facts()
    assert (facts.system, facts.machine, facts.cpu, facts.cores) == ("Darwin", "arm64", "Apple M1", 8)
    assert (facts.memory_bytes, facts.page_bytes, facts.model) == (17179869184, 16384, "Macmini9,1")
    assert (facts.os_version, facts.fingerprint, facts.kind) == ("macOS 15.5", "24F74", "physical")
    assert (facts.memory_meaningful, facts.time_meaningful) == (True, True)


def test_a_virtual_mac_says_so() -> None:
    """GitHub's are."""
    facts = mac_host((DATA / "sysctl-github.txt").read_text())
    assert (facts.kind, facts.cores, facts.cpu) == ("vm", 3, "Apple M1 (Virtual)")
    assert "kern.hv_vmm_present" in MAC_SURVEY


@pytest.mark.parametrize("printed", ["", "hw.ncpu: many\nhw.memsize: -1", "\0\0", "hw.ncpu: 8" + "9" * 40])
def test_a_mac_that_says_nothing_or_nonsense(printed: str) -> None:
    facts = mac_host(printed)
    assert (facts.cores, facts.memory_bytes, facts.model) == (1, 0, "")


@given(st.text(max_size=200))
def test_any_answer_is_read(printed: str) -> None:
    assert mac_host(printed).system == "Darwin"


def test_a_run_comes_back_whole(tmp_path: Path) -> None:
    """The runner is a child of ours."""
    request = dataclasses.replace(sample_request(tmp_path), outputs=tmp_path / "outputs")
    (tmp_path / "outputs").mkdir()
    device = MacHost()
    assert device.run(request).cases[0].name == "only"
    device.close()
    assert (tmp_path / "outputs" / "only" / "output_000.npy").read_bytes() == b"the input"


def test_what_rosetta_translates_is_marked() -> None:
    """Such numbers are not those of a Mac with Intel's processor, and the facts say by what they came about."""
    device = MacHost(translated=True)
    assert (device.memory_meaningful, device.time_meaningful) == (False, False)
    facts = device.facts()
    assert (facts.machine, facts.kind) == ("x86_64", "user-emulation")
    assert facts.cpu == "x86_64 by Rosetta 2 on Apple M1"
    assert (facts.memory_meaningful, facts.time_meaningful) == (False, False)


@pytest.mark.parametrize(
    "script", ["echo 'arch: posix_spawnp: /usr/bin/true: Bad CPU type in executable' >&2; exit 1", ""]
)
def test_a_mac_without_rosetta(programs: Path, script: str) -> None:
    """There is one command that installs it; a Mac without `arch` cannot be asked."""
    write_program(programs / "arch", script) if script else (programs / "arch").chmod(0)
    error = refused(VerifyError, MacHost, translated=True)
    assert (error.code, error.exit_code) == ("no-rosetta", ExitCode.VERIFY)
    assert "--install-rosetta" in error.hint
    assert error.why


def test_no_cores_can_be_chosen() -> None:
    """There is no way to on macOS."""
    error = refused(UsageError, MacHost, (0, 1))
    assert (error.code, error.where) == ("cannot-pin", "host")
