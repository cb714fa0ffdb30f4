"""The devices of a pool at AWS Device Farm: which of them can run an app, and which one did."""

from typing import TYPE_CHECKING, Final

from ortrim.errors import NetworkError, VerifyError
from ortrim.verify.devices.farms.device_farm_account import Account
from ortrim.verify.devices.farms.device_farm_errors import short
from ortrim.verify.devices.farms.device_farm_names import Place

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient
    from types_boto3_devicefarm.type_defs import DevicePoolCompatibilityResultTypeDef

NO_REASON: Final = "AWS gives no reason"


def devices_of(account: Account, place: Place, app: str) -> tuple[str, ...]:
    """Return the ARNs of the pool's devices that can run the app.

    Raises `VerifyError` `farm-unsupported` when none can, `farm-device-unknown` when the pool is empty.
    """
    fit, whys = account.ask(lambda client: _compatible(client, place.pool, app))
    if fit:
        return fit
    if not whys:
        what, hint = "the device pool holds no device", "add one to it in AWS's console"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=hint)
    what, hint = "no device of the pool can run the app", "choose a pool with devices of the app's ABI and API level"
    raise VerifyError("farm-unsupported", what, where=account.where, why="\n".join(whys[:4]), hint=hint)


def device_of(account: Account, run: str) -> str:
    """Return the model and the version of Android that a run was on; empty when the account may not be told."""
    try:
        return account.ask(lambda client: _named(client, run))
    except (VerifyError, NetworkError):
        return ""


def _named(client: "DeviceFarmClient", run: str) -> str:
    devices = [job.get("device", {}) for job in client.list_jobs(arn=run)["jobs"]]
    return ", ".join(f"{device.get('name', '')} {device.get('os', '')}".strip() for device in devices)


def _compatible(client: "DeviceFarmClient", pool: str, app: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the ARNs of a pool's devices that can run an app, and why the others cannot."""
    answer = client.get_device_pool_compatibility(devicePoolArn=pool, appArn=app, testType="INSTRUMENTATION")
    fit = tuple(item["device"]["arn"] for item in answer.get("compatibleDevices", ()))
    whys = {why for item in answer.get("incompatibleDevices", ()) for why in _whys(item)}
    return fit, sorted(whys)


def _whys(item: "DevicePoolCompatibilityResultTypeDef") -> list[str]:
    messages = [short(each.get("message", "")) for each in item.get("incompatibilityMessages", [])]
    return [message for message in messages if message] or [NO_REASON]
