"""Parity: how far outputs of untouched models differ, and which damage the comparison notices."""
