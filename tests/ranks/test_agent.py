"""Ranks end with what has started them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sf.ranks.agent import LAUNCHER


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({LAUNCHER: "another"}, 0),  # of no rank
        ({"RANK": "0", "WORLD_SIZE": "2"}, 0),
        ({"RANK": "0", "WORLD_SIZE": "2", LAUNCHER: str(os.getpid())}, 0),
        ({"RANK": "0", "WORLD_SIZE": "2", LAUNCHER: "another"}, 1),
    ],
)
def test_a_rank_whose_launcher_has_died_ends_at_once_and_is_quick_to_look(variables, status):
    look = "import sys; from sf.ranks.agent import end_with_agent; end_with_agent()"
    look += "; sys.exit(2 * ('torch' in sys.modules or 'numpy' in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", look], env={**os.environ, **variables}, check=False).returncode == status
    )
