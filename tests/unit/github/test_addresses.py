"""Where GitHub's API is, and what may be sent there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.http import is_protected, same_origin
from ortrim.errors import ExitCode, UsageError
from ortrim.github.repositories import Service, find_service, service_at
from refusing import refused


@pytest.mark.parametrize(
    ("given_api", "service"),
    [
        ("", Service(api="https://api.github.com", host="github.com")),
        ("https://api.github.com", Service(api="https://api.github.com", host="github.com")),
        ("https://git.example.org/api/v3/", Service(api="https://git.example.org/api/v3", host="git.example.org")),
        ("https://api.firm.ghe.com", Service(api="https://api.firm.ghe.com", host="firm.ghe.com")),
        ("http://127.0.0.1:8080", Service(api="http://127.0.0.1:8080", host="127.0.0.1")),
    ],
)
def test_the_service_is_the_one_of_the_environment(given_api: str, service: Service) -> None:
    assert find_service({"GITHUB_API_URL": given_api} if given_api else {}) == service


@pytest.mark.parametrize(
    "address",
    [
        "http://git.example.org/api/v3", "ftp://git.example.org", "git.example.org", "https://", "https:///api",
        "https://me:secret@git.example.org", "https://git.example.org/?x", "https://git.example.org/#x", "http://[",
        "https://git.example.org:99999", "http://127.0.0.1.evil.invalid", "http://localhost@evil.invalid",
    ],
)  # fmt: skip
def test_a_token_is_not_sent_in_the_clear(address: str) -> None:
    """Only https, or this machine itself; the address, which may hold a password, is not repeated."""
    error = refused(UsageError, find_service, {"GITHUB_API_URL": address})
    assert error.code == "github-bad-address"
    assert error.exit_code == ExitCode.USAGE
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("https://a.example/x", "https://A.example:443/y?z", True),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "https://a.example:444", False),
        ("https://a.example", "https://a.example.evil.invalid", False),
        ("https://a.example", "https://a.example@evil.invalid", False),
        ("https://a.example", "/x", False),
        ("https://a.example", "https://[", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(first: str, second: str, *, same: bool) -> None:
    assert same_origin(first, second) is same
    assert same_origin(second, first) is same


@given(st.text(max_size=40))
def test_any_text_is_judged(text: str) -> None:
    """Nothing that a server may send makes the judgement fail, and what is protected is https or local."""
    if is_protected(text):
        assert text.strip().lower().startswith(("https:", "http:"))
    assert not same_origin(text, "https://api.github.com") or "api.github.com" in text.lower()


@pytest.mark.parametrize(
    ("host", "environment", "api"),
    [
        ("github.com", "", "https://api.github.com"),
        ("GitHub.com", "", "https://api.github.com"),
        ("firm.ghe.com", "", "https://api.firm.ghe.com"),
        ("git.example.org", "", "https://git.example.org/api/v3"),
        ("git.example.org:8443", "", "https://git.example.org:8443/api/v3"),
        ("127.0.0.1", "http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("github.com", "http://127.0.0.1:8080", "https://api.github.com"),
        ("evil.example.org", "https://git.example.org/api/v3", "https://evil.example.org/api/v3"),
    ],
)
def test_a_host_has_its_api_where_githubs_rules_say(host: str, environment: str, api: str) -> None:
    found = service_at(host, {"GITHUB_API_URL": environment} if environment else {})
    assert found.api == api
    assert is_protected(found.api)
