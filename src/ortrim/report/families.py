"""The components of a library in six families, each with a colour of its own."""

from typing import Final

RUNTIME: Final = "ONNX Runtime"
KERNELS: Final = "kernels"
LIBRARIES: Final = "its libraries"
LANGUAGE: Final = "C++ library and compiler"
LINKER: Final = "tables, strings, padding"
UNTOLD: Final = "code and data not told apart"
FAMILIES: Final = (RUNTIME, KERNELS, LIBRARIES, LANGUAGE, UNTOLD, LINKER)
"""In the order in which they are shown."""

STYLES: Final = {
    RUNTIME: "family-runtime",
    KERNELS: "family-kernels",
    LIBRARIES: "family-libraries",
    LANGUAGE: "family-language",
    UNTOLD: "family-untold",
    LINKER: "family-linker",
}
"""The classes of the style sheet."""

OTHERS: Final = {
    **dict.fromkeys(("mlas", "providers"), KERNELS),
    **dict.fromkeys(("onnx", "protobuf", "abseil", "flatbuffers", "re2", "cpuinfo", "xnnpack"), LIBRARIES),
    **dict.fromkeys(
        ("libc++", "libc++abi", "libstdc++", "C++ library", "libunwind", "compiler-rt", "libc"),
        LANGUAGE,
    ),
    **dict.fromkeys(("code", "data", "read-only data"), UNTOLD),
    **dict.fromkeys(
        (
            "relocation tables",
            "dynamic symbols",
            "dynamic linking",
            "unwind tables",
            "string literals",
            "constants",
            "notes",
            "symbol table",
            "debug information",
            "padding",
            "ELF headers",
            "not loaded",
            "other",
        ),
        LINKER,
    ),
}


def family(component: str) -> str:
    """Return the family of a component; what is named in no table is a part of ONNX Runtime."""
    if component.startswith("providers"):
        return KERNELS
    return OTHERS.get(component, LINKER if component.startswith(".") else RUNTIME)
