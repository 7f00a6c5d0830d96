"""A policy as an ONNX or .pt2 file, checked against the network that it came from."""
