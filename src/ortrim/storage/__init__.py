"""Files that survive a kill at any moment: atomic writes, digest-named folders, locks, safe unpacking, downloads."""
