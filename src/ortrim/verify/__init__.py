"""Verification: cases, references, parity, measuring in turn, and verdicts."""
