"""Processes that kill themselves at one of the lines by which they take part in the sampler.

Quick to import: rollout workers know nothing of torch.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import sf
from sf.rollout.worker import rollout_worker

NUM_DEATHS = 4  # of each process
_ROOT = Path(sf.__file__).parent
_SAMPLER = tuple(str(_ROOT / name) for name in ("rollout", "policy", "queues", "requests.py", "slots.py", "rows.py"))


def mortal_rollout_worker(reports, args):
    *_, num_before = args.seed_key
    if num_before < NUM_DEATHS:
        die_at_a_line((args.channel.groups.start, num_before))
    rollout_worker(reports, args)


def die_at_a_line(seed):
    """The calling process, at one of the next two thousand lines that it executes there."""
    left = int(np.random.default_rng(seed).integers(50, 2000))

    def at_line(frame, event, arg):
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return at_line

    sys.settrace(lambda frame, event, arg: at_line if frame.f_code.co_filename.startswith(_SAMPLER) else None)
