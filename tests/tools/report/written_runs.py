"""Run directories as the trainer writes them, without training."""

import json

import numpy as np

from sf.config import Config
from sf.storage.run_dir import RunDir


def record(step, level, **more):
    """What a run records after `step` thousand decisions at frameskip 4, with a return of `level`."""
    return {
        "env_steps": 1000 * step,
        "env_frames": 4000 * step,
        "seconds": 2.0 * step,
        "env_frames_per_second": 2000.0,
        "sampled_env_frames_per_second": 2100.0,
        "episodes": 10 * step,
        "restarts": 0,
        "env_faults": 0,
        "mean_return": level,
        "std_return": 1.0,
        "mean_episode_steps": 100.0,
        "train/entropy": 2.0 - 0.01 * step,
        "rollout/busy_share": 0.5,
        **more,
    }


def write_run(directory, returns=None, summary=None, records=None, **flags):
    """A run with these records, or one for each return; None: thirty that rise."""
    run_dir = RunDir(directory)
    run_dir.prepare(Config().replace(**{"env": "toy_bandit", **flags}))
    levels = np.linspace(0.0, 10.0, 30) if returns is None else returns
    if records is None:
        records = [record(idx + 1, level) for idx, level in enumerate(levels)]
    run_dir.metrics.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    if summary is not None:
        run_dir.write_summary({**record(len(levels), 9.5), **summary})
    return directory
