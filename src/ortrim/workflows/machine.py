"""Making a fresh runner of GitHub's ready: emulators from its distribution, NDKs and an emulated phone from its SDK."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from ortrim.core.apple import slice_of
from ortrim.core.targets import APPLE, OperatingSystem, Target
from ortrim.core.xcode import sdk_folder
from ortrim.errors import ToolError
from ortrim.sources.apt_sources import DEBIAN_KEYRING, Mirror, source_stanza
from ortrim.tools.command import run
from ortrim.tools.emulators import EMULATIONS, SUITE
from ortrim.tools.javac import find_jdk
from ortrim.tools.ndk import find_ndk
from ortrim.tools.xcode import find_xcode, require_sdks

INSTALL_SECONDS: Final = 1200
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
IMAGE: Final = "system-images;android-29;default;x86_64"
"""The phone that ONNX Runtime's own scripts emulate."""
AVD: Final = "ortrim"
EMULATOR_OPTIONS: Final = (
    *("-avd", AVD, "-memory", "4096", "-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot", "-gpu", "guest"),
    *("-partition-size", "2047", "-wipe-data"),
)
Announce = Callable[[str], None]


def install_emulators(targets: Iterable[Target], host: Target, announce: Announce) -> None:
    """Install what runs the programs of other Linux machines here, where it is missing.

    Their kernels and C libraries are Debian's: another distribution is told where Debian is, and to install nothing
    from there by itself. Raises `ToolError` (`not-prepared`, `no-debian-mirror`).
    """
    wanted = {
        EMULATIONS[target.architecture.value].user
        for target in targets
        if target.system is OperatingSystem.LINUX and target.architecture is not host.architecture
    }
    packages = {tool.package for tool in wanted if shutil.which(tool.name) is None}
    foreign = bool(wanted) and not _is_debian()
    mirror = _mirror() if foreign else None
    if mirror:
        packages.add(KEYRING)
    if packages:
        announce(f"install {', '.join(sorted(packages))}")
        _done(_as_root("apt-get", "update", "-qq"))
        _done(_as_root("apt-get", "install", "-y", "-qq", "--no-install-recommends", *sorted(packages)))
    if mirror:
        _install_file(APT / SOURCES, source_stanza(mirror, SUITE, "deb"))
        _install_file(APT / PREFERENCES, NOTHING_BY_ITSELF)


def _mirror() -> Mirror:
    address = os.environ.get(MIRROR, "")
    if not ADDRESS.fullmatch(address):
        what = "emulated machines need Debian's C library, and this machine does not know where Debian is"
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


def install_ndks(versions: Iterable[str], announce: Announce) -> None:
    """Install the versions of the NDK that are missing, with the SDK's own `sdkmanager`.

    Raises `ToolError` (`sdk-missing`, `not-prepared`).
    """
    for version in versions:
        try:
            find_ndk(version)
        except ToolError:
            announce(f"install NDK {version}")
            _done((_sdk_tool("sdkmanager"), "--install", f"ndk;{version}"))


def require_jdk(targets: Iterable[Target]) -> None:
    """Check that there is a JDK if a target is Android's: its JNI library and the classes of an AAR are made with it.

    Raises `ToolError` as `find_jdk` does.
    """
    if any(target.system is OperatingSystem.ANDROID for target in targets):
        find_jdk()


def require_xcodes(versions: Iterable[str], targets: Iterable[Target]) -> None:
    """Check that there is each version of Xcode, ready, with the SDKs of targets.

    Raises `ToolError` as `find_xcode` and `require_sdks` do.
    """
    folders = tuple(sdk_folder(slice_of(target)) for target in targets if target.system in APPLE)
    for version in versions:
        require_sdks(find_xcode(version), folders)


def start_phone(announce: Announce) -> None:
    """Start an emulated x86-64 phone that goes on running after this program, and wait until it has started.

    Raises `ToolError` (`sdk-missing`, `not-prepared`, `emulator-not-started`).
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        _done(_as_root("chmod", "0666", str(KVM)))
    announce(f"install {IMAGE}")
    _done((_sdk_tool("sdkmanager"), "--install", "platform-tools", "emulator", IMAGE))
    _done((_sdk_tool("avdmanager"), "create", "avd", "--force", "--name", AVD, "--device", "pixel", "--package", IMAGE))
    announce("start the emulator")
    emulator = str(_sdk() / "emulator" / "emulator")
    _done(("start-stop-daemon", "--start", "--background", "--startas", emulator, "--", *EMULATOR_OPTIONS))
    _await_boot(str(_sdk() / "platform-tools" / "adb"))


def _await_boot(adb: str) -> None:
    _done((adb, "wait-for-device"))
    ends = time.monotonic() + BOOT_SECONDS
    while run((adb, "shell", "getprop", "sys.boot_completed"), timeout_seconds=60).stdout.strip() != "1":
        if time.monotonic() > ends:
            what = f"has not started within {BOOT_SECONDS} seconds"
            raise ToolError("emulator-not-started", what, where="emulator", hint="run the job again")
        time.sleep(BOOT_PAUSE_SECONDS)


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


def _done(words: tuple[str, ...]) -> None:
    done = run(words, timeout_seconds=INSTALL_SECONDS)
    if done.returncode != 0:
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        what = f"ended with {done.returncode}"
        raise ToolError("not-prepared", what, where=" ".join(words), why=why, hint="run the job again")
