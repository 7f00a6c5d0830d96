"""`build_model`, with which every process makes its network.

The built-in model and encoders register themselves as this is imported, before one of a user's could take their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import gymnasium as gym
from torch import nn
from torch.nn.parameter import is_lazy

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ActionSpec
from sf.model import actor_critic  # noqa: F401
from sf.model.layers import Compilable
from sf.model.registry import make, register_encoder, register_intrinsic, register_model

__all__ = ["build_model", "register_encoder", "register_intrinsic", "register_model"]

_MEMBERS: dict[str, Callable[[Any], bool]] = {  # of a model, and what each must be
    "state_size": lambda found: isinstance(found, Integral),
    "trunk": lambda found: isinstance(found, nn.Module),
    "value_norm": lambda found: found is not None,
    "step": callable,
    "unroll": callable,
    "update_normalizers": callable,
    "update_value_norm": callable,
}


def build_model(
    config: ModelConfig, obs_space: gym.spaces.Dict, action_spec: ActionSpec, teams: Sequence[int] = ()
) -> Any:
    """The network of `config`: an `ActorCritic`, or what is registered as `config.model`.

    teams: see `ActorCritic`; empty for any other network.

    Raises ValueError for an unknown name, for what makes no module, and where an encoder cannot take its observations.
    """
    of_agents = {"teams": teams} if teams else {}
    network = make("model", config.model, config=config, obs_space=obs_space, action_spec=action_spec, **of_agents)
    _require_members(config.model, network)
    _require_shapes(network)
    for module in network.modules():
        if isinstance(module, Compilable):
            module.with_loops = config.compile is not False
    return network


def _require_members(name: str, network: nn.Module) -> None:
    lacks = [member for member, suits in _MEMBERS.items() if not suits(getattr(network, member, None))]
    if lacks:
        raise UsageError(
            f"model is {name}, which has no {', no '.join(lacks)}: give it what docs/extending.md's own_model.py has: "
            "state_size (a number), trunk (a module), value_norm, and the methods step, unroll, update_normalizers "
            "and update_value_norm"
        )


def _require_shapes(network: nn.Module) -> None:
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    lazy = [name for name, tensor in tensors.items() if is_lazy(tensor)]
    if lazy:
        raise UsageError(
            f"the network has no shape for {', '.join(lazy)} before its first forward pass: name the sizes of its "
            "layers in __init__, without lazy modules"
        )
