"""Damage to the cache, for real: a bit flipped anywhere, times kept, and the demo is built: its library is the same."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from ortrim.base.cache import cache_folder, damage_of, watched_cache
from ortrim.base.command import run
from ortrim.base.files import sha256_of
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.models.prepare import FACTS_LAYOUT
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]
MODELS: Final = (f"models/{FACTS_LAYOUT}", "conversions", "cases")
BUILT: Final = ("builds", "runners")
LARGE: Final = ("sources", "packages", "trees", "zig")
LOOKS: Final = 15
PLANS: Final = 10
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
    """Give a cache with copies of what the user's has fetched, unpacked, installed and compiled for the demo."""
    folder = tmp_path_factory.mktemp("damaged") / "cache"
    sources = fetch_sources(runtime_pins(RuntimeSpec().version), "auto").folder
    tools = packages_folder("tools", tool_requirements())
    for entry in (*map(cache_folder, ("compiler", "downloads")), sources, tools):
        copy = folder / entry.relative_to(cache_folder("sources").parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        for path in (entry, entry.with_name(f".{entry.name}.record")):
            if path.exists():
                done = run(("cp", "-a", path, copy.with_name(path.name)), timeout_seconds=1800)
                assert done.returncode == 0, done.stderr
    return folder


def environment_of(cache: Path) -> dict[str, str]:
    return {**os.environ, "ORTRIM_CACHE": str(cache), "CI": ""}


def built(cache: Path, output: Path, *words: str) -> tuple[dict[str, Any], str]:
    """Build the demo in a cache; return its report and what was said. A busy machine may miss budgets of time."""
    command = (sys.executable, "-m", "invoke", "build", "--json", "--output", str(output), *words)
    done = run(command, cwd=ROOT, environment=environment_of(cache), timeout_seconds=BUILD_SECONDS)
    assert done.returncode in {0, 3}, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    return report, done.stderr


def library_in(output: Path) -> str:
    (library,) = output.rglob("lib/libonnxruntime.so")
    return sha256_of(library)


@pytest.fixture(scope="module")
def sound(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the digest of the library that the copied cache gives, of which nothing is taken for damaged."""
    output = tmp_path_factory.mktemp("sound")
    report, said = built(cache, output)
    assert report["damaged_cache"] == []
    assert "damaged-cache" not in said
    return library_in(output)


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """Count mutations, and print what became of them in the end."""
    tally = Tally()
    yield tally
    sys.stderr.write(f"\n{tally}\n")


def entries(cache: Path, kind: str) -> list[Path]:
    return [path for path in sorted((cache / kind).iterdir()) if path.with_name(f".{path.name}.record").is_file()]


def some_mutant(cache: Path, kind: str, chance: Random) -> Mutant:
    entry = chance.choice(entries(cache, kind))
    files = sorted(path for path in entry.rglob("*") if path.is_file() and not path.is_symlink())
    file = chance.choice([path for path in files if path.stat().st_size])
    position = chance.randrange(file.stat().st_size)
    return Mutant(kind=kind, entry=entry, file=file, position=position, mask=1 << chance.randrange(8))


def damage(mutants: Iterable[Mutant], tally: Tally) -> dict[Path, Mutant]:
    """Flip bits, one of an entry; return the mutants by entry."""
    chosen = {mutant.entry: mutant for mutant in mutants}
    for mutant in chosen.values():
        mutant.flip()
        tally.mutants[mutant.kind] += 1
    return chosen


def judge(chosen: Mapping[Path, Mutant], said: str, tally: Tally, sums: Mapping[Path, str]) -> None:
    """Count what was noticed and healed; what is made anew is the same, byte for byte, unless `sums` lacks it."""
    for mutant in chosen.values():
        name = f"damaged-cache: {mutant.entry.parent.name}/{mutant.entry.name[:24]}: "
        same = mutant.file not in sums or sha256_of(mutant.file) == sums[mutant.file]
        tally.noticed[mutant.kind] += name in said
        tally.healed[mutant.kind] += same and not damage_of(mutant.entry, large=True)


def test_each_bit_is_noticed(cache: Path, sound: str, tally: Tally) -> None:
    """In every kind of entry, and no more when it is flipped back."""
    assert sound
    chance = Random(21)  # noqa: S311 - damage, no secrets
    with watched_cache(lambda _: None):
        for kind in (*MODELS, *BUILT, *LARGE):
            for _ in range(LOOKS):
                mutant = some_mutant(cache, kind, chance)
                mutant.flip()
                tally.mutants[f"{kind}, looked"] += 1
                tally.noticed[f"{kind}, looked"] += damage_of(mutant.entry, large=kind in LARGE) != ""
                mutant.flip()
                assert damage_of(mutant.entry, large=kind in LARGE) == "", mutant
    assert all(tally.noticed[kind] == LOOKS for kind in tally.mutants if kind.endswith("looked"))


def test_models_and_cases_are_made_anew(cache: Path, sound: str, tally: Tally) -> None:
    """Before anything is compiled: `invoke plan` mends them."""
    assert sound
    chance = Random(20)  # noqa: S311 - damage, no secrets
    for _ in range(PLANS):
        mutants = [some_mutant(cache, kind, chance) for kind in (*MODELS, *(("cases",) * 3))]
        sums = {mutant.file: sha256_of(mutant.file) for mutant in mutants}
        chosen = damage(mutants, tally)
        done = run((sys.executable, "-m", "invoke", "plan"), cwd=ROOT, environment=environment_of(cache))
        assert done.returncode == 0, done.stderr
        judge(chosen, done.stdout, tally, sums)
    assert all(tally.noticed[kind] == tally.healed[kind] == tally.mutants[kind] for kind in MODELS)


@pytest.mark.parametrize("words", [(), ("--verify-cache",)])
def test_the_library_is_the_same_whatever_was_damaged(
    cache: Path, sound: str, tally: Tally, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """One entry of every kind at once, and objects of the compiler cache, which it checks itself."""
    chance = Random(len(words))  # noqa: S311 - damage, no secrets
    kinds = (*MODELS, *BUILT, *LARGE)
    mutants = [some_mutant(cache, kind, chance) for kind in kinds]
    sums = {mutant.file: sha256_of(mutant.file) for mutant in mutants if mutant.kind in {*MODELS, "sources"}}
    chosen = damage(mutants, tally)
    objects = [path for path in sorted((cache / "compiler" / "ccache").glob("?/?/*")) if path.stat().st_size]
    for file in chance.sample(objects, CACHED_OBJECTS):
        position = chance.randrange(file.stat().st_size)
        Mutant(kind="ccache", entry=file, file=file, position=position, mask=1 << chance.randrange(8)).flip()
    tally.mutants["ccache"] += CACHED_OBJECTS
    report, said = built(cache, tmp_path, *words)
    judge(chosen, said, tally, sums)
    wrong = library_in(tmp_path) != sound
    tally.wrong.update({kind: tally.mutants[kind] for kind in (*kinds, "ccache")} if wrong else {})
    assert not wrong, chosen
    assert len(report["damaged_cache"]) == len(chosen), said
    assert all(tally.noticed[kind] == tally.healed[kind] == tally.mutants[kind] for kind in kinds)
