"""Writes metrics to files, TensorBoard, Trackio and Weights & Biases."""
