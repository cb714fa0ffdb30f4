"""Pinned sources: what is known of each before it is fetched."""

from dataclasses import dataclass
from typing import Final, Literal

Origin = Literal["url", "debian-source", "debian-binary", "wheel"]
COMPONENTS: Final = (
    "onnxruntime", "abseil_cpp", "protobuf", "flatbuffers", "onnx", "nlohmann_json",
    "gsl", "date", "re2", "eigen", "safeint", "mp11",
)  # fmt: skip
OPTIONAL: Final = ("cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "kleidiai", "coremltools", "fp16", "psimd")
"""What a set may lack. Debian's mirrors do not all serve cpuinfo, without which ONNX Runtime reads the kernel's own
bits; the others are for the execution providers XNNPACK and CoreML, which cannot be chosen without them.
"""


@dataclass(frozen=True, kw_only=True)
class ComponentPin:
    """One archive: where it comes from (`location` by `origin`), its digest, and what is taken of it.

    `strip` and `take` are as for `unpack`. `interface` names the CMake target that a library of headers
    below `include` is offered as, when its archive holds no CMake project.
    """

    name: str
    version: str
    licence: str
    origin: Origin
    location: str
    file: str
    sha256: str
    strip: int = 0
    take: tuple[tuple[str, str], ...] = (("", ""),)
    interface: str | None = None


@dataclass(frozen=True, kw_only=True)
class GitPin:
    """ONNX Runtime's own repository at one commit; the tag says which release it is."""

    url: str
    tag: str
    commit: str


@dataclass(frozen=True, kw_only=True)
class SourceSet:
    """All components from one kind of source; `suite` is that of Debian."""

    kind: Literal["archive", "debian"]
    suite: str | None
    components: tuple[ComponentPin, ...]
