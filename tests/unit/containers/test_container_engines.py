"""Which engine is used, with engines of a few lines on PATH."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_engine import FakeEngine, fake_engine
from ortrim.compiling import container_engines as engines
from ortrim.compiling.containers import parse_flags, parse_mount, parse_mounts, require_mountable
from ortrim.errors import ExitCode, NetworkError, ToolError, UsageError
from refusing import refused

DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"


def fine(_: engines.UsableEngine) -> None:
    """Find nothing wrong with an engine."""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    return fake_engine(tmp_path, monkeypatch)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeEngine, FakeEngine]:
    docker, podman = fake_engine(tmp_path, monkeypatch), FakeEngine(tmp_path / "fake podman", "podman")
    monkeypatch.setenv("PATH", f"{docker.home / 'bin'}:{podman.home / 'bin'}")
    return docker, podman


def test_an_engine_tells_its_version(docker: FakeEngine) -> None:
    usable = engines.probe(engines.DOCKER)
    assert (usable.name, usable.version, usable.rootless) == ("docker", "28.0.1", False)


def test_an_absent_engine_is_reported_with_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    caught = refused(ToolError, engines.first_that_works, "buildah", fine, print)
    assert caught.code == "tool-missing"
    assert "buildah" in caught.hint


def test_an_old_engine_is_refused(docker: FakeEngine) -> None:
    program = docker.home / "bin" / "docker"
    program.write_text(program.read_text().replace("28.0.1", "19.03.8"))
    caught = refused(ToolError, engines.probe, engines.DOCKER)
    assert caught.code == "tool-too-old"


def test_a_name_that_is_none_is_a_usage_error() -> None:
    caught = refused(UsageError, engines.engine_named, "lxc")
    assert caught.where == "--engine"
    assert "docker, podman, buildah" in caught.hint


def test_the_first_that_works_is_taken(both: tuple[FakeEngine, FakeEngine]) -> None:
    """In the order docker, podman, buildah; those that are there and do not work are told of, absent ones are not."""
    docker, podman = both
    assert engines.first_that_works(None, fine, print).name == "docker"
    docker.answer("docker info", 1, DAEMON)
    notes: list[str] = []
    assert engines.first_that_works(None, fine, notes.append).name == "podman"
    assert notes == ["docker: its daemon is not running"]
    assert podman.calls("info")


def test_an_engine_that_cannot_make_containers_is_passed_over(both: tuple[FakeEngine, FakeEngine]) -> None:
    def attempt(usable: engines.UsableEngine) -> None:
        if usable.name == "docker":
            raise ToolError("engine-not-permitted", "it may not create containers here", where="docker: run")

    assert engines.first_that_works(None, attempt, print).name == "podman"
    caught = refused(ToolError, engines.first_that_works, "docker", attempt, print)
    assert caught.code == "engine-not-permitted"


def test_what_another_engine_would_not_mend_ends_the_search(both: tuple[FakeEngine, FakeEngine]) -> None:
    """A registry that cannot be reached cannot be reached by the next one either."""

    def attempt(_: engines.UsableEngine) -> None:
        raise NetworkError("image-unreachable", "the base image cannot be fetched")

    refused(NetworkError, engines.first_that_works, None, attempt, print)
    assert not both[1].calls()


def test_when_none_works_each_says_why(docker: FakeEngine) -> None:
    docker.answer("docker info", 1, DAEMON)
    caught = refused(ToolError, engines.first_that_works, None, fine, lambda _: None)
    assert caught.code == "no-container-engine"
    assert [line.partition(":")[0] for line in caught.why.splitlines()] == ["docker", "podman", "buildah"]
    assert "--executor native" in caught.hint


RECORDED = Path(__file__).with_name("data")
EXPECTED = {
    "disk-full": ("disk-full", ExitCode.STORAGE),
    "manifest-unknown": ("image-not-found", ExitCode.NETWORK),
    "no-cgroup": ("engine-not-permitted", ExitCode.TOOL),
    "no-daemon": ("engine-not-running", ExitCode.TOOL),
    "no-folder": ("folder-not-shared", ExitCode.TOOL),
    "no-rlimit": ("engine-not-permitted", ExitCode.TOOL),
    "no-such-host": ("image-unreachable", ExitCode.NETWORK),
    "not-permitted": ("engine-not-permitted", ExitCode.TOOL),
    "step-failed": ("image-step-failed", ExitCode.TOOL),
    "unauthorized": ("image-not-found", ExitCode.NETWORK),
}
PROXY = {"HTTPS_PROXY": "http://user:s3%40cret@proxy.example.com:8080"}


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*.txt")), ids=lambda path: path.stem)
def test_each_cause_has_words_of_its_own(file: Path) -> None:
    engine, _, cause = file.stem.partition("-")
    error = engines.engine_error(engine, "build an image", file.read_text(), {})
    assert (error.code, error.exit_code) == EXPECTED[cause]
    assert error.where == f"{engine}: build an image"
    assert error.why
    assert error.hint
    assert "{" not in error.hint


def test_a_failed_step_is_reported_with_the_lines_before_it() -> None:
    error = engines.engine_error("buildah", "build", (RECORDED / "buildah-step-failed.txt").read_text(), {})
    assert "something" in error.why.splitlines()


@pytest.mark.parametrize("printed", ["", "\n\n", "something new\nthat nobody knows\n"])
def test_an_unknown_failure_shows_what_was_printed(printed: str) -> None:
    error = engines.engine_error("podman", "run a command", printed, {})
    assert (error.code, error.exit_code) == ("engine-failed", ExitCode.TOOL)
    assert error.why == (printed.strip() or "it printed nothing")


def test_a_long_line_is_cut() -> None:
    assert len(engines.engine_error("docker", "build", f"no such host {'x' * 9000}", {}).why) <= 600


@pytest.mark.parametrize(
    "text",
    [
        "proxyconnect tcp: http://user:s3%40cret@proxy.example.com:8080: connection refused",
        "Proxy-Authorization for user: s3@cret failed: connection refused",
        "the password s3%40cret was wrong: connection refused",
        "https://token@registry.example.com: connection refused",
    ],
)
def test_no_credentials_are_reported(text: str) -> None:
    error = engines.engine_error("docker", "build", text, PROXY)
    assert error.code == "image-unreachable"
    assert "s3" not in error.why
    assert "token" not in error.why


@pytest.mark.parametrize(
    "value", ["", "proxy.example.com:8080", "http://proxy.example.com", "http://@proxy", "@", "//@@"]
)
def test_a_proxy_without_credentials_changes_no_text(value: str) -> None:
    text = "Step 1/2 : FROM scratch"
    assert engines.without_credentials(text, {"http_proxy": value}) == text


def test_proxies_are_known_in_either_case() -> None:
    environment = {"HTTP_PROXY": "a", "https_proxy": "b", "no_proxy": "", "HOME": "/"}
    assert engines.proxies_in(environment) == ("HTTP_PROXY", "https_proxy")


def test_a_mount_can_be_written_or_only_read(tmp_path: Path) -> None:
    """As with docker, it can be written unless `:ro` follows."""
    assert parse_mount(f"{tmp_path}:/opt/own") == engines.Mount(source=tmp_path, target="/opt/own", writable=True)
    assert parse_mount(f"{tmp_path}:/opt/own/:ro") == engines.Mount(source=tmp_path, target="/opt/own")


def test_a_mounts_source_may_be_relative_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "certificate.pem").touch()
    mount = parse_mount("certificate.pem:/etc/ssl/certs/company.pem:ro")
    assert mount.source == tmp_path / "certificate.pem"


@pytest.mark.parametrize(
    "word",
    [
        "", ":", "::", "{}", "{}:", "{}:relative", "{}:/opt/../usr", "{}:/", "{}:/usr", "{}:/proc", "{}:/proc/sys",
        "{}:/dev/shm", "{}:/sys", "{}:/opt:rw", "{}:/opt:ro:ro", "{}:/opt:RO", "/does/not/exist:/opt", ":/opt",
        "~nobody-here:/opt", "{}:/opt,readonly=false", '{}:/o"pt', "{}:/opt\nx",
    ],
)  # fmt: skip
def test_other_mounts_are_refused(tmp_path: Path, word: str) -> None:
    error = refused(UsageError, parse_mount, word.format(tmp_path))
    assert (error.code, error.exit_code) == ("bad-option", ExitCode.USAGE)
    assert error.where == "--mount"
    assert error.hint


@given(st.text(max_size=40))
def test_no_word_is_too_odd_for_a_mount(word: str) -> None:
    try:
        mount = parse_mount(word)
    except UsageError:
        return
    assert mount.source.is_absolute()
    assert mount.target.startswith("/")
    assert not set(mount.target) & set(',"\n')


def test_two_mounts_of_one_target_are_refused(tmp_path: Path) -> None:
    refused(UsageError, parse_mounts, [f"{tmp_path}:/opt/own", f"{tmp_path}:/opt/own/:ro"])


def test_flags_are_passed_on_as_they_are() -> None:
    flags = ("--memory=8g", "--cpus=1.5", "--storage-opt=size=10G", "--quiet")
    assert parse_flags(flags) == flags


@pytest.mark.parametrize(
    "flag",
    [
        "", "-v", "-v=/:/host", "memory", "--", "--=x", "---x", "--Memory=1", "--memory 8g", "--memory=8g\n--rm",
        "--privileged", "--network=host", "--net=host", "--user=0", "--mount=type=bind,src=/,dst=/host", "--pid=host",
        "--volume=/:/x", "--env=A=b", "--entrypoint=sh", "--rm", "--name=x", "--cap-add=ALL", "--isolation=oci",
        "--label=a",
    ],
)  # fmt: skip
def test_other_flags_are_refused(flag: str) -> None:
    caught = refused(UsageError, parse_flags, (flag,))
    assert (caught.code, caught.where) == ("bad-option", "--engine-flag")


OWN = (
    engines.Mount(
        source=Path("/home/user/.cache/ortrim/trees/a"), target="/home/user/.cache/ortrim/trees/a", writable=True
    ),
)


@pytest.mark.parametrize(
    "target", ["/home", "/home/user/.cache/ortrim/trees/a", "/home/user/.cache/ortrim/trees/a/out"]
)
def test_a_mount_over_ours_is_refused(target: str) -> None:
    error = refused(UsageError, require_mountable, (engines.Mount(source=Path("/srv"), target=target),), OWN)
    assert error.code == "bad-option"


def test_a_mount_beside_ours_is_not() -> None:
    require_mountable((engines.Mount(source=Path("/srv"), target="/home/user/.cache/ortrim/trees/ab"),), OWN)


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb"])
def test_a_cache_that_no_engine_can_mount_is_refused(name: str) -> None:
    folder = f"/home/user/{name}"
    error = refused(UsageError, require_mountable, (), (engines.Mount(source=Path(folder), target=folder),))
    assert error.code == "path-not-mountable"
    assert error.where == folder
    assert "ORTRIM_CACHE" in error.hint


MOUNTS = (
    engines.Mount(source=Path("/home/user/sources"), target="/home/user/sources"),
    engines.Mount(source=Path("/home/user/tree"), target="/home/user/tree", writable=True),
)
OPTIONS = "--security-opt no-new-privileges --security-opt label=disable"
CONFINED = f"--network none --cap-drop ALL {OPTIONS} --read-only --tmpfs /tmp"


def sample(*, rootless: bool = False, flags: tuple[str, ...] = ()) -> engines.ContainerRun:
    return engines.ContainerRun(
        image="ortrim-linux:1",
        name="ortrim-a-b",
        owner="a",
        command=("/usr/bin/python3", "-c", "pass"),
        folder="/home/user/tree/out",
        mounts=MOUNTS,
        user=1000,
        group=100,
        rootless=rootless,
        flags=flags,
    )


def test_docker_runs_a_confined_command_as_the_user() -> None:
    """No network, no capabilities, nothing to write but what is mounted for it; the container goes by itself."""
    assert " ".join(engines.DOCKER.run(sample())) == (
        f"docker run --rm --pull never --name ortrim-a-b --label ortrim.cache=a {CONFINED} --user 1000:100 "
        "--workdir /home/user/tree/out "
        "--mount type=bind,src=/home/user/sources,dst=/home/user/sources,readonly "
        "--mount type=bind,src=/home/user/tree,dst=/home/user/tree "
        "--entrypoint /usr/bin/python3 ortrim-linux:1 -c pass"
    )
    assert engines.DOCKER.prepare(sample()) == ()


def test_podman_runs_the_same() -> None:
    """What it hands on of the user's environment by itself is forbidden."""
    assert " ".join(engines.PODMAN.run(sample())) == (
        f"podman run --rm --pull never --name ortrim-a-b --label ortrim.cache=a {CONFINED} --user 1000:100 "
        "--http-proxy=false --workdir /home/user/tree/out "
        "--mount type=bind,src=/home/user/sources,dst=/home/user/sources,ro=true "
        "--mount type=bind,src=/home/user/tree,dst=/home/user/tree "
        "--entrypoint /usr/bin/python3 ortrim-linux:1 -c pass"
    )


def test_buildah_makes_a_container_and_runs_in_it_in_namespaces_of_its_own() -> None:
    """Chroot isolates neither the network nor processes; the kernel ends the namespace with its first process."""
    assert [" ".join(words) for words in engines.BUILDAH.prepare(sample())] == [
        "buildah from --http-proxy=false --pull-never --name ortrim-a-b ortrim-linux:1",
        "buildah config --label ortrim.cache=a ortrim-a-b",
    ]
    assert " ".join(engines.BUILDAH.run(sample())) == (
        "unshare --net --ipc --uts --pid --fork --kill-child --mount-proc "
        "buildah run --isolation chroot --cap-drop ALL --user 1000:100 --workingdir /home/user/tree/out "
        "--mount type=bind,src=/home/user/sources,dst=/home/user/sources,ro=true "
        "--mount type=bind,src=/home/user/tree,dst=/home/user/tree,rw=true "
        "ortrim-a-b -- /usr/bin/python3 -c pass"
    )


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (engines.DOCKER, ("--user", "0:0")),
        (engines.PODMAN, ("--userns", "keep-id", "--user", "1000:100", "--http-proxy=false")),
        (engines.BUILDAH, ("--user", "0:0")),
    ],
)
def test_without_root_files_are_the_users_too(engine: engines.ContainerEngine, words: tuple[str, ...]) -> None:
    run = " ".join(engine.run(sample(rootless=True)))
    assert " ".join(words) in run


def test_buildah_without_root_makes_a_user_namespace_first() -> None:
    assert engines.BUILDAH.run(sample(rootless=True))[:4] == ("buildah", "unshare", "--", "unshare")


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_flags_come_before_the_image(engine: engines.ContainerEngine) -> None:
    words = engine.run(sample(flags=("--memory=8g",)))
    named = "ortrim-a-b" if engine is engines.BUILDAH else "ortrim-linux:1"
    flag = words.index("--memory=8g")
    assert words.index("run") < flag < len(words) - 1 - words[::-1].index(named)


def test_images_are_built_with_the_names_of_proxies_alone() -> None:
    """A password on a command line could be read by every user of the machine."""
    image = (Path("/tmp/context"), "ortrim-linux:1")  # noqa: S108
    assert " ".join(engines.DOCKER.build(*image, ("HTTPS_PROXY",))) == (
        "docker build --force-rm --build-arg HTTPS_PROXY --tag ortrim-linux:1 /tmp/context"
    )
    assert " ".join(engines.PODMAN.build(*image, ("HTTPS_PROXY",))) == (
        "podman build --pull=false --http-proxy=false --isolation chroot --force-rm --build-arg HTTPS_PROXY "
        "--tag ortrim-linux:1 /tmp/context"
    )
    assert " ".join(engines.BUILDAH.build(*image, ("HTTPS_PROXY",))) == (
        "buildah build --isolation chroot --pull=false --http-proxy=false --no-cache --force-rm "
        "--build-arg HTTPS_PROXY --tag ortrim-linux:1 /tmp/context"
    )


@pytest.mark.parametrize(
    ("engine", "printed", "user", "rootless"),
    [
        (engines.DOCKER, "28.2.2 [name=seccomp,profile=builtin name=rootless name=cgroupns]\n", 1000, True),
        (engines.DOCKER, "28.2.2 [name=seccomp,profile=builtin]\n", 1000, False),
        (engines.PODMAN, "true\n", 1000, True),
        (engines.PODMAN, "false\n", 0, False),
        (engines.BUILDAH, "{}", 1000, True),
        (engines.BUILDAH, "{}", 0, False),
    ],
)
def test_engines_say_whether_they_have_root(
    engine: engines.ContainerEngine,
    printed: str,
    user: int,
    rootless: bool,  # noqa: FBT001
) -> None:
    assert engine.is_rootless(printed, user) is rootless


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_every_word_is_one_argument(engine: engines.ContainerEngine) -> None:
    image = (Path("/a b"), "t:1")
    commands = [
        engine.probe, engine.image_exists, engine.build(*image, ()), engine.run(sample()), engine.remove,
        engine.list_owned("a"), engine.inspect, engine.pull, engine.digest,
        *engine.prepare(sample()), *filter(None, [engine.list_unfinished]),
    ]  # fmt: skip
    for words in commands:
        assert engine.tool.name in words
        assert all(words)
    assert os.fspath(image[0]) in engine.build(*image, ())
