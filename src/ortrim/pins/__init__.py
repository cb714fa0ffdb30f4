"""What builds rest on, by digest: versions of ONNX Runtime, sources, images and actions."""
