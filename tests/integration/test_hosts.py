"""Other people's machines: what README's first command, or the wheel, does there, and what is said if it cannot work.

Each row is printed for the status page: the command's exit code, its time, and its last words.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
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


pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.network, pytest.mark.needs("root", "mmdebstrap")]

ROOT: Final = Path(__file__).parents[2]
CLONE: Final = "git clone --quiet /given ortrim && cd ortrim"
FIRST_COMMAND: Final = f"{CLONE} && ./bootstrap invoke build"
WHEEL: Final = (
    "python3 -m venv tools && tools/bin/pip install --quiet /given/*.whl && mkdir app && cd app && ../tools/bin/ortrim"
)
PASSED: Final = "PASS: within every budget, outputs in parity"
TOOLS: Final = ("git", "python3", "python3-venv")
Fresh = Callable[..., Path]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clone what is committed here, and put the wheel made of it beside."""
    folder = tmp_path_factory.mktemp("given") / "ortrim"
    assert run(("git", "clone", "--quiet", ROOT, folder), timeout_seconds=60).returncode == 0
    words = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, folder)
    assert run((ROOT / ".venv" / "bin" / "python", *words), timeout_seconds=600).returncode == 0
    return folder


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("roots")
    return {suite: new_root(suite, folder / suite, *TOOLS) for suite in ("bookworm", "trixie")}


@pytest.fixture
def fresh(roots: dict[str, Path], tmp_path: Path) -> Iterator[Fresh]:
    """Give a copy of one of them, which goes when the test ends."""

    def copied(suite: str) -> Path:
        assert run(("cp", "--archive", roots[suite], tmp_path / suite), timeout_seconds=600).returncode == 0
        return tmp_path / suite

    yield copied
    shutil.rmtree(tmp_path)


def told(host: str, ended: Ended) -> Ended:
    said = PASSED if PASSED in ended.said else ended.last(4)
    print(f"| {host} | exit {ended.code} | {ended.seconds:.0f} s | {said} |", flush=True)  # noqa: T201
    return ended


@pytest.mark.parametrize(
    ("suite", "account", "home"), [("bookworm", "worker", "/home/worker"), ("trixie", "root", "/root")]
)
def test_the_first_command_builds_on_a_fresh_debian(
    fresh: Fresh, given: Path, suite: str, account: str, home: str
) -> None:
    """With git and Python alone, as a user and as root."""
    ended = told(
        f"{suite} as {account}", Host(root=fresh(suite), given=given, account=account, home=home).run(FIRST_COMMAND)
    )
    assert (ended.code, PASSED in ended.said) == (0, True), ended.last(30)


def test_the_wheel_builds_outside_any_checkout(fresh: Fresh, given: Path) -> None:
    ended = told("wheel", Host(root=fresh("trixie"), given=given).run(f"{WHEEL} build"))
    assert (ended.code, PASSED in ended.said) == (0, True), ended.last(30)


def test_without_a_network_a_bundle_is_enough(fresh: Fresh, given: Path) -> None:
    """Made on the same host while it had one; then nothing is asked of a server, for a model that is a file."""
    root = fresh("trixie")
    write(given / "net.onnx", relu())
    made = told("bundle is made", Host(root=root, given=given).run(f"{WHEEL} bundle --output ../b.zip"))
    assert made.code == 0, made.last(30)
    clean = "rm -rf ~/.cache && cd app && ../tools/bin/ortrim build /given/net.onnx --bundle ../b.zip"
    ended = told("bundle, no network", Host(root=root, given=given, network=False).run(clean))
    assert (ended.code, PASSED in ended.said) == (0, True), ended.last(30)


@pytest.mark.parametrize(("change", "hint"), [(become_ubuntu, "Ubuntu"), (lose_apt, "Void")])
def test_a_host_without_debian_is_told_what_it_can_do(
    fresh: Fresh, given: Path, change: Callable[[Path], None], hint: str
) -> None:
    """Sources come from upstream there; where that cannot be reached, the message names the system and a way."""
    root = fresh("trixie")
    change(root)
    ended = told(hint, Host(root=root, given=given).run(f"{WHEEL} build"))
    if ended.code:
        assert "hint: " in ended.said, ended.last(30)
        assert "apt-get install" not in ended.said


def test_a_user_without_a_home_builds_in_a_folder(fresh: Fresh, given: Path) -> None:
    """As services run: no home, and /tmp alone can be written; what the refusal says to do is enough."""
    root = fresh("trixie")
    nobody = Host(root=root, given=given, account="nobody", home="/nonexistent")
    ended = told("no home", nobody.run(f"cd /tmp && {FIRST_COMMAND}"))
    assert (ended.code, "choose another folder with ORTRIM_CACHE" in ended.said) == (22, True), ended.last(30)
    ended = told("no home, a cache named", nobody.run("cd /tmp/ortrim && ORTRIM_CACHE=/tmp/c ./bootstrap invoke build"))
    assert (ended.code, PASSED in ended.said) == (0, True), ended.last(30)


def test_a_read_only_checkout_is_refused_at_once(fresh: Fresh, given: Path) -> None:
    ended = told("read-only", Host(root=fresh("bookworm"), given=given).run("cd /given && ./bootstrap invoke build"))
    assert ended.code == 16
    assert "folder-not-writable" in ended.said
    assert ended.seconds < 10


def test_a_proxys_certificate_is_asked_for_and_taken(fresh: Fresh, given: Path) -> None:
    """Where this machine's own network has such a proxy; elsewhere the index is trusted and nothing is shown."""
    root = fresh("trixie")
    forgets = told(
        "certificate unknown", Host(root=root, given=given, settings={}).run(f"{CLONE} && ./bootstrap invoke --version")
    )
    if forgets.code == 0:
        pytest.skip("no proxy with a certificate of its own stands between this machine and the index")
    assert "untrusted-certificate" in forgets.said
    shutil.copy(AUTHORITIES, root / "usr/local/share/company.pem")
    settings = {"REQUESTS_CA_BUNDLE": "/usr/local/share/company.pem"}
    knows = told(
        "certificate named",
        Host(root=root, given=given, settings=settings).run("cd ortrim && ./bootstrap invoke build"),
    )
    assert (knows.code, PASSED in knows.said) == (0, True), knows.last(30)


@pytest.mark.parametrize(
    ("packages", "said"), [((), "git is not installed"), (("git",), "python"), (("git", "python3"), "python3-venv")]
)
def test_what_a_host_lacks_is_named_with_its_package(
    tmp_path: Path, given: Path, packages: tuple[str, ...], said: str
) -> None:
    """One after the other, as somebody with an empty Debian would meet them."""
    root = new_root("bookworm", tmp_path / "root", *packages)
    ended = told(said, Host(root=root, given=given).run("cp -r /given ortrim && cd ortrim && ./bootstrap invoke build"))
    assert ended.code == 16
    assert said in ended.said
    assert "apt-get install" in ended.said
