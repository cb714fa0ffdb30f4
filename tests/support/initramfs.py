"""What an initramfs holds, read by its own few lines: archives in cpio's `newc` form."""

from ortrim.devices.machine_files import TRAILER, Entry


def read_archive(data: bytes) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    at = 0
    while not entries or entries[-1].name != TRAILER:
        assert data[at : at + 6] == b"070701"
        numbers = [int(data[start : start + 8], 16) for start in range(at + 6, at + 110, 8)]
        mode, size, name_size = numbers[1], numbers[6], numbers[11]
        name = data[at + 110 : at + 110 + name_size - 1].decode(errors="surrogateescape")
        at += (110 + name_size + 3) // 4 * 4
        entries.append(Entry(name=name, mode=mode, content=data[at : at + size]))
        at += (size + 3) // 4 * 4
    return tuple(entries[:-1])
