"""What OpenSSH says when a machine cannot be used, as diagnostics. Pure.

`ssh` ends with 255 for all of it, so causes are told apart by its words: those of OpenSSH 9.2, recorded in
`tests/unit/verify/data/ssh`, and unchanged for many years.
"""

from typing import Final

from ortrim.errors import VerifyError
from ortrim.verify.devices.base_folders import other_folder

Cause = tuple[tuple[str, ...], str, str, str]
"""Any of these words; the reference, what happened, and a hint in which `{}` is the destination."""
CAUSES: Final[tuple[Cause, ...]] = (
    (
        ("REMOTE HOST IDENTIFICATION HAS CHANGED",),
        "ssh-host-changed",
        "the machine has another host key than before",
        "if it was installed anew, remove the old key: ssh-keygen -R HOST; if not, somebody may be in between",
    ),
    (
        ("Host key verification failed", "No ED25519 host key is known", "host key is known for"),
        "ssh-host-unknown",
        "the machine's host key is not known here",
        "connect once by hand and compare the key that it shows: ssh {}",
    ),
    (
        ("Permission denied (", "Too many authentication failures", "no such identity"),
        "ssh-denied",
        "the machine lets this user in with none of the keys offered",
        "check the user's name, then put your key there: ssh-copy-id {}; a key with a passphrase needs ssh-add first",
    ),
    (
        ("Could not resolve hostname",),
        "ssh-no-such-host",
        "no machine has this name",
        "check the name, or add it to ~/.ssh/config",
    ),
    (
        ("Connection refused",),
        "ssh-refused",
        "the machine is there, but no ssh server listens",
        "start it there (Debian: systemctl enable --now ssh), or name the port: ssh://USER@HOST:PORT",
    ),
    (
        ("Connection timed out", "Operation timed out", "No route to host", "Network is unreachable", "Host is down"),
        "ssh-unreachable",
        "the machine does not answer",
        "check that it is switched on and in the same network: ping HOST",
    ),
    (
        ("Bad owner or permissions", "Bad configuration option", "terminating,", "UNPROTECTED PRIVATE KEY FILE"),
        "ssh-misconfigured",
        "ssh refuses its own configuration",
        "mend what it names, until this works: ssh {} true",
    ),
    (
        ("No space left on device", "Disk quota exceeded"),
        "device-full",
        "the machine has no room",
        f"remove files from it, or {other_folder('ssh:')}",
    ),
    (
        ("Permission denied", "Read-only file system", "can't create directory", "cannot create directory"),
        "device-not-permitted",
        "this user may not write there",
        other_folder("ssh:"),
    ),
)


def known_error(printed: str, destination: str) -> VerifyError | None:
    """Return the diagnostic of an ssh command that failed, by what it printed; None when nothing fits."""
    for words, reference, what, hint in CAUSES:
        if any(word in printed for word in words):
            where, why = f"ssh:{destination}", _last_lines(printed)
            return VerifyError(reference, what, where=where, why=why, hint=hint.replace("{}", destination))
    return None


def ssh_error(printed: str, destination: str) -> VerifyError:
    """Return the diagnostic of a command whose end did not come back: `device-lost` unless ssh says otherwise."""
    what = "the connection broke while the machine was used"
    hint = "check the machine and the network, then run the same command again"
    why = _last_lines(printed)
    lost = VerifyError("device-lost", what, where=f"ssh:{destination}", why=why, hint=hint)
    return known_error(printed, destination) or lost


def copy_error(printed: str, destination: str) -> VerifyError:
    """Return the diagnostic of `tar` on a machine that failed while the connection held."""
    hint = f"try it by hand: tar -c FILE | ssh {destination} tar -x -f - -C /var/tmp"
    what, why = "the machine could not copy files", _last_lines(printed)
    failed = VerifyError("copy-failed", what, where=f"ssh:{destination}", why=why, hint=hint)
    return known_error(printed, destination) or failed


def _last_lines(printed: str) -> str:
    return "\n".join(printed.strip().splitlines()[-4:])
