"""`ar` archives of the members that a test names: static libraries and Debian's packages."""

from collections.abc import Mapping


def ar_member(name: str, content: bytes, *, size: int | None = None) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content) if size is None else size:<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


def ar_archive(members: Mapping[str, bytes]) -> bytes:
    return b"!<arch>\n" + b"".join(ar_member(name, content) for name, content in members.items())
