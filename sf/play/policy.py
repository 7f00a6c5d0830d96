"""A checkpoint that acts by itself, with torch: no processes, no shared memory, no environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from sf import checkpoint
from sf.checkpoint import MODEL, Checkpoint
from sf.config import Config
from sf.envs import space_json
from sf.envs.errors import UsageError
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model
from sf.play.loaded import LoadedPolicy
from sf.run_dir import RunDir


class Actions(NamedTuple):
    """What M actors do, as `sf.envs.actions.ActionSpec` lays it out, and what they expect."""

    discrete: np.ndarray  # [M, D] int32
    continuous: np.ndarray  # [M, C] float32
    value: np.ndarray  # [M] float32, of the observations acted on


class Policy(LoadedPolicy):
    """What a checkpoint holds, ready to act.

    config: of its run. network: an `sf.model` with its weights, in float32 and for inference only.
    """

    def __init__(self, saved: Checkpoint, name: str, device: str = "cpu", seed: int = 0) -> None:
        """name: for messages. Raises ValueError where the checkpoint is of another version, or its model unknown."""
        if "action_space" not in saved.state:
            raise UsageError(f"{name} is older than this version, which keeps the spaces: resume its run once")
        self.config = Config().replace(**saved.state["config"])
        super().__init__(
            name,
            self.config.run.env,
            saved.state["env_steps"],
            space_json.from_json(saved.state["obs_space"]),
            space_json.from_json(saved.state["action_space"]),
        )
        self.device = torch.device(device)
        self.network = inference_model(self.config.model, self.flat_obs_space, self.action_spec, "float32", self.device)
        prefix = len(MODEL)
        self.network.load_state_dict({k[prefix:]: v for k, v in saved.tensors.items() if k.startswith(MODEL)})
        self._actors = Actors(self, 1, seed)

    def _choose(
        self, obs: Mapping[str, np.ndarray], first: np.ndarray, deterministic: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        actions = self._actors.act(obs, first, deterministic=deterministic)
        return actions.discrete[0], actions.continuous[0]


class Actors:
    """N actors that one policy plays, each with a recurrent state of its own."""

    def __init__(self, policy: Policy, num_actors: int, seed: int) -> None:
        self._policy = policy
        self._all = np.arange(num_actors)
        self._state = torch.zeros(num_actors, policy.network.state_size, device=policy.device)  # [N, S]
        self._generator = torch.Generator(policy.device).manual_seed(seed)

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        first: np.ndarray,
        who: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> Actions:
        """The actions of M of the actors, whose states go on.

        obs: {key: [M, ...]}, laid out as `Policy.flat_obs_space`. first: [M] bool, who begins an episode with it.
        who: [M] their positions; None: all of them.
        """
        device = self._policy.device
        idxs = torch.from_numpy(self._all if who is None else who).to(device)
        with torch.inference_mode():
            out = self._policy.network.step(
                {key: torch.from_numpy(rows).to(device) for key, rows in obs.items()},
                self._state[idxs],
                torch.from_numpy(first).to(device),
            )
            self._state[idxs] = out.state
            distribution = ActionDistribution(self._policy.action_spec, out.params)
            discrete, continuous = distribution.mode() if deterministic else distribution.sample(self._generator)
        return Actions(*(tensor.cpu().numpy() for tensor in (discrete, continuous, out.value)))


def find_checkpoint(
    path: str | Path, which: str = "latest", policy_id: int = 0, say: Callable[[str], None] = print
) -> tuple[Path, Checkpoint]:
    """The file and its content; see `sf.play.load`. Raises ValueError where there is none."""
    path = Path(path)
    if path.is_file():
        return path, checkpoint.load(path)
    flags = RunDir(path).saved_flags()
    if flags is None:
        raise UsageError(f"{path} is neither a checkpoint nor the directory of a run, such as train_dir/doom_basic")
    num_policies = flags.get("num_policies", 1)
    if not 0 <= policy_id < num_policies:
        raise UsageError(f"policy is {policy_id}, but {path} has {num_policies}: from 0 to {num_policies - 1}")
    directory = RunDir(path).checkpoints_of(policy_id, num_policies)
    if which == "latest":
        return checkpoint.load_latest(directory, say)
    if which == "best":
        return checkpoint.load_best(directory)
    raise UsageError(f"checkpoint is {which!r}: latest, best, or the path of a file in place of the run")
