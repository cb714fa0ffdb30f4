"""Other inference engines on this machine, each installed into a folder of its own when it is first wanted."""

from pathlib import Path

from ortrim.bench.engine_answers import CannotRun, shortened
from ortrim.bench.engine_catalogue import ONNXRUNTIME, Engine
from ortrim.bench.engine_runs import OTHERS, Place
from ortrim.errors import Diagnostic
from ortrim.pins.engines import engine_requirements
from ortrim.tools.environments import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.tools.full_runtime import DISTRIBUTION, FullRuntime


def place_of(engine: Engine, runtime: FullRuntime, library: Path | None) -> Place | CannotRun:
    """Return where an engine is, or why it cannot be had; that the disk is full or the index away is one reason more.

    The full runtime is there already; the trimmed one is a `library` that is opened in the full runtime's Python.
    """
    if not engine.package:
        libraries = runtime.packages / DISTRIBUTION if engine.name == ONNXRUNTIME else library
        assert libraries is not None
        return Place(
            engine=engine,
            words=runtime.words,
            environment=runtime.environment,
            packages=runtime.packages,
            libraries=libraries,
        )
    try:
        converter = _installed(engine, engine.converter) if engine.converter else None
        return _installed(engine, engine.package, converter)
    except Diagnostic as error:
        why = error.why.splitlines()[-1:] or [""]
        return CannotRun(stage="install", reason=shortened(f"{error.what} ({error.reference}). {why[0]}".strip()))


def _installed(engine: Engine, name: str, converter: Place | None = None) -> Place:
    packages = packages_folder(f"engine-{name}", engine_requirements(name))
    return Place(
        engine=engine,
        words=ISOLATED_PYTHON,
        environment=environment_with(packages),
        packages=packages,
        libraries=packages,
        converter=converter,
    )


def installed_bytes(place: Place) -> int:
    """Return the bytes of all native libraries of an engine, whether a run opens them or not."""
    if place.libraries.is_file():
        return place.libraries.stat().st_size
    files = (file for file in place.libraries.rglob("*.so*") if file.is_file() and not file.is_symlink())
    return sum(file.stat().st_size for file in files if _is_own(file.relative_to(place.libraries)))


def _is_own(file: Path) -> bool:
    return file.parts[0].partition(".")[0] not in OTHERS
