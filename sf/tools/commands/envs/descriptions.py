"""What an agent sees and does in an environment, in short words.

To describe an environment is to make it, which takes a tenth of a second for an Atari game.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from rich.progress import track

from sf import envs
from sf.config import presets
from sf.envs import EnvOptions
from sf.envs.errors import summary
from sf.metrics.display.console import OutputConsole
from sf.tools.commands.ends import FAILURE, USER_ERROR


@dataclass(frozen=True)
class Description:
    """An environment, or why it cannot be made here. status: of a command that needs it, such as sf-train."""

    env: str
    preset: str | None
    spec: envs.EnvSpec | None
    error: str | None
    status: int = 0


def describe_all(matches: Sequence[str], options: EnvOptions) -> list[Description]:
    """Makes each environment once; says how far it is on a terminal."""
    progress = track(
        matches, "describing", console=OutputConsole(stderr=True), transient=True, disable=len(matches) < 10
    )
    with silence():
        return [describe(env, options) for env in progress]


@contextmanager
def silence() -> Iterator[None]:
    """What environments print, also those that are not written in Python, and warnings, are not shown."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    sys.stdout.flush()
    stdout = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(nothing)


def describe(env: str, options: EnvOptions) -> Description:
    preset = presets.name_for_env(env, options)
    try:
        spec = envs.describe(env, options)
        return Description(env, preset or presets.name_for_spec(spec), spec, None)
    except Exception as error:  # one that fails in a way of its own must not end the list
        return Description(env, preset, None, sentence_of(error), status_of(error))


def as_json(described: Description) -> dict[str, Any]:
    """What `--json true` prints of an environment. Shapes are those of one actor."""
    out: dict[str, Any] = {"env": described.env, "preset": described.preset, "error": described.error}
    if described.spec is not None:
        spaces = described.spec.obs_space.spaces
        out["obs"] = {key: {"shape": space.shape, "dtype": str(space.dtype)} for key, space in spaces.items()}
        out["action"] = action_text(described.spec.action_space)
        out["num_agents"] = described.spec.num_agents
        out["frameskip"] = described.spec.frameskip
    return out


def obs_text(spaces: Mapping[str, gym.Space]) -> str:
    """`72x128x3 uint8`, or with names where there are several: `image 36x36x1 uint8, vector 2 float32`."""
    texts = {key: f"{'x'.join(map(str, space.shape or (1,)))} {space.dtype}" for key, space in spaces.items()}
    if list(texts) == ["obs"]:
        return texts["obs"]
    return ", ".join(f"{key} {text}" for key, text in texts.items())


def action_text(space: gym.Space) -> str:
    """`Discrete(6)`, `MultiDiscrete(3, 2)`, `Box(2)`, `Tuple(Discrete(3), Box(1))`, `Dict(move: Box(2))`: numbers of
    choices, and shapes."""
    if isinstance(space, gym.spaces.Dict):
        numbers: Iterable[Any] = (f"{name}: {action_text(child)}" for name, child in space.spaces.items())
    elif isinstance(space, gym.spaces.Tuple):
        numbers = map(action_text, space.spaces)
    elif isinstance(space, gym.spaces.Discrete):
        numbers = [space.n]
    else:
        numbers = space.nvec.tolist() if isinstance(space, gym.spaces.MultiDiscrete) else space.shape or ()
        if isinstance(space, gym.spaces.Box) and not np.issubdtype(space.dtype, np.floating):
            numbers = [*numbers, space.dtype]
    return f"{type(space).__name__}({', '.join(map(str, numbers))})"


def status_of(error: Exception) -> int:
    """That sf-train would end with."""
    return USER_ERROR if isinstance(error, ValueError) else FAILURE


def sentence_of(error: Exception) -> str:
    """The part that says what to do: without the name and the arguments, which the list has or did not give."""
    cause = error.__cause__ or error
    if isinstance(cause, ModuleNotFoundError) and cause.name:
        return f"{cause}: pip install {cause.name.partition('.')[0]}"
    return " ".join((summary(cause) if isinstance(cause, LookupError) else str(cause)).split()) or type(cause).__name__
