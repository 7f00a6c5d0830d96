"""A group of OpenSpiel's games.

Every decision is a step of all players, as in `sf.envs.groups.turns`: a player that waits has an `action_mask` that
allows nothing. Where all act at once, each has a mask of its own.
"""

from __future__ import annotations

import functools
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import pyspiel

from sf.envs.entries import describer
from sf.envs.errors import UsageError, summary
from sf.envs.group import EnvGroup, EnvSpec, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.openspiel.forward import OpenSpielModel
from sf.envs.openspiel.games import load
from sf.envs.openspiel.match import Match, traits_of
from sf.envs.openspiel.views import OBSERVATION, Views
from sf.envs.options import EnvOptions
from sf.envs.rendering.film import Film, FilmedGroup
from sf.envs.rendering.pictures import TextPainter
from sf.envs.seeding import env_seed
from sf.envs.spaces.actions import ACTION_MASK

_TRIAL = "import sys; sys.path[:] = sys.argv[3:]; from sf.envs.openspiel.group import try_out; try_out(*sys.argv[1:3])"
_MOST_TRIAL_S = 300  # bridge_uncontested_bidding takes 20 s
_MOST_TRIAL_BYTES = 4 << 30  # beyond what the process has when it begins
_REFUSED = 3  # the status of a process that has printed why
PICTURES_PER_S = 2.0  # a position takes a while to read
_TEAMS = {"bridge": (0, 1, 0, 1)}  # of the players of a game, by its name

AnyMatch = TypeVar("AnyMatch", bound=Match)


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """`options.kwargs` are the game's parameters, see `sf.envs.openspiel.games`."""
    group, _ = _make(Match, env_id, num_envs, options, seed, first_env_idx)
    return group


_describe = describer(make_group)


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """Parameters are tried first, in a process that may die of them."""
    refusal = _refusal(env_id, options.env_kwargs) if options.kwargs else None
    if refusal is not None:
        raise UsageError(refusal)
    return _describe(env_id, options)


@functools.cache
def _refusal(env_id: str, env_kwargs: str) -> str | None:
    """Returns why OpenSpiel cannot make such a game; None: it can.

    It checks few of its parameters: over some it ends the process that it is in, and over some it takes memory without
    end. So a process that only tries makes the game for a first time.
    """
    command = [sys.executable, "-c", _TRIAL, env_id, env_kwargs, *sys.path]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode == _REFUSED:
        return done.stdout.strip()
    if done.returncode == -signal.SIGALRM:
        return f"env {env_id!r} with env_kwargs {env_kwargs} was not made within {_MOST_TRIAL_S} s: change them"
    if done.returncode < 0:
        lines = done.stderr.split("\n")
        said = next((line for line in reversed(lines) if line.strip()), signal.Signals(-done.returncode).name)
        return f"env {env_id!r} with env_kwargs {env_kwargs} makes OpenSpiel crash ({said.strip()}): change them"
    return None


def try_out(env_id: str, env_kwargs: str) -> None:
    """Make a game in a process that only tries."""
    signal.alarm(_MOST_TRIAL_S)  # the kernel's, which also ends what does not come back from C++
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most_bytes = pages * resource.getpagesize() + _MOST_TRIAL_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    try:
        make_group(env_id, 1, EnvOptions(env_kwargs=env_kwargs), seed=0, first_env_idx=0)
    except UsageError as refusal:
        print(refusal)
        sys.exit(_REFUSED)


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Each picture is the text that OpenSpiel writes of a position."""
    group, cameras = _make(FilmedMatch, env_id, num_envs, options, seed, first_env_idx)
    return FilmedGroup(group, cameras, PICTURES_PER_S)


def _make(
    kind: Callable[..., AnyMatch], env_id: str, num_envs: int, options: EnvOptions, seed: int, first_env_idx: int
) -> tuple[OpenSpielGroup, list[AnyMatch]]:
    if options.env_frameskip not in (None, 1):
        raise UsageError(f"{env_id}: env_frameskip is {options.env_frameskip}, but a move is made once: leave it out")
    seeds = [env_seed(seed, first_env_idx + m) for m in range(num_envs)]
    games = [load(env_id, options.kwargs, each) for each in seeds]  # one each: some draw chance themselves
    try:
        views = Views(games[0].game.num_players(), games[0].tensor_shape)
        traits = traits_of(load(env_id, options.kwargs, seeds[0]))  # not of those that are played: some remember chance
    except Exception as error:  # of parameters that OpenSpiel looks at when a game begins
        if not options.kwargs:
            raise
        raise UsageError(
            f"env {env_id!r} cannot be played with env_kwargs {options.kwargs} ({summary(error)}): change them"
        ) from error
    matches = [kind(env_id, game, views, each, traits) for game, each in zip(games, seeds, strict=True)]
    teams = _TEAMS.get(games[0].game.get_type().short_name, ())
    return OpenSpielGroup(matches, views.space, games[0].game.num_distinct_actions(), teams), matches


class OpenSpielGroup:
    """E matches of one game with P players each; actor n is player n % P of match n // P."""

    def __init__(
        self, matches: Sequence[Match], view_space: gym.spaces.Box, num_actions: int, teams: tuple[int, ...] = ()
    ) -> None:
        """view_space: of what a player sees. teams: [P] of the players, where they are known."""
        self._matches = matches
        num_players = matches[0].num_players
        obs_space = gym.spaces.Dict(
            {OBSERVATION: view_space, ACTION_MASK: gym.spaces.Box(0, 1, (num_actions,), np.int8)}
        )
        self.spec = EnvSpec(obs_space, gym.spaces.Discrete(num_actions), num_agents=num_players, teams=teams)
        self.num_actors = len(matches) * num_players
        self._firsts = range(0, self.num_actors, num_players)  # actor of each match

    def reset(self, obs: ObsRows) -> None:
        for match, first in zip(self._matches, self._firsts, strict=True):
            match.start()
            match.show(obs[OBSERVATION], obs[ACTION_MASK], first)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        observations, masks, choices = obs[OBSERVATION], obs[ACTION_MASK], discrete[:, 0].tolist()
        episodes: list[Episode] = []
        rewards: list[float] = []
        result.terminated[:] = False
        result.truncated[:] = False
        result.valid[:] = True
        for match, first in zip(self._matches, self._firsts, strict=True):
            rewards += match.play(choices, first)
            if match.is_over:
                steps, end = match.num_decisions, first + match.num_players
                result.terminated[first:end] = True
                episodes += [Episode(n, won, steps, steps) for n, won in enumerate(match.returns(), first)]
                match.start()
            match.show(observations, masks, first)
        result.reward[:] = rewards
        result.first[:] = result.terminated
        return episodes

    def close(self) -> None:
        pass

    def forward_model(self, seed: int) -> OpenSpielModel:
        """See `sf.envs.group.SearchableGroup`."""
        return OpenSpielModel(self._matches[0].env_id, self._matches[0].tensor_game, seed)

    def game(self, env_idx: int) -> Any:
        """Returns a copy of the state of a game."""
        return self._matches[env_idx].position()

    def resign(self, env_idx: int) -> None:
        """Let whoever moves in this game lose with the next step, in the place of its choice."""
        self._matches[env_idx].resign()


class FilmedMatch(Match):
    """Films itself (`sf.envs.rendering.film.Camera`): each picture is the text that OpenSpiel writes of a position."""

    def __init__(self, env_id: str, *args: Any) -> None:
        """args: of a match."""
        super().__init__(env_id, *args)
        self._painter = TextPainter(env_id)
        self._viewer: int | None = None  # the player for whom the pictures are; None: they show everything
        self.films = [Film()]

    def start(self) -> None:
        super().start()
        self.films[0].begin(self._draw())

    def play(self, choices: Sequence[int], first: int = 0) -> list[float]:
        rewards = super().play(choices, first)
        self.films[0].add(self._draw())
        return rewards

    def moves(self, player: int) -> Mapping[int, str]:
        """Returns the actions that a player may choose now, as OpenSpiel writes them."""
        return {action: self._state.action_to_string(player, action) for action in self.legal(player)}

    def show_to(self, player: int) -> None:
        """From now on the pictures show what this player knows. What was hidden is shown when a game is over."""
        self._viewer = player
        self.films[0].replace(self._draw())

    def _draw(self) -> np.ndarray:
        return self._painter.draw(str(self) if self.is_over or self._viewer is None else self._text_for(self._viewer))

    def _text_for(self, player: int) -> str:
        kind = self._game.get_type()
        if self.num_players > 1 and kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION:
            if kind.provides_information_state_string:
                return self._state.information_state_string(player)
            if kind.provides_observation_string:
                return self._state.observation_string(player)
        return str(self)
