"""Libraries for Apple's systems, made on Linux: linked with the pinned toolchain, and run on the device `macho`."""

import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from apple_slices import address_of, function_at, is_truly_signed
from failing_runs import run_refused
from fake_runtime import device_called, fake_request
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.macho.files import MachSignature, load_commands, macho_of, read_macho
from ortrim.binaries.macho.simulator import LC_BUILD_VERSION, make_simulators
from ortrim.binaries.macho.symbols import defined_symbols
from ortrim.binaries.objects import object_symbols
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.executor import OWN_OBJECTS, finish, link_anew
from ortrim.compiling.plan import ARCHIVE, BuildJob
from ortrim.compiling.workspace import BuildInputs, JobPaths, job_environment, prepare_workspace
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms import APPLE, platform_of
from ortrim.platforms.apple import arguments
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from ortrim.platforms.apple.sysroot import public_names
from ortrim.sources.sources import fetch_sources
from own_caches import zig_of_tests
from sample_plans import sample_plan

pytestmark = [pytest.mark.build, pytest.mark.network]

LINKED: Final = ("macos-arm64", "macos-x86_64", "ios-arm64")
SIGNED: Final = {"macos-arm64": MachSignature.AD_HOC}
"""The one processor of which a Mac loads no library that nobody has signed; apps sign what they have for a phone."""
DATA: Final = Path(__file__).parent / "data" / "cross_built"
SOURCE: Final = (DATA / "library.cc").read_text(encoding="utf-8")
"""A library without an API, whose version the runner repeats when it refuses it."""
SAID: Final = re.compile(r"version pne forty-one 1\.5 6 at (-?\d+) has no API version 16")
SHARED: Final = """
#include <map>
#include <string>
struct Message { virtual ~Message(); virtual std::string name() const; static int count; };
inline int &calls() { static int number = 0; return number; }
extern "C" int plain_c(void);
"""
"""What two libraries and an app have each a version of: a class, an inline function, a function of C, a C++ library."""
VERSION: Final = """
int Message::count = ORDER;
Message::~Message() { ++count; }
std::string Message::name() const { return NAME; }
extern "C" int plain_c(void) { return ORDER; }
"""
DEAD: Final = """
extern "C" int statvfs(const char *, void *);
extern "C" __attribute__((visibility("hidden"))) int dead(void) { return statvfs("", nullptr); }
"""
"""Nothing calls it, and the stub of Apple's system library has not what it calls."""
API: Final = (DATA / "api.cc").read_text(encoding="utf-8")
APP: Final = (DATA / "app.cc").read_text(encoding="utf-8")
FOLDED: Final = (DATA / "folded.cc").read_text(encoding="utf-8")
"""Compiled twice: functions that are equal to the other's of the name, and some but for what they refer to."""
SAID_TWICE: Final = (
    "445 1822 1336 8199 3 13 15 12355 3 122970 99;445 1822 1336 8199 3 23 25 12355 3 122970 99; two tags"
)
INNER: Final = re.compile(r"^_ZN3(?:one|two)L?\d+(\w+?)E", re.MULTILINE)
FOLDING: Final = (DATA / "folding.cc").read_text(encoding="utf-8")


@pytest.mark.needs("qemu-aarch64-static")
@pytest.mark.parametrize("target", LINKED)
def test_a_cross_built_library_runs(target: str, tmp_path: Path) -> None:
    """C++ with streams, a thread's variables and initializers; of all that it defines it offers the API alone."""
    job, paths = linked(target, tmp_path)
    library = paths.build / job.expected_outputs[0]
    assert len(read_macho(paths.build / arguments.LINKED).images[0].exported) > 1
    finish(job, paths)
    link_anew(job, paths)
    platform_of(job.target).finish(job, paths)
    (image,) = read_macho(library).images
    assert image.exported == ("OrtGetApiBase",)
    assert [need.name for need in image.needed] == ["/usr/lib/libSystem.B.dylib"]
    assert [(build.platform, build.minimum_os) for build in image.builds] == [(target.partition("-")[0], "13.3")]
    assert image.signature is SIGNED.get(target, MachSignature.NONE)
    assert set(image.undefined) <= set(public_names(job.toolchain.triple))
    assert image.signature is MachSignature.NONE or is_truly_signed(library.read_bytes())
    error = run_refused(device_called("macho", target), replace(fake_request(tmp_path, tmp_path, ""), library=library))
    said = SAID.fullmatch(error.why)
    assert error.code == "library-refused"
    assert said, error.why
    symbols = (paths.build / job.expected_outputs[1]).read_bytes()
    assert "deep_inside" in function_at(
        symbols, address_of(symbols, "_OrtGetApiBase") + int(said[1])
    )  # where the code of the library was, as in a crash
    assert b"deep_inside" not in library.read_bytes()
    assert macho_of(symbols, "").images[0].uuid == image.uuid


@pytest.mark.needs("qemu-aarch64-static")
def test_a_simulators_library_is_the_phones(tmp_path: Path) -> None:
    """Compiled for a simulator, an object differs from the phone's in its platform alone; the library of it runs."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    phone = linked("ios-arm64", tmp_path / "one", "15.1")
    simulator = linked("ios-simulator-arm64", tmp_path / "two", "15.1")
    for name in ("library.o", "new.o"):
        theirs, own = ((paths.configured / OWN_OBJECTS / name).read_bytes() for _, paths in (phone, simulator))
        (place,) = (place for kind, place in load_commands(own) if kind == LC_BUILD_VERSION)
        assert theirs[:place] + own[place : place + 12] + theirs[place + 12 :] == own
    library, symbols = (phone[1].build / name for name in phone[0].expected_outputs)
    link_anew(*phone)
    platform_of(phone[0].target).finish(*phone)
    make_simulators(library)
    assert read_macho(symbols).images[0].uuid == read_macho(library).images[0].uuid
    assert read_macho(library).images[0].signature is MachSignature.AD_HOC
    device = device_called("macho", "ios-simulator-arm64")
    error = run_refused(device, replace(fake_request(tmp_path, tmp_path, ""), library=library))
    assert error.code == "library-refused"
    assert SAID.fullmatch(error.why)


@pytest.mark.parametrize("target", LINKED)
def test_abseils_time_zones_compile_without_apples_frameworks(target: str, tmp_path: Path) -> None:
    """A build of all operators links them; what they ask CoreFoundation for stands in a header of ours in its place."""
    toolchain, hooks = zig_apple_toolchain(TARGETS[target], "13.3", "0.17.0"), shipped_folder("cmake")
    abseil = fetch_sources(runtime_pins("1.21.0"), "auto").folder / "abseil_cpp"
    tools = packages_folder("tools", tool_requirements())
    inputs = BuildInputs(
        sources=abseil, tools=tools, runner=shipped_folder("runner"), hooks=hooks, installed=APPLE.installed
    )
    paths = prepare_workspace(tmp_path / "work", inputs, toolchain, zig=zig_of_tests())
    (paths.configured / "CoreFoundation").mkdir(parents=True)
    shutil.copy(hooks / "apple_time_zone.h", paths.configured / "CoreFoundation" / "CFTimeZone.h")
    source = abseil / "absl" / "time" / "internal" / "cctz" / "src" / "time_zone_lookup.cc"
    flags = ("-std=c++20", "-fno-exceptions", "-Wall", "-Wextra", "-Werror", "-I.", f"-I{abseil}")
    job = sample_plan(target, toolchain=toolchain).targets[0].job
    succeeded((str(paths.wrappers / "c++"), *flags, "-c", str(source), "-o", "zones.o"), job, paths)
    symbols = dict(object_symbols((paths.configured / "zones.o").read_bytes()))
    assert symbols["_ZN4absl12lts_2024072213time_internal4cctz15local_time_zoneEv"]
    assert not [name for name in symbols if name.startswith("CF")]


@pytest.mark.needs("qemu-aarch64-static")
@pytest.mark.parametrize("target", ["ios-arm64", "macos-x86_64"])
def test_static_libraries_clash_with_nothing(target: str, tmp_path: Path) -> None:
    """Two of them and an app have classes, functions and a C++ library of the same names, and each calls its own.

    What neither calls is in none, nor what that would import.
    """
    job, paths = linked(target, tmp_path)
    one, two = (static_library(job, paths, tmp_path / name, order) for order, name in enumerate(("one", "two"), 1))
    for name, library in (("one", one), ("two", two)):
        (image,) = read_macho(library).images
        assert image.exported == (f"from_{name}",)
        assert not [each for each in image.undefined if each.startswith(("statvfs", "dead"))]
    (paths.configured / "app.cc").write_text(SHARED + VERSION + APP)
    words = ("-DORDER=9", '-DNAME="app"', "-Os", "-std=gnu++20", "-fno-exceptions", "-dynamiclib", "app.cc")
    request = replace(fake_request(tmp_path, tmp_path, ""), library=paths.configured / "app.dylib")
    for linking in ("-Wl,-dead_strip", "-Wl,--no-gc-sections"):
        succeeded((str(paths.wrappers / "c++"), *words, linking, str(one), str(two), "-o", "app.dylib"), job, paths)
        error = run_refused(device_called("macho", target), request)
        assert error.why.startswith("version one 1 1 1 first, two 2 1 2 two, app 7 9 has no API version ")


@pytest.mark.needs("qemu-aarch64-static")
@pytest.mark.parametrize("target", LINKED)
def test_equal_code_is_in_a_library_once(target: str, tmp_path: Path) -> None:
    """What calls each other, too; not what differs in a function, a number, a handler; and it computes the same."""
    job, paths = linked(target, tmp_path)
    own = paths.configured / OWN_OBJECTS
    (own / "library.o").unlink()
    (tmp_path / "folded.cc").write_text("#include <sstream>\n" + FOLDED)
    (tmp_path / "folding.cc").write_text(FOLDING)
    compiler = (str(paths.wrappers / "c++"), "-Os", "-std=gnu++20", "-fno-rtti", "-c")
    for name, number, handled in (("one", 10, "int"), ("two", 20, "long")):
        numbers = ",".join(str(number + each) for each in range(9))
        names = (f"-DNAME={name}", f"-DNAMED=said_{name}", f"-DTAGGED=tag_{name}", f"-DNUMBERS={numbers}")
        words = (*names, f"-DHANDLED={handled}", str(tmp_path / "folded.cc"), "-o", str(own / f"{name}.o"))
        succeeded((*compiler, *words), job, paths)
    succeeded((*compiler, str(tmp_path / "folding.cc"), "-o", str(own / "folding.o")), job, paths)
    found = {}
    for icf in (False, True):
        each = replace(job, build_options=replace(job.build_options, icf=icf))
        objects = sorted(map(str, own.glob("*.o")))
        succeeded((*compiler[:-1], "-dynamiclib", "-o", str(paths.build / arguments.LINKED), *objects), job, paths)
        if icf:
            link_anew(each, paths)
        platform_of(job.target).finish(each, paths)
        library, symbols = (paths.build / name for name in job.expected_outputs)
        request = replace(fake_request(tmp_path, tmp_path, ""), library=library)
        error = run_refused(device_called("macho", target), request)
        assert error.why.startswith(f"version {SAID_TWICE} has no API version ")
        defined = "\n".join(each.name for each in defined_symbols(symbols))
        found[icf] = library.stat().st_size, Counter(INNER.findall(defined))
    assert found[True][0] < found[False][0]
    once = {"even", "odd", "times", "divided", "of_times", "of_divided", "local", "of_local", "table", "like_it"}
    twice = {"third", "fifth", "numbers", "tag", "caught"}
    assert found[False][1] == dict.fromkeys(once | twice, 2)
    assert found[True][1] == dict.fromkeys(once, 1) | dict.fromkeys(twice, 2)


def static_library(job: BuildJob, paths: JobPaths, folder: Path, order: int) -> Path:
    """Build a static library whose names, but that of its API, another and the app have, too."""
    folder.mkdir()
    own = paths.configured / OWN_OBJECTS
    for each in own.glob("*.o"):
        each.unlink()
    inner, archive = paths.build / "inner.o", paths.build / "libinner.a"
    (paths.configured / "onnxruntime.lds").write_text(f"_from_{folder.name}\n")
    (folder / "api.cc").write_text(SHARED + API)
    (folder / "inner.cc").write_text(SHARED + VERSION + DEAD)
    compiler, library = str(paths.wrappers / "c++"), paths.build / job.expected_outputs[0]
    flags = (f"-DORDER={order}", f'-DNAME="{folder.name}"', f"-DCALL=from_{folder.name}", "-Os", "-std=gnu++20")
    archive.unlink(missing_ok=True)
    for words in (
        (compiler, *flags, "-c", str(folder / "api.cc"), "-o", str(own / "api.o")),
        (compiler, *flags, "-fno-exceptions", "-c", str(folder / "inner.cc"), "-o", str(inner)),
        (str(paths.wrappers / "ar"), "rcs", str(archive), str(inner)),
        (compiler, "-dynamiclib", "-Os", "-o", str(library), str(own / "api.o"), str(archive)),
    ):
        succeeded(words, job, paths)
    link_anew(replace(job, linkage="static"), paths)
    return (paths.build / ARCHIVE).rename(folder / "library.a")


def linked(target: str, folder: Path, minimum: str = "13.3") -> tuple[BuildJob, JobPaths]:
    toolchain = zig_apple_toolchain(TARGETS[target], minimum, "0.17.0")
    planned = sample_plan(target, toolchain=toolchain).targets[0].job
    job = replace(planned, build_options=replace(planned.build_options, libcxx_no_exceptions=False))
    tools = packages_folder("tools", tool_requirements())
    hooks = shipped_folder("cmake")
    inputs = BuildInputs(
        sources=folder, tools=tools, runner=shipped_folder("runner"), hooks=hooks, installed=APPLE.installed
    )
    paths = prepare_workspace(folder / "work", inputs, toolchain, zig=zig_of_tests())
    (paths.configured / OWN_OBJECTS).mkdir(parents=True)
    (folder / "library.cc").write_text(SOURCE)
    (paths.configured / "onnxruntime.lds").write_text("_OrtGetApiBase\n")
    flags = ("-Os", "-std=gnu++20", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden")
    compiler = str(paths.wrappers / "c++")
    force = "-fvisibility-global-new-delete=force-hidden"
    library, own, new = paths.build / arguments.LINKED, f"{OWN_OBJECTS}/library.o", f"{OWN_OBJECTS}/new.o"
    for words in (
        (*flags, "-c", str(folder / "library.cc"), "-o", own),
        (*flags, force, "-c", str(hooks / "apple_new.cc"), "-o", new),
        ("-dynamiclib", "-Os", "-s", "-o", str(library), own, new),
    ):
        succeeded((compiler, *words), job, paths)
    return job, paths


def succeeded(words: tuple[str, ...], job: BuildJob, paths: JobPaths) -> str:
    """Run a program in the build folder, with the environment of a build, and return what it prints."""
    environment = {**os.environ, **job_environment(paths, job.toolchain)}
    done = run(words, cwd=paths.configured, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
