"""Where sources come from: upstream's commit, archives, Debian, a checkout; fetched, proved, unpacked and patched."""
