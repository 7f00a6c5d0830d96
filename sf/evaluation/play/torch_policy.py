"""A checkpoint that acts by itself, with torch: no processes, no shared memory, no environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from sf.config.flags.model import is_hidden
from sf.envs.added.clock import CLOCK
from sf.envs.errors import UsageError
from sf.evaluation.play.named_checkpoint import config_of, spaces_of
from sf.evaluation.play.player import Actions, Obs
from sf.evaluation.play.policy import Policy
from sf.evaluation.play.single_env import SingleEnv
from sf.model.acting import Acting, ActingHere, AnswerLayout, AnyActing
from sf.model.central_critic import CENTRAL_PARTS
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model
from sf.storage.checkpoint import Checkpoint
from sf.system.processes.torch_runtime import float32_by_default


class TorchPolicy(Policy):
    """The policy of a checkpoint, ready to act. config: of its run. network: a model of `sf.model`, for inference."""

    @float32_by_default()
    def __init__(
        self,
        saved: Checkpoint,
        name: str,
        device: str = "cpu",
        seed: int = 0,
        precision: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        """Imports the model and the encoder that the checkpoint names: see `sf.config.trust`. precision: of the trunk.

        Raises ValueError where the checkpoint is of another version, lacks a part, or its model is unknown.
        """
        if not {"obs_space", "action_space"} <= saved.state.keys():
            raise UsageError(f"{name} is older than this version, which keeps the spaces: resume its run once")
        self.config = config_of(saved, name)
        model = self.config.model
        obs_space, action_space = spaces_of(saved, name)
        super().__init__(
            name, self.config.run.env, saved.state["env_steps"], without(obs_space, model.hidden_obs), action_space
        )
        self.device = torch.device(device)
        weights = saved.weights
        self.has_value = not model.has_central_critic  # which sees what is not here
        if not self.has_value:
            model = dataclasses.replace(model, critic="own", critic_obs=(), mixer="none")
            weights = {key: value for key, value in weights.items() if not key.startswith(CENTRAL_PARTS)}
        self.network = inference_model(model, self.flat_obs_space, self.action_spec, precision, self.device)
        try:
            self.network.load_state_dict(weights)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                f"{name} has weights that do not fit its configuration ({reason}): name another checkpoint"
            ) from None
        self._actors = self.actors(1, seed)

    def sees(self, key: str) -> bool:
        return super().sees(key) and not is_hidden(key, self.config.model.hidden_obs)

    def make_env(self) -> gym.Env:
        return SingleEnv(self.env_id, self.config.evaluated_environment)

    @float32_by_default()
    def actors(self, num_actors: int, seed: int) -> NetworkActors:
        return NetworkActors(self, num_actors, seed)

    @float32_by_default()
    def probabilities(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Computes the probabilities of the actions of a Discrete space [M, A] float32, for a network without memory.

        obs: {key: [M, ...]}, laid out as `flat_obs_space`.
        """
        params, _ = self._evaluated(obs)
        return ActionDistribution(self.action_spec, params).log_probs[:, 0].exp().cpu().numpy()

    @float32_by_default()
    def judged(self, obs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Computes the logits of the actions of a Discrete space [M, A] float32, and the value [M] float32 in the
        rewards of the environment, for a network without memory. obs: as for `probabilities`.
        """
        params, value = self._evaluated(obs)
        return params.float().cpu().numpy(), value.float().cpu().numpy() / self.config.learner.reward_scale

    @torch.inference_mode()
    def _evaluated(self, obs: Mapping[str, np.ndarray]) -> tuple[Tensor, Tensor]:
        assert self.network.state_size == 0
        assert len(self.action_spec.discrete_sizes) == 1
        assert not self.action_spec.num_continuous
        num = len(next(iter(obs.values())))
        if self.config.model.critic_clock is True:
            obs = {**obs, CLOCK: np.zeros((num, 1), np.float32)}  # which the policy does not see
        out = self.network.step(
            {key: torch.from_numpy(rows).to(self.device) for key, rows in obs.items()},
            torch.zeros(num, 0, device=self.device),
            torch.ones(num, dtype=torch.bool, device=self.device),
        )
        return out.params, out.value

    def _choose(
        self, obs: Mapping[str, np.ndarray], first: np.ndarray, deterministic: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        actions = self._actors.act(obs, first, deterministic=deterministic)
        return actions.discrete[0], actions.continuous[0]


def without(space: gym.Space, hidden: Sequence[str], path: str = "") -> gym.Space:
    """Returns the observation space of an environment without what these patterns keep from the policy."""
    if not hidden or not isinstance(space, gym.spaces.Dict):
        return space
    seen = {key: child for key, child in space.items() if not is_hidden(f"{path}{key}", hidden)}
    return gym.spaces.Dict({key: without(child, hidden, f"{path}{key}/") for key, child in seen.items()})


class NetworkActors:
    """N actors that one policy plays, each with a recurrent state of its own."""

    def __init__(self, policy: TorchPolicy, num_actors: int, seed: int, acting: AnyActing | None = None) -> None:
        """acting: computes what an `Acting` of the network does. None: one of them."""
        self._policy = policy
        self._acting = acting or ActingHere(Acting(policy.network, policy.action_spec))
        self._layout = AnswerLayout(policy.action_spec)
        self._all = np.arange(num_actors)
        self._steps = np.zeros(num_actors, np.float32)  # [N] that an episode has had, for a critic with a clock
        self._state = torch.zeros(num_actors, policy.network.state_size, device=policy.device)  # [N, S]
        self._generator = torch.Generator(policy.device).manual_seed(seed)

    @float32_by_default()
    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        """Returns the actions of M of the actors, see `sf.evaluation.play.player.Actors`. Recurrent states go on."""
        device, spec = self._policy.device, self._policy.action_spec
        who = self._all if who is None else who
        idxs = torch.from_numpy(who).to(device)
        self._steps[who] = np.where(first, 0.0, self._steps[who] + 1.0)
        if self._policy.config.model.critic_clock is True:
            obs = {**obs, CLOCK: self._steps[who, None]}
        inputs = (
            {key: torch.from_numpy(rows).to(device) for key, rows in obs.items()},
            self._state[idxs],
            torch.from_numpy(first).to(device),
        )
        with torch.inference_mode():
            if deterministic:
                out = self._policy.network.step(*inputs)
                self._state[idxs] = out.state
                mode = ActionDistribution(spec, out.params).mode()
                return self._shown(*(tensor.cpu().numpy() for tensor in (*mode, out.value)))
            noise = ActionDistribution.noise(spec, (len(who),), device, self._generator)
            packed, self._state[idxs] = self._acting(*inputs, *noise)
        answers = self._layout.unpack(packed.cpu().numpy())
        return self._shown(answers["discrete"], answers["continuous"], answers["value"])

    def _shown(self, discrete: np.ndarray, continuous: np.ndarray, value: np.ndarray) -> Actions:
        return Actions(discrete, continuous, value if self._policy.has_value else np.zeros_like(value))
