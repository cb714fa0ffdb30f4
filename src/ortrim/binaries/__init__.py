"""Readers of libraries, objects and link maps: ELF, Mach-O, static libraries, frameworks."""
