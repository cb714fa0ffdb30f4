"""Cases found by themselves, for a model that has none in its buildspec."""
