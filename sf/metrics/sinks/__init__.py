"""Where metrics go: files, TensorBoard, Trackio, Weights & Biases."""
