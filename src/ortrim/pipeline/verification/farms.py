"""Devices of farms: the app that runs there is made of what is to be verified, and compiled by Gradle."""

from pathlib import Path
from typing import Final, assert_never

from ortrim.core.harness import HarnessApks, HarnessContent
from ortrim.core.plan import BuildJob
from ortrim.core.targets import ABIS
from ortrim.package.android.harness import HarnessInputs, find_apks, make_harness
from ortrim.tools.gcloud import find_gcloud
from ortrim.verify.devices.farms.base import Farm, Tell
from ortrim.verify.devices.farms.batch import FarmDevice
from ortrim.verify.devices.farms.browserstack import BrowserStack
from ortrim.verify.devices.farms.device_farm import DeviceFarm
from ortrim.verify.devices.farms.firebase import FirebaseFarm
from ortrim.verify.devices.names import DeviceName, FarmKind
from ortrim.verify.outputs import device_folder

HARNESS: Final = "harness"
RESULTS: Final = "farms"


def farm_device(job: BuildJob, kind: FarmKind, name: DeviceName, folder: Path, tell: Tell) -> FarmDevice:
    """Return a device of a farm; nothing is asked of the farm before the device is told what to run.

    `folder` is the target's: the app's Gradle project is written into it, and what comes back from the farm. When the
    app has not been compiled, or is an older one, `prepare` raises as `find_apks` does.
    """
    return FarmDevice(
        farm=_farm(kind),
        device=name.detail,
        make_apks=lambda content: _apks(job, content, folder / HARNESS),
        folder=folder / RESULTS / device_folder(str(name)),
        tell=tell,
    )


def _apks(job: BuildJob, content: HarnessContent, folder: Path) -> HarnessApks:
    assert job.android is not None
    abi = ABIS[job.target.architecture]
    return find_apks(make_harness(HarnessInputs(content=content, abi=abi, api=job.android.api), folder))


def _farm(kind: FarmKind) -> Farm:
    match kind:
        case "firebase":
            return FirebaseFarm(gcloud=find_gcloud())
        case "devicefarm":
            return DeviceFarm()
        case "browserstack":
            return BrowserStack()
        case _:
            assert_never(kind)
