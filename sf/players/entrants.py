"""The players that `--players` names: found, and tried, before anything starts."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym

from sf.envs import EnvOptions, EnvSpec
from sf.envs.clock import CLOCK
from sf.envs.errors import UsageError
from sf.play import opponents
from sf.play.named_checkpoint import find_trusted
from sf.play.opponents import Opponent
from sf.play.torch_policy import TorchPolicy
from sf.players.snapshots import kept_at
from sf.storage.checkpoint import Checkpoint
from sf.zoo.places import located

Entrant = Checkpoint | Opponent


def find_entrants(
    named: Sequence[str], env: str, options: EnvOptions, spec: EnvSpec, run_dir: Path, is_trusted: bool = False
) -> dict[str, Entrant]:
    """By the name that each has in the pool, in the same order.

    run_dir: of the run, which has copies of the players that it has met before: they are taken where originals are
    gone.
    Raises ValueError where a player cannot be found or loaded, plays another environment, or is named twice.
    """
    found: dict[str, Entrant] = {}
    for player in named:
        name = player if opponents.is_name(player) else _file_name(player)
        if name in found:
            raise UsageError(f"players names {player!r} twice, or another one that is called {name}, too: name it once")
        if opponents.is_name(player):
            opponent = Opponent(player, env, options, spec.native_obs_space, spec.action_space)
            opponent.player()  # what is wrong with it is said now
            found[name] = opponent
            continue
        try:
            file, saved = _original_or_copy(player, kept_at(run_dir, name), is_trusted)
            policy = TorchPolicy(saved, str(file))
        except ValueError as error:
            raise UsageError(f"players names {player!r}: {error}") from None
        own = gym.spaces.Dict({key: box for key, box in spec.obs_space.spaces.items() if key != CLOCK})
        for what, theirs, ours in (
            ("observations", policy.flat_obs_space, own),
            ("actions", policy.action_space, spec.action_space),
        ):
            if theirs != ours:
                raise UsageError(
                    f"players names {player!r}, whose {what} are {_short(theirs)}, and those of {env} are "
                    f"{_short(ours)}: name a player of the same environment"
                )
        found[name] = saved
    return found


def _original_or_copy(player: str, copy: Path, is_trusted: bool) -> tuple[Path, Checkpoint]:
    try:
        return find_trusted(located(Path(player)), "latest", 0, _warn, is_trusted)
    except ValueError as error:
        if not copy.is_file():
            raise
        _warn(f"{error}. {copy} plays in its place")
        return find_trusted(copy, "latest", 0, _warn, is_trusted)


def _file_name(player: str) -> str:
    """Of a run or a checkpoint: the last two parts of its path."""
    parts = Path(player.removesuffix(".safetensors")).parts[-2:]
    return re.sub(r"[^A-Za-z0-9.-]+", "_", "_".join(parts)).strip("._")


def _short(space: gym.Space) -> str:
    return " ".join(str(space).split())


def _warn(text: str) -> None:
    print(text, file=sys.stderr)
