"""Whether a device that was opened runs what is built for an Android target: one ABI of several, from some level on."""

from ortrim.core.measurements import Host
from ortrim.core.reports import NOT_FOR_DEVICE
from ortrim.core.targets import Target
from ortrim.errors import VerifyError


def require_fitting(host: Host, name: str, target: Target, api: int | None) -> None:
    """Refuse a device whose ABIs or API level are not a target's, before anything is pushed to it.

    `api` is the level that the library needs; levels that are not known are not compared. Raises `VerifyError`
    `not-for-this-device`.
    """
    abi, known = target.identifier.removeprefix("android-"), tuple(filter(None, host.abi.split(",")))
    if abi not in known:
        what = f"this library is for {abi}, and the device runs {', '.join(known) or 'nobody knows what'}"
        hint = f"name a device or an emulator of that ABI too, or choose its own: --target {_offered(known)}"
        raise VerifyError(NOT_FOR_DEVICE, what, where=name, hint=hint)
    if api is not None and host.api_level is not None and host.api_level < api:
        what = f"this library needs API level {api}, and the device has {host.api_level} ({host.os_version})"
        hint = "name a newer device, or lower android.api in the buildspec"
        raise VerifyError(NOT_FOR_DEVICE, what, where=name, hint=hint)


def _offered(abis: tuple[str, ...]) -> str:
    return f"android-{abis[0]}" if abis else "android-arm64-v8a"
