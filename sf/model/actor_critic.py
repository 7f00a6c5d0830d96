"""The network: encoders, an optional recurrent core, and the heads of the policy and the value.

Policy workers call `step`, one step of N actors; the learner calls `unroll`, whole trajectories. Both compute
the same function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import gymnasium as gym
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.config.flags.model import is_hidden
from sf.envs.added.clock import CLOCK
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import MASKS, ActionSpec
from sf.envs.spaces.identity import Identity
from sf.envs.tasks.united import TASK
from sf.model.central_critic import CentralCritic, is_present, private_keys
from sf.model.distributions import ActionMask, ContinuousMask
from sf.model.encoders.choice import NOT_NORMALISED, encoder_names
from sf.model.layers import activation, compute_dtype, orthogonal
from sf.model.mixers import make_mixer
from sf.model.normalizers import (
    NoReturnNormalizer,
    ObsNormalizer,
    ReturnNormalizer,
    SymlogReturns,
    VectorNormalizer,
)
from sf.model.registry import register_model
from sf.model.task_returns import TaskReturns, ValueNorm, scale_of
from sf.model.trunk import Trunk

POLICY_GAIN = 0.01  # the first policy is close to uniform (Andrychowicz et al. 2021)


class StepOutput(NamedTuple):
    params: Tensor  # [N, P] float32, see sf.model.distributions
    value: Tensor  # [N] float32, in the scale of returns
    state: Tensor  # [N, S] float32


class UnrollOutput(NamedTuple):
    params: Tensor  # [T, B, P] float32
    value: Tensor  # [T+1, B] float32, in the critic's scale: `value_norm.denormalize` gives returns


@register_model("actor_critic")
class ActorCritic(nn.Module):
    """Actor and critic, on one trunk or on one each.

    `trunk` may be held in bfloat16; everything else (heads, statistics) stays in float32. `value_norm` goes
    between the scale of returns and that of the critic.
    """

    def __init__(
        self, config: ModelConfig, obs_space: gym.spaces.Dict, action_spec: ActionSpec, teams: Sequence[int] = ()
    ) -> None:
        """teams: [A] of the agents of an environment, for a critic that sees several of them; empty where no values are
        computed.

        Raises UsageError for an action mask that does not fit, or where no number is left for the network to see.
        """
        super().__init__()
        boxes = cast("dict[str, gym.spaces.Box]", dict(obs_space.items()))
        self._action_mask = ActionMask(obs_space, action_spec)
        self._continuous_mask = ContinuousMask(obs_space)
        for mask in MASKS:  # what is allowed is no input: the rest of the observation says why
            boxes.pop(mask, None)
        if config.critic_clock is True:
            boxes.pop(CLOCK, None)
        if not config.show_task:
            boxes.pop(TASK, None)
        for key in [key for key in boxes if is_hidden(key, config.teacher_obs)]:
            boxes.pop(key)
        private = {key: boxes.pop(key) for key in private_keys(config, list(boxes))}
        _require_something_to_see(obs_space, boxes)
        encoders = encoder_names(config.encoder, boxes, config.any_planes, config.float_planes)
        numbers = {key: box for key, box in boxes.items() if not _stays_as_it_is(box, encoders[key])}
        self.obs_norm = ObsNormalizer(numbers if config.normalize_input else {})
        self.trunk = Trunk(config, boxes, encoders)
        self.state_size = self.trunk.state_size
        self._num_logits = sum(action_spec.discrete_sizes)
        self.policy_head = orthogonal(
            nn.Linear(self.trunk.out_size, self._num_logits + action_spec.num_continuous), POLICY_GAIN
        )
        self.log_stddev = _initial_log_stddev(config, action_spec.num_continuous)
        has_clock = config.critic_clock is True
        self.critic_clock = CriticClock(self.trunk.out_size, config) if has_clock else None
        self._is_central = config.has_central_critic
        self.mixer = make_mixer(config.mixer, teams, self.trunk.out_size)
        self.central_critic: CentralCritic | None = None
        if config.critic != "own" or private:
            self.central_critic = CentralCritic(config, self.trunk.out_size, boxes, encoders, private, teams)
        self.value_norm = _value_norm(config, obs_space)
        num_values = len(self.value_norm.tasks) if isinstance(self.value_norm, TaskReturns) else 1
        self.value_head = orthogonal(nn.Linear(self.trunk.out_size, num_values), 1.0)

    def step(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> StepOutput:
        """One step of N actors.

        obs: {key: [N, ...]}; state: [N, S] float32; first: [N] bool, where the state is zeroed before use. A central
        critic gives values of 0: what it sees is not there.
        """
        actor, critic, next_state = self.trunk.step(self.trunk.encode(self._normal(obs)), state, first)
        params = self._params(actor, obs)
        if self._is_central:
            return StepOutput(params, params.new_zeros(params.shape[0]), next_state)
        value = scale_of(self.value_norm, obs).denormalize(self._value(critic, obs, None))
        return StepOutput(params, value, next_state)

    def unroll(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> UnrollOutput:
        """T steps of B trajectories, and the bootstrap value.

        obs: {key: [T+1, B, ...]}; state: [B, S] float32, before row 0; first: [T+1, B] bool, where
        the state is zeroed before use. With a critic that sees several agents, the trajectories of all agents of an
        environment stand side by side.
        """
        flat_obs = {key: value.flatten(0, 1) for key, value in obs.items()}  # [(T+1) x B, ...]
        normal = self._normal(flat_obs)
        actor, critic = self.trunk.unroll(self.trunk.encode(normal), state, first)
        seen = None if self.central_critic is None else self.central_critic.encode(flat_obs, normal)
        params, value = self._params(actor, flat_obs), self._value(critic, flat_obs, seen)
        return UnrollOutput(params.unflatten(0, first.shape)[:-1], value.view(first.shape))

    def update_normalizers(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} where `mask` [T, B] holds. Only the learner calls this."""
        self.obs_norm.update(obs, mask)
        for part in (self.critic_clock, self.central_critic):
            if part is not None:
                part.update(obs, mask)

    def update_value_norm(self, returns: Tensor, mask: Tensor, task: Tensor | None = None) -> None:
        """Merge value targets [T, B] where `mask` holds; predictions stay. Only the learner calls this.

        task: [T, B, n] one-hot, where returns are normalised by task.
        """
        if isinstance(self.value_norm, TaskReturns):
            assert task is not None
            self.value_norm.update(returns, mask, self.value_head, task)
        else:
            self.value_norm.update(returns, mask, self.value_head if self.mixer is None else self.mixer.head)

    def _normal(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        weight = next(self.trunk.parameters(), self.policy_head.weight)
        return self.obs_norm(obs, compute_dtype(weight))

    def _params(self, actor: Tensor, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [M, F], and what they were made from {key: [M, ...]} -> params [M, P].

        In the dtype of the heads, float32, also under autocast: log-probabilities need its digits.
        """
        with torch.autocast(actor.device.type, enabled=False):
            params: Tensor = self.policy_head(actor.to(self.policy_head.weight.dtype))
            if self._action_mask.is_there:
                logits = self._action_mask(params[:, : self._num_logits], obs)
                params = torch.cat((logits, params[:, self._num_logits :]), dim=-1)
            if len(self.log_stddev):
                log_stddev = self.log_stddev.expand(params.shape[0], -1)
                if self._continuous_mask.is_there:
                    mean, log_stddev = self._continuous_mask(params[:, self._num_logits :], log_stddev, obs)
                    params = torch.cat((params[:, : self._num_logits], mean), dim=-1)
                params = torch.cat((params, log_stddev), dim=-1)
            return params

    def _value(self, critic: Tensor, obs: Mapping[str, Tensor], seen: Tensor | None) -> Tensor:
        """Features [M, F], what they were made from, and what a central critic sees beyond -> value [M], in float32."""
        with torch.autocast(critic.device.type, enabled=False):
            critic = critic.to(self.value_head.weight.dtype)
            if self.critic_clock is not None:
                critic = self.critic_clock(critic, obs)
            if self.central_critic is not None:
                critic = self.central_critic(critic, seen)
            value: Tensor = self.value_head(critic)
            if isinstance(self.value_norm, TaskReturns):
                value = self.value_norm.value(value, obs[TASK])
            else:
                value = value.squeeze(-1)
            if self.mixer is not None:
                value = self.mixer(value, critic, is_present(obs, self.trunk.actor.keys))
            return value


def _require_something_to_see(obs_space: gym.spaces.Dict, boxes: Mapping[str, gym.spaces.Box]) -> None:
    """boxes: what the network sees."""
    if not any(math.prod(box.shape) for box in boxes.values()):
        names = [key for key in obs_space if key != CLOCK] or [CLOCK]  # that one was put there by the trainer
        raise UsageError(
            f"the observation has only {' and '.join(map(repr, names))}, which gives the network no number to read: "
            "add what the choice of an action depends on"
        )


def _stays_as_it_is(box: gym.spaces.Box, encoder: str) -> bool:
    """Returns whether an observation is not normalised."""
    return isinstance(box, Identity) or encoder in NOT_NORMALISED


def _initial_log_stddev(config: ModelConfig, num_continuous: int) -> nn.Parameter:
    stddev = config.initial_stddev
    if stddev == "auto":
        stddev = max(1, num_continuous) ** -0.5
    return nn.Parameter(torch.full((num_continuous,), math.log(stddev)), requires_grad=num_continuous > 0)


def _value_norm(config: ModelConfig, obs_space: gym.spaces.Dict) -> ValueNorm:
    if config.normalize_returns_by == "task":
        return TaskReturns(obs_space[TASK].shape[0])  # type: ignore[index]  # an Identity has a shape
    if config.value_scale == "symlog":
        return SymlogReturns()
    return ReturnNormalizer() if config.normalize_returns else NoReturnNormalizer()


class CriticClock(nn.Module):
    """One layer that joins the critic's features with the time: its value depends on how many steps the episode has
    lasted, and the policy does not.

    The critic knows more than the policy as in asymmetric actor-critic (Pinto et al. 2018); that it is the time follows
    Pardo et al. 2018, for tasks that end by a time limit.
    """

    def __init__(self, num_features: int, config: ModelConfig) -> None:
        super().__init__()
        self.norm = VectorNormalizer((1,))
        self.layer = orthogonal(nn.Linear(num_features + 1, num_features))
        self.activation = activation(config.nonlinearity)
        self.added: nn.Linear | None = None
        if config.critic_clock_residual:
            self.added = orthogonal(nn.Linear(num_features, num_features))
            nn.init.zeros_(self.added.weight)

    def forward(self, features: Tensor, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [M, F] and observations {key: [M, ...]} -> [M, F]. Where nobody counts, it is time 0."""
        clock = obs.get(CLOCK)
        if clock is None:
            clock = features.new_zeros(features.shape[0], 1)
        time = self.norm(clock, torch.float32).to(features.dtype)
        joined: Tensor = self.activation(self.layer(torch.cat((features, time), dim=-1)))
        return joined if self.added is None else features + self.added(joined)

    def update(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} where `mask` [T, B] holds."""
        self.norm.update(obs[CLOCK].flatten(0, 1), mask.flatten())
