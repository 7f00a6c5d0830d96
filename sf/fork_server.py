"""Imported by every fork server at its start, and by nothing else: it ends when the parent does.

It would not by itself: it waits for the end of a pipe whose other end all its children hold, too.
"""

import os

from sf.processes import die_with_creator

PID = os.getpid()  # also known to what is forked from it

die_with_creator()
