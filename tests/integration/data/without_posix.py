"""Takes from Python what Windows lacks, then runs the program `ortrim` with the words that follow."""

import asyncio  # noqa: F401 - the standard library's own ways differ by system, and are not what is looked at
import builtins
import errno
import io
import multiprocessing.synchronize  # noqa: F401
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile  # noqa: F401
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Never

import filelock
import invoke  # noqa: F401 - packages choose by the system, too
import numpy  # noqa: F401, ICN001
import platformdirs.unix  # noqa: F401

MODULES: Final = ("crypt", "fcntl", "grp", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios", "tty")
OS_NAMES: Final = (
    "chown", "chroot", "confstr", "eventfd", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
    "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "initgroups", "killpg",
    "lchown", "memfd_create", "mkfifo", "mknod", "nice", "openpty", "pipe2", "posix_fallocate", "posix_spawn",
    "posix_spawnp", "pread", "pwrite", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sendfile",
    "setegid", "seteuid", "setgid", "setpgid", "setpriority", "setsid", "setuid", "statvfs", "sync", "sysconf", "uname",
    "wait3", "wait4", "waitid", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK",
)  # fmt: skip
SIGNALS: Final = (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGUSR1",
    "SIGUSR2", "SIGWINCH", "alarm", "pthread_sigmask", "setitimer", "sigwait",
)  # fmt: skip


def import_as_on_windows(name: str, *rest: Any, **options: Any) -> Any:
    """Refuse ortrim's own code a module that Windows has not; packages know themselves where they run."""
    importing = rest[0] if rest else options.get("globals")
    if name in MODULES and str((importing or {}).get("__name__", "")).startswith("ortrim"):
        message = f"No module named {name!r}"
        raise ModuleNotFoundError(message, name=name)
    return real_import(name, *rest, **options)


def no_pipes(*_words: object, **_options: object) -> Never:
    """Stand in for a selector, which takes nothing but sockets on Windows."""
    raise OSError(errno.ENOTSOCK, "an operation was attempted on something that is not a socket")


def disk_usage(path: Any) -> SimpleNamespace:
    """Say what `shutil.disk_usage` does, which asks Windows in another way."""
    found = real_statvfs(path)
    return SimpleNamespace(total=found.f_blocks * found.f_frsize, free=found.f_bavail * found.f_frsize)


def open_as_on_windows(*words: Any, **options: Any) -> Any:
    """Open a file; lines of text end in two bytes unless something else is said, and text is no UTF-8."""
    names = ("file", "mode", "buffering", "encoding", "errors", "newline", "closefd", "opener")
    given = dict(zip(names, words, strict=False)) | options
    if "b" not in given.get("mode", "r"):
        given["encoding"] = given.get("encoding") or "cp1252"
        writing = set(given.get("mode", "r")) & set("wax+")
        given["newline"] = "\r\n" if writing and given.get("newline") is None else given.get("newline")
    return real_open(**given)


def open_files() -> set[str]:
    """Return what this process has open, as far as the system says so."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir() if Path("/proc").is_dir() else ():
        with suppress(FileNotFoundError):  # another thread has closed it meanwhile
            found.add(str(descriptor.readlink()))
    return found


def unless_open(move: Callable[..., None]) -> Callable[..., None]:
    """Wrap what renames or removes a file: on Windows that is refused while the file is open."""

    def moved(source: Any, *rest: Any, **options: Any) -> None:
        if os.path.realpath(source) in open_files():
            raise PermissionError(errno.EACCES, "it is being used by another process", str(source))
        move(source, *rest, **options)

    return moved


real_open, real_import, real_statvfs, real_system = io.open, builtins.__import__, os.statvfs, platform.system()
if __name__ == "__main__":
    for name in OS_NAMES:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)
    builtins.__import__ = import_as_on_windows
    platform.system = lambda: "Windows"
    platform.machine = lambda: "AMD64"
    filelock.FileLock = filelock.SoftFileLock
    subprocess.Popen.kill = subprocess.Popen.terminate  # type: ignore[method-assign]
    selectors.DefaultSelector = no_pipes  # type: ignore[misc, assignment]
    shutil.disk_usage = disk_usage  # type: ignore[assignment]
    io.open = open_as_on_windows
    os.rename, os.replace, os.unlink = unless_open(os.rename), unless_open(os.replace), unless_open(os.unlink)
    sys.argv = ["ortrim", *sys.argv[1:]]
    from ortrim.models import full_runtime

    own = full_runtime.LIBRARY_NAMES[real_system]
    full_runtime.LIBRARY_NAMES = {"Windows": own}  # type: ignore[misc]
    from ortrim.cli.program import main

    main()
