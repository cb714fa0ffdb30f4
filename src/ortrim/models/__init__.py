"""Models: prepared, converted to ORT format, and what they require of a runtime."""
