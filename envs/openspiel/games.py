"""Which games of OpenSpiel can be trained on, and how one is loaded with its parameters and its tensor."""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspiel
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation

from sf.envs.errors import UsageError, summary
from sf.envs.openspiel.family import PREFIX

TENSOR = "tensor"
"""The entry of `env_kwargs` that is no parameter of the game: which of its tensors the players see."""

MOST_ACTIONS = 30_000  # each is a number of the mask in every row, and an output of the network
MOST_NUMBERS = 100_000  # of a tensor

_INFORMATION_STATE = "information_state"
_OBSERVATION = "observation"
_NO_TENSOR = "has no tensor for a policy to see: take another game"
_FILENAME = "filename"  # the parameter of games that are read from a file
_PYTHON = "python_"  # the names of games that are written in it begin with it
_CHAT_GAME = "chat_game"
_RNG_SEED = "rng_seed"  # the parameter of games that draw chance themselves
_KINDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    dict: 'a game as an object, {"name": "matrix_pd"}, with its parameters',
}
_SMALLER = "change the parameters that set its size in env_kwargs, or take another game"


@dataclass(frozen=True)
class TensorGame:
    """A game, and which of its tensors its players see."""

    game: Any  # pyspiel.Game
    tensor: str  # _INFORMATION_STATE or _OBSERVATION

    def make_observer(self) -> Any:
        """Its `set_from(state, player)` writes what a player sees into its array `tensor` [n] float32."""
        return make_observation(self.game, INFO_STATE_OBS_TYPE if self.tensor == _INFORMATION_STATE else None)

    @property
    def is_in_python(self) -> bool:
        """Or made of one that is. OpenSpiel's search crashes of such a game."""
        return _PYTHON in str(self.game) or not type(self.game).__module__.startswith(pyspiel.__name__)

    @property
    def tensor_shape(self) -> tuple[int, ...]:
        """Returns the shape of the tensor; a board is [C, H, W]."""
        game = self.game
        is_recalled = self.tensor == _INFORMATION_STATE
        return tuple(game.information_state_tensor_shape() if is_recalled else game.observation_tensor_shape())


def load(env_id: str, kwargs: Mapping[str, Any], seed: int) -> TensorGame:
    """kwargs: the game's parameters, and `TENSOR`. seed: for games that draw chance themselves.

    Raises UsageError for a name or a parameter that OpenSpiel does not know, and for a game that cannot be trained on.
    """
    name = env_id.removeprefix(PREFIX)
    game_type = _registered().get(name) or _registered(with_python=True).get(name)
    if game_type is None:
        raise UsageError(f"env {env_id!r}: OpenSpiel has no {name!r}: {_hint(name)}")
    specification = game_type.parameter_specification
    parameters = {key: _parameter(env_id, key, value, specification) for key, value in kwargs.items() if key != TENSOR}
    if not game_type.default_loadable and not parameters:
        raise UsageError(f"env {env_id!r} needs parameters: name its {', '.join(specification)} in env_kwargs")
    if _RNG_SEED in specification:
        parameters.setdefault(_RNG_SEED, seed)
    if _PYTHON in str(parameters):
        _registered(with_python=True)
    try:
        game = pyspiel.load_game(name, parameters)
    except MemoryError:
        raise UsageError(f"env {env_id!r} with env_kwargs {dict(kwargs)} is too large for memory: {_SMALLER}") from None
    except Exception as error:  # of several classes, for values that the game does not take
        raise UsageError(f"env {env_id!r} with env_kwargs {dict(kwargs)}: {summary(error)}") from error
    game_type = game.get_type()  # one that is made of another has tensors where that has some
    refusal = _refusal(game_type)
    if refusal is not None:
        raise UsageError(f"env {env_id!r} {refusal}")
    tensors = _tensors(game_type)
    if TensorGame(game, tensors[0]).is_in_python:  # whose type may say more than there is
        tensors = [tensor for tensor in tensors if TensorGame(game, tensor).make_observer().tensor is not None]
        if not tensors:
            raise UsageError(f"env {env_id!r} {_NO_TENSOR}")
    tensor = kwargs.get(TENSOR, tensors[0])
    if tensor not in tensors:
        raise UsageError(f"env_kwargs has the {TENSOR} {tensor!r}: {env_id} has {' and '.join(tensors)}")
    found = TensorGame(game, tensor)
    _require_sensible_size(env_id, found)
    return found


def why_unforeseeable(found: TensorGame) -> str | None:
    """Returns why nobody can look ahead in this game from what a player sees, as a clause; None: one can."""
    kinds, game_type = pyspiel.GameType, found.game.get_type()
    if found.is_in_python:
        return "is written in Python, and a search is for games in C++"
    if game_type.information != kinds.Information.PERFECT_INFORMATION:
        return "hides something from its players, which a search over its states would see"
    if game_type.dynamics != kinds.Dynamics.SEQUENTIAL:
        return "has its players act at once, and a search is for turns"
    if game_type.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        return "draws chance by itself, which a search cannot foresee"
    return None


def playable_ids() -> list[str]:
    """Returns the names, as `--env` takes them, of the games that need no parameters and have what training needs."""
    types = _registered(with_python=True).values()
    return [f"{PREFIX}{each.short_name}" for each in types if each.default_loadable and _refusal(each) is None]


def _registered(with_python: bool = False) -> dict[str, Any]:
    """The types of games by name. with_python: also of those in Python, which are slow and take a moment to import."""
    if with_python:
        importlib.import_module("open_spiel.python.games")  # it registers them
    return {each.short_name: each for each in pyspiel.registered_games()}


def _parameter(env_id: str, key: str, value: Any, specification: Mapping[str, Any]) -> Any:
    """Returns the value, of the type that OpenSpiel wants. specification: the default of each parameter."""
    if key not in specification:
        nearest = difflib.get_close_matches(key, [*specification, TENSOR], n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"it may have {', '.join([*specification, TENSOR])}"
        raise UsageError(f"env_kwargs has {key!r}, unknown to {env_id}: {hint}")
    kind = type(specification[key])
    if kind is float and type(value) is int:
        return float(value)
    if key == _FILENAME and isinstance(value, str) and not Path(value).is_file():
        raise UsageError(f"env_kwargs has the {key} {value!r}, and there is no such file: name another")
    if type(value) is not kind:
        raise UsageError(f"env_kwargs has the {key} {value!r}: {env_id} takes {_KINDS[kind]}")
    return value


def _refusal(game_type: Any) -> str | None:
    """Returns why games of this type cannot be trained on, and what to do instead; None: they can."""
    if game_type.short_name == _CHAT_GAME:
        return "has more actions than it names without a language model of its own: take another game"
    if game_type.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        return "is a mean-field game, whose rewards depend on a whole population: take another game"
    if game_type.action_structs_only:
        return "has no numbered actions for a policy to choose among: take another game"
    if not _tensors(game_type):
        return _NO_TENSOR
    return None


def _tensors(game_type: Any) -> list[str]:
    """Returns those that the game has. With the first, a policy without memory has perfect recall."""
    has = {
        _INFORMATION_STATE: game_type.provides_information_state_tensor,
        _OBSERVATION: game_type.provides_observation_tensor,
    }
    return [tensor for tensor, is_there in has.items() if is_there]


def _require_sensible_size(env_id: str, found: TensorGame) -> None:
    num_actions, num_numbers = found.game.num_distinct_actions(), math.prod(found.tensor_shape)
    if not 1 <= num_actions <= MOST_ACTIONS:
        raise UsageError(f"env {env_id!r} has {num_actions:,} actions, and 1 to {MOST_ACTIONS:,} are taken: {_SMALLER}")
    if any(size < 0 for size in found.tensor_shape):
        raise UsageError(f"env {env_id!r}: its tensor {found.tensor} has the shape {found.tensor_shape}: {_SMALLER}")
    if not 1 <= num_numbers <= MOST_NUMBERS:
        raise UsageError(
            f"env {env_id!r}: its tensor {found.tensor} has {num_numbers:,} numbers, and 1 to {MOST_NUMBERS:,} are "
            f"taken: {_SMALLER}"
        )


def _hint(name: str) -> str:
    by_name = {known.removeprefix(PREFIX): known for known in playable_ids()}
    nearest = difflib.get_close_matches(name.partition("(")[0], by_name, n=3, cutoff=0.75)
    if not nearest:
        return "sf-envs openspiel lists its names"
    parameters = ", with its parameters in env_kwargs" if "(" in name else ""
    return f"did you mean {' or '.join(by_name[near] for near in nearest)}{parameters}?"
