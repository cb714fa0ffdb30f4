"""Other people's programs: how they are run, found and installed."""
