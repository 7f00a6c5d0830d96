"""What holds for all tests, which share a machine with each other and with others."""

import os

from hypothesis import settings

# For torch, here and in every process that a test starts: the networks are tiny. It is read when torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("shared_machine", deadline=None)  # no test is timed
settings.load_profile("shared_machine")
