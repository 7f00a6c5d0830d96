"""Players that look ahead: `search:N` by random play, `search:N:RUN` with the policy of a run.

They need the state of the game. In games of OpenSpiel they know it by following the game
(`sf.evaluation.play.games.followed_games`); in Gymnasium environments and strategy games they copy it from the group
that plays it (`sf.evaluation.play.games.searched_games`). The leaves of all games that wait for a move are evaluated
together.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import gymnasium as gym
import numpy as np

from sf.config.trust import SEARCH
from sf.envs import EnvGroup, EnvSpec, describe
from sf.envs.errors import UsageError
from sf.envs.group import ForwardModel, SearchableGroup
from sf.envs.openspiel.family import INSTALL, SHOWN
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.games.searched_games import Games, GamesOfGroup
from sf.evaluation.play.named_checkpoint import find_trusted
from sf.evaluation.play.player import Actions, Obs, Thought
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.search.search import Asked, Judge, Root, Search, SearchSettings
from sf.storage import checkpoint
from sf.storage.zoo.places import located

if TYPE_CHECKING:
    from sf.evaluation.play.games.followed_games import FollowedGame

MOST_SIMULATIONS = 1_000_000
# PPO leaves hardly any probability to a second choice. With two players a search is stronger if it tries that one, too,
# and with one player weaker (docs/search.md has the figures).
_TEMPERATURE_OF_PPO = 5.0


@dataclass(frozen=True)
class SearchName:
    """Is what `search:N` or `search:N:RUN` says."""

    num_simulations: int
    run: str | None

    @classmethod
    def of(cls, name: str) -> SearchName:
        """Raises UsageError for a name that says something else."""
        number, _, run = name.removeprefix(SEARCH).partition(":")
        if not number.isdecimal() or len(number) > 7 or not 1 <= int(number) <= MOST_SIMULATIONS:
            raise UsageError(
                f"player {name!r}: write {SEARCH}N or {SEARCH}N:RUN, with N simulations a move, from 1 to "
                f"{MOST_SIMULATIONS:,}"
            )
        return cls(int(number), run or None)


def policy_named(name: str, is_trusted: bool) -> bytes | None:
    """Returns the content of the checkpoint of the policy that a player has; None: it has none. Raises ValueError where
    it cannot be read, or names code that nobody vouches for."""
    run = SearchName.of(name).run
    if run is None:
        return None
    _, saved = find_trusted(located(Path(run)), is_trusted=is_trusted)
    return checkpoint.encode(saved)


class SearchPlayer:
    """Plays the move that a search finds. It is deterministic, but for random play and where two moves are alike."""

    def __init__(
        self,
        name: str,
        env_id: str,
        options: EnvOptions,
        policy: bytes | None,
        asked: SearchSettings | None = None,
    ) -> None:
        """policy: the content of its checkpoint. asked: how it searches; None: as the name says.

        Raises UsageError for a game that it cannot search, and for a policy that cannot evaluate positions.
        """
        self._name = name
        self._env_id = env_id
        self._sees_all = options.search_sees_all
        self._followed: FollowedGame | None = None  # None: a group has its games
        spec: EnvSpec | None = None
        if env_id.startswith(OPENSPIEL):
            self._followed, shown = _followed(name, env_id, options)
        else:
            spec = describe(env_id, dataclasses.replace(options, single_envs=True))
            _require_copies(name, env_id, spec, self._sees_all)
            shown = frozenset(spec.obs_space)
        self._policy: TorchPolicy | None = None
        if policy is not None:
            self._policy = TorchPolicy(checkpoint.decode(policy), name)
            _require_judge(self._policy, name, shown, spec)
        self._asked = asked or SearchSettings(SearchName.of(name).num_simulations)

    def actors(self, num_actors: int, seed: int) -> SearchActors:
        """Raises UsageError where it needs the environments themselves."""
        if self._followed is None:
            raise UsageError(
                f"player {self._name!r} searches {self._env_id} in copies of its environments, which are in another "
                "process here: name another player"
            )
        return self._acting(self._followed.games(num_actors, seed), num_actors, seed)

    def actors_in_group(self, group: EnvGroup, num_actors: int, seed: int) -> SearchActors:
        """Returns actors that may look into the group in which they play."""
        if self._followed is not None:
            return self.actors(num_actors, seed)
        _require_copies(self._name, self._env_id, group.spec, self._sees_all)
        return self._acting(GamesOfGroup(cast("SearchableGroup", group), seed), num_actors, seed)

    def _acting(self, games: Games, num_actors: int, seed: int) -> SearchActors:
        settings = settings_for(self._policy, self._asked, games.model.num_players)
        return SearchActors(games, settings, num_actors, self._policy, seed)


class SearchActors:
    """N actors that search, each in a game of its own."""

    def __init__(
        self, games: Games, settings: SearchSettings, num_actors: int, policy: TorchPolicy | None, seed: int
    ) -> None:
        self._games = games
        self._search = Search(games.model, settings, num_actors)
        self._judge = judge_of(policy, games.model)
        self._rng = np.random.default_rng(seed)
        self._moved: dict[int, tuple[Root, int]] = {}  # by actor: what the last call of `act` has found, and the move

    def thoughts(self) -> dict[int, Thought]:
        """Returns, by actor, what is behind the moves of the last call of `act`."""
        return {
            n: Thought(root, self._search.names(n, root.action.tolist()), self._search.line(n, move))
            for n, (root, move) in self._moved.items()
        }

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        actors = np.arange(len(first)) if who is None else who
        discrete = np.zeros((len(actors), 1), np.int32)
        values = np.full(len(actors), np.nan, np.float32)
        searched: dict[int, int] = {}  # the row of each actor
        for row, n in enumerate(actors.tolist()):
            seen = {key: rows[row] for key, rows in obs.items()}
            state = self._games.look(n, seen, bool(first[row]))
            mask = seen.get(ACTION_MASK)
            legal = np.arange(self._games.model.num_actions) if mask is None else np.flatnonzero(mask)
            if not len(legal):  # it is not its turn
                continue
            if state is None:
                discrete[row] = self._rng.choice(legal)
                continue
            self._games.take_up(self._search, n, state)
            searched[n] = row
        self._moved = {}
        if searched:
            self._search.run(list(searched), self._judge)
        for n, row in searched.items():
            root = self._search.read(n)
            discrete[row] = move = best_move(root)
            values[row] = root.root_value
            self._moved[n] = root, move
            self._games.played(n, move)
        return Actions(discrete, np.zeros((len(actors), 0), np.float32), values)


def judge_of(policy: TorchPolicy | None, model: ForwardModel) -> Judge:
    """Returns what judges the positions of a model by a policy; None: as random play does, which knows nothing."""

    def judged(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
        num = len(asked.game)
        if policy is None:
            return np.zeros((num, model.num_actions), np.float32), np.zeros(num, np.float32)
        obs = obs_arrays(policy.flat_obs_space, num)
        model.show(asked.game.tolist(), asked.node.tolist(), {key: list(rows) for key, rows in obs.items()})
        return policy.judged(obs)

    return judged


def settings_for(policy: TorchPolicy | None, asked: SearchSettings, num_players: int) -> SearchSettings:
    """Returns the settings of a search that is asked for, as they are with a policy, or by random play alone (None)."""
    if policy is None:
        return dataclasses.replace(asked, playout_share=1.0)
    learner = policy.config.learner
    temperature = _TEMPERATURE_OF_PPO if learner.algorithm == "ppo" and num_players == 2 else 1.0
    return dataclasses.replace(asked, discount=learner.gamma, prior_temperature=temperature)


def best_move(root: Root) -> int:
    """Returns the choice with the largest score, but one that wins for certain before it, and none that loses."""
    return int(root.action[np.lexsort((root.score, root.certain))[-1]])


def _followed(name: str, env_id: str, options: EnvOptions) -> tuple[FollowedGame, frozenset[str]]:
    """Returns the game, and what its positions show."""
    try:
        from sf.evaluation.play.games.followed_games import FollowedGame  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(f"player {name!r}: {error}: {INSTALL}") from error
    return FollowedGame(name, env_id, options), SHOWN


def _require_copies(name: str, env_id: str, spec: EnvSpec, sees_all: bool) -> None:
    """Raises UsageError for an environment, outside of OpenSpiel, that a search cannot play on.

    sees_all: it may see what the game hides from its players.
    """
    if spec.num_agents > 1:
        reason = f"has {spec.num_agents} agents, and a search outside of OpenSpiel is for one"
    elif not isinstance(spec.action_space, gym.spaces.Discrete):
        reason = f"has the action space {spec.action_space}, and a search chooses among those of one Discrete"
    elif not spec.can_search:
        reason = "is no single Gymnasium environment, which a search could copy"
    elif spec.hides_state and not sees_all:
        reason = "hides a part of its state from the players, and a search sees all of it"
        raise UsageError(f"player {name!r}: {env_id} {reason}: allow that with --search_sees_all true")
    else:
        return
    raise UsageError(f"player {name!r}: {env_id} {reason}: name another player")


def _require_judge(policy: TorchPolicy, name: str, shown: frozenset[str], spec: EnvSpec | None) -> None:
    """Raises UsageError for a policy that cannot say what a position is worth by that position alone.

    shown: the observations that a position has. spec: of the environment, where the policy may be of another.
    """
    reason = None
    if policy.network.state_size:
        reason = "remembers earlier positions (a recurrent core), which a search has not seen"
    elif not policy.has_value:
        reason = "has a central critic, so it cannot say what a position is worth by itself"
    elif not set(policy.flat_obs_space) <= shown:
        keys = ", ".join(sorted(set(policy.flat_obs_space) - shown))
        reason = f"sees what a search cannot show it ({keys})"
    elif spec is not None and not policy.has_rows_of(spec):
        reason = f"was trained with other observations or actions (in {policy.env_id})"
    if reason is not None:
        raise UsageError(f"player {name!r}: its policy {reason}: name another run")
