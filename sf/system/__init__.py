"""The machine below a run: processes, cores, compiled code, GPUs, shared memory. Nothing here knows of reinforcement
learning."""
