"""Enumerates all information states of a game, with what the environment shows there: a policy is known from them.

An information state is all that a player knows when it acts. The strategy of a player is a distribution over actions
for each of its own, and how far it can be exploited follows from these numbers alone.
`sf.evaluation.play.exploitability` fills them in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.errors import UsageError
from sf.envs.openspiel.games import TensorGame, load
from sf.envs.openspiel.match import Match
from sf.envs.openspiel.views import OBSERVATION, Views
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK

MOST_INFORMATION_STATES = 100_000
MOST_HISTORIES = 500_000
"""Positions of the game, by the way to them. OpenSpiel needs about 8 us and 1.5 KB for each."""

_MOST_NUMBERS = 50_000_000  # of all observations and masks: 200 MB
_MOST_CHARACTERS = 10_000_000  # of the names of all information states: in long games each takes long to make
_NOTHING = -1
_SMALLER = (
    "change the parameters that set its size in env_kwargs, take a smaller game, or measure by a trained response "
    "(sf-exploit) or with sf-eval --against"
)


@dataclass(frozen=True)
class InformationStates:
    """The S information states of a game of P players and A actions. Each comes after those that lead to it.

    A sequence is an information state and an action that its player takes there: number s * A + a.
    """

    game: Any  # pyspiel.Game: of turns, also where players act at once
    keys: list[str]  # [S] OpenSpiel's names
    player: np.ndarray  # [S] int64, who acts
    sequence_before: np.ndarray  # [S] int64, of the same player; -1: it has not acted before
    obs: Mapping[str, np.ndarray]  # {key: [S, ...]} as a group of environments writes it
    _legal: list[list[int]] = field(repr=False)  # [S] actions

    @property
    def num(self) -> int:
        return len(self.keys)

    @property
    def num_players(self) -> int:
        return int(self.game.num_players())

    def uniform(self) -> np.ndarray:
        """Returns [S, A] the probabilities of random legal moves."""
        mask = self.obs[ACTION_MASK].astype(np.float64)
        return mask / mask.sum(axis=1, keepdims=True)

    def nash_conv(self, probabilities: np.ndarray) -> float:
        """The sum over the players of what each could gain by a best response, if the others play `probabilities`.

        probabilities: [S, A] of the actions, 0 for those that are not legal. Lanctot et al. 2017, "A unified
        game-theoretic approach to multiagent reinforcement learning", section 2; computed by OpenSpiel.
        """
        return float(pyspiel.nash_conv(self.game, self._policy(probabilities)))

    def best_response_value(self, player: int, probabilities: np.ndarray) -> float:
        """Returns what the player wins on average by a best response to the others, who play `probabilities` [S, A]."""
        policy = self._policy(probabilities)  # which OpenSpiel keeps no reference to
        response = pyspiel.TabularBestResponse(self.game, player, policy)
        return float(response.value_from_state(self.game.new_initial_state()))

    def returns(self, probabilities: Sequence[np.ndarray]) -> np.ndarray:
        """Returns [P] what each player wins on average, if player p plays `probabilities[p]` [S, A]."""
        policies = [self._policy(each) for each in probabilities]
        no_limit = -1  # of the depth
        return np.array(pyspiel.expected_returns(self.game.new_initial_state(), policies, no_limit, True))

    def _policy(self, probabilities: np.ndarray) -> Any:
        assert probabilities.shape == self.obs[ACTION_MASK].shape, probabilities.shape
        rows = probabilities.astype(np.float64)
        rows /= rows.sum(axis=1, keepdims=True)  # float32 sums to 1 within 1e-7
        return pyspiel.TabularPolicy(
            {
                key: list(zip(legal, row[legal].tolist(), strict=True))
                for key, legal, row in zip(self.keys, self._legal, rows, strict=True)
            }
        )


def find(env_id: str, options: EnvOptions) -> InformationStates:
    """Raises UsageError for a game that cannot be enumerated, or in which nobody can be exploited."""
    tensor_game = load(env_id, options.kwargs, seed=0)
    refusal = _refusal(tensor_game.game)
    if refusal is not None:
        raise UsageError(f"exploitability: {env_id} {refusal}")
    if options.share_reward == "all":
        raise UsageError("exploitability: share_reward is all, which makes another game than OpenSpiel measures")
    states = _Walk(env_id, tensor_game).found()
    if options.show_agent is not True:
        return states
    indices = np.eye(states.num_players, dtype=np.float32)
    return replace(states, obs={**states.obs, AGENT_INDEX: indices[states.player]})


def _refusal(game: Any) -> str | None:
    """Returns why the exploitability of this game cannot be computed, and what to do instead."""
    game_type = game.get_type()
    if game.num_players() == 1:
        return "has one player, who has nobody to be exploited by: sf-eval measures its return"
    if game_type.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        return "draws its chance itself, so its probabilities are not known: take another game"
    if not game_type.provides_information_state_string:
        return "does not say what a player knows (information_state_string): take another game"
    return None


class _Node(NamedTuple):
    """A history of the game."""

    state: Any  # of the game of turns
    seen: Any  # of the game itself: where players act at once, it stays until all have chosen
    chosen: tuple[int, ...]  # actions of the first players, where they act at once
    last: tuple[int, ...]  # [P] the sequence of each player


class _Walk:
    """Through all histories of a game, once."""

    def __init__(self, env_id: str, tensor_game: TensorGame) -> None:
        self._what = f"exploitability: {env_id}"
        self._game = tensor_game.game
        is_of_turns = self._game.get_type().dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        self._turns = self._game if is_of_turns else pyspiel.convert_to_turn_based(self._game)
        self._num_players, self._num_actions = self._game.num_players(), self._game.num_distinct_actions()
        views = Views(self._num_players, tensor_game.tensor_shape)
        self._match = Match(env_id, tensor_game, views, seed=0)
        self._obs = np.zeros((self._num_players, *views.shape), np.float32)  # [P, ...] at the present history
        self._masks = np.zeros((self._num_players, self._num_actions), np.int8)  # [P, A]
        self._most = min(MOST_INFORMATION_STATES, _MOST_NUMBERS // (math.prod(views.shape) + self._num_actions))
        self._idxs: dict[str, int] = {}  # of information states
        self._characters = 0  # of their names
        self._players: list[int] = []
        self._sequences_before: list[int] = []
        self._seen: list[tuple[np.ndarray, np.ndarray]] = []  # observation and mask
        self._legal: list[list[int]] = []

    def found(self) -> InformationStates:
        """Raises UsageError where there are too many, or one has not a single past and a single observation."""
        nobody = (_NOTHING,) * self._num_players
        root = _Node(self._turns.new_initial_state(), self._game.new_initial_state(), (), nobody)
        path = [iter((root,))]  # depth first, and no node is made before its turn: a history of go is large
        num_histories = 0
        while path:
            node = next(path[-1], None)
            if node is None:
                path.pop()
                continue
            num_histories += 1
            if num_histories > MOST_HISTORIES or len(self._idxs) > self._most or self._characters > _MOST_CHARACTERS:
                raise UsageError(
                    f"{self._what} is too large: {num_histories:,} histories with "
                    f"{len(self._idxs):,} information states are not all of it: {_SMALLER}"
                )
            if node.state.is_chance_node():
                path.append(self._chances(node))
            elif not node.state.is_terminal():
                path.append(self._decisions(node))
        observations, masks = zip(*self._seen, strict=True)
        return InformationStates(
            game=self._turns,
            keys=list(self._idxs),
            player=np.array(self._players),
            sequence_before=np.array(self._sequences_before),
            obs={OBSERVATION: np.stack(observations), ACTION_MASK: np.stack(masks)},
            _legal=self._legal,
        )

    def _chances(self, node: _Node) -> Iterator[_Node]:
        """Yields what follows on each outcome of chance."""
        for action, _ in node.state.chance_outcomes():
            yield node._replace(state=node.state.child(action), seen=node.seen.child(action))

    def _decisions(self, node: _Node) -> Iterator[_Node]:
        """Yields what follows on each action of the player who acts."""
        state, player = node.state, node.state.current_player()
        idx = self._note(node, player)
        for action in self._legal[idx]:
            last = list(node.last)
            last[player] = idx * self._num_actions + action
            chosen, seen = (), node.seen
            if seen.is_simultaneous_node():
                chosen = (*node.chosen, *(0,) * (player - len(node.chosen)), action)  # 0: who has no action
                if not any(seen.legal_actions(p) for p in range(player + 1, self._num_players)):
                    seen = seen.clone()
                    seen.apply_actions([*chosen, *(0,) * (self._num_players - len(chosen))])
                    chosen = ()
            else:
                seen = seen.child(action)
            yield _Node(state.child(action), seen, chosen, tuple(last))

    def _note(self, node: _Node, player: int) -> int:
        """Returns the number of the information state."""
        key = node.state.information_state_string(player)
        self._match.look_at(node.seen)
        self._match.show(self._obs, self._masks)
        idx = self._idxs.setdefault(key, len(self._idxs))
        if idx == len(self._players):
            self._characters += len(key)
            self._players.append(player)
            self._sequences_before.append(node.last[player])
            self._seen.append((self._obs[player].copy(), self._masks[player].copy()))
            self._legal.append(node.state.legal_actions())
        elif self._players[idx] != player:
            raise UsageError(
                f"{self._what} calls information states of two players alike, and OpenSpiel measures "
                "by their names: take another game"
            )
        elif self._sequences_before[idx] != node.last[player]:
            raise UsageError(
                f"{self._what} lets its players forget (one information state has several pasts), "
                "and a best response is known only where they have perfect recall: take another game"
            )
        elif not np.array_equal(self._seen[idx][0], self._obs[player]):
            raise UsageError(
                f"{self._what} shows its players more than their information states say (two "
                "observations of one): take another tensor in env_kwargs, or another game"
            )
        return idx
