"""A stand-in for AWS Device Farm: the calls that ortrim makes, as boto3 sends them, with a run that goes as told."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from loopback_service import Asked, LoopbackService, Reply
from zips import zipped

SIGNATURE: Final = "geheime-Unterschrift-55"
"""Part of each signed address: nobody is to see it."""
ACCOUNT: Final = "arn:aws:devicefarm:us-west-2:123456789012"
PROJECT: Final = f"{ACCOUNT}:project:5e01a8c7-0000"
POOL: Final = f"{ACCOUNT}:devicepool:5e01a8c7-0000/900a-0000"
RUN: Final = f"{ACCOUNT}:run:5e01a8c7-0000/f00d-0000"
DEVICES: Final = ("arn:aws:devicefarm:us-west-2::device:0000PIXEL", "arn:aws:devicefarm:us-west-2::device:0000GALAXY")
CONTENT: Final = {"Content-Type": "application/x-amz-json-1.1"}
IN_ARCHIVE: Final = "Host_Machine_Files/$DEVICEFARM_LOG_DIR/ortrim-results"


class DeviceFarmService(LoopbackService):
    """Projects `voice` and `twins`, a pool `phones` of two devices; what may be told is public."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses = ["PENDING", "PENDING_DEVICE", "PREPARING", "RUNNING", "COMPLETED"]
        self.run: dict[str, Any] = {"result": "PASSED"}
        self.upload: dict[str, Any] = {"status": "SUCCEEDED"}
        self.compatibility: dict[str, Any] = {
            "compatibleDevices": [{"device": {"arn": arn}, "compatible": True} for arn in DEVICES],
            "incompatibleDevices": [],
        }
        self.artifacts: list[tuple[str, bytes]] = [("CUSTOMER_ARTIFACT", archive({"requests.json": b"{}"}))]
        self.store = self.address
        self.said: list[tuple[str, Any]] = []
        self.uploads: dict[str, str] = {}
        self.files: dict[str, bytes] = {}

    def name_of(self, asked: Asked) -> str:
        """Return the call's name, `put` for a file and `fetch` for an artifact."""
        target = asked.headers.get("x-amz-target", "")
        return target.removeprefix("DeviceFarm_20150623.") or {"PUT": "put", "GET": "fetch"}[asked.method]

    def call(self, name: str) -> dict[str, Any]:
        body = next(asked.body for asked in reversed(self.asked) if self.name_of(asked) == name)
        said: dict[str, Any] = json.loads(body)
        return said

    def answer(self, asked: Asked) -> Reply:
        name = self.name_of(asked)
        path = urlsplit(asked.path).path
        if name == "put":
            self.files[self.uploads[path.rpartition("/")[2]]] = asked.body
            return Reply()
        if name == "fetch":
            return Reply(body=self.artifacts[int(path.rpartition("/")[2])][1])
        do = getattr(self, re.sub("(?=[A-Z])", "_", name).lower())
        said = do(json.loads(asked.body))
        self.said.append((name, said))
        return Reply(body=json.dumps(said).encode(), headers=CONTENT)

    def _signed(self, path: str) -> str:
        return f"{self.store}/{path}?X-Amz-Signature={SIGNATURE}"

    def _list_projects(self, _: Mapping[str, Any]) -> Any:
        names = {"voice": PROJECT, "twins": f"{PROJECT}1"}
        return {"projects": [{"name": name, "arn": arn} for name, arn in [*names.items(), ("twins", f"{PROJECT}2")]]}

    def _list_device_pools(self, said: Mapping[str, Any]) -> Any:
        assert said["arn"] == PROJECT
        return {"devicePools": [{"name": "phones", "arn": POOL}, {"name": "Top Devices", "arn": f"{POOL}1"}]}

    def _create_upload(self, said: Mapping[str, Any]) -> Any:
        number = str(len(self.uploads))
        self.uploads[number] = said["name"]
        upload = {"arn": f"{ACCOUNT}:upload:5e01a8c7-0000/{number}", "status": "INITIALIZED"}
        return {"upload": {**upload, "url": self._signed(f"upload/{number}")}}

    def _get_upload(self, said: Mapping[str, Any]) -> Any:
        return {"upload": {"arn": said["arn"], **self.upload}}

    def _delete_upload(self, said: Mapping[str, Any]) -> Any:
        self.uploads.pop(said["arn"].rpartition("/")[2])
        return {}

    def _get_device_pool_compatibility(self, _: Mapping[str, Any]) -> Any:
        return self.compatibility

    def _schedule_run(self, _: Mapping[str, Any]) -> Any:
        return {"run": {"arn": RUN, "status": "SCHEDULING"}}

    def _get_run(self, said: Mapping[str, Any]) -> Any:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {"run": {"arn": said["arn"], "status": status, **self.run}}

    def _list_jobs(self, said: Mapping[str, Any]) -> Any:
        device = {"arn": DEVICES[0], "name": "Google Pixel 8", "os": "14"}
        return {"jobs": [{"arn": said["arn"].replace(":run:", ":job:"), "device": device}]}

    def _stop_run(self, said: Mapping[str, Any]) -> Any:
        return {"run": {"arn": said["arn"], "status": "STOPPING"}}

    def _list_artifacts(self, said: Mapping[str, Any]) -> Any:
        kinds = {"FILE": "CUSTOMER_ARTIFACT", "LOG": "DEVICE_LOG"}
        return {
            "artifacts": [
                {"type": kind, "url": self._signed(f"artifact/{number}")}
                for number, (kind, _) in enumerate(self.artifacts)
                if kind == kinds[said["type"]]
            ]
        }


def fault(code: str, message: str = "as told", status: int = 400) -> Reply:
    body = json.dumps({"__type": code, "message": message}).encode()
    return Reply(status=status, body=body, headers=CONTENT)


def archive(files: Mapping[str, bytes], top: str = IN_ARCHIVE) -> bytes:
    """Return a zip archive of files below a folder, as customer artifacts come."""
    return zipped({f"{top}/{name}" if top else name: content for name, content in files.items()})
