import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from ortrim.buildspec.buildspec import RuntimeSpec

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK: Final = (ROOT / "requirements.lock").read_text()
LOCK_FOR_DEVELOPMENT: Final = (ROOT / "requirements-dev.lock").read_text()
BOTH: Final = pytest.mark.parametrize("lock", [LOCK, LOCK_FOR_DEVELOPMENT], ids=["to-run", "for-development"])


def declared() -> tuple[set[str], set[str]]:
    """Return what pyproject.toml names to run and to build ortrim, and all that it names, without versions."""
    groups = PROJECT["dependency-groups"]
    extras = PROJECT["project"]["optional-dependencies"]
    checkout = [*extras["apple"], *extras["devicefarm"], *groups["build"], *groups["converter"]]
    to_run = [*PROJECT["project"]["dependencies"], *checkout, *PROJECT["build-system"]["requires"]]
    lines = (to_run, [*to_run, *(line for line in groups["dev"] if isinstance(line, str))])
    to_run_names, names = ({re.split(r"[><=!~ ;]", line)[0] for line in each} for each in lines)
    return to_run_names, names


def entries(lock: str) -> list[str]:
    """Return what a lock says of each package, with its hashes and without what it is for."""
    return [re.sub(r"(?m)^ +#.*\n", "", entry) for entry in re.split(r"(?m)^(?=[^ #\n])", lock)[1:]]


def test_every_dependency_says_why_it_is_there() -> None:
    rows = re.findall(r"^\| (`.*?`) \| \S", (ROOT / "docs" / "dev" / "dependencies.md").read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == declared()[1]


def test_the_locks_hold_every_dependency() -> None:
    """What is declared is locked, and nothing that development alone takes is in the way of a build."""
    for lock, wanted in zip((LOCK, LOCK_FOR_DEVELOPMENT), declared(), strict=True):
        assert {re.sub(r"\[.*\]", "", name) for name in wanted} <= set(re.findall(r"(?m)^([a-z0-9-]+)==", lock))
    assert not re.search(r"(?m)^(coverage|hypothesis|mypy|pytest|ruff|sigstore)==", LOCK)


def test_development_has_the_packages_of_a_build() -> None:
    """In the same versions, so that its own are added to them."""
    assert {*entries(LOCK)} < {*entries(LOCK_FOR_DEVELOPMENT)}


@BOTH
def test_every_locked_package_has_its_version_and_hashes(lock: str) -> None:
    assert len(entries(lock)) > 40
    proper = re.compile(r"[a-z0-9-]+==\S+( ; [^\\]+)? \\\n +--hash=sha256:[0-9a-f]{64}")
    assert [entry for entry in entries(lock) if not proper.match(entry)] == []


@BOTH
def test_the_lock_names_no_index_and_no_folder(lock: str) -> None:
    """Where packages come from is the user's setting, not the project's."""
    assert re.findall(r"https?://|file:|--index|--find-links|(?m:^| )/", lock) == []


def test_the_converter_is_as_old_as_the_runtime() -> None:
    """The locked converter is the one that the default buildspec asks for; newer Pythons have no wheel of it."""
    assert f"\nonnxruntime=={RuntimeSpec().version} ; python_full_version < '3.14' \\" in LOCK
