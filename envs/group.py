"""The one interface between environments and a rollout worker: a group of environments stepped together.

A group holds E environments with one or more agents each: N actors in all. It writes the observations straight
into the arrays it is handed (rows of shared memory), and everything else into the arrays of a `StepResult`.

What a row means (t counts the calls of `step`; row 0 comes from `reset`):

- `obs` of row t+1, `first` of row t+1: what the actor sees next, and whether it is the first observation of an
  episode (a recurrent policy forgets before it reads that row).
- `reward`, `terminated`, `truncated`, `valid` of row t: what the action of row t caused.

A group resets its environments itself. After *termination* nothing of the old episode is needed any more: `step`
returns the first observation of the next episode at once (`terminated`, `first`). After *truncation* the final
observation is needed, because its value is the bootstrap of the last step: `step` returns it (`truncated`, not
`first`); the next `step` ignores that actor's action, resets the environment, and returns its first observation
with `valid` False and reward 0 (`first`). A vector environment may reset one step late after termination, too; it gives
such a row there as well. In short: every row whose action was ignored has `valid` False.

An agent of a match may leave it while others play on, and may come back. To leave is to end its episode: its last row
is terminated or truncated like any other. Until it is back its rows are not valid, with reward 0 and observations of
zeros (after truncation, the final one first); the row of its return is `first`. The step before that row has
`joined` for it: it joins a match that goes on, even if all others leave in that step. Other `first` rows belong to a
match that begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from sf.envs.spaces.action_names import ActionNames

ADVICE = "advice_"
"""Before the name of a player of the simulator: the observation [A] int8 of what it would choose, one-hot."""

ObsRows = Mapping[str, Sequence[np.ndarray]]
"""Where the next observations go: `rows[key][n]` is a writable array of the shape of `obs_space[key]` for actor n."""


@dataclass(frozen=True)
class EnvSpec:
    """Describes what one actor of an environment sees and does, known without starting it where possible."""

    obs_space: gym.spaces.Dict  # a bare Box is {"obs": Box}; every entry is a Box
    action_space: gym.Space  # see `sf.envs.spaces.actions.ActionSpec`
    num_agents: int = 1  # actors of one environment
    frameskip: int = 1  # frames of the simulator for one step (one decision)
    shaping: Mapping[str, float] = field(default_factory=dict)  # weights of shaped rewards, by name: see set_shaping
    state_space: gym.spaces.Box | None = field(default=None, compare=False)  # see `sf.envs.added.central_state`
    for_critic: tuple[str, ...] = field(default=(), compare=False)  # keys of the observation that the policy never sees
    has_own_time_limit: bool = field(default=False, compare=False)  # see `sf.envs.wrappers.layers`
    can_cut: bool = field(default=False, compare=False)  # its groups are `CuttableGroup`s
    can_search: bool = field(default=False, compare=False)  # its groups are `SearchableGroup`s
    hides_state: bool = field(default=False, compare=False)  # a search would see more than those who play
    # Options that episodes may begin with, and their ranges, see `sf.envs.added.episode_options`.
    schedulable: Mapping[str, tuple[float, float]] = field(default_factory=dict, compare=False)
    time_limit: int | None = field(default=None, compare=False)  # decisions of an episode at most; None: not known
    env_obs_space: gym.Space | None = None  # what the environment itself returns; None: as obs_space
    layers: tuple[str, ...] = field(default=(), compare=False)  # see `sf.envs.wrappers.layers`
    action_names: ActionNames = field(default=(), compare=False)  # of each choice of each discrete head, where known
    # Players of the simulator itself that can take the place of an agent, by name: where the first discrete action of
    # an agent is this number, which is negative, that bot acts in this step.
    bots: Mapping[str, int] = field(default_factory=dict, compare=False)
    # Players of the simulator that can say what they would do, as observations `ADVICE` + name: see `advice`.
    advisers: tuple[str, ...] = field(default=(), compare=False)
    agents: tuple[str, ...] = field(default=(), compare=False)  # names of the agents; (): see `sf.envs.teams`
    teams: tuple[int, ...] = field(default=(), compare=False)  # [A] of the agents, from 0; (): not known
    kinds: tuple[int, ...] = field(default=(), compare=False)  # [A] see `sf.envs.groups.kinds`; (): all are alike
    # What agents of each kind see and do in the environment itself, [K]; (): all are alike.
    own_spaces: tuple[tuple[gym.Space, gym.Space], ...] = field(default=(), compare=False)
    # Several environments that one policy is trained on, by name, and how much of a run each gets: `sf.envs.tasks`.
    tasks: Mapping[str, float] = field(default_factory=dict, compare=False)
    optional_fields: tuple[str, ...] = field(default=(), compare=False)  # of a step, see `sf.shared.rows`
    # The spaces of the rows, of which these are a part, see `sf.envs.groups.policy_spec`; None: the rows have these.
    stored_in: EnvSpec | None = field(default=None, compare=False)

    @property
    def actor_obs_space(self) -> gym.spaces.Dict:
        """The observations that the policy sees."""
        return gym.spaces.Dict({key: box for key, box in self.obs_space.items() if key not in self.for_critic})

    @property
    def native_obs_space(self) -> gym.Space:
        """The space of what the environment itself returns, before `sf.envs.spaces.observations` lays it out."""
        return self.obs_space if self.env_obs_space is None else self.env_obs_space


@dataclass(frozen=True)
class Episode:
    """One finished episode of one actor."""

    actor_idx: int  # in the group
    episode_return: float  # sum of the environment's own rewards: before shaping, clipping and scaling
    num_steps: int  # decisions
    num_frames: int  # steps x frameskip, or fewer where the last step was cut
    stats: Mapping[str, float] = field(default_factory=dict)  # kills, frags, shaped_return, true_objective, ...


@dataclass(frozen=True)
class StepResult:
    """Holds what a step caused, for N actors. A group overwrites every entry at every step, but for `joined`."""

    reward: np.ndarray  # [N] float32
    terminated: np.ndarray  # [N] bool
    truncated: np.ndarray  # [N] bool
    valid: np.ndarray  # [N] bool
    first: np.ndarray  # [N] bool
    joined: np.ndarray  # [N] bool; False throughout, and not written, in a group whose agents never join a match late

    @classmethod
    def empty(cls, num_actors: int) -> StepResult:
        return cls(
            reward=np.zeros(num_actors, np.float32),
            terminated=np.zeros(num_actors, bool),
            truncated=np.zeros(num_actors, bool),
            valid=np.ones(num_actors, bool),
            first=np.zeros(num_actors, bool),
            joined=np.zeros(num_actors, bool),
        )

    def cut(self, in_episode: np.ndarray) -> np.ndarray:
        """Returns [N] bool, where an episode begins before the one that was running has ended, as after a fault.

        in_episode: [N] bool, whose was running before this step.
        """
        is_cut: np.ndarray = in_episode & self.first & ~(self.terminated | self.truncated)
        return is_cut


class EnvGroup(Protocol):
    """E environments stepped together, N = E x num_agents actors; actor n belongs to env n // num_agents."""

    spec: EnvSpec
    num_actors: int

    def reset(self, obs: ObsRows) -> None:
        """Start the first episode of every environment and write its first observations."""
        ...

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        """Apply one action per actor, write what it caused, and return the episodes that ended with it.

        discrete: [N, D] int32, continuous: [N, C] float32, as `sf.envs.spaces.actions.ActionSpec` lays an action out.
        """
        ...

    def close(self) -> None:
        """Free everything, child processes included. Called once, also after `step` raised."""
        ...


class CuttableGroup(EnvGroup, Protocol):
    """A group whose episodes can be cut from outside."""

    def cut(self, env_idx: int) -> None:
        """Begin the next episode of this environment with the next step: the action of that step is ignored (not valid,
        reward 0), and its observation is the first of the new episode. The running episode is in no `Episode`.
        """
        ...


class Positions(NamedTuple):
    """Describes M positions of games, for a search. Rewards and outcomes are those of player 0.

    mover: [M] int8, who moves, or `CHANCE` or `OVER`. reward: [M] float32, for the action that led there. outcome: [M]
    float32, all that was won, where the game is over. num_choices: [M] int32. choices: int32, the actions of the first
    position, then those of the second, and so on. odds: float32, as many, the probabilities of those of chance.
    """

    mover: np.ndarray
    reward: np.ndarray
    outcome: np.ndarray
    num_choices: np.ndarray
    choices: np.ndarray
    odds: np.ndarray


CHANCE, OVER = -1, -2
"""These numbers stand in the place of a mover."""


class ForwardModel(Protocol):
    """Games that a search may play on, without anybody noticing. Each position that it holds has a number.

    Position p of game g is set by `begin` or `play`, and forgotten with `begin` or `keep`.
    """

    num_players: int  # 1, or 2, of whom one wins what the other loses
    num_actions: int
    low: float  # what player 0 wins in a game at least
    high: float  # and at most
    pays_at_end: bool  # nobody has won anything before a game is over

    def begin(self, game: int, state: Any) -> None:
        """Forget a game, and take up another at place 0. state: of that game, in the form that the model knows; it is
        not changed."""
        ...

    def play(
        self, games: Sequence[int], sources: Sequence[int], actions: Sequence[int], places: Sequence[int]
    ) -> Positions:
        """Put what follows on M actions into `places`. sources: the positions where they are taken; -1: the action is
        ignored, and the position is there. Returns what is at `places`."""
        ...

    def keep(self, game: int, places: np.ndarray) -> None:
        """Forget all positions of a game but these, which become 0, 1, 2, ..."""
        ...

    def show(self, games: Sequence[int], places: Sequence[int], obs: Mapping[str, Any]) -> None:
        """Write what those who move in M positions see, as the group itself would, into rows 0 to M-1."""
        ...

    def play_out(self, games: Sequence[int], places: Sequence[int]) -> np.ndarray:
        """Returns [M] float32 what player 0 wins from there on if all choose at random, one game each."""
        ...

    def action_name(self, game: int, place: int, action: int) -> str:
        """Returns what an action at a position, or an outcome of chance there, is called."""
        ...


class SearchableGroup(EnvGroup, Protocol):
    """A group whose games a search can play on."""

    def forward_model(self, seed: int) -> ForwardModel:
        """Make a model that knows the games of this group, and of others like it. seed: of chance and random play.

        Raises UsageError where the games cannot be searched.
        """
        ...

    def game(self, env_idx: int) -> Any:
        """Returns the state of the game that an environment plays now, for `ForwardModel.begin`; None where its episode
        is over, so that its next action is ignored. It is to be used before the next step."""
        ...


class ShapedGroup(EnvGroup, Protocol):
    """A group whose `spec.shaping` has names."""

    def set_shaping(self, actor_idx: int, weights: np.ndarray) -> None:
        """Shape the rewards of an actor with these weights [K] from now on, in the order of `spec.shaping`.

        They are hyperparameters of the policy that plays the actor. Before the first call they are those of `spec`.
        """
        ...


class RenderedGroup(EnvGroup, Protocol):
    """A group that can be looked at: what `sf.envs.make_rendered_group` makes.

    An environment has one view, or one for each of its agents: view v belongs to environment v // num_views.
    """

    num_views: int  # of an environment
    pictures_per_s: float  # of each view, where the environment runs in real time

    def pictures(self) -> list[list[np.ndarray]]:
        """Returns the pictures of each view in the last step, oldest first: [H, W, 3] uint8, RGB.

        They show the episode that the actions were for; its first picture comes with its first step. Empty if the
        actions were ignored, or if the episode ended without another picture.
        """
        ...

    def returns(self) -> list[float]:
        """Returns [N] what `Episode.episode_return` would be so far, of the episode that each actor is in."""
        ...


class PlayedGroup(RenderedGroup, Protocol):
    """A `RenderedGroup` that a person can play, by `sf-play`."""

    def present(self) -> list[np.ndarray]:
        """Returns the picture of each view as it is now, also of an episode that has had no step."""
        ...

    def moves(self, actor_idx: int) -> Mapping[int, str]:
        """Returns what the allowed actions of an actor are called now, if the position decides that; else nothing."""
        ...

    def show_to(self, actor_idx: int) -> None:
        """From now on the pictures are for this actor, and hide what it may not know."""
        ...


def finished_episode(actor_idx: int, paid: float, num_steps: int, num_frames: int, stats: Mapping[str, Any]) -> Episode:
    """Make an `Episode` of what an environment says about one that has finished.

    paid: the sum of the rewards that the environment gave.
    stats: `info["episode_stats"]` of the last step. An environment that shapes its rewards puts the unshaped return
    there, as `raw_return`. That one is reported, and `paid` becomes the statistic `shaped_return`.
    """
    numbers = {name: float(value) for name, value in stats.items()}
    if "raw_return" not in numbers:
        return Episode(actor_idx, paid, num_steps, num_frames, numbers)
    raw_return = numbers.pop("raw_return")
    return Episode(actor_idx, raw_return, num_steps, num_frames, {**numbers, "shaped_return": paid})
