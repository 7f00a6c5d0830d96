"""The policy's distribution over actions: independent categorical heads and independent Gaussians, and action masks.

Its parameters are one row of P numbers for each sample: the logits of all heads one after the other, then the
means, then the logarithms of the standard deviations of the continuous actions.

An observation called `action_mask` says which choices are allowed. Its numbers are those of all discrete heads one
after the other, and what is 0 is forbidden: such a choice is never drawn, has probability 0 in the loss, and its logit
gets no gradient (Huang and Ontañón 2022, "A closer look at invalid action masking in policy gradient algorithms"). If a
head allows nothing (an agent that waits for its turn), choice 0 counts as the only one, so the head adds nothing to the
policy's loss and entropy.

An observation called `continuous_mask` says which of the continuous numbers an agent has, where agents of several kinds
differ in that. A number that it lacks is 0, and neither in the log-probability nor in the entropy: its mean is 0 and
the logarithm of its standard deviation `IMPOSSIBLE`, which `ActionDistribution` leaves out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor

from sf.envs.spaces.actions import ACTION_MASK, CONTINUOUS_MASK, ActionSpec, require_action_mask

# The logit of what is never chosen. Stands for -infinity: its exponential is 0 and 0 times it is 0, not NaN.
IMPOSSIBLE = -1e9
_MOST_SURPRISE = math.log(1e9)


class ActionDistribution:
    """The distribution with parameters `params` [..., P], any number of leading axes.

    All heads are computed at once, padded to the longest: a small batch costs the calls of a single head.
    """

    def __init__(self, spec: ActionSpec, params: Tensor) -> None:
        self._spec = spec
        num_heads, num_logits = len(spec.discrete_sizes), sum(spec.discrete_sizes)
        num_params = num_logits + 2 * spec.num_continuous
        assert params.shape[-1] == num_params, (params.shape, num_params)
        logits, self.mean, self.log_stddev = params.split(
            [num_logits, spec.num_continuous, spec.num_continuous], dim=-1
        )
        if num_heads == 0:
            padded = logits.unsqueeze(-1)  # [..., 0, 1]
        elif len(set(spec.discrete_sizes)) == 1:
            padded = logits.unflatten(-1, (num_heads, -1))
        else:
            logits = F.pad(logits, (0, 1), value=IMPOSSIBLE)
            index = _padded_index(spec.discrete_sizes, params.device)
            padded = logits.index_select(-1, index).unflatten(-1, (num_heads, -1))
        self.log_probs = padded.log_softmax(dim=-1)  # [..., D, longest head]
        self._has = self.log_stddev > IMPOSSIBLE / 2 if spec.is_partial else None  # [..., C]; None: all of them

    @staticmethod
    def noise(
        spec: ActionSpec, shape: tuple[int, ...], device: torch.device, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """What decides the samples of `shape` distributions: exponential [..., D, longest head], normal [..., C].

        The generator is of that device.
        """
        heads = (len(spec.discrete_sizes), max(spec.discrete_sizes, default=1))
        exponential = torch.empty(*shape, *heads, device=device).exponential_(generator=generator)
        normal = torch.empty(*shape, spec.num_continuous, device=device).normal_(generator=generator)
        return exponential, normal

    def sample(self, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Discrete [..., D] int32, continuous [..., C] float32. The generator is of the device of params."""
        shape, device = self.mean.shape[:-1], self.mean.device
        return self.sample_by(*self.noise(self._spec, shape, device, generator))

    def sample_by(self, exponential: Tensor, normal: Tensor) -> tuple[Tensor, Tensor]:
        """The samples that this `noise` decides."""
        # The argmax of p / e with e exponential is distributed as p: Gumbel-max, without logarithms.
        discrete = (self.log_probs.exp() / exponential).argmax(dim=-1).to(torch.int32)
        return discrete, torch.addcmul(self.mean, normal, self.log_stddev.exp())

    def mode(self) -> tuple[Tensor, Tensor]:
        """The most probable action: discrete [..., D] int32, continuous [..., C] float32."""
        return self.log_probs.argmax(dim=-1).to(torch.int32), self.mean

    def log_prob(self, discrete: Tensor, continuous: Tensor) -> Tensor:
        """discrete [..., D], continuous [..., C] -> the joint log-probability (density) [...]."""
        assert discrete.shape == self.log_probs.shape[:-1], (discrete.shape, self.log_probs.shape)
        assert continuous.shape == self.mean.shape, (continuous.shape, self.mean.shape)
        chosen = self.log_probs.gather(-1, discrete.long().unsqueeze(-1)).squeeze(-1).sum(-1)
        if not self.mean.shape[-1]:
            return chosen
        log_stddev = self.log_stddev if self._has is None else torch.where(self._has, self.log_stddev, 0.0)
        z = (continuous - self.mean) * (-log_stddev).exp()
        return chosen - self._sum(0.5 * z.square() + log_stddev + 0.5 * math.log(2 * math.pi))

    def has_choice(self) -> Tensor:
        """[...] bool: whether more than one action is possible, which masks may prevent."""
        if self.mean.shape[-1] and self._has is None:
            return torch.ones_like(self.mean[..., 0], dtype=torch.bool)
        among_choices = ((self.log_probs > IMPOSSIBLE / 2).sum(-1) > 1).any(-1)
        return among_choices if self._has is None else among_choices | self._has.any(-1)

    def entropy(self) -> Tensor:
        """The joint (differential) entropy [...], in nats."""
        categorical = -(self.log_probs.exp() * self.log_probs).flatten(-2).sum(-1)
        return categorical + self._sum(self.log_stddev + 0.5 * math.log(2 * math.pi * math.e))

    def divergence_from(self, params: Tensor) -> Tensor:
        """The Kullback-Leibler divergence KL(other, this) [...], in nats, of the distribution with parameters `params`.

        A choice of the other one that is impossible here counts as if it had a probability of one in a billion.
        """
        other = ActionDistribution(self._spec, params)
        surprise = (other.log_probs - self.log_probs).clamp(max=_MOST_SURPRISE)
        categorical = (other.log_probs.exp() * surprise).flatten(-2).sum(-1)
        if not self.mean.shape[-1]:
            return categorical
        log_ratio = self.log_stddev - other.log_stddev
        distance = (other.mean - self.mean) * (-self.log_stddev).exp()
        return categorical + self._sum(log_ratio + 0.5 * ((-2 * log_ratio).exp() + distance.square() - 1))

    def _sum(self, of_numbers: Tensor) -> Tensor:
        """[..., C] -> [...], over the numbers that the agent has."""
        return (of_numbers if self._has is None else torch.where(self._has, of_numbers, 0.0)).sum(-1)


@functools.lru_cache
def _padded_index(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    """For every place of [D, longest head], which logit goes there; the one after the last is the padding."""
    longest, padding, start = max(sizes), sum(sizes), 0
    index: list[int] = []
    for size in sizes:
        index += [*range(start, start + size), *[padding] * (longest - size)]
        start += size
    with torch.inference_mode(False):  # it is kept, and autograd may use it later
        return torch.tensor(index, device=device)


class ActionMask:
    """Forbids choices by the observation `action_mask`, where there is one."""

    def __init__(self, obs_space: gym.spaces.Dict, spec: ActionSpec) -> None:
        """Raises UsageError for a mask that has not a number for each choice, or none above 0."""
        self._sizes = list(spec.discrete_sizes)
        self.is_there = ACTION_MASK in obs_space.spaces
        if not self.is_there:
            return
        require_action_mask(obs_space[ACTION_MASK], sum(self._sizes))

    def __call__(self, logits: Tensor, obs: Mapping[str, Tensor]) -> Tensor:
        """logits: [M, L]; obs: {key: [M, ...]} with the mask as it came -> [M, L]."""
        if not self.is_there:
            return logits
        allowed = obs[ACTION_MASK].flatten(1) != 0  # PyTorch cannot order large unsigned integers
        return torch.where(self._with_a_choice(allowed), logits, IMPOSSIBLE)

    def _with_a_choice(self, allowed: Tensor) -> Tensor:
        heads = []
        for head in allowed.split(self._sizes, dim=-1):
            nothing = ~head.any(dim=-1, keepdim=True)
            heads.append(torch.cat((head[:, :1] | nothing, head[:, 1:]), dim=-1))
        return torch.cat(heads, dim=-1)


class ContinuousMask:
    """Leaves out the continuous numbers that an agent lacks, by the observation `continuous_mask`, where there is one.

    is_there: whether there is one.
    """

    def __init__(self, obs_space: gym.spaces.Dict) -> None:
        self.is_there = CONTINUOUS_MASK in obs_space.spaces

    def __call__(self, mean: Tensor, log_stddev: Tensor, obs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """mean, log_stddev: [M, C]; obs: {key: [M, ...]} -> both as `ActionDistribution` reads them."""
        if not self.is_there:
            return mean, log_stddev
        has = obs[CONTINUOUS_MASK] != 0
        return torch.where(has, mean, 0.0), torch.where(has, log_stddev, IMPOSSIBLE)
