"""Commands of `xcrun devicectl`, whose answers are documents in files: what it prints is for people and changes."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError, VerifyError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import Completed
from ortrim.tools.xcrun import Xcrun
from ortrim.verify.devices.devicectl_errors import LOST, devicectl_error
from ortrim.verify.devices.devicectl_listing import Phone, read_phones
from ortrim.verify.devices.pulled_files import text_of

DEVICECTL: Final = "devicectl"
LIST_SECONDS: Final = 60.0
COPY_SECONDS: Final = 300.0
INSTALL_SECONDS: Final = 600.0
UNINSTALL_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a command ended, and the document that it wrote, empty when it wrote none."""

    done: Completed
    document: str

    @property
    def said(self) -> str:
        """All that may tell why it failed."""
        return "\n".join(filter(None, (self.done.stdout, self.done.stderr, self.document)))


@dataclass(frozen=True, kw_only=True)
class PhoneClient:
    """A phone by devicectl's identifier; `where` is its name in diagnostics."""

    xcrun: Xcrun
    identifier: str
    where: str

    def install(self, app: Path) -> None:
        """Install an app, or bring it up to date. Raises `VerifyError` as `devicectl_error` does, and `ToolError`."""
        self._required(("device", "install", "app"), (), (app,), INSTALL_SECONDS)

    def uninstall(self, app: str) -> None:
        """Remove an app with all that it left. Raises as `install` does."""
        self._required(("device", "uninstall", "app"), (), (app,), UNINSTALL_SECONDS)

    def launch(self, app: str, environment: str, seconds: float) -> Answer:
        """Run an app to its end, whatever that is; `environment` is a JSON object.

        The app is ended with devicectl. Raises `ToolError` (`tool-timeout`, `tool-endless`, ...).
        """
        options = ("--console", "--terminate-existing", "--environment-variables", environment)
        return self._asked(("device", "process", "launch"), options, (app,), seconds)

    def copy_from(self, app: str, source: str, destination: Path) -> Answer:
        """Copy a folder of an app's own into a folder of this machine. Raises `VerifyError` when it does not end."""
        options = (
            *("--domain-type", "appDataContainer", "--domain-identifier", app),
            *("--source", source, "--destination", str(destination)),
        )
        return self._patient(("device", "copy", "from"), options, (), COPY_SECONDS)

    def _required(
        self, verb: Sequence[str], options: Sequence[str], named: Sequence[str | Path], seconds: float
    ) -> None:
        answer = self._patient(verb, options, named, seconds)
        if answer.done.returncode != 0:
            raise devicectl_error(answer.said, self.where)

    def _patient(
        self, verb: Sequence[str], options: Sequence[str], named: Sequence[str | Path], seconds: float
    ) -> Answer:
        try:
            return self._asked(verb, options, named, seconds)
        except ToolError as error:
            if error.reference != "tool-timeout":
                raise
            reference, what, hint = LOST
            why = f"devicectl {' '.join(verb)} {error.what}"
            raise VerifyError(reference, what, where=self.where, why=why, hint=hint) from error

    def _asked(
        self, verb: Sequence[str], options: Sequence[str], named: Sequence[str | Path], seconds: float
    ) -> Answer:
        words = (*verb, "--device", self.identifier, *options)
        return ask(self.xcrun, words, named, seconds)


def ask(xcrun: Xcrun, words: Sequence[str], named: Sequence[str | Path], seconds: float) -> Answer:
    """Run a command of devicectl to its end; what it names comes last. Raises `ToolError`."""
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as place:
        document = Path(place) / "answer.json"
        done = xcrun.run(DEVICECTL, *words, "--json-output", document, *named, timeout_seconds=seconds)
        return Answer(done=done, document=text_of(document))


def list_phones(xcrun: Xcrun) -> tuple[Phone, ...]:
    """Return the phones that this Mac sees, ready or not.

    Raises `VerifyError` as `devicectl_error` and `read_phones` do, and `ToolError`.
    """
    answer = ask(xcrun, ("list", "devices"), (), LIST_SECONDS)
    if answer.done.returncode != 0:
        raise devicectl_error(answer.said, DEVICECTL)
    return read_phones(answer.document)
