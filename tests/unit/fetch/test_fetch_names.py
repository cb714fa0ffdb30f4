"""Which artifacts and files belong to a spec and a target."""

import pytest

from ortrim.buildspec.targets import TARGETS
from ortrim.errors import UsageError
from ortrim.github.fetch.offers import EVERYTHING, Selection, wanted_artifacts, wanted_assets

DELIVERIES = (
    "delivered-kws-android", "delivered-kws-linux-x64", "delivered-kws-linux-arm64", "delivered-kws-linux-arm64-musl",
    "delivered-kws-2-linux-x64", "delivered-linux-linux-x64", "compiled-kws-linux-x64", "delivered-kws-windows-x64",
    "../delivered-kws-android", "delivered-kws-android\n",
)  # fmt: skip
ASSETS = (
    "ortrim-kws-android-1.21.0.aar", "ortrim-kws-android-1.21.0.manifest.json",
    "ortrim-kws-android-arm64-v8a-1.21.0.report.json", "ortrim-kws-android-x86_64-1.21.0-on-emulator.report.json",
    "ortrim-kws-linux-x64-1.21.0.tar.gz", "ortrim-kws-2-linux-x64-1.21.0.tar.gz", "notes.txt",
)  # fmt: skip


def artifacts(spec: str = "", target: str = "") -> set[str]:
    """Return what is chosen of the deliveries, without what all begin with."""
    chosen = wanted_artifacts(DELIVERIES, Selection(spec=spec, target=target), "here")
    return {name.removeprefix("delivered-") for name in chosen}


@pytest.mark.parametrize(
    ("spec", "target", "expected"),
    [
        ("kws", "", {"kws-android", "kws-linux-x64", "kws-linux-arm64", "kws-linux-arm64-musl"}),
        ("kws-2", "", {"kws-2-linux-x64"}),
        ("linux", "", {"linux-linux-x64"}),
        ("kws", "android", {"kws-android"}),
        ("kws", "android-arm64-v8a", {"kws-android"}),
        ("kws", "android-*", {"kws-android"}),
        ("kws", "linux-arm64", {"kws-linux-arm64"}),
        ("kws", "linux-arm64*", {"kws-linux-arm64", "kws-linux-arm64-musl"}),
        ("kws", "android, linux-x64", {"kws-android", "kws-linux-x64"}),
        ("", "linux-x64", {"kws-linux-x64", "kws-2-linux-x64", "linux-linux-x64"}),
    ],
)
def test_deliveries_are_chosen_by_spec_and_target(spec: str, target: str, expected: set[str]) -> None:
    """A package for several ABIs belongs to each of them; what is no delivery of a target is never chosen."""
    assert artifacts(spec, target) == expected


@pytest.mark.parametrize("target", ["apple", "ios", "ios-simulator-arm64", "macos", "macos-universal2", "mac*", ""])
def test_an_xcframework_belongs_to_each_of_its_slices(target: str) -> None:
    """It has one name for phones and Macs; no other target's choice brings it."""
    there = ("delivered-kws-apple", "delivered-kws-linux-x64")
    assert "delivered-kws-apple" in wanted_artifacts(there, Selection(target=target), "here")
    assert wanted_artifacts(there, Selection(target="linux*"), "here") == ("delivered-kws-linux-x64",)
    assert wanted_assets(["ortrim-kws-apple-1.21.0.zip"], Selection(spec="kws", target=target), "here")


@pytest.mark.parametrize("package", ["android", "apple"])
def test_archives_of_folders_and_reports_belong_to_a_package_of_several_targets(package: str) -> None:
    """Chosen by the package's name or by that of one of its targets; no other package's choice brings them."""
    one = "android-x86" if package == "android" else "ios-arm64"
    names = {f"ortrim-kws-{package}-folders.zip", f"ortrim-kws-{one}-1.21.0.report.json"}
    there = [*names, "ortrim-kws-linux-x64-folders.zip"]
    for target in (package, one):
        assert set(wanted_assets(there, Selection(target=target), "here")) == names
    assert wanted_assets([*names, *ASSETS], Selection(target="linux-x64", spec="kws"), "here") == (ASSETS[4],)


def test_every_target_can_be_fetched() -> None:
    """Also by its own name alone."""
    for identifier in TARGETS:
        assert wanted_artifacts([f"delivered-a-{identifier}"], Selection(spec="a", target=identifier), "here")


def test_files_of_a_release_are_chosen_by_their_names() -> None:
    """Packages, proof and reports of a target; with no choice made, everything."""
    android = Selection(spec="kws", target="android")
    assert wanted_assets(ASSETS, android, "here") == tuple(sorted(ASSETS[:4]))
    assert wanted_assets(ASSETS, Selection(spec="kws-2"), "here") == ("ortrim-kws-2-linux-x64-1.21.0.tar.gz",)
    assert wanted_assets(ASSETS, EVERYTHING, "here") == tuple(sorted(ASSETS))


@pytest.mark.parametrize("selection", [Selection(spec="other"), Selection(target="ios"), Selection(target="x")])
def test_nothing_found_names_what_there_is(selection: Selection) -> None:
    """A typing error is found at once."""
    with pytest.raises(UsageError) as caught:
        wanted_artifacts(DELIVERIES, selection, "run 5")
    assert (caught.value.code, caught.value.where) == ("nothing-to-fetch", "run 5")
    assert "kws for android" in caught.value.why
    assert str(selection) in caught.value.what


def test_nothing_at_all_is_reported() -> None:
    """A run of something else."""
    with pytest.raises(UsageError, match="has nothing of everything") as caught:
        wanted_artifacts(["logs"], EVERYTHING, "run 5")
    assert "no delivery" in caught.value.why
