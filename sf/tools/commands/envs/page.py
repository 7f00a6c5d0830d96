"""All about one environment: its spaces, what is adapted in it, its preset, and what random actions come to."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from rich.table import Table
from rich.text import Text

from sf import envs
from sf.config.flags.sampler import SamplerConfig
from sf.envs import ActionSpec, EnvOptions, Episode, StepResult
from sf.envs.errors import EnvError
from sf.envs.groups.finite import float_keys, require_finite_obs, require_finite_rewards
from sf.envs.groups.old_api import OldApiEnv
from sf.envs.groups.tuple_agents import TupleAgents
from sf.envs.groups.turns import TurnsTogether
from sf.envs.process_guards import keep_standard_streams, keep_working_directory
from sf.envs.remarks import handed_to
from sf.envs.spaces.actions import ACTION_MASK, random_actions
from sf.envs.spaces.observations import obs_arrays
from sf.envs.teams import team_texts
from sf.metrics.display.console import OutputConsole
from sf.metrics.readable import up_to
from sf.system.machine.cores import PinnedCores, usable_cores
from sf.tools.commands import cli
from sf.tools.commands.envs.descriptions import (
    Description,
    action_text,
    as_json,
    describe,
    obs_text,
    sentence_of,
    silence,
    status_of,
)

_ADAPTED = {
    OldApiEnv.__name__: "the API of gym before 0.26, or no class of Gymnasium: called as one of Gymnasium",
    TupleAgents.__name__: "Tuples with a part for each agent: agents of a match",
    TurnsTogether.__name__: "agents that take turns: all of them step, and the others are masked",
}


@dataclass(frozen=True)
class RandomPlay:
    """Holds what random actions in one environment came to. Means are over finished episodes."""

    seconds: float
    steps_per_s: float  # decisions of all agents
    frames_per_s: float
    num_episodes: int
    mean_length: float | None
    mean_return: float | None
    time_limit: int | None  # decisions of an episode at most

    @property
    def text(self) -> str:
        speed = f"{self.frames_per_s:,.0f} frames/s, {self.steps_per_s:,.0f} steps/s on one core"
        if not self.num_episodes:
            return f"{speed}; no episode ended within {self.seconds:.1f} s{up_to(self.time_limit)}"
        episodes = f"{self.num_episodes:,} episodes of {self.mean_length:,.1f} steps"
        return f"{speed}; {episodes}, with a mean return of {self.mean_return:.4g}"


@dataclass(frozen=True)
class Page:
    """What is known of an environment after it was made, and stepped if that was asked for."""

    described: Description
    options: EnvOptions
    remarks: tuple[str, ...]  # what a run would say of it
    play: RandomPlay | None
    play_error: str | None
    status: int  # of a command that needs it, such as sf-train

    def as_json(self) -> dict[str, Any]:
        out = as_json(self.described)
        spec = self.described.spec
        if spec is not None:
            out["env_obs"] = space_text(spec.native_obs_space)
            out["layers"] = list(spec.layers)
            out["adapted"] = list(self.adaptations())
        out["remarks"] = list(self.remarks)
        out["random_play"] = None if self.play is None else asdict(self.play)
        out["random_play_error"] = self.play_error
        return out

    def adaptations(self) -> Iterator[str]:
        """What is changed between the environment and the policy, but for wrappers that somebody named."""
        spec = self.described.spec
        if spec is None:
            return
        yield from (_ADAPTED[name] for name in spec.layers if name in _ADAPTED)
        yield from _adaptations_of(spec.native_obs_space)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Names of what is known, and its text; a name that is empty goes on with the one before. Of one that could
        be made."""
        spec = self.described.spec
        assert spec is not None
        yield "env", self.described.env
        yield "it returns", space_text(spec.native_obs_space)
        yield "policy sees", obs_text(spec.obs_space.spaces)
        yield "action", action_text(spec.action_space)
        num_kinds = len({*spec.kinds})
        yield "agents", str(spec.num_agents) + (f" of {num_kinds} kinds" if num_kinds else "")
        if spec.teams:
            yield "teams", " against ".join(team_texts(spec))
        yield "frameskip", str(spec.frameskip)
        yield "preset", self.described.preset or "-"
        if spec.layers:
            yield "layers", " > ".join(spec.layers)
        for label, texts in (("adapted", self.adaptations()), ("to know", self.remarks)):
            for n, text in enumerate(texts):
                yield "" if n else label, text
        if self.play is not None or self.play_error is not None:
            yield "random play", self.play.text if self.play is not None else f"failed: {self.play_error}"
        yield "train", shlex.join(self._command())

    def _command(self) -> list[str]:
        given = {name: getattr(self.options, name) for name in ("env_kwargs", "env_wrappers", "env_frameskip")}
        named = {name: value for name, value in given.items() if value != getattr(EnvOptions(), name)}
        return ["sf-train", *cli.arguments({"env": self.described.env, **named})]


def make_page(env: str, options: EnvOptions, seconds: float) -> Page:
    """Makes the environment, and steps it for this many seconds."""
    remarks: list[str] = []
    play, error = None, None
    with silence(), handed_to(lambda about, sentence: remarks.append(sentence)):
        described = describe(env, options)
        status = described.status
        if described.spec is not None:
            try:
                play = play_randomly(env, options, seconds)
            except Exception as raised:  # whatever an environment raises is told with the rest
                error, status = sentence_of(raised), status_of(raised)
    return Page(described, options, tuple(remarks), play if seconds else None, error, status)


def play_randomly(env: str, options: EnvOptions, seconds: float) -> RandomPlay:
    """Play as many environments as a rollout worker steps together, or one where a process can make no more.

    Raises what they raise.
    """
    with keep_working_directory(), keep_standard_streams(), _one_core():
        make = partial(envs.make_group, env, options=options, seed=0, first_env_idx=0)
        try:
            group = make(SamplerConfig().num_envs_per_worker // 2)
        except EnvError:
            group = make(1)
        try:
            return _play(env, group, seconds)
        finally:
            group.close()


def _play(env: str, group: envs.EnvGroup, seconds: float) -> RandomPlay:
    rng = np.random.default_rng(0)
    action = ActionSpec.of(group.spec.action_space)
    arrays = obs_arrays(group.spec.obs_space, group.num_actors)
    obs, mask = {key: list(rows) for key, rows in arrays.items()}, arrays.get(ACTION_MASK)
    result = StepResult.empty(group.num_actors)
    episodes: list[Episode] = []
    num_steps = 0
    keys = float_keys(group.spec)
    group.reset(obs)
    require_finite_obs(env, obs, keys)
    start = time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        ended = group.step(*random_actions(rng, action, group.num_actors, mask), obs, result)
        require_finite_rewards(env, result.reward, ended)
        require_finite_obs(env, obs, keys)
        episodes += ended
        num_steps += group.num_actors
    return RandomPlay(
        seconds=taken,
        steps_per_s=num_steps / taken,
        frames_per_s=num_steps * group.spec.frameskip / taken,
        num_episodes=len(episodes),
        mean_length=float(np.mean([each.num_steps for each in episodes])) if episodes else None,
        mean_return=float(np.mean([each.episode_return for each in episodes])) if episodes else None,
        time_limit=group.spec.time_limit,
    )


@contextmanager
def _one_core() -> Iterator[None]:
    """This process and its threads, those of the environment with them, share the core that others use least."""
    before = os.sched_getaffinity(0)
    pinned = PinnedCores(usable_cores(), 1)
    core = pinned.of(0)
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})
        yield
    finally:
        os.sched_setaffinity(0, before)
        pinned.release()


def print_page(page: Page) -> None:
    console = OutputConsole()
    if not console.is_terminal:
        for label, text in page.rows():
            print(f"{label:<12} {text}")
        return
    table = Table.grid(padding=(0, 2))
    for label, text in page.rows():
        table.add_row(Text(label, "bold"), Text(text))
    console.print(table)


def space_text(space: gym.Space) -> str:
    """`Dict(image: 7x7x3 uint8, direction: Discrete(4))`: without bounds, which can be long arrays."""
    if isinstance(space, gym.spaces.Dict):
        return f"Dict({', '.join(f'{name}: {space_text(child)}' for name, child in space.items())})"
    if isinstance(space, gym.spaces.Tuple):
        return f"Tuple({', '.join(map(space_text, space.spaces))})"
    if isinstance(space, gym.spaces.Box):
        return f"Box({'x'.join(map(str, space.shape)) or 1} {space.dtype})"
    return action_text(space)


def _adaptations_of(space: gym.Space) -> Iterator[str]:
    spaces = list(_spaces(space))
    if any(isinstance(each, gym.spaces.Tuple) for each in spaces):
        yield "a Tuple of observations: a Dict with the indices as keys"
    # A MultiDiscrete with several axes is a grid of codes.
    if any(
        isinstance(each, gym.spaces.Discrete | gym.spaces.MultiDiscrete) and len(each.shape or ()) < 2
        for each in spaces
    ):
        yield "Discrete observations: one-hot"


def _spaces(space: gym.Space) -> Iterator[gym.Space]:
    yield space
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        for child in space.spaces.values() if isinstance(space, gym.spaces.Dict) else space.spaces:
            yield from _spaces(child)
