"""`inspect` as people read it: every value has a name, and what is wrong with an AAR comes first."""

import re
from pathlib import Path
from typing import Final

import pytest

from aar_samples import members
from android_samples import RUNTIME, sample
from program_runs import Run
from zips import zipped

TINY: Final = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"


def shown(ortrim: Run, path: Path) -> list[str]:
    ended = ortrim("inspect", str(path))
    assert ended.code == 0
    return [line.rstrip() for line in ended.out.splitlines()]


@pytest.fixture(name="broken")
def fixture_broken(tmp_path: Path) -> Path:
    path = tmp_path / "library.aar"
    faults = {f"jni/arm64-v8a/{RUNTIME}": sample("small-pages.so"), "proguard.txt": b""}
    path.write_bytes(zipped(members() | faults))
    return path


def test_libraries_and_abis_are_tables_with_heads(ortrim: Run, broken: Path) -> None:
    """No number is without a name, and an ABI is called as Android calls it."""
    text = "\n".join(shown(ortrim, broken))
    library = (
        rf"jni/armeabi-v7a/{RUNTIME}: size bytes 2,744; compressed bytes [\d,]+; api level 24; ndk r27c; alignment"
    )
    assert re.search(library.replace(" ", r"\s+"), text)
    assert re.search(r"library bytes +compressed bytes +download bytes", text)
    assert re.search(r"^ +abis .*\n( .*\n)* +x86_64 +7,136 ", text, re.MULTILINE)
    assert "x86 64" not in text


def test_what_is_wrong_with_an_aar_comes_first(ortrim: Run, broken: Path) -> None:
    """The broken gates by their references, then each gate, those that fail before the others."""
    lines = shown(ortrim, broken)
    references = ("keep-rules-missing", "segments-not-page-aligned", "relro-covers-data")
    (broken_line,) = [line for line in lines if line.startswith(" broken ")]
    assert broken_line.split("broken", 1)[1].strip() == ", ".join(references)
    verdicts = [found[1] for line in lines if (found := re.search(r"  (fail|pass|not judged)  ", line))]
    assert verdicts[:3] == ["fail"] * 3
    assert "fail" not in verdicts[3:]
    assert ortrim("inspect", str(broken), "--json").document()["broken"] == list(references)


def test_values_are_words(ortrim: Run, broken: Path) -> None:
    text = "\n".join(shown(ortrim, broken))
    assert not re.search(r"\b(None|True|False)\b", text)
    assert re.search(r"^ +prefab +no$", text, re.MULTILINE)
    assert re.search(r"^ +manifest +-$", text, re.MULTILINE)
    assert re.search(r"^ +assets +-$", text, re.MULTILINE)


def test_the_parts_of_a_library_have_heads(ortrim: Run) -> None:
    text = "\n".join(shown(ortrim, TINY))
    assert re.search(r"executable stack +no$", text, re.MULTILINE)
    assert re.search(r"component +size bytes", text)
    assert re.search(r"file bytes +3,664$", text, re.MULTILINE)
