"""Write C++ names as their source does, with the C++ library's own function; in a process of its own.

A name of a few hundred letters can stand for one of more letters than memory holds, so memory and time are limited,
and the caller goes on without. Argument: a file with one name a line. Prints one name a line, in the same order; those
that are none of C++ as they are.
"""

import ctypes
import resource
import runpy
import sys
from pathlib import Path

limit_memory = runpy.run_path(str(Path(__file__).with_name("memory.py")))["limit_memory"]
LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")
MEMORY = 512 << 20
SECONDS = 5
LONGEST = 20_000


def main(names: Path) -> None:
    """Print each name of a file, demangled."""
    limit_memory(MEMORY)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    library = cxx_library()
    demangle = library["__cxa_demangle"]
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    release = ctypes.CDLL(None).free
    release.argtypes = [ctypes.c_void_p]
    for name in names.read_bytes().splitlines():
        found = demangle(name, None, None, None) if len(name) <= LONGEST else None
        text = ctypes.string_at(found) if found else name
        release(found)
        sys.stdout.buffer.write(text[:LONGEST].replace(b"\n", b" ") + b"\n")


def cxx_library() -> ctypes.CDLL:
    """Return the C++ library of this machine; ONNX Runtime's wheel needs one, too."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    message = "there is no C++ library"
    raise SystemExit(message)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
