"""`AndroidManifest.xml` as text, which is how AARs carry it; nothing that could expand or be fetched is accepted."""

from dataclasses import dataclass
from typing import Final
from xml.parsers import expat

from ortrim.errors import BinaryError

MANIFEST: Final = "AndroidManifest.xml"
ANDROID: Final = "http://schemas.android.com/apk/res/android"
BINARY_XML: Final = b"\x03\x00\x08\x00"


@dataclass(frozen=True, kw_only=True)
class AndroidManifest:
    """The manifest of a library: its package, the least API level it asks for, the attributes of `application`."""

    package: str
    minimum_api: int | None
    application: tuple[tuple[str, str], ...]


def read_android_manifest(data: bytes, where: str) -> AndroidManifest:
    """Return what a library's manifest says.

    Raises `BinaryError` (`not-an-aar` for the binary form, which APKs have; `bad-android-manifest`).
    """
    if data.startswith(BINARY_XML):
        hint = "give the AAR, not the APK that an app was built to"
        raise BinaryError("not-an-aar", "this manifest is compiled, as in an APK", where=where, hint=hint)
    elements: list[tuple[str, dict[str, str]]] = []
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = lambda name, attributes: elements.append((name, attributes))
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(data, True)  # noqa: FBT003 - expat's own signature
        return _manifest(elements)
    except (expat.ExpatError, ValueError) as error:
        what = "is not an Android manifest"
        raise BinaryError("bad-android-manifest", what, where=where, why=str(error)) from error


def _refuse_doctype(*_: object) -> None:
    raise ValueError("it declares a document type, which no Android manifest does")


def _manifest(elements: list[tuple[str, dict[str, str]]]) -> AndroidManifest:
    root, attributes = elements[0]
    if root != "manifest":
        raise ValueError(f"its first element is {root[:100]!r}")
    minimum = _first(elements, "uses-sdk").get(f"{ANDROID} minSdkVersion")
    application = ((name.removeprefix(f"{ANDROID} "), value) for name, value in _first(elements, "application").items())
    return AndroidManifest(
        package=attributes.get("package", ""),
        minimum_api=None if minimum is None else int(minimum),
        application=tuple(sorted(application)),
    )


def _first(elements: list[tuple[str, dict[str, str]]], wanted: str) -> dict[str, str]:
    return next((attributes for name, attributes in elements if name == wanted), {})
