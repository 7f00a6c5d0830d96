"""`load_policy(path).act(obs)`: a trained policy that acts for one actor, with observations and actions of the
environment itself.

`sf.evaluation.play.torch_policy.TorchPolicy` runs a checkpoint with torch, `sf.evaluation.play.onnx_policy.OnnxPolicy`
an ONNX file without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.added.clock import ADDED_FOR_CRITIC
from sf.envs.errors import UsageError
from sf.envs.group import EnvSpec
from sf.envs.spaces.actions import ActionSpec, decoder
from sf.envs.spaces.observations import ObsWriter, obs_arrays
from sf.system.messages import said_to


class Policy(ABC):
    """A trained policy that acts by itself.

    name: of the file, for messages. env_id, env_steps: what it was trained on, and for how long. obs_space,
    action_space: as the environment itself has them. flat_obs_space, action_spec: as the network takes and gives
    them, see `sf.envs.spaces.observations` and `sf.envs.spaces.actions`.
    """

    def __init__(self, name: str, env_id: str, env_steps: int, obs_space: gym.Space, action_space: gym.Space) -> None:
        self.name = name
        self.env_id = env_id
        self.env_steps = env_steps
        self.obs_space = obs_space
        self.action_space = action_space
        self.action_spec = ActionSpec.of(action_space)
        self._writer = ObsWriter(env_id, obs_space)
        self._decode = decoder(action_space)
        self._rows = obs_arrays(self.flat_obs_space, 1)
        self._is_first = True

    def __repr__(self) -> str:
        spaces = (" ".join(str(space).split()) for space in (self.obs_space, self.action_space))
        return (
            f"{type(self).__name__}({self.name!r}, env_id={self.env_id!r}, env_steps={self.env_steps}, "
            + "obs_space={}, action_space={})".format(*spaces)
        )

    @property
    def flat_obs_space(self) -> gym.spaces.Dict:
        """The observations as the network takes them: a Dict of Boxes."""
        return self._writer.space

    def sees(self, key: str) -> bool:
        """Returns whether it sees an observation of its environment, which may have some for the critic alone."""
        return key not in ADDED_FOR_CRITIC

    def has_rows_of(self, spec: EnvSpec) -> bool:
        """Returns whether it sees and does what all agents of an environment do; else it is a policy of some kinds."""
        seen = {key: (box.shape, box.dtype) for key, box in spec.obs_space.items() if self.sees(key)}
        own = {key: (box.shape, box.dtype) for key, box in self.flat_obs_space.items()}
        return seen == own and self.action_spec == ActionSpec.of(spec.action_space)

    def reset(self) -> None:
        """An episode begins: a recurrent policy forgets what it saw."""
        self._is_first = True

    def make_env(self) -> gym.Env:
        """Makes the environment that it was trained in, as evaluations have it: a
        `sf.evaluation.play.single_env.SingleEnv`.

        Raises ValueError for one of several agents, and where the file does not say how it was made.
        """
        raise UsageError(
            f"{self.name} does not keep how its environment was made: load the run, or a checkpoint, for make_env, or "
            f"make {self.env_id} yourself"
        )

    def act(self, obs: Any, deterministic: bool = False) -> Any:
        """The action for one observation, as the environment gives it, in the form that `env.step` takes.

        deterministic: the most probable action instead of a random one. Raises ValueError for an observation that
        does not fit `obs_space`.
        """
        self._writer.write(obs, {key: list(rows) for key, rows in self._rows.items()}, 0)
        for key, rows in self._rows.items():
            if rows.dtype.kind == "f" and not np.isfinite(rows).all():  # a recurrent state would keep it
                raise UsageError(f"{self.name}: observation {key!r} has NaN or infinite numbers: give finite ones")
        discrete, continuous = self._choose(self._rows, np.array([self._is_first]), deterministic)
        self._is_first = False
        return self._decode(discrete, continuous)

    @abstractmethod
    def _choose(
        self, obs: Mapping[str, np.ndarray], first: np.ndarray, deterministic: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the action of one actor, discrete [D] and continuous [C]. obs: {key: [1, ...]}. first: [1] bool."""


def load_policy(
    path: str | Path,
    which: str = "latest",
    policy_id: int = 0,
    device: str = "cpu",
    seed: int = 0,
    say: Callable[[str], None] = print,
    trust: bool = False,
) -> Policy:
    """Load a policy from a run directory, a checkpoint, the folder of a policy, the zoo ("zoo/doom_basic"), the Hugging
    Face Hub ("hf:USER/NAME"), or an ONNX file of `sf-export`, which needs no torch.

    which: "latest" or "best" of a run. policy_id: for a run with several. device: an ONNX file takes "cpu"
    alone. seed: of the actions that it draws. trust: take a checkpoint that names code (module:Name) which you have not
    trained with before, and import its encoder or model. Raises ValueError where there is no such policy or it cannot
    be used.
    """
    if not hasattr(policy_id, "__index__"):
        raise ValueError(f"policy_id is {policy_id!r}: name a policy by its number, from 0 on")
    suffix = Path(path).suffix
    if suffix == ".onnx":
        _require_only_policy(path, policy_id)
        if device != "cpu":
            raise ValueError(f"device is {device}, but an exported policy acts on the CPU here: leave it out")

        from sf.evaluation.play.onnx_policy import OnnxPolicy  # noqa: PLC0415  needs no torch

        return OnnxPolicy(path, seed)
    if suffix == ".pt2":
        raise ValueError(f"{path} is for torch.export.load (see docs/export.md): load an .onnx file here")

    from sf.evaluation.play.named_checkpoint import find_trusted  # noqa: PLC0415  torch is slow to import
    from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
    from sf.storage.zoo.places import located  # noqa: PLC0415

    _require_device(device)
    found = located(path)
    if found.is_file():
        _require_only_policy(path, policy_id)
    with said_to(say):
        file, saved = find_trusted(found, which, policy_id, trust)
    return TorchPolicy(saved, str(file), device, seed)


def _require_device(device: str) -> None:
    import torch  # noqa: PLC0415  slow to import

    try:
        torch.empty(0, device=device)
    except (TypeError, RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device is {device!r}, which torch cannot use here ({reason}): cpu, or cuda where there is a GPU"
        ) from None


def _require_only_policy(path: str | Path, policy_id: int) -> None:
    if policy_id != 0:
        raise ValueError(f"policy_id is {policy_id}, but {path} has one policy: leave it out")
