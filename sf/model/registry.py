"""The tables of encoders and whole models by name.

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
from typing import Any, TypeVar

import gymnasium as gym
from torch import nn

from sf.config import ModelConfig
from sf.envs.custom.named_objects import did_you_mean, factory, import_module, split
from sf.envs.errors import UsageError, place_of, summary
from sf.envs.spaces.actions import ActionSpec

Factory = TypeVar("Factory", bound=Callable[..., nn.Module])

_encoders: dict[str, Callable[[gym.spaces.Box, ModelConfig], nn.Module]] = {}
_models: dict[str, Callable[[ModelConfig, gym.spaces.Dict, ActionSpec], nn.Module]] = {}
_intrinsic_rewards: dict[str, Callable[[gym.spaces.Dict, ModelConfig], nn.Module]] = {}
_TABLES: dict[str, dict[str, Any]] = {"encoder": _encoders, "model": _models, "intrinsic": _intrinsic_rewards}


def register_encoder(name: str) -> Callable[[Factory], Factory]:
    """Decorates a class or function (space, config) -> module with the attribute `out_size`."""
    return _register(_encoders, "encoder", name)


def register_model(name: str) -> Callable[[Factory], Factory]:
    """Decorates a class or function (config, obs_space, action_spec) -> module with ActorCritic's methods."""
    return _register(_models, "model", name)


def register_intrinsic(name: str) -> Callable[[Factory], Factory]:
    """Decorates a class or function (obs_space, config) -> `sf.learner.intrinsic.reward.IntrinsicReward`."""
    return _register(_intrinsic_rewards, "intrinsic", name)


def make(kind: str, name: str, **arguments: Any) -> Any:
    """Makes the "encoder", "model" or "intrinsic" of that name from the arguments, which it takes by position.

    Raises ValueError for an unknown name, and for what makes no module.
    """
    factory = _look_up(_TABLES[kind], kind, name)
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
        raise UsageError(f"{what} cannot be made: {summary(error)} ({place}): fix it there") from error


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
            f"name{did_you_mean(module_name, own_name, vars(module))}"
        )
    return found
