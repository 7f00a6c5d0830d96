"""Action masks: an observation called `action_mask` says which choices are allowed.

Its numbers are those of all discrete heads one after the other, and what is 0 is forbidden: such a choice is never
drawn, has probability 0 in the loss, and its logit gets no gradient (Huang and Ontañón 2022, "A closer look at invalid
action masking in policy gradient algorithms"). If a head allows nothing (an agent that
waits for its turn), choice 0 counts as the only one, so the head adds nothing to the policy's loss and entropy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import gymnasium as gym
import torch
from torch import Tensor

from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.model.distributions import IMPOSSIBLE


class ActionMask:
    """Forbids choices by the observation `action_mask`, where there is one."""

    def __init__(self, obs_space: gym.spaces.Dict, spec: ActionSpec) -> None:
        """Raises UsageError for a mask that has not a number for each choice, or none above 0."""
        self._sizes = list(spec.discrete_sizes)
        self.is_there = ACTION_MASK in obs_space.spaces
        if not self.is_there:
            return
        shape, num_choices = obs_space[ACTION_MASK].shape or (), sum(self._sizes)
        if math.prod(shape) != num_choices:
            raise UsageError(
                f"observation {ACTION_MASK!r} has {math.prod(shape)} numbers, but the action has {num_choices} "
                "choices: give a number for each, those of several heads one after the other, or rename the key if it "
                "is no mask"
            )
        if (cast("gym.spaces.Box", obs_space[ACTION_MASK]).high <= 0).all():
            raise UsageError(
                f"observation {ACTION_MASK!r} is at most 0 by its space, which would forbid every choice: give 1 for "
                "what is allowed, and 0 for what is not"
            )

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
