"""Xcode: Apple's clang, linker and SDKs from an installation, whose version the plan holds. Pure."""

from typing import Final

from ortrim.core.apple import AppleVariant, slice_of
from ortrim.core.plan import Toolchain
from ortrim.core.targets import OperatingSystem, Target
from ortrim.core.xcode import PROGRAMS, sdk_folder
from ortrim.toolchains.wrappers import compiler_wrapper, tool_wrapper

ENVIRONMENT: Final = {
    "ORTRIM_COMPILER_C": "clang", "ORTRIM_COMPILER_CXX": "clang++", "ORTRIM_AR": "ar", "ORTRIM_RANLIB": "ranlib",
    "ORTRIM_STRIP": "strip", "ORTRIM_LIBTOOL": "libtool", "ORTRIM_DSYMUTIL": "dsymutil",
    "ORTRIM_INSTALL_NAME_TOOL": "install_name_tool",
}  # fmt: skip
SYSTEMS: Final = {OperatingSystem.IOS: "ios", OperatingSystem.MACOS: "macosx"}
ENVIRONMENTS: Final = {AppleVariant.NONE: "", AppleVariant.SIMULATOR: "-simulator", AppleVariant.CATALYST: "-macabi"}
"""What ends a triple of clang's."""
JOINING: Final = """\
#!/bin/sh
# {identity}
find "$ORTRIM_BUILD" -name '*.a' | LC_ALL=C sort | tr '\\n' '\\0' | xargs -0 {command} -r -nostdlib "$@"
"""
"""Links what is asked for, and what that needs of all static libraries of the build, into one object."""


def xcode_toolchain(target: Target, deployment_target: str, version: str) -> Toolchain:
    """Return the toolchain that compiles for an Apple target so that it runs on `deployment_target` and newer.

    Programs that lie beside a compiler of Apple's are found by `${xcode}`; `codesign` is the system's own.
    """
    triple = apple_triple(target, deployment_target)
    identity = f"xcode {version} {triple}"
    options = f'-target {triple} -isysroot "$ORTRIM_SDK"'
    cxx = f'"$ORTRIM_COMPILER_CXX" {options}'
    tools = {name.removeprefix("ORTRIM_").lower(): name for name in ENVIRONMENT if "COMPILER" not in name}
    return Toolchain(
        kind="xcode",
        version=version,
        triple=triple,
        environment=(
            *((name, f"${{xcode}}/{PROGRAMS[program]}") for name, program in ENVIRONMENT.items()),
            ("ORTRIM_CODESIGN", "codesign"),
            ("ORTRIM_SDK", f"${{xcode}}/{sdk_folder(slice_of(target))}"),
            ("DEVELOPER_DIR", "${xcode}"),
            ("ZERO_AR_DATE", "1"),
        ),
        wrappers=(
            ("cc", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_C" {options}')),
            ("c++", compiler_wrapper(identity, cxx, precompiles=True)),
            *((name, tool_wrapper(identity, f'"${variable}"')) for name, variable in tools.items()),
            ("codesign", tool_wrapper(identity, '"$ORTRIM_CODESIGN"')),
            ("join", JOINING.format(identity=identity, command=cxx)),
        ),
    )


def apple_triple(target: Target, deployment_target: str) -> str:
    """Return clang's triple: `arm64-apple-ios15.1-simulator`."""
    own = slice_of(target)
    system = "ios" if own.variant is AppleVariant.CATALYST else SYSTEMS[target.system]
    return f"{own.architectures[0]}-apple-{system}{deployment_target}{ENVIRONMENTS[own.variant]}"
