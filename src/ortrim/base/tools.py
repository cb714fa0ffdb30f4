"""Programs of the system: whether they are there, how old, how to get them; what they say when they fail.

Also what emulates other machines.
"""

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from ortrim import errors
from ortrim.base.cache import cache_folder
from ortrim.base.command import Completed, last_lines, run
from ortrim.base.files import shipped_words
from ortrim.errors import Diagnostic, NetworkError, ToolError

VERSION: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)")
ANSWER_SECONDS: Final = 20


class Cause(NamedTuple):
    """Why a program failed: a pattern of a line that it prints, and the diagnostic that comes of it."""

    words: str
    code: str
    what: str
    hint: str
    kind: type[Diagnostic] | None = None

    def diagnostic(self, where: str, why: str, kind: type[Diagnostic], **names: str) -> Diagnostic:
        """Return what comes of it, of the `kind` unless it has its own; `names` are filled into its words."""
        what, hint = (text.format(**names) if names else text for text in (self.what, self.hint))
        return (self.kind or kind)(self.code, what, where=where, why=why, hint=hint)


def causes(program: str) -> tuple[Cause, ...]:
    """Return the causes that `resources/causes.toml` has for a program or a service."""
    rows = shipped_words("causes")[program]
    return tuple(Cause(**each | ({"kind": getattr(errors, each["kind"])} if "kind" in each else {})) for each in rows)


def diagnose(
    printed: str, table: Iterable[Cause], where: str, why: str = "", *, kind: type[Diagnostic] = ToolError, **names: str
) -> Diagnostic | None:
    """Return the diagnostic of the table's first cause in what was printed, if any.

    Without a `why`, the reason is the last line that the cause's pattern is found in.
    """
    for cause in table:
        if found := [line for line in printed.splitlines() if re.search(cause.words, line)]:
            return cause.diagnostic(where, why or found[-1].strip(), kind, **names)
    return None


CERTIFICATES: Final = "REQUESTS_CA_BUNDLE"
"""Read by requests, by pip and, because we hand it on, by git (`http.sslCAInfo`)."""
GIT_CERTIFICATES: Final = "GIT_SSL_CAINFO"
UNTRUSTED_WORDS: Final = ("SSLCertVerificationError", "certificate verification failed", "SSL certificate problem")
"""Of pip, on every system, and of git with GnuTLS and with OpenSSL."""
UNTRUSTED_HINT: Final = (
    "behind a proxy with a certificate of its own, name the file that has it (PEM), which whoever runs the proxy"
    f" has: export {CERTIFICATES}=/path/to/certificates.pem; ortrim, pip and git read it"
)


def is_untrusted(printed: str) -> bool:
    """Whether a program says that it does not trust a server's certificate."""
    return any(words in printed for words in UNTRUSTED_WORDS)


def untrusted(where: str, printed: str) -> NetworkError:
    """Return the diagnostic of what printed so (`untrusted-certificate`); its first such line is the cause."""
    what = "the server's certificate is not trusted here"
    why = next(filter(is_untrusted, printed.splitlines()), printed)
    return NetworkError("untrusted-certificate", what, where=where, why=why, hint=UNTRUSTED_HINT)


def git_certificates() -> dict[str, str]:
    """Return what git needs to trust the same certificates, unless the user says it to git already."""
    named = os.environ.get(CERTIFICATES)
    return {GIT_CERTIFICATES: named} if named and GIT_CERTIFICATES not in os.environ else {}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program of the system: its name on PATH, the oldest version that will do, and Debian's package of it."""

    name: str
    package: str
    minimum: tuple[int, ...] = ()
    version_words: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, kw_only=True)
class InstalledTool:
    """A program that is there and answered: `version` is the first dotted number it printed."""

    name: str
    path: Path
    version: str


def require(tool: Tool) -> InstalledTool:
    """Return the tool as installed."""
    found = shutil.which(tool.name)
    if found is None:
        raise ToolError(
            "tool-missing", "is not installed", where=tool.name, hint=f"run: {install_command(tool.package)}"
        )
    version = _version_of(tool, found)
    if tuple(int(part) for part in version.split(".")) < tool.minimum:
        minimum = ".".join(str(part) for part in tool.minimum)
        what = f"version {version} is too old, {minimum} or newer is needed"
        raise ToolError("tool-too-old", what, where=found, hint=f"run: {install_command(tool.package)}")
    return InstalledTool(name=tool.name, path=Path(found), version=version)


MOST_PRINTED_BYTES: Final = 64 << 20
"""A report of a million samples, of which each is three numbers, has about 30 MB. Output without an end would fill this
machine's memory long before the time limit."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that is asked with arguments, and the whole environment that it is run with."""

    path: Path
    environment: Mapping[str, str]

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:
        """Run it to its end, whatever its exit code."""
        command = (self.path, *words)
        return run(
            command, environment=self.environment, timeout_seconds=timeout_seconds, most_bytes=MOST_PRINTED_BYTES
        )


def with_plain_words(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment, else this process's own, in which programs print the words that are read here."""
    return {**(os.environ if environment is None else environment), "LC_ALL": "C"}


def _version_of(tool: Tool, program: str) -> str:
    asked = Program(path=Path(program), environment=with_plain_words())
    done = asked.run(*tool.version_words, timeout_seconds=ANSWER_SECONDS)
    match = VERSION.search(done.stdout or done.stderr)
    if done.returncode == 0 and match:
        return match.group(1)
    why = last_lines(done.stderr or done.stdout, 3)
    hint = f"install it again: {install_command(tool.package)}"
    what = f"'{tool.name} {' '.join(tool.version_words)}' names no version (exit code {done.returncode})"
    raise ToolError("tool-broken", what, where=program, why=why, hint=hint)


MANAGERS: Final = {
    "apt-get": "apt-get install {}",
    "dnf": "dnf install {}",
    "zypper": "zypper install {}",
    "pacman": "pacman -S {}",
}
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "adb": {
        "dnf": "android-tools",
        "zypper": "android-tools",
        "pacman": "android-tools",
        "brew": "android-platform-tools",
    },
    "default-jdk-headless": {"dnf": "java-devel", "zypper": "java-devel", "pacman": "jdk-openjdk", "brew": "openjdk"},
    "docker.io": {"dnf": "moby-engine", "zypper": "docker", "pacman": "docker", "brew": "docker"},
    "g++": {"dnf": "gcc-c++", "zypper": "gcc-c++", "pacman": "gcc", "brew": "gcc"},
    "openssh-client": {"dnf": "openssh-clients", "zypper": "openssh-clients", "pacman": "openssh", "brew": "openssh"},
    "qemu-system-arm": {
        "dnf": "qemu-system-aarch64",
        "zypper": "qemu-arm",
        "pacman": "qemu-system-aarch64",
        "brew": "qemu",
    },
    "qemu-user-static": {"zypper": "qemu-linux-user"},
}
"""What Fedora, openSUSE, Arch and Homebrew call packages that have another name in Debian."""


def install_command(package: str) -> str:
    """Return the command that installs a package, by Debian's name, with `sudo` for a user who is not root."""
    names = ELSEWHERE.get(package, {})
    for manager, command in MANAGERS.items():
        if shutil.which(manager):
            is_root = hasattr(os, "geteuid") and os.geteuid() == 0
            return ("" if is_root else "sudo ") + command.format(names.get(manager, package))
    if shutil.which("brew"):
        return f"brew install {names.get('brew', package)}"
    return f"your system's package manager, for {package}"


def require_extra(package: str, extra: str) -> str:
    """Return the version of a Python package that one of ortrim's extras brings, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError as error:
        what, why = "is not installed", f"it comes with the extra '{extra}', which the base install leaves out"
        raise ToolError("tool-missing", what, where=package, why=why, hint=extra_command(extra)) from error


def extra_command(extra: str) -> str:
    """Return the command that has ortrim with an extra, by the program that installed it."""
    environment = Path(sys.prefix)
    if environment.parent.name.startswith("archive-v"):
        installer = "uvx"
    elif (environment / "uv-receipt.toml").is_file():
        installer = "uv tool install"
    elif (environment / "pipx_metadata.json").is_file():
        installer = "pipx install --force"
    else:
        installer = "pip install"
    return f'{installer} "ortrim[{extra}]"'


CHOOSE: Final = "sudo xcode-select -s /Applications/Xcode.app"
INSTALL: Final = f"install Xcode from the App Store, then run: {CHOOSE}"
XCRUN_SECONDS: Final = 60.0
"""Xcode's first answer after an update takes its time."""
CHILDREN: Final = "SIMCTL_CHILD_"
"""Variables of this prefix reach what runs in a simulator; none of the user's shell may favour one library."""


def find_xcrun(tool: str, environment: Mapping[str, str] | None = None) -> Program:
    """Return xcrun with an Xcode that has `simctl` or `devicectl`; `environment` replaces this process's own."""
    found = shutil.which("xcrun")
    if found is None:
        what, hint = "comes with Xcode, which runs only on a Mac", INSTALL
        raise ToolError("tool-missing", what, where="xcrun", hint=hint)
    given = with_plain_words(environment).items()
    xcrun = Program(path=Path(found), environment={key: own for key, own in given if not key.startswith(CHILDREN)})
    done = xcrun.run("--find", tool, timeout_seconds=XCRUN_SECONDS)
    if done.returncode != 0:
        said = done.stderr or done.stdout
        why, what = last_lines(said, 3), f"the selected developer tools have no {tool}"
        missing = ToolError("xcode-missing", what, where="xcrun", why=why, hint=INSTALL)
        raise diagnose(said, causes("xcrun"), "xcrun", why) or missing
    return xcrun


ALL_TARGETS: Final = "all targets"


@dataclass(frozen=True, kw_only=True)
class ToolFinding:
    """One thing that `doctor` examined.

    `found` is a version and a path, or an amount; empty when absent. `needed_for` says for which targets and when.
    `problem` is empty when all is well; `remedy` is the command that helps, or advice. What is not `required` keeps
    from the builds that `needed_for` names alone.
    """

    name: str
    found: str
    needed_for: str = ALL_TARGETS
    required: bool = True
    problem: str = ""
    remedy: str = ""

    @property
    def satisfied(self) -> bool:
        """Whether nothing needs to be done."""
        return not self.problem


SUITE: Final = "trixie"
"""The Debian release of the kernel and the libraries: its glibc, 2.41, loads what is built for any older one."""


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """One architecture as it is emulated.

    `machine` is the kernel's word, `debian` Debian's; `library_folders` lie below `/usr/lib`, glibc's first, with the
    `loaders`. `user_cpus` and `system_cpus` are qemu's names, the default first; without any, the whole machine is not
    emulated. `defaults` are those to verify on when no device is named. `baselines` has, for each least processor of a
    buildspec, the emulated ones with all its instructions.
    """

    machine: str
    debian: str
    library_folders: tuple[str, ...]
    loaders: tuple[str, ...]
    user: Tool
    user_cpus: tuple[str, ...]
    system_cpus: tuple[str, ...] = ()
    defaults: tuple[str, ...]
    baselines: Mapping[str, tuple[str, ...]]

    def having(self, cpu: str, offered: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the `offered` processors with all instructions of `cpu`; all of them when that is empty."""
        return tuple(name for name in offered if not cpu or name in self.baselines[cpu])


QEMU_SYSTEM: Final = Tool(name="qemu-system-aarch64", package="qemu-system-arm", minimum=(7,))
"""Emulates the whole machine; its 64-bit kernel runs 32-bit programs too."""
X64_USER: Final = Tool(name="qemu-x86_64-static", package="qemu-user-static", minimum=(7, 2))
"""Emulates a processor with AVX2 and without AVX-512, for converting; before 7.2 it has no AVX."""
SYSTEM_CPUS: Final = ("cortex-a53", "cortex-a72", "cortex-a76")
# What the tables of baselines say is tried, pair by pair, by tests/integration/test_cpu_baselines.py with qemu 7.2.
DOT_PRODUCT: Final = ("cortex-a76",)
ARM_WITH_DIVISION: Final = ("cortex-a7", "cortex-a15", "max", *SYSTEM_CPUS)
ARM64_BASELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    **dict.fromkeys(("cortex-a35", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73"), SYSTEM_CPUS),
    **dict.fromkeys(("cortex-a55", "cortex-a75", "cortex-a76", "cortex-a78", "neoverse-n1"), DOT_PRODUCT),
})  # fmt: skip
ARM_BASELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    **dict.fromkeys(("cortex-a7", "cortex-a15", "cortex-a17"), ARM_WITH_DIVISION),
    "cortex-a8": ("cortex-a8", "cortex-a9", *ARM_WITH_DIVISION),
    "cortex-a9": ("cortex-a9", *ARM_WITH_DIVISION),
    **dict.fromkeys(("cortex-a53", "cortex-a72"), ("max", *SYSTEM_CPUS)),
})  # fmt: skip
RISCV64_BASELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "sifive-u74": ("rv64", "sifive-u54"), "spacemit-x60": (),
})  # fmt: skip
EMULATIONS: Final[Mapping[str, Emulation]] = MappingProxyType(
    {
        "arm64": Emulation(
            machine="aarch64",
            debian="arm64",
            library_folders=("aarch64-linux-gnu", "aarch64-linux-musl"),
            loaders=("ld-linux-aarch64.so.1", "ld-musl-aarch64.so.1"),
            user=Tool(name="qemu-aarch64-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("cortex-a53", "cortex-a72", "cortex-a76"),
            system_cpus=SYSTEM_CPUS,
            defaults=("cortex-a53", "cortex-a76"),
            baselines=ARM64_BASELINES,
        ),
        "arm": Emulation(
            machine="armv7l",
            debian="armhf",
            library_folders=("arm-linux-gnueabihf", "arm-linux-musleabihf"),
            loaders=("ld-linux-armhf.so.3", "ld-musl-armhf.so.1"),
            user=Tool(name="qemu-arm-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15", "max"),
            system_cpus=SYSTEM_CPUS,
            defaults=("cortex-a7", "cortex-a53"),
            baselines=ARM_BASELINES,
        ),
        "riscv64": Emulation(
            machine="riscv64",
            debian="riscv64",
            library_folders=("riscv64-linux-gnu", "riscv64-linux-musl"),
            loaders=("ld-linux-riscv64-lp64d.so.1", "ld-musl-riscv64.so.1"),
            user=Tool(name="qemu-riscv64-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("rv64", "sifive-u54"),
            defaults=("rv64",),
            baselines=RISCV64_BASELINES,
        ),
    }
)
"""By the architecture's name in `spec.targets`."""


def machine_folder(debian: str) -> Path:
    """Return where the parts of a machine are kept, by Debian's word for its architecture; it need not exist."""
    return cache_folder("machines") / f"debian-{SUITE}-{debian}"
