"""Making a fresh runner of GitHub's ready: emulators from its distribution, NDKs and an emulated phone from its SDK."""

import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ortrim.base.command import last_lines, run
from ortrim.base.files import storage_errors
from ortrim.base.tools import SUITE, X64_USER
from ortrim.buildspec.targets import Target
from ortrim.errors import Diagnostic, DiagnosticGroup, StorageError, ToolError, UsageError, VerifyError
from ortrim.platforms import Platform, platform_of
from ortrim.platforms.android.ndk import VARIABLES, find_ndk
from ortrim.sources.debian import DEBIAN_KEYRING, Mirror, source_stanza

INSTALL_SECONDS: Final = 1200
REACHED_SECONDS: Final = 300.0
"""How long an emulator that has been started may take until adb sees it."""
ANSWER_SECONDS: Final = 60.0
"""How long it may take to say whether it has started."""
BOOT_SECONDS: Final = 1200
"""What ONNX Runtime's own scripts give an emulator to start."""
BOOT_PAUSE_SECONDS: Final = 2.0
KVM: Final = Path("/dev/kvm")
OS_RELEASE: Final = Path("/etc/os-release")
APT: Final = Path("/etc/apt")
KEYRING: Final = "debian-archive-keyring"
MIRROR: Final = "ORTRIM_DEBIAN_MIRROR"
"""Says where Debian is to machines of other distributions; apt itself checks the signature of what it fetches there."""
ADDRESS: Final = re.compile(r"https?://[^\s/]+(/\S*)?")
SOURCES: Final = "sources.list.d/ortrim-debian.sources"
PREFERENCES: Final = "preferences.d/ortrim-debian"
NOTHING_BY_ITSELF: Final = "Package: *\nPin: release o=Debian\nPin-Priority: -1\n"
PHONES: Final = {24: "default", 29: "default", 35: "google_apis_ps16k"}
"""Emulated phones by API level: the lowest of the official AAR, that of ONNX Runtime's own scripts, pages of 16 KB."""
DEFAULT_LEVEL: Final = 29
AVD: Final = "ortrim"
AVDS: Final = "ANDROID_AVD_HOME"
"""The one variable of which avdmanager and the emulator make the same: the former follows XDG_CONFIG_HOME, too."""
EMULATOR_OPTIONS: Final = (
    *("-avd", AVD, "-memory", "4096", "-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot"),
    *("-gpu", "swiftshader_indirect", "-partition-size", "2047", "-wipe-data"),
)
EMULATOR_LOG: Final = Path(tempfile.gettempdir()) / "ortrim-emulator.log"
ACCEPTING: Final = ("/bin/sh", "-c", 'yes | "$0" "$@"')
"""Starts a program with yes to all that it asks: sdkmanager asks about licences that nobody has accepted yet."""
Announce = Callable[[str], None]


def install_emulators(targets: Iterable[Target], host: Target, announce: Announce) -> None:
    """Install what runs the programs of other Linux machines here, where it is missing.

    Their kernels and C libraries are Debian's: on another distribution, a Debian mirror is configured, and to install
    nothing from there by itself.
    """
    wanted = {
        emulation.user
        for target in targets
        if (emulation := platform_of(target).emulation_of(target)) and target.architecture is not host.architecture
    }
    packages = {tool.package for tool in wanted if shutil.which(tool.name) is None}
    foreign = bool(wanted) and not _is_debian()
    mirror = _mirror() if foreign else None
    if mirror:
        packages.add(KEYRING)
    if packages:
        _install_packages(packages, announce)
    if mirror:
        _install_file(APT / SOURCES, source_stanza(mirror, SUITE, "deb"))
        _install_file(APT / PREFERENCES, NOTHING_BY_ITSELF)


def install_layout_emulator(host: Target | None, announce: Announce) -> None:
    """Install the emulator that conversion to NCHWc layout needs, where it is missing; without it models stay plain.

    Every machine that plans a run needs it, or none: the model is a part of the plan.
    """
    if host is None or not host.converts_nchwc or shutil.which(X64_USER.name):
        return
    try:
        _install_packages({X64_USER.package}, announce)
    except ToolError as error:
        announce(f"models are not converted to NCHWc layout: {error.what}")


def _install_packages(packages: Collection[str], announce: Announce) -> None:
    announce(f"install {', '.join(sorted(packages))}")
    _done(_as_root("apt-get", "update", "-qq"))
    _done(_as_root("apt-get", "install", "-y", "-qq", "--no-install-recommends", *sorted(packages)))


def _mirror() -> Mirror:
    address = os.environ.get(MIRROR, "")
    if not ADDRESS.fullmatch(address):
        what = "emulated machines need Debian's C library, and no Debian mirror is configured"
        why = f"{MIRROR} is {address[:100]!r}" if address else f"{MIRROR} is not set"
        hint = (
            f"set {MIRROR} to the address of a mirror of Debian; in a workflow, the repository's variable DEBIAN_MIRROR"
        )
        raise ToolError("no-debian-mirror", what, where="apt", why=why, hint=hint)
    return Mirror(uri=address, signed_by=str(DEBIAN_KEYRING))


def _is_debian() -> bool:
    release = OS_RELEASE.read_text(encoding="utf-8", errors="replace") if OS_RELEASE.is_file() else ""
    return re.search(r"^ID=debian$", release, re.MULTILINE) is not None


def _install_file(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="ortrim-", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        _done(_as_root("install", "-D", "-m", "0644", file.name, str(path)))


def prepare_sdk(platform: Platform, versions: Iterable[str], targets: Sequence[Target], announce: Announce) -> None:
    """Check that each version of a platform's SDK is there for its targets; install what can be, if it is not."""
    for version in versions:
        try:
            platform.require_sdk(version, targets)
        except ToolError:
            package = platform.sdk_package(version)
            if not package:
                raise
            _install(announce, package)


def prefer_ndk(version: str) -> None:
    """Let the steps that follow compile with the installed NDK of a version."""
    write_variable(VARIABLES[0], str(find_ndk(version).folder))


def start_phone(level: int, announce: Announce) -> None:
    """Start an emulated x86-64 phone that goes on running after this program, and wait until it has started.

    The steps that follow find `adb`.
    """
    if level not in PHONES:
        hint = f"choose among: {', '.join(map(str, PHONES))}"
        raise UsageError("no-such-phone", f"no phone of API level {level} is emulated", where="--api", hint=hint)
    image = f"system-images;android-{level};{PHONES[level]};x86_64"
    if not os.access(KVM, os.R_OK | os.W_OK):
        _done(_as_root("chmod", "0666", str(KVM)))
    _install(announce, "platform-tools", "emulator", image)
    environment = {**os.environ, AVDS: str(_avds())}
    words = ("create", "avd", "--force", "--name", AVD, "--device", "pixel", "--package", image)
    _done((_sdk_tool("avdmanager"), *words), environment)
    announce("start the emulator")
    daemon = ("start-stop-daemon", "--start", "--background", "--output", str(EMULATOR_LOG), "--startas")
    _done((*daemon, str(_sdk() / "emulator" / "emulator"), "--", *EMULATOR_OPTIONS), environment)
    adb = _sdk() / "platform-tools" / "adb"
    _await_boot(adb)
    add_to_path(adb.parent)


def _avds() -> Path:
    folder = Path(os.environ.get(AVDS) or Path.home() / ".android" / "avd")
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _await_boot(adb: Path) -> None:
    _answer(REACHED_SECONDS, adb, "wait-for-device")
    ends = time.monotonic() + BOOT_SECONDS
    while _answer(ANSWER_SECONDS, adb, "shell", "getprop", "sys.boot_completed") != "1":
        if time.monotonic() > ends:
            raise _not_started(f"has not started within {BOOT_SECONDS} seconds")
        time.sleep(BOOT_PAUSE_SECONDS)


def _answer(seconds: float, adb: Path, *words: str) -> str:
    try:
        return run((adb, *words), timeout_seconds=seconds).stdout.strip()
    except ToolError as error:
        raise _not_started(f"does not answer adb {words[0]} within {seconds:g} seconds") from error


def _not_started(what: str) -> ToolError:
    said = EMULATOR_LOG.read_text(encoding="utf-8", errors="replace") if EMULATOR_LOG.is_file() else ""
    return ToolError("emulator-not-started", what, where="emulator", why=last_lines(said, 20), hint="run the job again")


def _install(announce: Announce, *packages: str) -> None:
    announce(f"install {', '.join(packages)}")
    _done((*ACCEPTING, _sdk_tool("sdkmanager"), "--install", *packages))


def _sdk() -> Path:
    folder = next((os.environ[name] for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT") if os.environ.get(name)), None)
    if folder is None:
        what, hint = "Android's SDK is not here", "run this on a runner of GitHub's that has it, or set ANDROID_HOME"
        raise ToolError("sdk-missing", what, where="ANDROID_HOME", hint=hint)
    return Path(folder)


def _sdk_tool(name: str) -> str:
    return str(_sdk() / "cmdline-tools" / "latest" / "bin" / name)


def _as_root(*words: str) -> tuple[str, ...]:
    return words if os.geteuid() == 0 else ("sudo", *words)


def _done(words: tuple[str, ...], environment: Mapping[str, str] | None = None) -> None:
    done = run(words, environment=environment, timeout_seconds=INSTALL_SECONDS)
    if done.returncode != 0:
        why = last_lines(done.stderr or done.stdout)
        what = f"ended with {done.returncode}"
        raise ToolError("not-prepared", what, where=" ".join(words), why=why, hint="run the job again")


OUTPUT: Final = "GITHUB_OUTPUT"
LATER_VARIABLES: Final = "GITHUB_ENV"
LATER_PATH: Final = "GITHUB_PATH"
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
SUMMARY_BYTES: Final = 1 << 20
"""What GitHub shows of one step's summary; a larger one is refused as a whole."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
CUT: Final = "\n\n…and more, which GitHub would not show: it is in the report of the delivery.\n"


def write_output(name: str, value: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Hand a value to later jobs as an output of this step; outside a workflow nothing is written.

    Whatever is in the value, it cannot end it and begin another output: it stands between two lines of chance. Returns
    whether it was written. Raises `StorageError`.
    """
    return _append(environment.get(OUTPUT), _named(name, value))


def write_variable(name: str, value: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Give the steps that follow a variable, as `write_output` gives an output."""
    return _append(environment.get(LATER_VARIABLES), _named(name, value))


def add_to_path(folder: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Let the steps that follow find the programs of a folder first, as `write_output` gives an output."""
    return _append(environment.get(LATER_PATH), f"{folder}\n")


def _named(name: str, value: str) -> str:
    assert NAME.fullmatch(name)
    mark = f"ortrim-{secrets.token_hex(16)}"
    return f"{name}<<{mark}\n{value}\n{mark}\n"


def append_summary(text: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Add Markdown to this step's summary, cut where GitHub would refuse it; outside a workflow nothing is written.

    Returns whether it was written. Raises `StorageError`.
    """
    content = text.encode()
    room = SUMMARY_BYTES - len(CUT.encode())
    if len(content) > SUMMARY_BYTES:
        whole_lines = content[:room].rpartition(b"\n")[0]
        text = whole_lines.decode() + CUT
    return _append(environment.get(SUMMARY), text)


def _append(file: str | None, text: str) -> bool:
    if not file:
        return False
    path = Path(file)
    with storage_errors(path):
        if not path.is_file():
            hint = "the runner makes this file and names it in the environment"
            raise StorageError("no-runner-file", "there is no such file", where=file, hint=hint)
        with path.open("a", encoding="utf-8") as opened:
            opened.write(text)
    return True


VARIABLE: Final = "ORTRIM_NEEDS"


def require_success(text: str) -> tuple[str, ...]:
    """Return the names of all jobs in the JSON document that GitHub makes of `needs`, when all of them ended well."""
    jobs = _jobs(text)
    failed: tuple[Diagnostic, ...] = tuple(
        VerifyError("job-failed", f"ended with {result}", where=name, hint="see its log")
        for name, result in jobs.items()
        if result != "success"
    )
    if failed:
        raise failed[0] if len(failed) == 1 else DiagnosticGroup(failed)
    return tuple(jobs)


def _jobs(text: str) -> dict[str, str]:
    try:
        document: Any = json.loads(text)
        jobs = {str(name): str(job["result"]) for name, job in document.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _bad(f"{type(error).__name__}: {error}") from error
    if not jobs:
        raise _bad("it names no job")
    return jobs


def _bad(why: str) -> UsageError:
    what, hint = "is not what GitHub makes of `needs`", "this task is a step of a workflow"
    return UsageError("bad-needs", what, where=VARIABLE, why=why, hint=hint)
