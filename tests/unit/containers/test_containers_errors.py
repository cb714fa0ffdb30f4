"""What real engines said when something was wrong, and what users are told."""

from pathlib import Path

import pytest

from ortrim.compiling.containers.engines import engine_error, proxies_in, without_credentials
from ortrim.errors import ExitCode

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
    """Reference and exit code are by cause, whichever engine it is; its own words are the reason."""
    engine, _, cause = file.stem.partition("-")
    error = engine_error(engine, "build an image", file.read_text(), {})
    assert (error.code, error.exit_code) == EXPECTED[cause]
    assert error.where == f"{engine}: build an image"
    assert error.why
    assert error.hint
    assert "{" not in error.hint


def test_a_failed_step_is_reported_with_the_lines_before_it() -> None:
    """What the step printed is what helps."""
    error = engine_error("buildah", "build", (RECORDED / "buildah-step-failed.txt").read_text(), {})
    assert "something" in error.why.splitlines()


@pytest.mark.parametrize("printed", ["", "\n\n", "something new\nthat nobody knows\n"])
def test_an_unknown_failure_shows_what_was_printed(printed: str) -> None:
    """The last lines, or that there were none."""
    error = engine_error("podman", "run a command", printed, {})
    assert (error.code, error.exit_code) == ("engine-failed", ExitCode.TOOL)
    assert error.why == (printed.strip() or "it printed nothing")


def test_a_long_line_is_cut() -> None:
    """An engine may print a whole command."""
    assert len(engine_error("docker", "build", f"no such host {'x' * 9000}", {}).why) <= 600


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
    """Neither in an address, nor by themselves, as they are written or as they are meant."""
    error = engine_error("docker", "build", text, PROXY)
    assert error.code == "image-unreachable"
    assert "s3" not in error.why
    assert "token" not in error.why


@pytest.mark.parametrize(
    "value", ["", "proxy.example.com:8080", "http://proxy.example.com", "http://@proxy", "@", "//@@"]
)
def test_a_proxy_without_credentials_changes_no_text(value: str) -> None:
    """Nothing that is short or empty is taken for a secret."""
    text = "Step 1/2 : FROM scratch"
    assert without_credentials(text, {"http_proxy": value}) == text


def test_proxies_are_known_in_either_case() -> None:
    """Empty ones are none."""
    environment = {"HTTP_PROXY": "a", "https_proxy": "b", "no_proxy": "", "HOME": "/"}
    assert proxies_in(environment) == ("HTTP_PROXY", "https_proxy")
