import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.devicectl import Phone, choose_phone, read_phones
from ortrim.errors import Diagnostic, ExitCode, UsageError, VerifyError

LIST = (Path(__file__).parent / "data" / "devicectl" / "list.json").read_text(encoding="utf-8")


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(LIST)
    change(document["result"]["devices"][2])
    return json.dumps(document)


def refused(phones: tuple[Phone, ...], name: str = "") -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        choose_phone(phones, name)
    return caught.value


def test_phones_are_read_those_that_can_be_used_first() -> None:
    """A watch and a simulator are no phones."""
    connected, old = read_phones(LIST)
    assert (connected.name, connected.model, connected.system) == ("Jo's iPhone", "iPhone 14 Pro", "iOS 18.4.1")
    assert (connected.product, connected.board, connected.processor) == ("iPhone15,2", "D73AP", "arm64e")
    assert (connected.build, connected.obstacle) == ("22E252", ("", ""))
    assert (old.name, old.system, old.obstacle[0]) == ("Old iPhone", "", "is known to this Mac, but not connected")


@pytest.mark.parametrize(
    "name", ["", "Jo's iPhone", "00008120-0014000000000003", "6986451F-0000-48DE-A70E-45E06E1F1446"]
)
def test_a_phone_is_chosen(name: str) -> None:
    """By what its owner calls it, by either of Apple's identifiers, or because it is the only one that can be used."""
    assert choose_phone(read_phones(LIST), name).model == "iPhone 14 Pro"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda each: each["connectionProperties"].update(pairingState="unpaired"), "does not trust this Mac"),
        (lambda each: each["deviceProperties"].update(developerModeStatus="disabled"), "developer mode"),
        (lambda each: each["connectionProperties"].update(tunnelState="unavailable"), "not connected"),
    ],
)
def test_phones_that_cannot_be_used(change: Callable[[dict[str, Any]], object], words: str) -> None:
    phones = read_phones(changed(change))
    for name in ("", "Jo's iPhone"):
        error = refused(phones, name) if name else refused(tuple(p for p in phones if p.name == "Jo's iPhone"))
        assert (error.code, error.where, error.exit_code) == (
            "device-not-ready", "devicectl:Jo's iPhone", ExitCode.VERIFY
        )  # fmt: skip
        assert words in error.what
        assert error.hint


def test_which_of_several_is_never_guessed() -> None:
    """They are listed by the names that choose them."""
    both = changed(lambda each: each["connectionProperties"].update()).replace("unavailable", "connected")
    error = refused(read_phones(both))
    assert (error.code, error.exit_code) == ("several-devices", ExitCode.USAGE)
    assert error.hint == "name one or more of them: devicectl:Old iPhone, devicectl:Jo's iPhone"


def test_no_phone_and_an_unknown_one() -> None:
    assert refused(()).code == "no-device"
    error = refused(read_phones(LIST), "Anna's")
    assert isinstance(error, UsageError)
    assert (error.code, error.hint) == ("unknown-device", "this Mac sees: Jo's iPhone, Old iPhone")
    assert "cable" in refused((), "Anna's").hint


@pytest.mark.parametrize(
    "document",
    ["", "{}", '{"result": {"devices": 3}}', LIST[:1500], changed(lambda each: each.update(identifier="--version"))],
)
def test_what_is_no_list(document: str) -> None:
    with pytest.raises(VerifyError) as caught:
        read_phones(document)
    assert (caught.value.code, caught.value.where) == ("phone-trouble", "devicectl")


@given(st.text(max_size=60))
def test_anything_is_a_list_or_refused(document: str) -> None:
    with suppress(VerifyError):
        assert read_phones(document) == ()
