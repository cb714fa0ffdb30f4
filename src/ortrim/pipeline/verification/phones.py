"""iPhones on this Mac's cable: the app that runs there is made of what is to be verified, and compiled by Xcode."""

from pathlib import Path
from typing import Final

from ortrim.core.harness import HarnessContent, PhoneApp
from ortrim.core.plan import BuildJob
from ortrim.core.targets import APPLE_ARCHITECTURES
from ortrim.package.apple.harness import PhoneHarness, find_app, make_phone_harness
from ortrim.verify.devices.devicectl import PhoneDevice, open_phone
from ortrim.verify.devices.names import DeviceName
from ortrim.verify.devices.phone_requests import ARCHIVE

HARNESS: Final = "harness"


def phone_device(job: BuildJob, headers: Path, name: DeviceName, folder: Path) -> PhoneDevice:
    """Return a phone; nothing is asked of it before the device is told what to run.

    `headers` is the folder of the runtime's headers, `folder` the target's: the app's Xcode project is written into it.
    When the app has not been compiled, or is an older one, `prepare` raises as `find_app` does. Raises as `open_phone`
    does.
    """
    return open_phone(name.detail, lambda content: _app(job, headers, content, folder / HARNESS))


def _app(job: BuildJob, headers: Path, content: HarnessContent, folder: Path) -> PhoneApp:
    assert job.apple is not None
    inputs = PhoneHarness(
        content=content,
        headers={path.name: path for path in sorted(headers.glob("*.h"))},
        architecture=APPLE_ARCHITECTURES[job.target.architecture],
        minimum=job.apple.deployment_target,
        linked=ARCHIVE in content.libraries,
    )
    return find_app(make_phone_harness(inputs, folder))
