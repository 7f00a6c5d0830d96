"""Runs the parent process, which allocates shared memory and starts, watches and replaces the other processes."""
