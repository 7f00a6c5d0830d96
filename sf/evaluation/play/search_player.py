"""Players that look ahead: `search:N` by random play, `search:N:RUN` with the policy of a run.

They need the state of the game, which they know by following it (`sf.evaluation.play.following`). The leaves of all
games that wait for a move are evaluated together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sf.config.trust import SEARCH
from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.errors import UsageError
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.openspiel.forward import OpenSpielModel
from sf.envs.openspiel.games import load
from sf.envs.openspiel.views import OBSERVATION
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.following import Follower
from sf.evaluation.play.named_checkpoint import find_trusted
from sf.evaluation.play.player import Actions, Obs
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.search.search import PUCT, Asked, Root, Search, SearchSettings
from sf.storage import checkpoint
from sf.storage.zoo.places import located

MOST_SIMULATIONS = 1_000_000
_SHOWN = {OBSERVATION, ACTION_MASK, AGENT_INDEX}  # what a forward model shows of a position


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
        self, name: str, env_id: str, options: EnvOptions, policy: bytes | None, root: str = PUCT, device: str = "cpu"
    ) -> None:
        """policy: the content of its checkpoint. Raises UsageError for a game that it cannot search, and for a policy
        that cannot evaluate positions."""
        if not env_id.startswith(OPENSPIEL):
            raise UsageError(f"player {name!r} searches games of OpenSpiel, and env is {env_id}: name another player")
        self._name = name
        self._env_id = env_id
        self._tensor_game = load(env_id, options.kwargs, seed=0)
        OpenSpielModel(env_id, self._tensor_game)  # a game that it cannot search is refused now
        self._policy: TorchPolicy | None = None
        discount = 1.0
        if policy is not None:
            self._policy = TorchPolicy(checkpoint.decode(policy), name, device)
            _require_judge(self._policy, name)
            discount = self._policy.config.learner.gamma
        num_simulations = SearchName.of(name).num_simulations
        self._settings = SearchSettings(num_simulations, root, float(policy is None), discount)

    def actors(self, num_actors: int, seed: int) -> SearchActors:
        model = OpenSpielModel(self._env_id, self._tensor_game)
        model.reseed(seed)
        followers = [Follower(self._name, self._tensor_game) for _ in range(num_actors)]
        return SearchActors(model, self._settings, followers, self._policy, seed)


class SearchActors:
    """N actors that search, each in a game of its own."""

    def __init__(
        self,
        model: OpenSpielModel,
        settings: SearchSettings,
        followers: list[Follower],
        policy: TorchPolicy | None,
        seed: int,
    ) -> None:
        self._model = model
        self._search = Search(model, settings, len(followers))
        self._followers = followers
        self._policy = policy
        self._rng = np.random.default_rng(seed)
        self._histories: list[list[int] | None] = [None] * len(followers)  # of the roots of the trees
        self.root: dict[int, Root] = {}  # of the last move of each actor, for whoever wants to look

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        actors = np.arange(len(first)) if who is None else who
        discrete = np.zeros((len(actors), 1), np.int32)
        values = np.full(len(actors), np.nan, np.float32)
        searched: dict[int, int] = {}  # the row of each actor
        for row, n in enumerate(actors.tolist()):
            follower = self._followers[n]
            if first[row]:
                follower.start()
                self._histories[n] = None
            state = follower.look(obs[OBSERVATION][row])
            legal = np.flatnonzero(obs[ACTION_MASK][row])
            if not len(legal):  # it is not its turn
                continue
            if state is None:
                discrete[row] = self._rng.choice(legal)
                continue
            self._take_up(n, state)
            searched[n] = row
        if searched:
            self._look_ahead(list(searched))
        for n, row in searched.items():
            root = self.root[n] = self._search.read(n)
            discrete[row] = move = best_move(root)
            values[row] = root.root_value
            self._followers[n].play(move)
        return Actions(discrete, np.zeros((len(actors), 0), np.float32), values)

    def _take_up(self, n: int, state: object) -> None:
        """Go on with the tree of the last move, where the moves since then are in it."""
        history = state.history()  # type: ignore[attr-defined]  # pyspiel.State
        before = self._histories[n]
        if before is not None and history[: len(before)] == before:
            for action in history[len(before) :]:
                self._search.descend(n, action)
                if not self._search.is_known(n):
                    break
        else:
            self._search.forget(n)
        if not self._search.is_known(n):
            self._model.begin(n, state)
        self._histories[n] = history

    def _look_ahead(self, games: list[int]) -> None:
        self._search.begin(games)
        while not self._search.is_done:
            asked = self._search.leaves()
            if len(asked.game):
                logits, values = self._judged(asked)
                self._search.evaluate(asked, logits, values)

    def _judged(self, asked: Asked) -> tuple[np.ndarray, np.ndarray]:
        """Returns logits [M, A] and values [M] of positions."""
        num = len(asked.game)
        if self._policy is None:
            return np.zeros((num, self._model.num_actions), np.float32), np.zeros(num, np.float32)
        obs = obs_arrays(self._policy.flat_obs_space, num)
        self._model.show(asked.game.tolist(), asked.node.tolist(), obs)
        return self._policy.judged(obs)


def best_move(root: Root) -> int:
    """Returns the choice with the largest score, but one that wins for certain before it, and none that loses."""
    return int(root.action[np.lexsort((root.score, root.certain))[-1]])


def _require_judge(policy: TorchPolicy, name: str) -> None:
    """Raises UsageError for a policy that cannot say what a position is worth by that position alone."""
    reason = None
    if policy.network.state_size:
        reason = "remembers earlier positions (a recurrent core), which a search has not seen"
    elif not policy.has_value:
        reason = "has a central critic, so it cannot say what a position is worth by itself"
    elif not set(policy.flat_obs_space) <= _SHOWN:
        keys = ", ".join(sorted(set(policy.flat_obs_space) - _SHOWN))
        reason = f"sees what a search cannot show it ({keys})"
    if reason is not None:
        raise UsageError(f"player {name!r}: its policy {reason}: name another run")
