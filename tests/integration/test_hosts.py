"""Other people's machines: what README's first command, or the wheel, does there, and what is said if it cannot work.

Each row is printed for the status page: the command's exit code, its time, and its last words.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from fresh_hosts import AUTHORITIES, Ended, Host, become_ubuntu, lose_apt, new_root
from onnx_samples import relu, write
from ortrim.base.command import run

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
