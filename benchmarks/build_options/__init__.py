"""What each build option of a profile brings in bytes: on alone, and off alone, for one spec and one target."""
