"""What builds rest on, by digest: versions of ONNX Runtime, sources, images, actions; and how pins are renewed."""
