"""Where ONNX Runtime and its C++ dependencies come from; each is checked against its pin before it is opened."""
