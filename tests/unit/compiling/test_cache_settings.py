"""Which variables of the user's choose a shared store, and that their values are not told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.compiler_cache import (
    BACKENDS,
    backend_variables,
    ccache_settings,
    chosen_backend,
    redis_url,
    without_secrets,
)

UNRELATED = {"PATH": "/bin", "PYTHONPATH": "x", "SCCACHE_DIR": "/other", "SCCACHE_CONF": "/c", "CCACHE_DIR": "/d"}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_each_backend_is_chosen_by_its_variable(backend: object) -> None:
    """Every row of the table is reached, and the variable that chooses it is among those handed over."""
    assert backend in BACKENDS
    row = BACKENDS[BACKENDS.index(backend)]
    environment = {**UNRELATED, row.chosen_by: "something"}
    assert chosen_backend(environment) == row
    assert backend_variables(environment) == {row.chosen_by: "something"}


@pytest.mark.parametrize("value", ["", "0", "off", "OFF", "false", "False", "no"])
def test_a_backend_that_is_off_is_not_chosen(value: str) -> None:
    """`SCCACHE_GHA_ENABLED=off` in a workflow means that it is off."""
    assert chosen_backend({"SCCACHE_GHA_ENABLED": value}) is None


def test_nothing_else_of_the_environment_is_handed_over() -> None:
    """Folders and configuration files of another use of the same programs stay out; ways to the network go along."""
    wanted = {
        "AWS_SECRET_ACCESS_KEY": "k",
        "AWS_PROFILE": "p",
        "HOME": "/h",
        "https_proxy": "http://p",
        "NO_PROXY": "a",
    }
    assert chosen_backend(UNRELATED) is None
    assert ccache_settings(UNRELATED) == {}
    assert backend_variables({**UNRELATED, **wanted}) == wanted


def test_ccache_is_asked_in_its_own_words() -> None:
    """Where to share, whether only there, whether to hand on what was found here, and how much to keep."""
    environment = {
        "CCACHE_REMOTE_STORAGE": "http://store/ @layout=bazel",
        "CCACHE_REMOTE_ONLY": "true",
        "CCACHE_RESHARE": "true",
        "CCACHE_MAXSIZE": "20G",
        "CCACHE_DEPEND": "",
    }
    assert ccache_settings(environment) == {
        "remote_storage": "http://store/ @layout=bazel @operation-timeout=2000",
        "remote_only": "true",
        "reshare": "true",
        "max_size": "20G",
    }


def test_an_empty_setting_is_none() -> None:
    """A workflow sets a variable to nothing where a secret is not to be had."""
    assert ccache_settings({"CCACHE_REMOTE_STORAGE": "", "SCCACHE_REDIS_ENDPOINT": ""}) == {}


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"ENDPOINT": "redis://host"}, "redis://host"),
        ({"ENDPOINT": "redis://host:1", "PASSWORD": "p@/:w"}, "redis://p%40%2F%3Aw@host:1"),
        ({"ENDPOINT": "redis://host:1", "USERNAME": "u", "PASSWORD": "p", "DB": "3"}, "redis://u:p@host:1/3"),
        ({"ENDPOINT": "redis://x:y@host/2", "PASSWORD": "p", "DB": "3"}, "redis://x:y@host/2"),
        ({"ENDPOINT": "redis://:y@host"}, "redis://y@host"),
        ({"ENDPOINT": "redis://[bad"}, "redis://[bad"),
        ({"ENDPOINT": "nonsense"}, "nonsense"),
    ],
)
def test_sccaches_redis_becomes_ccaches(environment: dict[str, str], url: str) -> None:
    """Account and database move into the address; what is no address comes back as it is, for ccache to refuse."""
    variables = {f"SCCACHE_REDIS_{name}": value for name, value in environment.items()}
    assert redis_url(variables) == url
    assert ccache_settings(variables)["remote_storage"].split()[0] == url


def test_the_older_name_of_redis_is_known_and_ccaches_own_goes_before() -> None:
    """`SCCACHE_REDIS` is deprecated and still in many set-ups."""
    environment = {"SCCACHE_REDIS": "redis://old"}
    assert ccache_settings(environment)["remote_storage"].split()[0] == "redis://old"
    environment["CCACHE_REMOTE_STORAGE"] = "redis://new"
    assert ccache_settings(environment)["remote_storage"].split()[0] == "redis://new"


@pytest.mark.parametrize(
    ("stores", "patience"),
    [
        ("redis://host", " @operation-timeout=2000"),
        ("http://host @layout=bazel", " @operation-timeout=2000"),
        ("redis://host @operation-timeout=9", ""),
        ("file:/shared", ""),
    ],
)
def test_a_store_that_hangs_is_waited_for_only_shortly(stores: str, patience: str) -> None:
    """Unless the user says how long, and where there is nothing to wait for."""
    assert ccache_settings({"CCACHE_REMOTE_STORAGE": stores}) == {"remote_storage": stores + patience}


@given(st.lists(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=5, max_size=30)))
def test_no_secret_is_reported(secrets: list[str]) -> None:
    """Neither a whole value nor the password inside an address remains."""
    told = without_secrets(
        f"failed: {' '.join(secrets)} at port 6379", [f"redis://u:{secret}@host" for secret in secrets]
    )
    assert not [secret for secret in secrets if secret in told.replace("failed", "").replace("6379", "")]


def test_what_is_no_secret_stays() -> None:
    """Words such as `on` are values too, and taking them out would spoil the sentence."""
    assert without_secrets("region is missing on s3", ["on", "s3", ""]) == "region is missing on s3"
