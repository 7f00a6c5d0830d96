"""A disk that is full, for this process."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(num_bytes):
    """No file may grow beyond that; Python ignores the signal, and the write fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
