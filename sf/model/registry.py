"""Encoders and whole models by name, and `build_model`, with which every process makes its network.

An encoder of one's own is named as `module:Linear`, or registered in a module that is imported before training starts,
or by a package with an entry point in the group `sf.models`, which is loaded where a name is not known otherwise:

    @register_encoder("linear")
    class Linear(nn.Module):
        def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
            super().__init__()
            self.out_size = 64
            self.layer = nn.Linear(space.shape[0], self.out_size)

        def forward(self, obs: Tensor) -> Tensor:  # [N, ...] -> [N, out_size]
            return self.layer(obs)

Vectors and images arrive normalised (`--normalize_input`), in the dtype of the network's products and the layout of the
space. With `--normalize_input false` images arrive as they are, in uint8: `sf.model.encoders.images.PixelConv2d` takes
both.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from numbers import Integral
from typing import Any, TypeVar

import gymnasium as gym
from torch import nn
from torch.nn.parameter import is_lazy

from sf.config import ModelConfig
from sf.envs.custom.named_objects import factory, import_module, split
from sf.envs.errors import UsageError, place_of, summary
from sf.envs.spaces.actions import ActionSpec
from sf.model.layers import Compilable

Factory = TypeVar("Factory", bound=Callable[..., nn.Module])

_MEMBERS: dict[str, Callable[[Any], bool]] = {  # of a model, and what each must be
    "state_size": lambda found: isinstance(found, Integral),
    "trunk": lambda found: isinstance(found, nn.Module),
    "value_norm": lambda found: found is not None,
    "step": callable,
    "unroll": callable,
    "update_normalizers": callable,
    "update_value_norm": callable,
}

_encoders: dict[str, Callable[[gym.spaces.Box, ModelConfig], nn.Module]] = {}
_models: dict[str, Callable[[ModelConfig, gym.spaces.Dict, ActionSpec], nn.Module]] = {}


def register_encoder(name: str) -> Callable[[Factory], Factory]:
    """Decorates a class or function (space, config) -> module with the attribute `out_size`."""
    return _register(_encoders, "encoder", name)


def register_model(name: str) -> Callable[[Factory], Factory]:
    """Decorates a class or function (config, obs_space, action_spec) -> module with ActorCritic's methods."""
    return _register(_models, "model", name)


def build_encoder(name: str, space: gym.spaces.Box, config: ModelConfig) -> Any:
    """A module with `out_size`. Raises ValueError for an unknown name, for what makes no such module, and where `space`
    does not suit it."""
    encoder = _built("encoder", name, _look_up(_encoders, "encoder", name), space=space, config=config)
    if not isinstance(getattr(encoder, "out_size", None), Integral):
        raise UsageError(f"encoder is {name}, which has no out_size: set it to the number of features that it gives")
    return encoder


def build_model(config: ModelConfig, obs_space: gym.spaces.Dict, action_spec: ActionSpec) -> Any:
    """The network of `config`: an `ActorCritic`, or what is registered as `config.model`.

    Raises ValueError for an unknown name, for what makes no module, and where an encoder cannot take its observations.
    """
    factory = _look_up(_models, "model", config.model)
    network = _built("model", config.model, factory, config=config, obs_space=obs_space, action_spec=action_spec)
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


def _built(kind: str, name: str, factory: Callable[..., Any], **arguments: Any) -> nn.Module:
    """What the factory makes of the arguments, which it takes by position."""
    called = f"{kind} is {name}: it must be a torch.nn.Module, or a function that makes one, of {', '.join(arguments)}"
    if isinstance(factory, type) and not issubclass(factory, nn.Module):
        raise UsageError(f"{called}, and is a class of another kind")
    if inspect.isbuiltin(factory):
        raise UsageError(f"{called}, and is a function of another kind")
    try:
        inspect.signature(factory).bind(*arguments.values())
    except TypeError as error:
        raise UsageError(f"{called}, and cannot be called so ({error})") from None
    with _failures_of(f"{kind} {name!r}", getattr(factory, "__module__", "")):
        module = factory(*arguments.values())
    if not isinstance(module, nn.Module):
        raise UsageError(f"{called}, and makes a {type(module).__name__}")
    return module


@contextmanager
def _failures_of(what: str, module_name: str) -> Iterator[None]:
    """What a module of a user raises inside becomes one sentence with its place there; what is ours stays as it is."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        place = place_of(error, module_name.partition(".")[0])
        if place is None or module_name.startswith("sf."):
            raise
        raise UsageError(f"{what} cannot be made: {summary(error)} ({place}): mend it there") from error


def _register(table: dict[str, Any], kind: str, name: str) -> Callable[[Factory], Factory]:
    def decorate(factory: Factory) -> Factory:
        # The same one may come again: from the cell of a notebook, or from a script that is imported as a module, too.
        if name == "auto" or (name in table and table[name].__qualname__ != factory.__qualname__):
            raise UsageError(f"{kind} {name} is registered already: choose another name")
        table[name] = factory
        return factory

    return decorate


def _look_up(table: dict[str, Any], kind: str, name: str) -> Any:
    if name not in table and ":" in name:
        return _find_in_module(table, kind, name)
    if name not in table:
        for entry_point in entry_points(group="sf.models"):
            loaded = entry_point.load()  # a module that registers when it is imported, or a function that does
            if callable(loaded):
                loaded()
    if name not in table:
        nearest = difflib.get_close_matches(name, table, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"registered are {', '.join(sorted(table))}"
        raise UsageError(
            f"{kind} is {name}, which is not registered: {hint} (one of your own must be in a file that other "
            "processes can import, which a notebook is not: name it as module:Name)"
        )
    return table[name]


def _find_in_module(table: dict[str, Any], kind: str, name: str) -> Any:
    """What importing a module registers, or else its class or function of that name."""
    what = f"{kind} {name!r}"
    module_name, own_name = split(name, what)
    with _failures_of(what, module_name):
        module = import_module(module_name, what)
    found = table.get(own_name) or factory(
        module, own_name, what, lambda found: issubclass(found, nn.Module), "a torch.nn.Module"
    )
    if found is None:
        raise UsageError(
            f"{what}: importing {module_name} did not register {own_name!r}, and it has no class or function of that "
            "name"
        )
    return found


# The built-in ones register themselves, before one of a user's could take their names.
from sf.model import actor_critic  # noqa: E402, F401
from sf.model.encoders import boards, convnets, maps, symbols, vectors  # noqa: E402, F401
