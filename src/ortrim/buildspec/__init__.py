"""Buildspecs: what the user writes, how it is read, and what holds between its keys."""
