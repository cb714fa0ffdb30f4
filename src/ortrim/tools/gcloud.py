"""The `gcloud` program: found, run with the user's own configuration, and never quoted with a credential.

It holds the credentials, the project and the endpoints; ortrim asks it for none of them.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.base import Tool, require
from ortrim.tools.command import Completed, run
from ortrim.tools.watched import watch

GCLOUD: Final = Tool(name="gcloud", package="google-cloud-cli", minimum=(402, 0, 0))
"""402.0.0 of September 2022 is the first with `gcloud storage` for everybody (its release notes)."""
GUIDE: Final = "https://cloud.google.com/sdk/docs/install has other ways"
UPDATE_HINT: Final = "run: gcloud components update (or update the package that it came in)"
CREDENTIAL_FILES: Final = ("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE")
"""Variables that name a file with a credential, which gcloud uses without anybody being signed in."""
ANSWER_SECONDS: Final = 60.0
MOST_PRINTED_BYTES: Final = 64 << 20
SETTINGS: Final[dict[str, str]] = {
    "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
    "CLOUDSDK_CORE_DISABLE_COLOR": "true",
    "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
    "CLOUDSDK_CORE_LOG_HTTP": "false",
    "CLOUDSDK_CORE_USER_OUTPUT_ENABLED": "true",
    "CLOUDSDK_CORE_VERBOSITY": "warning",
    "CLOUDSDK_STORAGE_PROCESS_COUNT": "1",
    "LC_ALL": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
}
"""What of the user's settings would change the words that are read here, wait for an answer, or print requests with
their tokens. A single process copies a handful of files faster than several, each of which takes a second to start.
gcloud is written in Python, and its handler of SIGTERM writes to standard error before it cancels a test; if the signal
interrupts another such write, a buffered stream refuses ("reentrant call"), and the test goes on (seen in 528)."""
SECRETS: Final = re.compile(
    r"ya29\.[\w.~+/-]+=*"  # access tokens
    r"|\b1//[\w-]{10,}"  # refresh tokens
    r"|\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?"  # signed tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=Bearer )\S+",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Gcloud:
    """`gcloud` as found, and the whole environment that it is run with."""

    program: Path
    environment: Mapping[str, str]
    version: str = ""

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:
        """Run a command to its end, whatever its exit code. Raises `ToolError` (`tool-timeout`, ...)."""
        command = (self.program, *words)
        environment = {**self.environment, **SETTINGS}
        done = run(command, environment=environment, timeout_seconds=timeout_seconds, most_bytes=MOST_PRINTED_BYTES)
        return _without_secrets(done)

    def watch(self, *words: str | Path, hear: Callable[[str], None], check: Callable[[], None]) -> Completed:
        """Run a command to its end like `watched.watch`."""

        def heard(line: str) -> None:
            hear(without_secrets(line))

        environment = {**self.environment, **SETTINGS}
        command = (self.program, *words)
        return _without_secrets(watch(command, heard, check, environment=environment, most_bytes=MOST_PRINTED_BYTES))


def find_gcloud(environment: Mapping[str, str] | None = None) -> Gcloud:
    """Return gcloud; `environment` replaces this process's own.

    Raises `ToolError`: `tool-missing`, `tool-broken`, `tool-too-old`.
    """
    try:
        installed = require(GCLOUD)
    except ToolError as error:
        hint = install_hint() if error.reference == "tool-missing" else UPDATE_HINT
        raise ToolError(error.reference, error.what, where=error.where, why=error.why, hint=hint) from error
    given = dict(os.environ if environment is None else environment)
    return Gcloud(program=installed.path, environment=given, version=installed.version)


def install_hint() -> str:
    """Return the command that installs gcloud here: no distribution has it among its own packages."""
    if shutil.which("brew"):
        return f"run: brew install --cask gcloud-cli; {GUIDE}"
    prefix = "" if os.geteuid() == 0 else "sudo "
    return f"run: {prefix}snap install google-cloud-cli --classic; {GUIDE}"


def has_account(gcloud: Gcloud) -> bool:
    """Whether gcloud has a credential to work with; which one, and whether Google takes it, is not asked.

    Raises `ToolError` as `Gcloud.run` does.
    """
    if any(gcloud.environment.get(name) for name in CREDENTIAL_FILES):
        return True
    words = ("auth", "list", "--filter=status:ACTIVE", "--format=value(status)")
    done = gcloud.run(*words, timeout_seconds=ANSWER_SECONDS)
    return done.returncode == 0 and bool(done.stdout.strip())


def without_secrets(text: str) -> str:
    """Return a text without what looks like a credential of Google's; a server may have sent one back."""
    return SECRETS.sub("(removed)", text)


def _without_secrets(done: Completed) -> Completed:
    return replace(done, stdout=without_secrets(done.stdout), stderr=without_secrets(done.stderr))
