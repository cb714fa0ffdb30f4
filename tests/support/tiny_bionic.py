"""A bionic in a few lines: headers and start files of our own under the names that the real one has."""

from pathlib import Path
from typing import Final

from ortrim.base.command import run

FILES: Final = {
    "libc/include/android/versioning.h": "#pragma once\n",
    "libc/include/sys/cdefs.h": "#pragma once\n#define __BEGIN_DECLS\n#define __END_DECLS\n",
    "libc/include/unistd.h": "#pragma once\nint getpid(void);\n#include <asm/page.h>\n",
    "libc/include/pthread.h": "#pragma once\nint pthread_self(void);\n",
    "libc/kernel/android/uapi/linux/compiler.h": "#pragma once\n",
    **{
        f"libc/kernel/uapi/asm-{machine}/asm/page.h": f'#define KERNEL_MACHINE "{machine}"\n'
        for machine in ("arm", "arm64", "x86")
    },
    "libc/private/bionic_asm.h": "#ifndef __ASSEMBLY__\n#error not for the assembler\n#endif\n",
    "libc/arch-common/bionic/crtbegin_so.c": (
        "extern void __cxa_finalize(void*);\n"
        '__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;\n'
        "__attribute__((destructor)) static void closed(void) { __cxa_finalize(&__dso_handle); }\n"
    ),
    "libc/arch-common/bionic/crtbegin.c": (
        "extern void __libc_init(void*, void*, int (*)(void), void*);\n"
        "int main(void);\n"
        "void _start(void) { __libc_init(0, 0, main, 0); }\n"
    ),
    "libc/arch-common/bionic/crtbrand.S": (
        "#include <private/bionic_asm.h>\n"
        '.section .note.android.ident,"a",%note\n.balign 4\n'
        '.long 8, 4, 1\n.ascii "Android\\0"\n.long PLATFORM_SDK_VERSION\n'
    ),
    "libc/arch-common/bionic/crtend_so.S": '.section .note.GNU-stack,"",%progbits\n',
    "libc/arch-common/bionic/crtend.S": '.section .note.GNU-stack,"",%progbits\n',
}


def tiny_bionic(folder: Path, pins: Path) -> None:
    """Commit the files into a new repository in `folder`, and pin it in the folder `pins` of the user's own pins."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    own = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        (*own, "commit", "-qm", "tiny"),
        ("config", "uploadpack.allowFilter", "1"),
    ):
        assert run(("git", "-C", folder, *words)).returncode == 0
    commit, tree = (run(("git", "-C", folder, "rev-parse", name)).stdout.strip() for name in ("HEAD", "HEAD^{tree}"))
    (pins / "android").mkdir(parents=True)
    (pins / "android" / "bionic.toml").write_text(
        f'repository = "file://{folder.with_suffix("")}"\ncommit = "{commit}"\ntree = "{tree}"\n'
    )
