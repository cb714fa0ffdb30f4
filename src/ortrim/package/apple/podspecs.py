"""The two pods: the runtime in its framework, and the Objective-C API that is compiled against it. As JSON: plain data.

Names, modules and headers are those of the official pods, so that they take their place for an app and for other pods.
"""

import json
from typing import Any, Final

from ortrim.core.apple import ApplePlatform
from ortrim.package.apple.inputs import OBJECTIVE_C, AppleInputs
from ortrim.package.apple.plists import XCFRAMEWORK
from ortrim.package.apple.reasons import PRIVACY_FILE
from ortrim.package.contents import PackagedFile

RUNTIME_POD: Final = "onnxruntime-c"
OBJECTIVE_C_POD: Final = "onnxruntime-objc"
HEADERS: Final = "Headers"
HIDDEN: Final = "-fvisibility=hidden -fvisibility-inlines-hidden"
POD_PLATFORMS: Final = {ApplePlatform.IOS: "ios", ApplePlatform.MACOS: "osx"}
WEAK: Final = ("CoreML",)
"""Frameworks that a system may lack: the app starts without."""


def podspec_files(inputs: AppleInputs, *, privacy: bool) -> tuple[PackagedFile, ...]:
    """Return the specifications of both pods, for a folder that holds the rest of the zip: `:path => 'folder'`."""
    specs = (_runtime_pod(inputs, privacy=privacy), _objective_c_pod(inputs))
    return tuple(
        PackagedFile(path=f"{spec['name']}.podspec.json", content=(json.dumps(spec, indent=2) + "\n").encode())
        for spec in specs
    )


def deployment_targets(inputs: AppleInputs) -> dict[ApplePlatform, str]:
    """Return the oldest version of each platform that all its slices run on."""
    found: dict[ApplePlatform, str] = {}
    for part in inputs.slices:
        platform = part.slice.platform
        found[platform] = max(found.get(platform, "0"), part.minimum_os, key=_numbers)
    return found


def _runtime_pod(inputs: AppleInputs, *, privacy: bool) -> dict[str, Any]:
    weak = [name for name in inputs.frameworks if name in WEAK]
    bundles = {"onnxruntime_privacy": [f"{OBJECTIVE_C}/{PRIVACY_FILE}"]}
    return {
        **_common(inputs, RUNTIME_POD, "ONNX Runtime, trimmed to the models of an app: C and C++"),
        "vendored_frameworks": XCFRAMEWORK,
        "static_framework": inputs.static,
        "source_files": f"{HEADERS}/*.h",
        "libraries": "c++",
        "frameworks": [name for name in inputs.frameworks if name not in WEAK],
        **({"weak_frameworks": weak} if weak else {}),
        **({"resource_bundles": bundles} if privacy else {}),
        "pod_target_xcconfig": {"OTHER_CPLUSPLUSFLAGS": HIDDEN},
    }


def _objective_c_pod(inputs: AppleInputs) -> dict[str, Any]:
    return {
        **_common(inputs, OBJECTIVE_C_POD, "ONNX Runtime, trimmed to the models of an app: Objective-C and Swift"),
        "dependencies": {RUNTIME_POD: [inputs.first.plan.ort_version]},
        "static_framework": True,
        "requires_arc": True,
        "source_files": [f"{OBJECTIVE_C}/*.{{h,m,mm}}", f"{OBJECTIVE_C}/include/*.h"],
        "public_header_files": f"{OBJECTIVE_C}/include/*.h",
        "compiler_flags": "-std=c++17 -fobjc-arc-exceptions",
        "pod_target_xcconfig": {
            "HEADER_SEARCH_PATHS": f'"${{PODS_TARGET_SRCROOT}}/{OBJECTIVE_C}"',
            "OTHER_CPLUSPLUSFLAGS": HIDDEN,
        },
    }


def _common(inputs: AppleInputs, name: str, summary: str) -> dict[str, Any]:
    floors = deployment_targets(inputs)
    return {
        "name": name,
        "version": inputs.first.plan.ort_version,
        "summary": summary,
        "homepage": "https://onnxruntime.ai",
        "license": {"type": "MIT", "file": "LICENSE"},
        "authors": "Microsoft Corporation",
        "source": {"http": "file:///the-folder-is-named-by-:path"},
        "platforms": {POD_PLATFORMS[platform]: floor for platform, floor in sorted(floors.items())},
        "preserve_paths": ["LICENSE", "ThirdPartyNotices.txt"],
    }


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
