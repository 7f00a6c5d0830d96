"""The checkpoint that a user names, by its own path or that of its run: found, read and checked.

Anybody may have made it. This module imports nothing that it names: see `sf.config.trust`.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym

from sf.config import Config
from sf.config.older import BEFORE_THE_FLAG, env_before
from sf.config.trust import require_trusted
from sf.envs.errors import UsageError
from sf.envs.field_types import checked
from sf.envs.spaces import space_json
from sf.storage import best_checkpoint, checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir


def find_checkpoint(path: str | Path, which: str = "latest", policy_id: int = 0) -> tuple[Path, Checkpoint]:
    """The file and its content; see `sf.evaluation.play.policy`. Raises ValueError where none can be read."""
    path = Path(path)
    try:
        file, saved = _find(path, which, policy_id)
    except OSError as error:
        raise UsageError(f"{error.filename or path} cannot be read ({error.strerror})") from None
    require_whole_state(saved, file)
    return file, saved


def find_trusted(
    path: str | Path, which: str = "latest", policy_id: int = 0, is_trusted: bool = False
) -> tuple[Path, Checkpoint]:
    """Calls `find_checkpoint` before what it names is made. Raises ValueError also for code that nobody vouches for."""
    file, saved = find_checkpoint(path, which, policy_id)
    require_known_code(saved, file, is_trusted)
    return file, saved


def require_known_code(saved: Checkpoint, file: Path, is_trusted: bool) -> None:
    """Raises ValueError where a checkpoint names code that nobody vouches for. file: where it was found."""
    require_trusted(checked(Config, saved.state["config"], str(file)), file, is_trusted)


def num_policies(path: Path) -> int:
    """The number of policies of the run at `path`; 1 for a checkpoint. Raises ValueError where a run does not say."""
    try:
        flags = None if path.is_file() else RunDir(path).saved_flags()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from None
    num = (flags or {}).get("num_policies", 1)
    if not isinstance(num, int) or num < 1:
        raise UsageError(f"{RunDir(path).config} has num_policies {num!r}: it must be a number, at least 1")
    return num


def require_whole_state(saved: Checkpoint, file: Path) -> None:
    """Raises ValueError for a file with a right checksum whose content no learner writes."""
    env_steps, config = saved.state.get("env_steps"), saved.state.get("config")
    if not isinstance(env_steps, int) or not isinstance(config, dict):
        raise UsageError(f"{file} lacks env_steps or config, which every checkpoint has: take another one")
    checked(Config, config, str(file))


def config_of(saved: Checkpoint, name: object) -> Config:
    """The configuration that wrote it. Raises ValueError for flags or values that this version does not know."""
    try:
        flags = saved.state["config"]
        return Config().replace(**{**BEFORE_THE_FLAG, **env_before(flags), **flags})
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} has a configuration that this version cannot read: {error}") from None


def spaces_of(saved: Checkpoint, name: object) -> tuple[gym.Space, gym.Space]:
    """Returns the spaces of observations, as the environment had them, and of actions. Raises ValueError without."""
    obs_space, action_space = (
        space_json.read(saved.state.get(which), f"{name} has no {which} that can be read")
        for which in ("obs_space", "action_space")
    )
    return obs_space, action_space


def _find(path: Path, which: str, policy_id: int) -> tuple[Path, Checkpoint]:
    if path.is_file():
        if which != "latest":
            raise UsageError(
                f"checkpoint is {which!r}, but {path} is a checkpoint itself: leave it out, or name its run"
            )
        return path, checkpoint.load(path)
    if RunDir(path).saved_flags() is None:
        raise UsageError(f"{path} is neither a checkpoint nor the directory of a run, such as train_dir/doom_basic")
    num = num_policies(path)
    if not 0 <= policy_id < num:
        raise UsageError(f"policy is {policy_id}, but {path} has {num}: from 0 to {num - 1}")
    directory = RunDir(path).checkpoints_of(policy_id, num)
    if which == "latest":
        return checkpoint.load_latest(directory)
    if which == "best":
        return best_checkpoint.load_best(directory)
    raise UsageError(f"checkpoint is {which!r}: latest, best, or the path of a file in place of the run")
