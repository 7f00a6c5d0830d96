"""A policy as surgery sees it: the flags of its network, and what it observes and does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from sf.config import ModelConfig
from sf.envs import EnvSpec
from sf.envs.added.clock import CENTRAL_STATE, CLOCK
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.observations import ObsWriter
from sf.evaluation.play.named_checkpoint import config_of, spaces_of
from sf.model.building import build_model
from sf.storage.checkpoint import Checkpoint
from sf.storage.tensor_files import TensorFile
from sf.surgery.anatomy import describe
from sf.surgery.axes import NEW, Axis, places
from sf.surgery.operation import Body
from sf.surgery.spaces import ActionAxes, action_axes, obs_axes

Saved = Checkpoint | TensorFile


@dataclass(frozen=True)
class Subject:
    """model: of the network. native: the observation space as the environment has it. obs_space: as rows store it, with
    what the trainer adds. teams: [A] of the agents that a critic sees at once; empty: one by one."""

    model: ModelConfig
    native: gym.Space
    obs_space: gym.spaces.Dict
    action_space: gym.Space
    teams: Sequence[int]

    @classmethod
    def of_spec(cls, model: ModelConfig, spec: EnvSpec, teams: Sequence[int]) -> Subject:
        return cls(model, spec.native_obs_space, spec.obs_space, spec.action_space, teams)

    @classmethod
    def of_saved(cls, saved: Saved, name: str, new: Subject) -> Subject:
        """name: of the checkpoint. new: what it is to become.

        Raises UsageError for a checkpoint that does not say what it sees. The state of an environment is in none: it
        has to be that of `new`.
        """
        without_tensors = Checkpoint({}, saved.state)
        model = config_of(without_tensors, name).model
        if model.critic == "state" and CENTRAL_STATE not in new.obs_space.spaces:
            raise UsageError(f"critic is {new.model.critic}, and that of {name} reads the state: leave it so")
        native, action_space = spaces_of(without_tensors, name)
        return replace(new, native=native, action_space=action_space).with_model(model)

    def with_model(self, model: ModelConfig) -> Subject:
        """Returns a policy with the same spaces and another network, whose critic may see something else."""
        boxes = dict(ObsWriter("the policy", self.native).space.spaces)
        if model.critic_clock is True:
            boxes[CLOCK] = gym.spaces.Box(0.0, np.inf, (1,), np.float32)
        if model.critic == "state":
            boxes[CENTRAL_STATE] = self.obs_space[CENTRAL_STATE]
        return replace(self, model=model, obs_space=gym.spaces.Dict(boxes))

    @cached_property
    def actions(self) -> ActionAxes:
        return action_axes(self.action_space)

    @cached_property
    def obs(self) -> dict[str, Axis]:
        return obs_axes(self.native, self.obs_space, self.actions)

    @cached_property
    def body(self) -> Body:
        """The tensors of the network."""
        network = self.build("meta")
        shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        return Body(describe(network, self.obs, self.actions), shapes)

    def build(self, device: str) -> Any:
        """Returns an untrained network."""
        with torch.device(device):
            return build_model(self.model, self.obs_space, ActionSpec.of(self.action_space), self.teams)

    def loaded(self, weights: Mapping[str, Tensor]) -> Any:
        """Returns a network with these weights, of which it takes no copies."""
        network = self.build("meta")
        network.load_state_dict(weights, assign=True)
        return network.requires_grad_(False)

    def shows_no_more_than(self, other: Subject) -> bool:
        """Returns whether all that it observes is in the observations of another one, and all its actions are there."""
        pairs = [(self.obs[key], other.obs.get(key, ())) for key in self.obs]
        pairs += zip(self.actions, other.actions, strict=True)
        return all(bool((places(own, of_other) != NEW).all()) for own, of_other in pairs)
