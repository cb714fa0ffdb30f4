import re
import tomllib
from pathlib import Path
from typing import Final

from ortrim.spec.buildspec import RuntimeSpec

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK: Final = (ROOT / "requirements.lock").read_text()


def declared() -> set[str]:
    """Return what pyproject.toml names, without versions and extras' brackets resolved."""
    lines = [
        *PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"]["dev"],
        *PROJECT["build-system"]["requires"],
    ]
    return {re.split(r"[><=!~ ;]", line)[0] for line in lines}


def test_every_dependency_says_why_it_is_there() -> None:
    """The document has a row for each dependency, and none for what is gone."""
    rows = re.findall(r"^\| (`.*?`) \| \S", (ROOT / "docs" / "dev" / "dependencies.md").read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == declared()


def test_the_lock_holds_every_dependency() -> None:
    """What is declared is locked."""
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    assert {re.sub(r"\[.*\]", "", name) for name in declared()} <= locked


def test_every_locked_package_has_its_version_and_hashes() -> None:
    """No line of the lock names a package without `==` and a SHA-256, an address, or an option."""
    entries = re.split(r"(?m)^(?=[^ #\n])", LOCK)[1:]
    assert len(entries) > 50
    assert [
        entry
        for entry in entries
        if not re.match(r"[a-z0-9-]+==\S+( ; [^\\]+)? \\\n +--hash=sha256:[0-9a-f]{64}", entry)
    ] == []


def test_the_lock_names_no_index_and_no_folder() -> None:
    """Where packages come from is the user's setting, not the project's."""
    assert re.findall(r"https?://|file:|--index|--find-links|(?m:^| )/", LOCK) == []


def test_the_converter_is_as_old_as_the_runtime() -> None:
    """The locked converter is the one that the default buildspec asks for; newer Pythons have no wheel of it."""
    assert f"\nonnxruntime=={RuntimeSpec().version} ; python_full_version < '3.14' \\" in LOCK
