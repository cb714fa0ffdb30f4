from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices import facts

DATA = Path(__file__).parent / "data" / "adb"
PHONE = (DATA / "getprop-phone.txt").read_text()
COOL = {"thermal": (DATA / "thermalservice-cool.txt").read_text(), "battery": (DATA / "battery-cool.txt").read_text()}
LINUX = {"system": "Linux", "release": "6.1.57-android14", "machine": "aarch64", "page": "4096", "present": "0-7"}


def answer(sections: dict[str, str]) -> str:
    return "".join(f"\n{facts.SECTION}{name}\n{text}\n" for name, text in sections.items())


def test_a_phone() -> None:
    """All facts of a phone, in the words of its properties."""
    host = facts.adb_host(answer({**LINUX, "memory": "MemTotal:  7782400 kB", "properties": PHONE, **COOL}))
    assert (host.model, host.soc, host.abi) == ("Example Phone 5 Pro", "QTI SM8550", "arm64-v8a,armeabi-v7a,armeabi")
    assert (host.os_version, host.api_level, host.kind) == ("Android 14", 34, "physical")
    assert host.fingerprint == "Example/phone/phone:14/UP1A.231005.007/1:user/release-keys"
    assert (host.cores, host.memory_bytes, host.page_bytes) == (8, 7782400 * 1024, 4096)
    assert (host.thermal_after, host.battery_celsius) == (0, 27.4)


def test_values_with_line_ends() -> None:
    """A property may have several lines, and none swallows the next."""
    properties = facts.read_properties(PHONE.replace("\n", "\r\n"))
    assert properties["vendor.several.lines"] == "one\ntwo"
    assert properties["persist.sys.locale"] == ""
    assert properties["ro.soc.model"] == "SM8550"
    assert len(properties) == 15


@pytest.mark.parametrize(
    ("old", "new", "soc"),
    [
        ("[ro.soc.manufacturer]: [QTI]\n", "", "SM8550"),
        ("[ro.soc.manufacturer]: [QTI]\n[ro.soc.model]: [SM8550]\n", "", "exampleboard"),
    ],
)
def test_devices_that_do_not_name_their_soc(old: str, new: str, soc: str) -> None:
    """Before API level 31 there is only the platform's name."""
    assert facts.adb_host(answer({"properties": PHONE.replace(old, new)})).soc == soc


@pytest.mark.parametrize("name", ["[ro.kernel.qemu]: [1]", "[ro.boot.qemu]: [1]", "[ro.hardware]: [ranchu]"])
def test_emulators(name: str) -> None:
    """An emulator is none of the phones that it pretends to be."""
    assert facts.adb_host(answer({"properties": f"{PHONE}{name}\n"})).kind == "emulator"


def test_a_maker_is_not_named_twice() -> None:
    printed = PHONE.replace("[Phone 5 Pro]", "[EXAMPLE Phone]")
    assert facts.adb_host(answer({"properties": printed})).model == "EXAMPLE Phone"


def test_a_plain_linux() -> None:
    """A machine without properties is described by its kernel alone."""
    host = facts.adb_host(answer({**LINUX, "properties": "", "thermal": "", "battery": ""}))
    assert (host.model, host.api_level, host.thermal_after, host.battery_celsius) == ("", None, None, None)
    assert (host.abi, host.os_version) == ("aarch64", "Linux 6.1.57-android14")


@pytest.mark.parametrize(
    ("thermal", "battery", "expected"),
    [
        ("Thermal Status: 3", "  temperature: 412", facts.Thermal(status=3, battery_celsius=41.2)),
        ("Thermal Status: 0", "  temperature: -53", facts.Thermal(status=0, battery_celsius=-5.3)),
        ("Can't find service: thermalservice", "", facts.Thermal(status=None, battery_celsius=None)),
        ("Thermal Status: x", "  temperature: hot", facts.Thermal(status=None, battery_celsius=None)),
        ("", "  present: false\n  temperature: 0", facts.Thermal(status=None, battery_celsius=None)),
        ("", "  temperature: 274\n[Log]\n  temperature: 999", facts.Thermal(status=None, battery_celsius=27.4)),
    ],
)
def test_heat(thermal: str, battery: str, expected: facts.Thermal) -> None:
    """What is not known is None, and a device without a battery has no temperature of one."""
    assert facts.adb_thermal(answer({"thermal": thermal, "battery": battery})) == expected


def test_surveys_are_one_line() -> None:
    """Surveys go through any login shell."""
    assert "\n" not in facts.ANDROID_SURVEY + facts.THERMAL_SURVEY
    assert "getprop" in facts.ANDROID_SURVEY
    assert "getprop" not in facts.THERMAL_SURVEY


@given(st.text(max_size=400))
def test_any_answer_can_be_read(printed: str) -> None:
    assert facts.adb_host(printed).cores >= 1
    assert (
        facts.adb_host(answer(dict.fromkeys(("properties", "cpu", "memory", "present", "page"), printed))).memory_bytes
        >= 0
    )
    assert facts.read_properties(printed) is not None
