"""Where what is compiled in comes from, in the words of scanners."""

import pytest
from packageurl.contrib import purl2url

from ortrim.compiling.toolchains import RUNTIME_LICENCES
from ortrim.pins.origins import origin_of
from ortrim.pins.runtime import COMPONENTS, OPTIONAL, runtime_pins

COMMIT = "8a1772a0c5c447df2d18edf33ec4603a8c9c04a6"


def test_every_part_has_a_supplier_and_a_package_url() -> None:
    parts = [("components", name) for name in (*COMPONENTS, *OPTIONAL)]
    parts += [("zig", name) for name, _, _ in RUNTIME_LICENCES["zig"]] + [("zig", "bionic")]
    parts += [("ndk", name) for name, _, _ in RUNTIME_LICENCES["ndk"]] + [("ndk", "bionic")]
    for maker, name in parts:
        origin = origin_of(maker, name, "1.2.3")
        assert origin.supplier, name
        assert origin.purl.version == "1.2.3", name


@pytest.mark.parametrize(
    ("name", "in_debian", "upstream", "purl"),
    [
        ("protobuf", "3.21.12", "21.12", "pkg:github/protocolbuffers/protobuf@3.21.12?version_prefix=v"),
        ("re2", "20240702", "2024-07-02", "pkg:github/google/re2@2024-07-02"),
        ("mp11", "1.82.0", "boost-1.82.0", "pkg:github/boostorg/mp11@1.82.0?version_prefix=boost-"),
        ("abseil_cpp", "20240722.0", "20240722.0", "pkg:github/abseil/abseil-cpp@20240722.0"),
    ],
)
def test_one_release_is_one_package_url_wherever_it_came_from(
    name: str, in_debian: str, upstream: str, purl: str
) -> None:
    """As Debian's packages spell a version, and as the addresses in upstream's `cmake/deps.txt` do."""
    assert [origin_of("components", name, each).purl.to_string() for each in (in_debian, upstream)] == [purl, purl]


def test_a_commit_is_a_version_without_prefix_or_cpe() -> None:
    assert origin_of("components", "cpuinfo", COMMIT).purl.to_string() == f"pkg:github/pytorch/cpuinfo@{COMMIT}"
    assert not origin_of("components", "onnx", COMMIT).cpe


def test_what_is_not_on_github_names_its_repository() -> None:
    """Eigen is on GitLab, of which package URLs have no type."""
    origin = origin_of("components", "eigen", COMMIT)
    assert origin.purl.type == "generic"
    assert origin.purl.qualifiers == {"vcs_url": f"git+https://gitlab.com/libeigen/eigen@{COMMIT}"}


def test_package_urls_lead_to_tags() -> None:
    pins = runtime_pins("1.21.0").debian
    assert pins is not None
    purls = [origin_of("components", pin.name, pin.version).purl for pin in pins.components]
    resolved = [str(purl2url.get_repo_url(purl.to_string())) for purl in purls if purl.type == "github"]  # type: ignore[no-untyped-call]
    assert resolved == [
        "https://github.com/microsoft/onnxruntime/tree/v1.21.0",
        "https://github.com/abseil/abseil-cpp/tree/20240722.0",
        "https://github.com/protocolbuffers/protobuf/tree/v3.21.12",
        "https://github.com/google/flatbuffers/tree/v23.5.26",
        "https://github.com/onnx/onnx/tree/v1.17.0",
        "https://github.com/nlohmann/json/tree/v3.11.3",
        "https://github.com/microsoft/gsl/tree/v4.0.0",
        "https://github.com/howardhinnant/date/tree/v3.0.3",
        "https://github.com/google/re2/tree/2024-07-02",
        "https://github.com/dcleblanc/safeint/tree/3.0.28a",
        "https://github.com/boostorg/mp11/tree/boost-1.85.0",
        "https://github.com/maratyszcza/fxdiv/tree/b408327",
        "https://github.com/google/pthreadpool/tree/560c60d",
        "https://github.com/google/xnnpack/tree/4ea82e5",
    ]


def test_names_of_other_products_are_not_taken() -> None:
    """Scanners look vendors up by a name: `date` is Ruby's, and the NVD calls nlohmann's library otherwise."""
    names = [origin_of("components", name, "3.0.1").name for name in ("date", "nlohmann_json", "onnx")]
    assert names == ["howardhinnant-date", "json-for-modern-cpp", "onnx"]
