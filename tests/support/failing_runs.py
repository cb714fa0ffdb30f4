"""Runs that have to fail, on any kind of device, and jobs of farms."""

from collections.abc import Callable

import pytest

from ortrim.devices.device import Outcome, ProgramDevice
from ortrim.devices.farms.farm import Farm, FarmJob
from ortrim.errors import Diagnostic, ExitCode, VerifyError
from ortrim.parity.runner import RunnerOutput, RunRequest


def run_refused(device: ProgramDevice, request: RunRequest) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        device.run(request)
    assert caught.value.exit_code == ExitCode.VERIFY
    return caught.value


def error_of(outcome: Outcome) -> VerifyError:
    """Return the diagnostic that a run of several has to have ended with."""
    assert isinstance(outcome, VerifyError)
    assert outcome.exit_code == ExitCode.VERIFY
    return outcome


def output_of(outcome: Outcome) -> RunnerOutput:
    """Return what a run of several reports, which has to have ended well."""
    assert isinstance(outcome, RunnerOutput)
    return outcome


def failed_job(farm: Farm, job: FarmJob, told: list[str], check_secrets: Callable[[str], None]) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        farm.run(job, told.append)
    error = caught.value
    assert not job.destination.exists()
    assert [path for path in job.destination.parent.glob("*") if path.is_dir()] == []
    assert error.where == f"{farm.name}:{job.device}"
    assert error.what
    chain: BaseException | None = error
    while chain is not None:
        check_secrets(f"{chain!s} {chain!r}")
        chain = chain.__cause__ or chain.__context__
    return error
