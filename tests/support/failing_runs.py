"""Runs that have to fail, on any kind of device."""

import pytest

from ortrim.errors import ExitCode, VerifyError
from ortrim.verify.devices.base import Device, RunRequest


def refused(device: Device, request: RunRequest) -> VerifyError:
    """Return the diagnostic of a run that has to fail."""
    with pytest.raises(VerifyError) as caught:
        device.run(request)
    assert caught.value.exit_code == ExitCode.VERIFY
    return caught.value
