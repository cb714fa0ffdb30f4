"""A stand-in for what Firebase Test Lab consists of: the Testing API, the Tool Results API and Cloud Storage."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

TOKEN: Final = "ya29.a0-geheim_77"  # noqa: S105 - a secret to look for
BUCKET: Final = "test-lab-0a1b2c"
MODELS: Final = (
    {"id": "MediumPhone.arm", "name": "Medium phone", "form": "VIRTUAL", "supportedVersionIds": ["33", "34"]},
    {"id": "SH-01L", "name": "AQUOS", "form": "PHYSICAL", "supportedVersionIds": ["28"], "tags": ["deprecated=28"]},
    {"id": "gone", "name": "No longer there", "form": "PHYSICAL"},
)
CATALOGUE: Final[dict[str, Any]] = {
    "androidDeviceCatalog": {
        "models": MODELS,
        "versions": [{"id": number, "apiLevel": int(number)} for number in ("28", "33", "34")],
        "runtimeConfiguration": {
            "locales": [{"id": "en", "tags": ["default"]}, {"id": "de_DE"}],
            "orientations": [{"id": "portrait", "tags": ["default"]}, {"id": "landscape"}],
        },
    }
}
ENDED: Final = {"FINISHED", "ERROR", "CANCELLED", "UNSUPPORTED_ENVIRONMENT", "INVALID"}
Answer = tuple[int, Any]


class HangUp(Exception):
    """The connection is to be cut without an answer."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How the service behaves in one project."""

    refusals: Mapping[str, tuple[int, str] | None] = field(default_factory=dict)
    states: tuple[str, ...] = ("FINISHED",)
    error: str = ""
    outcome: Mapping[str, Any] = field(default_factory=lambda: {"summary": "success"})
    counts: Mapping[str, int] = field(default_factory=lambda: {"totalCount": 1})
    written: Mapping[str, bytes] = field(default_factory=dict)
    invalid: tuple[tuple[str, str], ...] = ()


@dataclass(kw_only=True)
class Matrix:
    """One matrix that was asked for: `body` as it came, and how often somebody looked at it."""

    project: str
    body: dict[str, Any]
    looks: int = 0
    cancelled: bool = False


class FirebaseService:
    def __init__(self, behaviours: Mapping[str, Behaviour]) -> None:
        self.behaviours = dict(behaviours)
        self.objects: dict[str, bytes] = {}
        self.matrices: dict[str, Matrix] = {}
        self.asked: list[str] = []
        self.uploads: dict[str, tuple[str, str]] = {}
        self.address = ""

    def environment(self, project: str, folder: Path) -> dict[str, str]:
        """Return what leads gcloud here, with a configuration of its own in `folder`."""
        folder.mkdir(exist_ok=True)
        token = folder / "token"
        token.write_text(TOKEN)
        return {
            "CLOUDSDK_CONFIG": str(folder),
            "CLOUDSDK_CORE_PROJECT": project,
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_TESTING": f"{self.address}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_TOOLRESULTS": f"{self.address}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{self.address}/storage/v1/",
            "CLOUDSDK_TEST_MATRIX_STATUS_INTERVAL": "1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        }

    def behaviour(self, project: str) -> Behaviour:
        return self.behaviours[project]

    def refusal(self, project: str, step: str) -> Answer | None:
        refusals = self.behaviour(project).refusals
        if step not in refusals:
            return None
        refused = refusals[step]
        if refused is None:
            raise HangUp
        return refused[0], {"error": {"code": refused[0], "message": refused[1]}}

    def create(self, project: str, body: dict[str, Any]) -> Answer:
        name = f"matrix-{project}{len(self.matrices)}"
        self.matrices[name] = Matrix(project=project, body=body)
        return 200, self.described(name)

    def look(self, name: str) -> Answer:
        matrix = self.matrices[name]
        refused = self.refusal(matrix.project, "look")
        if refused:
            return refused
        matrix.looks += 1
        described = self.described(name)
        if described["state"] == "FINISHED":
            self._write(matrix)
        return 200, described

    def described(self, name: str) -> dict[str, Any]:
        matrix = self.matrices[name]
        behaviour = self.behaviour(matrix.project)
        state = behaviour.states[min(max(matrix.looks - 1, 0), len(behaviour.states) - 1)]
        state = "CANCELLED" if matrix.cancelled else state
        device = matrix.body["environmentMatrix"]["androidDeviceList"]["androidDevices"][0]
        message: dict[str, Any] = {
            **matrix.body,
            "testMatrixId": name,
            "projectId": matrix.project,
            "state": _matrix_state(state),
            "testExecutions": [
                {
                    "id": f"{name}_1",
                    "matrixId": name,
                    "state": state,
                    "environment": {"androidDevice": device},
                    "testDetails": {"errorMessage": behaviour.error, "progressMessages": []},
                }
            ],
        }
        if behaviour.invalid:
            reasons = [{"reason": reason, "message": text} for reason, text in behaviour.invalid]
            return {**message, "state": "INVALID", "testExecutions": [], "extendedInvalidMatrixDetails": reasons}
        execution = {"projectId": matrix.project, "historyId": "bh.1", "executionId": name}
        message["resultStorage"] = {**matrix.body["resultStorage"], "toolResultsExecution": execution}
        return message

    def environments(self, name: str) -> Answer:
        matrix = self.matrices[name]
        behaviour = self.behaviour(matrix.project)
        device = matrix.body["environmentMatrix"]["androidDeviceList"]["androidDevices"][0]
        values = {
            "Model": device["androidModelId"],
            "Version": device["androidVersionId"],
            "Locale": device["locale"],
            "Orientation": device["orientation"],
        }
        result = {"outcome": behaviour.outcome, "state": "complete", "testSuiteOverviews": [behaviour.counts]}
        entries = [{"key": key, "value": value} for key, value in values.items()]
        return 200, {"environments": [{"dimensionValue": entries, "environmentResult": result}]}

    def object_message(self, name: str) -> dict[str, Any]:
        bucket, _, path = name.partition("/")
        content = self.objects[name]
        return {
            "kind": "storage#object",
            "id": f"{name}/1",
            "name": path,
            "bucket": bucket,
            "generation": "1",
            "metageneration": "1",
            "size": str(len(content)),
            "md5Hash": base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode(),
            "mediaLink": f"{self.address}/download/storage/v1/b/{bucket}/o/{quote(path, safe='')}?alt=media",
            "timeCreated": "2026-11-21T00:00:00.000Z",
            "updated": "2026-11-21T00:00:00.000Z",
            "storageClass": "STANDARD",
        }

    def _write(self, matrix: Matrix) -> None:
        folder = matrix.body["resultStorage"]["googleCloudStorage"]["gcsPath"].removeprefix("gs://").rstrip("/")
        device = matrix.body["environmentMatrix"]["androidDeviceList"]["androidDevices"][0]
        axis = "-".join(device[key] for key in ("androidModelId", "androidVersionId", "locale", "orientation"))
        for path, content in self.behaviour(matrix.project).written.items():
            self.objects[f"{folder}/{axis}/{path}"] = content


def _matrix_state(state: str) -> str:
    if state == "UNSUPPORTED_ENVIRONMENT":
        return "FINISHED"
    return state if state in ENDED else "RUNNING"
