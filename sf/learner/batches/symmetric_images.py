"""The image of a batch under a symmetry of the environment, which is data like any other.

An agent that drew action a in situation s with probability p would have drawn the image of a in the image of s with the
same probability, had it played by the image of its policy. So the image of a trajectory is one of that behaviour
policy, whose probabilities are those of the batch, and V-trace corrects for the difference as it does for old data.
AlphaGo Zero (Silver et al. 2017, "Domain knowledge") and ELF OpenGo train on such images with targets of a search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sf import envs
from sf.config import Config
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.symmetries import UNKNOWN, Symmetry
from sf.learner.batches.batch import Batch
from sf.learner.demonstrations.field import DEMONSTRATED


def find_symmetries(config: Config, state_size: int) -> Sequence[Symmetry]:
    """Those by which a run augments its data, none unless it is to. state_size: of the network's recurrent state.

    Raises UsageError where it is to, and cannot.
    """
    wanted = config.learner.augment_by_symmetry
    if not wanted or (wanted == "auto" and (state_size or config.learner.num_epochs == 1)):
        return ()
    if state_size:
        raise UsageError(
            "augment_by_symmetry is true, but the network has a recurrent state, which has seen the data as it was: "
            "take --core none, or leave it out"
        )
    found = envs.symmetries(config.run.env, config.environment)
    if not found and wanted is True:
        raise UsageError(
            f"augment_by_symmetry is true, but no symmetry of {config.run.env} is known (they are found in games of "
            "OpenSpiel on a board): leave it out"
        )
    return found


class SymmetricImages:
    """Makes them on the device of the network."""

    def __init__(self, symmetries: Sequence[Symmetry], device: torch.device) -> None:
        self._obs = [
            {key: torch.from_numpy(index).to(device) for key, index in symmetry.obs.items()} for symmetry in symmetries
        ]
        self._action = [torch.from_numpy(symmetry.action).to(device) for symmetry in symmetries]
        self._unknown = [
            torch.from_numpy(np.flatnonzero(symmetry.action == UNKNOWN)).to(device) for symmetry in symmetries
        ]

    def one_of(self, batch: Batch, mask: Tensor) -> tuple[Batch, Tensor]:
        """The image of all trajectories under one of the symmetries, drawn from the random numbers of the host, and the
        mask [T, B] of its samples to train on: those of `mask` of which all legal actions are known there. The others
        are not valid in the image: no trace goes through a step whose probability is not known.
        """
        drawn = int(torch.randint(len(self._obs), ()))
        action = self._action[drawn][batch.discrete.long()]
        obs = {key: _taken(value, self._obs[drawn].get(key)) for key, value in batch.obs.items()}
        is_known = (action != UNKNOWN).all(-1)
        if ACTION_MASK in batch.obs and len(self._unknown[drawn]):  # else the mask of the image would be another
            legal = batch.obs[ACTION_MASK][:-1].flatten(2)  # [T, B, A]
            is_known &= (legal.index_select(2, self._unknown[drawn]) == 0).all(-1)
        acts = batch.acts()
        if acts is not None:
            is_known |= ~acts[:-1]  # an agent that waits does nothing, there as here
        discrete = action.clamp(min=0).to(batch.discrete.dtype)
        is_there = {name: batch.fields[name] & is_known for name in ("valid", DEMONSTRATED) if name in batch.fields}
        image = batch.replaced(obs=obs, discrete=discrete, **is_there)
        return image, mask & is_known


def _taken(obs: Tensor, index: Tensor | None) -> Tensor:
    """Of [T+1, B, ...], the numbers at `index` of each observation made flat."""
    if index is None:
        return obs
    return obs.flatten(2).index_select(2, index).view(obs.shape)
