"""Trimmed, verified ONNX Runtimes from ONNX models."""
