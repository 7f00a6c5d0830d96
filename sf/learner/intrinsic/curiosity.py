"""Trains an intrinsic reward and a critic of its own, and adds its advantages (Burda et al. 2018, section 2.3).

Both are trained beside the policy's network, which knows nothing of them: only the learner needs them. They get what
the policy sees, and have no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import gymnasium as gym
import torch
from torch import Tensor, nn

from sf.config import Config
from sf.config.flags.model import is_hidden
from sf.envs.added.clock import ADDED_FOR_CRITIC
from sf.envs.spaces.actions import MASKS
from sf.learner.batches.batch import Batch
from sf.learner.intrinsic.choice import make_intrinsic_reward
from sf.learner.intrinsic.features import Features
from sf.learner.intrinsic.field import ADVANTAGE
from sf.learner.loss.gae import gae
from sf.model.layers import orthogonal
from sf.model.normalizers import ReturnNormalizer, RunningMoments
from sf.ranks.ranks import ALONE, Ranks
from sf.system.messages import say

_SHARE = 0.25  # of the samples that are learned from: more would learn faster than the policy explores
_LEARNING_RATE = 3e-4
_MOST_AT_ONCE = 2048  # observations
_PREFIX = "intrinsic/"  # before the names of tensors in a checkpoint


class Curiosity(nn.Module):
    """Gives the policy advantages for what is new.

    They are in units of the standard deviation of the intrinsic returns, whatever the scale of the reward. An episode
    is no end for them: what is new stays so in the next one.
    """

    def __init__(
        self,
        config: Config,
        obs_space: gym.spaces.Dict,
        bfloat16: bool = False,
        device: torch.device | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """obs_space: of the policy's rows. bfloat16: what the products of both networks are in. device: where they are;
        None: the present one. Raises UsageError where the intrinsic reward cannot be made."""
        super().__init__()
        left_out = {*MASKS, *ADDED_FOR_CRITIC}
        hidden = config.model.hidden_obs
        seen = gym.spaces.Dict(
            {key: box for key, box in obs_space.items() if key not in left_out and not is_hidden(key, hidden)}
        )
        self._keys, self._config, self._bfloat16 = list(seen), config.learner, bfloat16
        self.reward = make_intrinsic_reward(config.learner.intrinsic, seen, config.model)
        self.critic = _Critic(seen, config)
        self.to(device)
        for part in self.modules():
            if isinstance(part, RunningMoments):
                part.ranks = ranks
        self._joined = [ranks.joined(_Losses(self.reward, self.critic))]  # in a list, so that it is no module of this
        self._optimizer = torch.optim.Adam(self._trained, _LEARNING_RATE)
        self._value_target: Tensor | None = None  # [T, B] of the present iteration
        self._bonus: Tensor | None = None  # the same

    @property
    def _trained(self) -> list[nn.Parameter]:
        return [weight for weight in self.parameters() if weight.requires_grad]

    @torch.no_grad()
    def added_to(self, batch: Batch) -> Batch:
        """Returns the batch with the intrinsic advantage of each step [T, B], by GAE."""
        shape = batch.reward.shape
        for part in self.modules():
            if isinstance(part, Features):
                part.update({key: batch.obs[key][:-1] for key in self._keys}, batch.valid)
        with self._autocast(batch):
            bonus = self._of_rows(self.reward.bonus, batch, slice(1, None)).view(shape)
            value = self._of_rows(self.critic, batch, slice(None)).view(shape[0] + 1, shape[1])
        self._bonus = torch.where(batch.valid, bonus.float(), 0.0)
        scale = self.critic.value_norm.scale()
        discount = torch.full(shape, self._config.intrinsic_gamma, device=value.device)
        found = gae(self._bonus, discount, scale.denormalize(value), batch.valid, lambda_=self._config.gae_lambda)
        self._value_target = found.returns
        return batch.replaced(**{ADVANTAGE: (found.advantage * scale.inverse).float()})

    def learn(self, batch: Batch) -> dict[str, Tensor]:
        """Train the reward and the critic on a share of the steps of `added_to`'s batch. Returns metrics, 0-dim."""
        assert self._value_target is not None
        assert self._bonus is not None
        self.critic.value_norm.update(self._value_target, batch.valid, self.critic.head)
        target = self.critic.value_norm.normalize(self._value_target).flatten()
        losses, bonus = [], self._bonus.flatten()
        used = after = torch.zeros((), device=bonus.device)
        for at in self._minibatches(batch.valid):
            obs, next_obs = (
                {key: self._taken(batch.obs[key][rows], at) for key in self._keys}
                for rows in (slice(None, -1), slice(1, None))
            )
            self._optimizer.zero_grad()
            with self._autocast(batch):
                loss = self._joined[0](obs, next_obs, target[at])
            loss.backward()
            self._optimizer.step()
            losses.append(loss.detach())
            with self._autocast(batch):
                used, after = bonus[at].mean(), self.reward.bonus(next_obs).mean()
        return {
            "intrinsic/bonus": self._bonus.sum() / batch.valid.sum().clamp(min=1),
            "intrinsic/loss": torch.stack(losses).mean(),
            "intrinsic/left_share": after / used.clamp(min=1e-12),
        }

    def _of_rows(self, function: Callable[[Mapping[str, Tensor]], Tensor], batch: Batch, rows: slice) -> Tensor:
        """Returns what a function of observations {key: [N, ...]} makes of some rows, [N], part by part."""
        flat = {key: batch.obs[key][rows].flatten(0, 1).split(_MOST_AT_ONCE) for key in self._keys}
        return torch.cat([function(dict(zip(flat, part, strict=True))) for part in zip(*flat.values(), strict=True)])

    def _minibatches(self, valid: Tensor) -> Iterator[Tensor]:
        """Yields indices of steps among T x B, drawn with replacement. All ranks have as many."""
        num_batches = self._config.num_batches_per_epoch
        steps = valid.flatten().nonzero().squeeze(1)
        if not len(steps):
            steps = torch.arange(valid.numel(), device=valid.device)
        drawn = torch.randint(len(steps), (max(num_batches, round(_SHARE * valid.numel())),))
        yield from steps[drawn.to(steps.device)].tensor_split(num_batches)

    def _autocast(self, batch: Batch) -> torch.autocast:
        return torch.autocast(batch.reward.device.type, torch.bfloat16, enabled=self._bfloat16)

    def _taken(self, rows: Tensor, at: Tensor) -> Tensor:
        return rows.flatten(0, 1).index_select(0, at)

    @property
    def num_numbers(self) -> int:
        """Returns how many floats a checkpoint has of this, at most."""
        return sum(3 * tensor.numel() + 2 for tensor in self.state_dict().values())

    def tensors(self) -> dict[str, Tensor]:
        """Returns what a checkpoint keeps, by name."""
        found = {_PREFIX + name: tensor for name, tensor in self.state_dict().items()}
        for number, weight in enumerate(self._trained):
            for name, moment in self._optimizer.state[weight].items():
                found[f"{_PREFIX}optimizer/{number}/{name}"] = moment
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what `tensors` returned. If that was of other networks, or nothing, this begins anew."""
        own = {name: tensors[_PREFIX + name] for name in self.state_dict() if _PREFIX + name in tensors}
        if {name: x.shape for name, x in own.items()} != {name: x.shape for name, x in self.state_dict().items()}:
            if own:
                say("the intrinsic reward begins anew: that of the checkpoint has other networks")
            return
        self.load_state_dict(own)
        for number, weight in enumerate(self._trained):
            prefix = f"{_PREFIX}optimizer/{number}/"
            moments = {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}
            self._optimizer.state[weight] = {
                name: x.to(weight.device if x.ndim else x.device, copy=True) for name, x in moments.items()
            }


class _Critic(nn.Module):
    """Estimates the value of an observation in intrinsic returns, in the scale of `value_norm`."""

    def __init__(self, obs_space: gym.spaces.Dict, config: Config) -> None:
        super().__init__()
        self.features = Features(obs_space, config.model)
        self.head = orthogonal(nn.Linear(self.features.out_size, 1), 1.0)
        self.value_norm = ReturnNormalizer()

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Observations {key: [N, ...]} -> [N]."""
        value: Tensor = self.head(self.features(obs).to(self.head.weight.dtype)).squeeze(-1)
        return value


class _Losses(nn.Module):
    """Makes one loss of those of both, which ranks can join."""

    def __init__(self, reward: Any, critic: nn.Module) -> None:
        super().__init__()
        self.reward, self.critic = reward, critic

    def forward(self, obs: Mapping[str, Tensor], next_obs: Mapping[str, Tensor], target: Tensor) -> Tensor:
        of_reward = self.reward.learn(next_obs)
        of_critic = 0.5 * (self.critic(obs) - target).square().mean()
        return of_critic if of_reward is None else of_critic + cast("Tensor", of_reward)
