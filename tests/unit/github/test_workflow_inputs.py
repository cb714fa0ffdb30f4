"""What a run was asked for: everything is checked again, since GitHub checks little of it."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.buildspec.build_options import PROFILE_NAMES
from ortrim.errors import UsageError
from ortrim.github.runs import LARGEST_INPUTS
from ortrim.github.workflow_files import DEFAULT_SPEC, INPUTS, OF_THE_SPEC, VARIABLE, WorkflowInputs, read_inputs
from refusing import refused


def document(**changes: Any) -> str:
    defaults = {each.name: each.default == "true" if each.kind == "boolean" else each.default for each in INPUTS}
    return json.dumps({**defaults, **changes}, indent=2)


def test_the_defaults_build_the_demo() -> None:
    """Whoever presses the button without changing anything gets the demo for x86-64."""
    assert read_inputs(document()) == WorkflowInputs(spec=PurePosixPath(DEFAULT_SPEC), target="linux-x64", profile=None)


def test_all_that_is_said_is_read() -> None:
    text = document(
        spec="apps/one/keywords.toml",
        target="android-*,linux-x64",
        profile="upstream",
        ref="feature/one.2",
        correlation_id="0b2c7f5e-0000-4000-8000-1234567890ab",
        plan="eNqrVkrLL1KyUlBKSixSqgUAIJkEXA==",
    )
    assert read_inputs(text) == WorkflowInputs(
        spec=PurePosixPath("apps/one/keywords.toml"),
        target="android-*,linux-x64",
        profile="upstream",
        ref="feature/one.2",
        correlation_id="0b2c7f5e-0000-4000-8000-1234567890ab",
        plan="eNqrVkrLL1KyUlBKSixSqgUAIJkEXA==",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": ""},
        {"spec": "/etc/passwd.toml"},
        {"spec": "../other/x.toml"},
        {"spec": "a/../../x.toml"},
        {"spec": "buildspecs/x.yaml"},
        {"spec": "a\n.toml"},
        {"spec": None},
        {"target": ""},
        {"target": "linux;reboot"},
        {"target": "$(id)"},
        {"target": "linux x64"},
        {"target": "a" * 401},
        {"target": 7},
        {"profile": "fast"},
        {"profile": ""},
        {"ref": "-x"},
        {"ref": "--upload-pack=id"},
        {"ref": "a b"},
        {"ref": "a\nb"},
        {"ref": "a" * 201},
        {"correlation_id": "${{ secrets.X }}"},
        {"correlation_id": "x" * 65},
        {"plan": "eN qr"},
        {"plan": "../x"},
        {"attest": "yes, please"},
        {"attest": True, "ref": "main"},
        {"attest": True, "plan": "eNqr"},
        {"devices": "host"},
        {"devices": "adb:R58M12ABCDE"},
        {"devices": "ssh:pi@board"},
        {"devices": "firebase:"},
        {"devices": "firebase:-x"},
        {"devices": "firebase:a;reboot"},
        {"devices": "firebase:a,,firebase:b"},
        {"devices": "firebase:a, firebase:b"},
        {"devices": "firebase:a\nb"},
        {"devices": "firebase:" + "a" * 201},
        {"devices": ",".join(f"firebase:a{number}" for number in range(9))},
        {"devices": "firebase:a", "ref": "main"},
        {"devices": "firebase:a", "plan": "eNqr"},
        {"another": "one"},
    ],
)
def test_what_is_not_possible_is_refused(changes: dict[str, Any]) -> None:
    """The input is named, whoever sent it."""
    error = refused(UsageError, read_inputs, document(**changes))
    assert error.code == "bad-workflow-inputs"
    assert next(iter(changes)) in error.what
    assert error.where == VARIABLE


def test_devices_of_farms_are_read() -> None:
    """Their names have blanks, and may be those of Amazon's; one that is given twice counts once."""
    arn = "devicefarm:arn:aws:devicefarm:us-west-2:123:project:4-5/arn:aws:devicefarm:us-west-2::devicepool:6"
    devices = ("firebase:redfin-30-de_DE-landscape", "devicefarm:voice/Samsung Galaxy S23+", arn)
    assert read_inputs(document(devices=",".join((*devices, devices[0])))).devices == devices
    assert read_inputs(document()).devices == ()


@pytest.mark.parametrize("text", ["[]", "null", "{", '"x"', "{}{}", "\x00", "x" * (2 * LARGEST_INPUTS + 1)])
def test_what_is_no_document_is_refused(text: str) -> None:
    assert refused(UsageError, read_inputs, text).code == "bad-workflow-inputs"


@pytest.mark.parametrize("text", ["", " \n"])
def test_outside_a_workflow_there_are_none(text: str) -> None:
    """Whoever tries a step on his own machine is told what to run instead."""
    error = refused(UsageError, read_inputs, text)
    assert error.code == "no-workflow-inputs"
    assert "invoke build" in error.hint


@given(st.dictionaries(st.sampled_from([each.name for each in INPUTS]), st.text() | st.booleans() | st.none()))
def test_whatever_arrives_is_read_or_refused(changes: dict[str, Any]) -> None:
    """No input ends in anything but inputs that are safe to use, or a diagnostic."""
    try:
        read = read_inputs(json.dumps(changes))
    except UsageError:
        return
    assert read.spec.suffix == ".toml"
    assert not read.spec.is_absolute()
    assert not read.ref.startswith("-")
    assert not set(read.target + read.correlation_id + read.ref) & set("\n $`\"';&|<>(){}")
    assert not set("".join(read.devices)) & set("\n$`\"';&|<>(){}")


def test_inputs_are_described_as_they_are_read() -> None:
    """The workflow offers what the parser takes, with the defaults of both the same."""
    names = {"spec", "target", "profile", "ref", "attest", "devices", "correlation_id", "plan"}
    assert set(json.loads(document())) == names
    assert read_inputs("{}") == read_inputs(document())
    (choice,) = [each for each in INPUTS if each.kind == "choice"]
    assert [read_inputs(document(profile=each)).profile for each in choice.options] == [None, *PROFILE_NAMES]
    assert choice.default == OF_THE_SPEC
