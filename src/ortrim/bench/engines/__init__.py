"""`invoke compare`: the same models in other inference engines."""
