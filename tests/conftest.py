"""One thread for torch, here and in every process that a test starts: the networks are tiny, and tests share cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
