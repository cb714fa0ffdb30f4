"""Projects and device pools of AWS Device Farm by the names that a user gave them: `PROJECT/POOL`."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from ortrim.errors import VerifyError
from ortrim.verify.devices.farms.device_farm_account import Account

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient

ARN: Final = "arn:"
FORM: Final = "devicefarm:PROJECT/POOL, each a name or an ARN"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run goes: a project, and the pool of which one device is taken, both as ARNs."""

    project: str
    pool: str


def find_place(account: Account, device: str) -> Place:
    """Return the project and the pool of a device's name.

    An ARN of a project has no slash, so the first one always ends the project. Raises `VerifyError` `farm-project`,
    `farm-device-unknown`, and what asking raises.
    """
    project, slash, pool = device.partition("/")
    if not (project and slash and pool):
        what = f"{device!r} names no project and device pool"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=f"the form is {FORM}")
    found = _project(account, project)
    return Place(project=found, pool=_pool(account, found, pool))


def _project(account: Account, name: str) -> str:
    if name.startswith(ARN):
        return name
    projects = account.ask(_projects)
    return _only(projects, name, "farm-project", "project", account.where)


def _pool(account: Account, project: str, name: str) -> str:
    if name.startswith(ARN):
        return name
    pools = account.ask(lambda client: _pools(client, project))
    return _only(pools, name, "farm-device-unknown", "device pool", account.where)


def _projects(client: "DeviceFarmClient") -> list[tuple[str, str]]:
    pages = client.get_paginator("list_projects").paginate()
    return [(item["name"], item["arn"]) for page in pages for item in page["projects"]]


def _pools(client: "DeviceFarmClient", project: str) -> list[tuple[str, str]]:
    pages = client.get_paginator("list_device_pools").paginate(arn=project)
    return [(item["name"], item["arn"]) for page in pages for item in page["devicePools"]]


def _only(items: Sequence[tuple[str, str]], name: str, reference: str, kind: str, where: str) -> str:
    found = [arn for named, arn in items if named == name]
    if len(found) == 1:
        return found[0]
    names = sorted({named for named, _ in items})
    if found:
        what, hint = f"there are {len(found)} of the name {name!r}", f"give the ARN of the {kind} that is meant"
    else:
        near = get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
        what = f"there is no {kind} called {name!r}"
        hint = f"there are: {', '.join(near)}" if near else f"make a {kind} in AWS's console"
    raise VerifyError(reference, what, where=where, hint=hint)


def console_url(run: str, region: str) -> str:
    """Return where a person sees a run, by its ARN: `arn:aws:devicefarm:REGION:ACCOUNT:run:PROJECT/RUN`."""
    project, _, number = run.rpartition(":")[2].partition("/")
    return f"https://{region}.console.aws.amazon.com/devicefarm/home#/mobile/projects/{project}/runs/{number}"
