from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.simctl import Simulator, choose_simulator, read_simulators
from ortrim.errors import Diagnostic, ExitCode, UsageError, VerifyError

DATA = Path(__file__).parent / "data" / "simctl"
OLD = (DATA / "list-xcode13.json").read_text(encoding="utf-8")
NEW = (DATA / "list-xcode26.json").read_text(encoding="utf-8")


def names(found: tuple[Simulator, ...]) -> list[str]:
    return [f"{each.name}, {each.system}" for each in found if each.udid]


def test_old_and_new_lists_are_read() -> None:
    """The newest iOS comes first, iPhones before iPads; watches, and what has lost its runtime, are left out."""
    assert names(read_simulators(OLD, "arm64")) == ["iPhone 8, iOS 15.5"]
    expected = [
        "iPhone 17, iOS 26.1",
        "iPhone 17 Pro, iOS 26.1",
        "iPhone 16, iOS 18.5",
        "iPad Pro 13-inch (M5), iOS 26.1",
    ]
    assert names(read_simulators(NEW, "arm64")) == expected


def test_a_runtime_of_another_architecture_is_left_out() -> None:
    """Newer Xcodes say what their runtimes run, and what is to be made is of one that runs the target."""
    found = read_simulators(NEW, "x86_64")
    assert names(found) == ["iPhone 16, iOS 18.5"]
    assert (found[-1].udid, found[-1].name, found[-1].version) == ("", "iPhone 16", (18, 5))


def test_a_booted_simulator_is_the_first_choice() -> None:
    """Nothing has to be booted then, even where another one is newer; an Apple TV that is booted is none."""
    booted = NEW.replace(
        '"state" : "Shutdown",\n        "name" : "iPhone 16"', '"state" : "Booted",\n        "name" : "iPhone 16"'
    )
    chosen = choose_simulator(read_simulators(booted, "arm64"), "")
    assert (chosen.name, chosen.booted) == ("iPhone 16", True)


@pytest.mark.parametrize("name", ["iPhone 16", "93EE2C69-0000-4923-B651-654FBA1CDE45"])
def test_a_simulator_is_chosen_by_its_name_or_udid(name: str) -> None:
    chosen = choose_simulator(read_simulators(NEW, "arm64"), name)
    assert (chosen.udid, chosen.system) == ("93EE2C69-0000-4923-B651-654FBA1CDE45", "iOS 18.5")


def test_without_a_simulator_one_can_be_made() -> None:
    """Of the newest iOS, and of an iPhone that it supports."""
    made = choose_simulator(read_simulators(NEW, "arm64")[-1:], "")
    assert made.runtime == "com.apple.CoreSimulator.SimRuntime.iOS-26-1"
    assert made.device_type == "com.apple.CoreSimulator.SimDeviceType.iPhone-17-Pro"


def refused(found: tuple[Simulator, ...], name: str) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        choose_simulator(found, name)
    return caught.value


def test_names_that_are_none() -> None:
    unknown = refused(read_simulators(NEW, "arm64"), "iPhone 3G")
    assert isinstance(unknown, UsageError)
    assert (unknown.code, unknown.where) == ("unknown-device", "simctl:iPhone 3G")
    assert "iPhone 17" in unknown.hint
    nothing = refused((), "")
    assert (nothing.code, nothing.exit_code) == ("no-simulator", ExitCode.VERIFY)
    assert "downloadPlatform" in refused((), "iPhone").hint


@pytest.mark.parametrize(
    "printed", ["", "[]", "{}", '{"devices": []}', '{"devices": {"a": [{"udid": "--x y"}]}}', OLD[:900]]
)
def test_what_is_no_list(printed: str) -> None:
    with pytest.raises(VerifyError) as caught:
        read_simulators(printed, "arm64")
    assert (caught.value.code, caught.value.where) == ("simulator-trouble", "simctl")


@given(st.text(max_size=60))
def test_anything_is_a_list_or_refused(printed: str) -> None:
    with suppress(VerifyError):
        assert read_simulators(printed, "arm64") == ()
