"""Gradients of a minibatch over several processes, on a CPU whose cores would be idle otherwise."""
