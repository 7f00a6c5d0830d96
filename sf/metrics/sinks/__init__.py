"""Where metrics go: files, TensorBoard, Weights & Biases."""
