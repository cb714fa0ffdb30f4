"""`invoke page`: everything about a model on one page."""
