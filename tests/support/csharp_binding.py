"""Upstream's C# binding, compiled by Mono's own compiler, which Debian has; it knows C# 7, and upstream writes C# 9."""

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.pins.runtime import runtime_pins
from ortrim.sources.archives import fetch_archives

FOLDER: Final = "csharp/src/Microsoft.ML.OnnxRuntime/"
REWRITTEN: Final = {
    r"\busing var ": "var ",
    r"\(static (\w+) =>": r"(\1 =>",
    r"\b(\w+<[\w<>]+>) (\w+) = new\(": r"\1 \2 = new \1(",
    r"\bwhere (\w+) : unmanaged\b": r"where \1 : struct",
    r"\b(\w+) is null\b": r"\1 == null",
    r"\(([\w.]+) is not (\w+)\)": r"(!(\1 is \2))",
    r"\w+ < ArrayUtilities\.StackallocMax \? stackalloc int\[\w+\] : ": "",
    r"(\w+\[\w+\]) = (\w+\[\w+\]) = (\w+);": r"\1 = \3; \2 = \3;",
    r"(?m)^( *)(\w+)\.Span\[(\w+)\] = (.*);$": r"\1{ var span = \2.Span; span[\3] = \4; }",
}
"""What the compiler does not know or compiles wrongly -> the same in words that it knows; native calls stay."""
QUIET: Final = "-nowarn:219,436,612,618,1591,1635"


def upstream_binding(version: str, folder: Path) -> Path:
    """Return the assembly of a version whose sources Debian has: the archive is whole, the source tree is not."""
    debian = runtime_pins(version).debian
    assert debian is not None
    (pin,) = (each for each in debian.components if each.name == "onnxruntime")
    archive = fetch_archives([pin], debian.suite, lambda _: None)[pin.name]
    sources = folder / "binding"
    with tarfile.open(archive) as packed:
        for member in packed:
            name = member.name.partition(FOLDER)[2]
            content = packed.extractfile(member) if name.endswith(".cs") and not name.startswith("Training/") else None
            if content is not None:
                (sources / name).parent.mkdir(parents=True, exist_ok=True)
                (sources / name).write_bytes(content.read())
    return compiled_binding(sources, folder / "Microsoft.ML.OnnxRuntime.dll")


def compiled_binding(sources: Path, assembly: Path) -> Path:
    """Compile the binding's files below `sources`, changed in place."""
    files = sorted(sources.rglob("*.cs"))
    for path in files:
        text = path.read_text(encoding="utf-8-sig")
        for before, after in REWRITTEN.items():
            text = re.sub(before, after, text)
        path.write_text(text)
    compile_csharp(
        files, assembly, "-target:library", "-langversion:experimental", "-unsafe", "-d:NETSTANDARD2_0", QUIET
    )
    return assembly


def compile_csharp(files: Iterable[Path], assembly: Path, *options: str) -> None:
    done = run(("mcs", *options, f"-out:{assembly}", *files))
    assert done.returncode == 0, done.stdout + done.stderr
