"""`invoke api`: which functions of ONNX Runtime's C API an app calls."""
