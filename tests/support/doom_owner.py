"""A process that owns Doom engines, and what is left of engines."""

import os
from contextlib import suppress
from pathlib import Path

import sf

TIMEOUT_S = 20.0

# Pins itself to a core, starts two games there, says so, and waits to be killed.
OWNER = """
import os, sys
from sf.envs.doom.group import make_group
from sf.envs.options import EnvOptions

core = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
group = make_group("doom_basic", 2, EnvOptions(), seed=1, first_env_idx=0, core=core)
print(*(env._game.get_instance_id() for env in group._games), flush=True)
sys.stdin.read()
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(sf.__file__).parents[1])}


def engine_pids(owner_pid: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{owner_pid}/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            found += map(int, (thread / "children").read_text().split())
    return found


def shared_files(instance_ids: list[str]) -> list[Path]:
    return [path for id_ in instance_ids for path in Path("/dev/shm").glob(f"ViZDoom*{id_}")]
