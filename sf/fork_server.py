"""Imported by every fork server at its start, and by nothing else: it ends when the parent does.

It would not by itself: it waits for the end of a pipe whose other end all its children hold, too.
"""

import os

from sf.processes import die_with_creator

PID = os.getpid()  # also known to what is forked from it

die_with_creator()
# Whatever is imported next and asks torch for a GPU must not initialise CUDA, which what is forked could then not use.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
