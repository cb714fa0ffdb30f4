"""Mach-O: libraries, objects and frameworks of Apple's systems, read and edited."""
