"""Other people's machines: Debian just installed, in a folder of its own, with an account, a network or none."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ortrim.base.command import run

AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
"""All certificates that a Debian trusts; of this machine they may have one more, a proxy's."""
TRUSTED: Final = "/etc/authorities.pem"
USER: Final = "worker"
GIVEN: Final = "/given"
"""Where a host has the checkout's committed state, read-only."""
UBUNTU: Final = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nNAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n'


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command on a host ended: its exit code, how long it took, and what it printed in both streams."""

    code: int
    seconds: float
    said: str

    def last(self, lines: int) -> str:
        return "\n".join([line for line in self.said.splitlines() if line.strip()][-lines:])


def new_root(suite: str, folder: Path, *packages: str) -> Path:
    words = ("--variant=minbase", f"--include={','.join(('ca-certificates', *packages))}", "--skip=cleanup/apt/lists")
    done = run(("mmdebstrap", *words, suite, folder), timeout_seconds=900)
    assert done.returncode == 0, done.stderr[-2000:]
    shutil.copy(AUTHORITIES, folder / TRUSTED[1:])
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    (folder / GIVEN[1:]).mkdir()
    (folder / "etc/gitconfig").write_text("[safe]\n\tdirectory = *\n")  # What is given is root's.
    added = run(("chroot", folder, "useradd", "--create-home", "--shell", "/bin/bash", USER), timeout_seconds=60)
    assert added.returncode == 0, added.stderr
    return folder


@dataclass(frozen=True, kw_only=True)
class Host:
    """A root, who works there and with which settings; `network` says whether there is one."""

    root: Path
    given: Path
    account: str = USER
    home: str = f"/home/{USER}"
    network: bool = True
    settings: Mapping[str, str] = field(default_factory=lambda: {"REQUESTS_CA_BUNDLE": TRUSTED})

    def run(self, script: str, timeout_seconds: float = 3600) -> Ended:
        inside = (
            f"cd {self.home} 2>/dev/null || cd /; exec setpriv --reuid {self.account} "
            f'--regid $(id -g {self.account}) --init-groups --no-new-privs bash -c "$SCRIPT"'
        )
        outside = (
            f'mount --bind "{self.given}" "{self.root}{GIVEN}" && mount -o remount,ro,bind "{self.root}{GIVEN}" && '
            f'mount -t proc proc "{self.root}/proc" && mount --bind /dev "{self.root}/dev" && '
            f'exec chroot "{self.root}" sh -c "$INSIDE"'
        )
        namespaces = ("unshare", "--mount", "--pid", "--fork", *(() if self.network else ("--net",)))
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": self.home, "LANG": "C.UTF-8",
            "SCRIPT": f"exec 2>&1\n{script}", "INSIDE": inside, **self.settings,
        }  # fmt: skip
        started = time.monotonic()
        done = run((*namespaces, "sh", "-c", outside), environment=environment, timeout_seconds=timeout_seconds)
        return Ended(
            code=done.returncode, seconds=time.monotonic() - started, said=done.stdout.replace("\r", "\n") + done.stderr
        )


def become_ubuntu(root: Path) -> None:
    """Say that a root is Ubuntu: with mirrors of that alone, and without Debian's keys."""
    (root / "etc/os-release").unlink()
    (root / "etc/os-release").write_text(UBUNTU)
    for path in (root / "etc/apt/sources.list.d").iterdir():
        path.unlink()
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] http://archive.ubuntu.com/ubuntu noble main\n")
    (root / "usr/share/keyrings/debian-archive-keyring.gpg").unlink()
    shutil.rmtree(root / "etc/apt/trusted.gpg.d")
    shutil.rmtree(root / "var/lib/apt/lists")


def lose_apt(root: Path) -> None:
    """Take apt and dpkg away, as where another packager is at home."""
    for name in ("apt", "apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb", "dpkg-query"):
        (root / "usr/bin" / name).unlink()
    shutil.rmtree(root / "etc/apt")
    (root / "etc/os-release").unlink()
    (root / "etc/os-release").write_text('PRETTY_NAME="Void Linux"\nNAME="Void"\nID=void\n')
