"""Loops in C++ for what would be several passes over memory in PyTorch, on the CPU."""
