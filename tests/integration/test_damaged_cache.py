"""Damage to the cache, for real: a bit flipped anywhere, times kept, and the demo is built: its library is the same.

Every kind of entry is mutated: small ones, one of each kind at a time, in rounds of `invoke build`; in large ones, most
mutations are looked for without a build. The table of what was noticed and healed is printed (`pytest -s`).
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import pytest

from ortrim.storage.cache import cache_folder
from ortrim.storage.files import sha256_of
from ortrim.storage.records import damage_of, watched_cache
from ortrim.tools.command import run

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("compiler", "downloads", "packages", "sources")
SMALL: Final = ("models/2", "conversions", "cases", "builds", "runners")
REBUILDING: Final = ("sources", "packages", "trees", "zig")
"""Kinds whose mutation has everything compiled again, by the compiler cache; large ones, but for zig's."""
ROUNDS: Final = 10
REBUILDS: Final = 4
LOOKS: Final = 30
CACHED_OBJECTS: Final = 20
BUILD_SECONDS: Final = 3600.0


@dataclass
class Tally:
    """How many mutations of each kind there were, and what became of them."""

    mutants: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    healed: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        rows = [f"{'kind':<14} {'mutants':>8} {'noticed':>8} {'healed':>8} {'wrong library':>14}"]
        for kind in self.mutants:
            counts = (self.mutants[kind], self.noticed[kind], self.healed[kind], self.wrong[kind])
            rows.append("{:<14} {:>8} {:>8} {:>8} {:>14}".format(kind, *counts))
        return "\n".join(rows)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A flipped bit: `entry` is what holds it."""

    kind: str
    entry: Path
    file: Path
    position: int
    mask: int

    def flip(self) -> None:
        """Flip the bit, or flip it back, in place and with the file's times and permissions kept."""
        before = self.file.stat()
        self.file.chmod(0o644)
        with self.file.open("r+b") as file:
            file.seek(self.position)
            byte = file.read(1)[0]
            file.seek(self.position)
            file.write(bytes([byte ^ self.mask]))
        self.file.chmod(before.st_mode & 0o777)
        os.utime(self.file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a cache with copies of what the user's has fetched and compiled."""
    folder = tmp_path_factory.mktemp("damaged") / "cache"
    folder.mkdir()
    for kind in COPIED:
        assert run(("cp", "-a", cache_folder(kind), folder / kind), timeout_seconds=1800).returncode == 0
    return folder


@contextmanager
def built(cache: Path, output: Path, *words: str) -> Iterator[tuple[dict[str, object], str]]:
    """Build the demo in a cache; yield its report and what was said. Budgets of time may be missed here."""
    environment = {**os.environ, "ORTRIM_CACHE": str(cache), "CI": ""}
    command = (sys.executable, "-m", "invoke", "build", "--json", "--output", str(output), *words)
    done = run(command, cwd=ROOT, environment=environment, timeout_seconds=BUILD_SECONDS)
    assert done.returncode in {0, 3}, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    yield report, done.stderr


def library_in(output: Path) -> str:
    """Return the digest of the one library that was packaged."""
    (library,) = output.rglob("lib/libonnxruntime.so")
    return sha256_of(library)


@pytest.fixture(scope="module")
def sound(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the digest of the library that an undamaged cache gives."""
    output = tmp_path_factory.mktemp("sound")
    with built(cache, output) as (report, said):
        assert report["verdict"] in {"pass", "fail"}
        assert "damaged-cache" not in said
    return library_in(output)


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """Count mutations, and print what became of them in the end."""
    tally = Tally()
    yield tally
    sys.stderr.write(f"\n{tally}\n")


def entries(cache: Path, kind: str) -> list[Path]:
    """Return the entries of a kind."""
    if kind == "zig":
        return [cache / "zig" / "programs"]
    return [path for path in sorted((cache / kind).iterdir()) if path.is_dir() and not path.name.startswith(".")]


def some_mutant(cache: Path, kind: str, chance: Random) -> Mutant:
    """Choose a bit of a file of an entry."""
    entry = chance.choice(entries(cache, kind))
    files = sorted(path for path in entry.rglob("*") if path.is_file() and not path.is_symlink())
    file = chance.choice([path for path in files if path.stat().st_size])
    position = chance.randrange(file.stat().st_size)
    return Mutant(kind=kind, entry=entry, file=file, position=position, mask=1 << chance.randrange(8))


def survive(cache: Path, output: Path, sound: str, mutants: Iterable[Mutant], tally: Tally, *words: str) -> None:
    """Flip bits, build, and see that all were noticed and healed and that the library is the same."""
    chosen = {mutant.entry: mutant for mutant in mutants}
    before = {mutant.file: sha256_of(mutant.file) for mutant in chosen.values()}
    for mutant in chosen.values():
        mutant.flip()
        tally.mutants[mutant.kind] += 1
    shutil.rmtree(output, ignore_errors=True)
    with built(cache, output, *words) as (report, said):
        same = library_in(output) == sound
        for mutant in chosen.values():
            name = f"damaged-cache: {mutant.entry.parent.name}/{mutant.entry.name[:24]}: "
            tally.noticed[mutant.kind] += name in said
            # What is compiled, linked and installed anew has times in it, in logs and in Python's own files.
            exact = (
                mutant.kind in {"trees", "zig", "builds", "packages"} or sha256_of(mutant.file) == before[mutant.file]
            )
            tally.healed[mutant.kind] += exact and not damage_of(mutant.entry, large=True)
            tally.wrong[mutant.kind] += not same
        assert same, chosen
        noted = report["damaged_cache"]
        assert isinstance(noted, list)
        assert len(noted) >= len(chosen), (chosen, noted)


def test_small_entries(cache: Path, sound: str, tally: Tally, tmp_path: Path) -> None:
    """One of each kind at a time, with and without `--verify-cache`."""
    chance = Random(20)  # noqa: S311 - damage, no secrets
    for number in range(ROUNDS):
        mutants = [some_mutant(cache, kind, chance) for kind in (*SMALL, *(("cases",) * 3))]
        survive(cache, tmp_path / "out", sound, mutants, tally, *(("--verify-cache",) if number % 2 else ()))
    assert tally.noticed == tally.healed == tally.mutants


def test_large_entries_are_looked_at(cache: Path, sound: str, tally: Tally) -> None:
    """A flipped bit is noticed by the time of its file's last change, and no more when it is flipped back."""
    chance = Random(21)  # noqa: S311 - damage, no secrets
    with watched_cache(lambda _: None):
        for kind in REBUILDING:
            (entry,) = entries(cache, kind)
            assert damage_of(entry, large=True) == ""
            for _ in range(LOOKS):
                mutant = some_mutant(cache, kind, chance)
                mutant.flip()
                tally.mutants[f"{kind}, looked"] += 1
                tally.noticed[f"{kind}, looked"] += damage_of(entry, large=True) != ""
                mutant.flip()
                assert damage_of(entry, large=True) == "", mutant
    looked = {kind: count for kind, count in tally.mutants.items() if kind.endswith("looked")}
    assert {kind: tally.noticed[kind] for kind in looked} == looked


def test_large_entries_are_made_anew(cache: Path, sound: str, tally: Tally, tmp_path: Path) -> None:
    """The sources are unpacked, the tools installed and the tree compiled again: the library is the same."""
    chance = Random(22)  # noqa: S311 - damage, no secrets
    for number in range(REBUILDS):
        kinds = (*REBUILDING, "builds", "runners")
        mutants = [some_mutant(cache, kind, chance) for kind in kinds]
        survive(cache, tmp_path / "out", sound, mutants, tally, *(("--verify-cache",) if number % 2 else ()))
    assert all(tally.noticed[kind] == tally.healed[kind] == tally.mutants[kind] for kind in REBUILDING)


def test_objects_of_the_compiler_cache(cache: Path, sound: str, tally: Tally, tmp_path: Path) -> None:
    """It checks its objects itself: those that were damaged are compiled again."""
    chance = Random(23)  # noqa: S311 - damage, no secrets
    objects = [path for path in sorted((cache / "compiler" / "ccache").glob("?/?/*")) if path.stat().st_size]
    for file in chance.sample(objects, CACHED_OBJECTS):
        position = chance.randrange(file.stat().st_size)
        Mutant(kind="ccache", entry=file, file=file, position=position, mask=1 << chance.randrange(8)).flip()
        tally.mutants["ccache"] += 1
    for kind in ("trees", "builds"):
        shutil.rmtree(cache / kind)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    with built(cache, tmp_path / "out"):
        tally.wrong["ccache"] += CACHED_OBJECTS * (library_in(tmp_path / "out") != sound)
    assert tally.wrong["ccache"] == 0


def test_a_copied_cache_works(cache: Path, sound: str, tmp_path: Path) -> None:
    """`cp -a` to another path: nothing is damaged, the tree is begun anew, and the library is the same."""
    assert run(("cp", "-a", cache, tmp_path / "moved"), timeout_seconds=1800).returncode == 0
    shutil.rmtree(tmp_path / "moved" / "builds")
    with built(tmp_path / "moved", tmp_path / "out") as (_, said):
        assert "damaged-cache" not in said
        assert "not pinned" not in said or "taken from the cache" in said
    assert library_in(tmp_path / "out") == sound
