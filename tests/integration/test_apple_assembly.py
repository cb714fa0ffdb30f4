"""Packages for Apple's systems on Linux: from libraries that zig links, and upstream's own headers and sources."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from android_root import SUITE
from apple_packages import apple_inputs, unzipped
from apple_slices import RECORDED, TRIPLES, compile_slice, link_slices
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.scripts import packages_folder
from ortrim.binaries.macho.files import macho_of
from ortrim.binaries.objects import object_symbols
from ortrim.binaries.xcframework import read_xcframework
from ortrim.buildspec.buildspec import AppleSpec
from ortrim.cli.options import request_from
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.planned import planned_for
from ortrim.platforms.apple.framework import OBJECTIVE_C, AppleInputs
from ortrim.platforms.apple.package import ApplePackage, make_apple_package
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages

pytestmark = [pytest.mark.network]

SESSION: Final = "include/onnxruntime/core/session"
PROVIDERS: Final = "include/onnxruntime/core/providers/coreml"
IN_C: Final = """
#include <onnxruntime/onnxruntime_c_api.h>
#include <onnxruntime/coreml_provider_factory.h>
const OrtApi *api(void) { return OrtGetApiBase()->GetApi(ORT_API_VERSION); }
"""
IN_CXX: Final = """
#include "cxx_api.h"
#if !ORT_OBJC_API_COREML_EP_AVAILABLE
#error the header of the provider was not found
#endif
const OrtApi *api() { return &Ort::GetApi(); }
"""
IN_OBJECTIVE_C: Final = """
#import <Foundation/Foundation.h>
#import "onnxruntime.h"
NSDictionary *run(NSString *path, NSMutableData *data, NSError **error) {
  ORTEnv *environment = [[ORTEnv alloc] initWithLoggingLevel:ORTLoggingLevelWarning error:error];
  ORTSessionOptions *options = [[ORTSessionOptions alloc] initWithError:error];
  ORTSession *session = [[ORTSession alloc] initWithEnv:environment
                                              modelPath:path
                                         sessionOptions:options
                                                  error:error];
  ORTValue *value = [[ORTValue alloc] initWithTensorData:data
                                             elementType:ORTTensorElementDataTypeFloat
                                                   shape:@[ @1, @576 ]
                                                   error:error];
  return [session runWithInputs:@{@"input" : value}
                    outputNames:[NSSet setWithObject:@"output"]
                     runOptions:nil
                          error:error];
}
"""

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "start" / "apple.md"
CALLED: Final = {
    "ORTEnv(loggingLevel: .warning)": ("initWithLoggingLevel", "error"),
    "ORTSession(env: environment, modelPath: model.path, sessionOptions: options)": (
        "initWithEnv", "modelPath", "sessionOptions", "error",
    ),
    "options.setGraphOptimizationLevel(.none)": ("setGraphOptimizationLevel", "error"),
    "options.setIntraOpNumThreads(1)": ("setIntraOpNumThreads", "error"),
    "ORTValue(tensorData: state, elementType: .float, shape:": ("initWithTensorData", "elementType", "shape", "error"),
    "session.run(\n            withInputs: [": ("runWithInputs", "outputNames", "runOptions", "error"),
    "output.tensorData()": ("tensorDataWithError",),
}  # fmt: skip
"""What the documented Swift calls, and the selector of Objective-C that Swift makes it of."""
CASES: Final = (
    "ORTLoggingLevelWarning", "ORTGraphOptimizationLevelNone", "ORTTensorElementDataTypeFloat",
    "ORTTensorElementDataTypeInt64",
)  # fmt: skip


@pytest.fixture(name="upstream", scope="module")
def fixture_upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    request = request_from(None, target="linux-x64", output=str(tmp_path_factory.mktemp("artifacts")))
    return planned_for(request, Console()).sources.folder / "onnxruntime"


@pytest.fixture(name="zig", scope="module")
def fixture_zig() -> Path:
    return packages_folder("tools", tool_requirements()) / "ziglang" / "zig"


def real_inputs(folder: Path, upstream: Path) -> AppleInputs:
    inputs = apple_inputs(folder)
    for stale in (folder / "headers").iterdir():
        stale.unlink()
    for header in (*(upstream / SESSION).glob("onnxruntime_*.h"), *(upstream / PROVIDERS).glob("*.h")):
        (folder / "headers" / header.name).write_bytes(header.read_bytes())
    return replace(inputs, objective_c=upstream / OBJECTIVE_C)


@pytest.fixture(name="package", scope="module")
def fixture_package(upstream: Path, tmp_path_factory: pytest.TempPathFactory) -> ApplePackage:
    folder = tmp_path_factory.mktemp("package")
    return make_apple_package(real_inputs(folder / "in", upstream), folder / "out")


def test_the_recorded_libraries_are_what_zig_links(zig: Path, tmp_path: Path) -> None:
    """Byte for byte, with the pinned toolchain; a phone's too."""
    (tmp_path / "work").mkdir()
    link_slices(zig, tmp_path, tmp_path / "work")
    names = [f"{target}.dylib" for target in TRIPLES]
    assert [name for name in names if (tmp_path / name).read_bytes() != (RECORDED / name).read_bytes()] == []


def test_a_package_of_upstreams_files_is_the_same_when_made_twice(
    package: ApplePackage, upstream: Path, tmp_path: Path
) -> None:
    """In another folder; and all of the Objective-C API is in it that can run models."""
    other = make_apple_package(real_inputs(tmp_path / "in", upstream), tmp_path / "out")
    files = sorted(path.relative_to(package.folder) for path in package.folder.rglob("*") if path.is_file())
    differing = [path for path in files if (package.folder / path).read_bytes() != (other.folder / path).read_bytes()]
    assert (differing, package.checksum) == ([], other.checksum)
    sources = {path.name for path in (package.swift_package / OBJECTIVE_C).rglob("*.mm")}
    assert {"ort_session.mm", "ort_value.mm", "ort_coreml_execution_provider.mm"} <= sources
    assert not [name for name in sources if "training" in name or "test" in name]


def test_the_zip_is_read_as_those_of_others_are(package: ApplePackage) -> None:
    """Every slice with its framework, and every link leads somewhere."""
    facts = read_xcframework(package.xcframework)
    assert facts.version == "1.21.0"
    assert {each.identifier for each in facts.slices} == {each.identifier for each in package.manifest.slices}
    assert (facts.unlisted, facts.doubles) == ((), ())
    assert all(link.leads for link in facts.links)
    assert all(each.framework is not None and each.framework.privacy is not None for each in facts.slices)
    assert all(tuple(sorted(each.architectures)) == each.binary.architectures for each in facts.slices if each.binary)


@pytest.mark.parametrize(("identifier", "modules"), [("ios-arm64", False), ("macos-arm64_x86_64", True)])
def test_clang_finds_the_headers_as_apps_do(
    package: ApplePackage, zig: Path, tmp_path: Path, identifier: str, *, modules: bool
) -> None:
    """As text and as the module that Swift imports, in C and in C++ by the header of the Objective-C API."""
    folder = unzipped(package.xcframework, tmp_path)
    frameworks = folder / "onnxruntime.xcframework" / identifier
    options = ["-target", "aarch64-macos.13.3", "-F", str(frameworks), "-Wall", "-Werror", "-c", "-o", "a.o"]
    if modules:
        options += ["-fmodules", "-fcxx-modules", f"-fmodules-cache-path={tmp_path / 'modules'}"]
    include = ["-std=c++17", "-DSPM_BUILD", "-I", str(folder / OBJECTIVE_C)]
    for name, text, command in (("a.c", IN_C, ["cc"]), ("a.cpp", IN_CXX, ["c++", *include])):
        (tmp_path / name).write_text(text)
        done = run((zig, *command, *options, name), cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.needs("apt-get", "dpkg-deb")
def test_an_app_compiles_the_objective_c_api(package: ApplePackage, zig: Path, tmp_path: Path) -> None:
    """With automatic reference counting, as Apple's apps do; GNUstep's headers stand in for those of Foundation."""
    folder = unzipped(package.xcframework, tmp_path)
    frameworks = folder / "onnxruntime.xcframework" / "macos-arm64_x86_64"
    for name in ("encoding.h", "NSObject.h"):  # GNUstep asks for the one, and declares what stands in the other
        (tmp_path / "objc").mkdir(exist_ok=True)
        (tmp_path / "objc" / name).touch()
    options = ("-target", "aarch64-macos.13.3", "-F", str(frameworks), "-fobjc-arc", "-fblocks", "-DNS_SWIFT_NAME(x)=")
    include = ("-I", str(tmp_path), "-isystem", str(gnustep_headers()), "-I", str(folder / OBJECTIVE_C / "include"))
    (tmp_path / "app.m").write_text(IN_OBJECTIVE_C)
    sources = sorted((folder / OBJECTIVE_C).glob("*.mm"))
    assert len(sources) > 5
    undefined: set[str] = set()
    for source in (*sources, tmp_path / "app.m"):
        language = ("c++", "-std=c++17", "-DSPM_BUILD") if source.suffix == ".mm" else ("cc",)
        done = run((zig, *language, *options, *include, "-c", source, "-o", "a.o"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        symbols = object_symbols((tmp_path / "a.o").read_bytes())
        undefined |= {name for name, defined in symbols if not defined}
    with_coreml = {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CoreML"}
    assert {name for name in undefined if name.startswith("Ort")} == with_coreml
    assert {"objc_msgSend", "OBJC_CLASS_$_NSError", "OBJC_CLASS_$_ORTSession"} <= undefined


def gnustep_headers() -> Path:
    """Return the folder of GNUstep's headers, out of Debian's package; made when the cache has none."""
    folder = cache_folder("test-roots") / f"{SUITE}-gnustep"

    def fill(made: Path) -> None:
        def accept(_package: DebianPackage, file: Path) -> None:
            done = run(("dpkg-deb", "--extract", file, made))
            assert done.returncode == 0, done.stderr

        fetch_packages(PackageRequest(names=("libgnustep-base-dev",), suite=SUITE, architecture="amd64"), accept)

    publish_folder(folder, fill)
    return next(folder.rglob("Foundation.h")).parents[1]


def test_a_static_framework_holds_the_archive(zig: Path, tmp_path: Path) -> None:
    """One object for each simulator, joined as `lipo` does; an app's linker needs to know of no other library."""
    simulators = ("ios-simulator-arm64", "ios-simulator-x86_64")
    static = AppleSpec(ios_deployment_target="15.1", macos_deployment_target="13.3", framework="static")
    inputs = apple_inputs(tmp_path / "in", simulators, static)
    for part in inputs.parts:
        target, folder = part.inputs.job.target.identifier, part.inputs.result.folder
        compile_slice(zig, target, folder, folder / "a.o")
        done = run((zig, "ar", "--format=darwin", "rcD", part.library, folder / "a.o"), cwd=folder)
        assert done.returncode == 0, done.stderr
    package = make_apple_package(inputs, tmp_path / "out")
    assert (package.manifest.linkage, package.symbols) == ("static", None)
    folder = unzipped(package.xcframework, tmp_path / "unpacked")
    framework = folder / "onnxruntime.xcframework/ios-arm64_x86_64-simulator/onnxruntime.framework"
    facts = macho_of((framework / "onnxruntime").read_bytes(), "static")
    assert [(image.kind, image.exported) for image in facts.images] == [("static library", ("OrtGetApiBase",))] * 2
    assert '"static_framework": true' in (folder / "onnxruntime-c.podspec.json").read_text()


def test_the_documented_swift_names_what_upstream_declares(package: ApplePackage) -> None:
    """Modules, initializers, methods and cases of enumerations; that it compiles takes a Mac to show."""
    (swift,) = (text for text in DOCUMENT.read_text(encoding="utf-8").split("```") if text.startswith("swift\nimport"))
    headers = "\n".join(path.read_text() for path in (package.swift_package / OBJECTIVE_C / "include").glob("*.h"))
    declared = re.findall(r"^- \([^;]*?;", headers, re.MULTILINE)
    selectors = {tuple(re.findall(r"(\w+):\s*\(", each)) for each in declared}
    assert [call for call, selector in CALLED.items() if call not in swift or selector not in selectors] == []
    assert [case for case in CASES if not re.search(rf"\b{case}\b", headers)] == []
    assert 'name: "OnnxRuntimeBindings"' in (package.swift_package / "Package.swift").read_text()
    assert "import OnnxRuntimeBindings  // CocoaPods: import onnxruntime_objc\n" in swift
