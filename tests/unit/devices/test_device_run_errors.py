from ortrim.devices.device import not_startable
from ortrim.errors import ExitCode
from ortrim.parity.runner import MOST_PRINTED_BYTES, endless_output


def test_endless_output_names_the_limit() -> None:
    """Who reads it learns how much was too much, and where to look."""
    error = endless_output("adb:x")
    assert (error.code, error.where, error.exit_code) == ("endless-output", "adb:x", ExitCode.VERIFY)
    assert f"{MOST_PRINTED_BYTES >> 20} MiB" in error.what
    assert "library" in error.hint


def test_a_runner_that_cannot_start_has_its_reasons() -> None:
    """What the machine said is kept, and what else may be the reason there is added to the hint."""
    plain, besides = not_startable("host", "said"), not_startable("ssh:x", "said", "/data must not be mounted noexec")
    assert {plain.code, besides.code} == {"runner-not-startable"}
    assert (plain.where, plain.why) == ("host", "said")
    assert besides.hint == f"{plain.hint}; /data must not be mounted noexec"
