"""`invoke pins.*`: the versions and digests that builds rest on."""
