"""The facts about Android that travel with ortrim: what they say, and that they hang together."""

import pytest

from ortrim.binaries.android import ABI_FACTS
from ortrim.buildspec.targets import ABIS
from ortrim.platforms.android.system_api import system_api


@pytest.mark.parametrize(
    ("abi", "library", "symbol", "level"),
    [
        ("arm64-v8a", "libc.so", "malloc", 21),
        ("arm64-v8a", "libc.so", "stderr", 23),
        ("arm64-v8a", "libc.so", "getifaddrs", 24),
        ("arm64-v8a", "libc.so", "strtod_l", 26),
        ("arm64-v8a", "libc.so", "aligned_alloc", 28),
        ("arm64-v8a", "libc.so", "__tls_get_addr", 30),
        ("x86_64", "libc.so", "__tls_get_addr", 29),
        ("arm64-v8a", "libc.so", "prlimit", 21),
        ("x86", "libc.so", "prlimit", 24),
        ("arm64-v8a", "libm.so", "clog", 26),
        ("x86", "libm.so", "csqrtl", 21),
        ("x86_64", "libm.so", "csqrtl", 23),
        ("armeabi-v7a", "libdl.so", "dl_unwind_find_exidx", 21),
        ("x86", "liblog.so", "__android_log_is_loggable", 30),
    ],
)
def test_levels_are_those_of_bionic(abi: str, library: str, symbol: str, level: int) -> None:
    """Samples of each kind: for all, for a width, for one machine."""
    symbols = system_api(abi).libraries[library].symbols
    assert symbols is not None
    assert symbols[symbol] == level


@pytest.mark.parametrize(
    ("abi", "symbol"),
    [("arm64-v8a", "__mmap2"), ("x86_64", "cacheflush"), ("arm64-v8a", "android_mallopt"), ("x86", "__futex_wait")],
)
def test_what_others_have_or_apps_may_not_use_is_not_there(abi: str, symbol: str) -> None:
    """Symbols of 32 bits alone, of other machines, of the system's own libraries, and private ones."""
    symbols = system_api(abi).libraries["libc.so"].symbols
    assert symbols is not None
    assert symbol not in symbols


def test_every_abi_has_facts() -> None:
    """Those that targets are called after, and no other."""
    assert set(ABI_FACTS) == set(ABIS.values())
    for abi in ABI_FACTS:
        api = system_api(abi)
        exact = {name for name, library in api.libraries.items() if library.symbols}
        assert exact == {"libc.so", "libdl.so", "liblog.so", "libm.so"}
        assert all(library.begins for library in api.libraries.values() if library.symbols is None)
        assert min(api.versions.values()) == min(library.since for library in api.libraries.values()) == 21


def test_an_abi_that_is_none_is_a_mistake() -> None:
    """Callers ask for known ones only."""
    with pytest.raises(KeyError):
        system_api("mips")
