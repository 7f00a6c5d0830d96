"""What a learner goes on with: the content of its checkpoints, and of what it leaves to a successor."""

from __future__ import annotations

from typing import Any

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.spaces import space_json
from sf.learner.update import Updater
from sf.storage.checkpoint import Checkpoint


def make_checkpoint(
    updater: Updater,
    config: Config,
    spec: EnvSpec,
    env_steps: int = 0,
    trained_steps: int = 0,
    seconds: float = 0.0,
    weights_event: int = 0,
) -> Checkpoint:
    """Raises FloatingPointError where it would hold NaN or Inf, which nobody can go on with.

    The tensors are those that are trained, not copies.
    """
    if not updater.is_finite():
        raise FloatingPointError("the weights are not finite")
    state: dict[str, Any] = {
        "env_steps": env_steps,
        "trained_steps": trained_steps,
        "seconds": seconds,
        "weights_event": weights_event,
        "updater": updater.state(),
        "config": config.flat(),
        "obs_space": space_json.to_json(spec.native_obs_space),
        "action_space": space_json.to_json(spec.action_space),
    }
    return Checkpoint(updater.tensors(), state)
