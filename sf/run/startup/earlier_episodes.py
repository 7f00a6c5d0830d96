"""How many episodes the earlier starts of a run have had, for environments whose episodes change with their number."""

from __future__ import annotations

import json

from sf.storage import text_files
from sf.storage.run_dir import RunDir


def earlier_episodes(run_dir: RunDir, env_steps: int) -> int:
    """Counts the episodes of all actors up to the last record with at most `env_steps`: later ones are undone."""
    of_starts: dict[int, int] = {}
    if run_dir.metrics.exists():
        for line in text_files.whole_lines(run_dir.metrics):
            record = json.loads(line)
            if record["env_steps"] <= env_steps:
                of_starts[record.get("start", 1)] = record["episodes"]
    return sum(of_starts.values())
