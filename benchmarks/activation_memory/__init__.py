"""How near `invoke cost` comes to the memory that a run of ONNX Runtime takes."""
