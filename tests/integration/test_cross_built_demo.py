"""The demo for Apple's systems, built on Linux through the command line, which runs its code on the device `macho`."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from apple_slices import function_at, initializers, is_truly_signed
from ortrim.base.archives import unpack
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.apple import slice_of
from ortrim.binaries.macho.files import MachKind, MachSignature, read_macho
from ortrim.binaries.xcframework import used_categories
from ortrim.buildspec.targets import TARGETS, Architecture, Target
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms import APPLE
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from own_caches import zig_of_tests

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-aarch64-static"),
]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 5400.0
LARGEST: Final = {
    "macos-arm64": 795_000, "macos-x86_64": 826_000, "ios-arm64": 810_000, "ios-simulator-arm64": 812_000,
    "ios-simulator-x86_64": 822_000, "maccatalyst-arm64": 812_000,
}  # fmt: skip
"""Target -> the most bytes that a library may have."""
QUICK: Final = "ios-simulator-x86_64"
"""The one that CI builds: it runs without an emulator, and differs most from a Mac's."""
APP: Final = """
#include <onnxruntime/onnxruntime_c_api.h>
int main(void) { return OrtGetApiBase()->GetApi(ORT_API_VERSION) == 0; }
"""
CXX_APP: Final = """
#include <onnxruntime/onnxruntime_cxx_api.h>
Ort::Session session(Ort::Env &environment, const char *path) { return {environment, path, Ort::SessionOptions()}; }
"""
OUTPUTS: Final = 16
"""Of all cases together."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """What the build left: its report, the library, and what its dSYM holds."""

    target: Target
    report: dict[str, Any]
    library: Path
    symbols: Path


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name == QUICK else pytest.mark.slow) for name in LARGEST]
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    output = tmp_path_factory.mktemp("output")
    words = (sys.executable, "-m", "invoke", "build", "--target", request.param, "--json", "--output", str(output))
    done = run(words, cwd=ROOT, environment=dict(os.environ), timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    for archive in (*output.rglob("*.xcframework.zip"), *output.rglob("*-dSYMs.zip")):
        unpack(archive, output / "unpacked" / archive.stem, zip_links=True)
    target = TARGETS[request.param]
    (framework,) = (output / "unpacked").rglob("onnxruntime.framework")
    inner = framework / "Versions" / "A" if slice_of(target).on_mac else framework
    (symbols,) = (output / "unpacked").rglob("DWARF/onnxruntime")
    return Built(target=target, report=report, library=inner / "onnxruntime", symbols=symbols)


def test_the_library_is_apples(built: Built) -> None:
    """It names its system, needs Apple's C library alone and offers the C API alone; for ARM64 Macs it is signed."""
    (image,) = read_macho(built.library).images
    part, pins = slice_of(built.target), runtime_pins("1.21.0").apple
    assert pins is not None
    inner = "Versions/A/" if part.on_mac else ""
    assert image.architecture == part.architectures[0]
    assert [(build.platform, build.variant) for build in image.builds] == [(part.platform, part.variant)]
    assert image.builds[0].minimum_os in {pins.ios, pins.macos, pins.maccatalyst}
    assert image.install_name == f"@rpath/onnxruntime.framework/{inner}onnxruntime"
    assert [need.name for need in image.needed] == ["/usr/lib/libSystem.B.dylib"]
    assert set(image.exported) == {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}
    on_apples_processor = built.target.architecture is Architecture.ARM64 and built.target.identifier != "ios-arm64"
    assert image.signature is (MachSignature.AD_HOC if on_apples_processor else MachSignature.NONE)
    assert image.signature is MachSignature.NONE or is_truly_signed(built.library.read_bytes())


def test_it_calls_nothing_that_apple_wants_a_reason_for(built: Built) -> None:
    """But what the privacy manifest declares."""
    (image,) = read_macho(built.library).images
    assert set(used_categories(image.undefined)) == {"NSPrivacyAccessedAPICategoryFileTimestamp"}


def test_addresses_in_the_library_are_read_back_to_functions(built: Built) -> None:
    """By its dSYM, which has its UUID: what is exported, and what the loader calls first, of which no name ships."""
    library, symbols = built.library.read_bytes(), built.symbols.read_bytes()
    (shipped,), (image,) = read_macho(built.library).images, read_macho(built.symbols).images
    assert (image.kind, image.uuid) == (MachKind.SYMBOLS, shipped.uuid)
    addresses = initializers(library)
    assert len(addresses) > 5
    first = ("__GLOBAL__sub_I_", "__GLOBAL__I_", "___cxx_global_var_init")  # of a source, by priority, of one variable
    assert all(function_at(symbols, address).startswith(first) for address in addresses)
    assert b"_GLOBAL__sub_I_" not in library


def test_it_is_small(built: Built) -> None:
    """Frames are described once, and the C++ library has nothing of exceptions, locales and wide characters."""
    assert built.library.stat().st_size < LARGEST[built.target.identifier]


def test_an_app_compiles_and_links_with_it(built: Built, tmp_path: Path) -> None:
    """By the framework's headers, in C and C++, and by the name under which the app then looks for the library."""
    framework = next(folder for folder in built.library.parents if folder.suffix == ".framework")
    (library,) = read_macho(built.library).images
    toolchain = zig_apple_toolchain(built.target, library.builds[0].minimum_os, "0.17.0")
    tools = packages_folder("tools", tool_requirements())
    inputs = BuildInputs(
        sources=tmp_path, tools=tools, runner=tmp_path, hooks=shipped_folder("cmake"), installed=APPLE.installed
    )
    paths = prepare_workspace(tmp_path / "work", inputs, toolchain, zig=zig_of_tests())
    (tmp_path / "app.c").write_text(APP)
    (tmp_path / "app.cc").write_text(CXX_APP)
    environment = {**os.environ, **job_environment(paths, toolchain)}
    search = f"-F{framework.parent}"
    for words in (
        ("cc", "-O1", search, "app.c", "-framework", "onnxruntime", "-o", "app"),
        ("c++", "-O1", "-std=c++17", search, "-c", "app.cc", "-o", "app.o"),
    ):
        done = run((str(paths.wrappers / words[0]), *words[1:]), cwd=tmp_path, environment=environment)
        assert done.returncode == 0, done.stderr
    (app,) = read_macho(tmp_path / "app").images
    assert library.install_name in {need.name for need in app.needed}


def test_its_code_is_right(built: Built) -> None:
    """All cases have the outputs of the full runtime; nothing is said of time, nor of memory but a Mac's own."""
    (device,) = built.report["devices"]
    assert (device["device"], device["verdict"]) == ("macho", "pass")
    assert len(device["parity"]) == OUTPUTS
    assert {output["verdict"] for output in device["parity"]} == {"pass"}
    measured = {line["unit"] for line in device["comparisons"] if line["verdict"] != "not judged"}
    assert measured <= ({"bytes"} if built.target.identifier == "macos-x86_64" else set())
