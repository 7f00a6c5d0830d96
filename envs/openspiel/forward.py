"""Plays OpenSpiel's games on for a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.errors import UsageError
from sf.envs.group import CHANCE, OVER, Positions
from sf.envs.openspiel.games import TensorGame, why_unforeseeable
from sf.envs.openspiel.views import OBSERVATION, Views
from sf.envs.spaces.actions import ACTION_MASK

_MOVERS = {int(pyspiel.PlayerId.CHANCE): CHANCE, int(pyspiel.PlayerId.TERMINAL): OVER}


class OpenSpielModel:
    """Is a `sf.envs.group.ForwardModel` of any number of games; a game begins with `begin`."""

    def __init__(self, env_id: str, tensor_game: TensorGame, seed: int = 0) -> None:
        """seed: of random play. Raises UsageError for a game that cannot be searched."""
        reason = why_not(tensor_game)
        if reason is not None:
            raise UsageError(f"{env_id} {reason}: take another game, or play without a search")
        game = tensor_game.game
        self.num_players: int = game.num_players()
        self.num_actions: int = game.num_distinct_actions()
        self.low, self.high = float(game.min_utility()), float(game.max_utility())
        self.pays_at_end = game.get_type().reward_model == pyspiel.GameType.RewardModel.TERMINAL
        self._observer = tensor_game.make_observer()
        self._views = Views(self.num_players, tensor_game.tensor_shape)
        self._indices = np.eye(self.num_players, dtype=np.float32)
        self._states: dict[int, list[Any]] = {}  # by game and place
        seed %= 2**31  # an int in C++
        self._bots = [pyspiel.make_uniform_random_bot(player, seed) for player in range(self.num_players)]
        self._num_played_out = seed
        if self.pays_at_end:  # a search of one simulation is a playout, at half the time of a game of bots
            evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
            self._playouts = pyspiel.MCTSBot(game, evaluator, 1.0, 1, 1, False, seed, False)

    def begin(self, game: int, state: Any) -> None:
        """Forget a game, and take up another at place 0. state: pyspiel.State, which is not changed."""
        self._states[game] = [state]

    def play(
        self, games: Sequence[int], sources: Sequence[int], actions: Sequence[int], places: Sequence[int]
    ) -> Positions:
        movers, rewards, outcomes, num_choices = [], [], [], []
        choices: list[int] = []
        odds: list[float] = []
        for game, source, action, place in zip(games, sources, actions, places, strict=True):
            states = self._states[game]
            state = states[0]
            if source >= 0:
                state = states[source].child(action)
                assert place == len(states), "positions are made in their order"
                states.append(state)
            mover = state.current_player()
            won = 0.0
            legal: Sequence[int] = ()
            if mover >= 0:
                legal = state.legal_actions()
                odds += [1.0] * len(legal)
            else:
                mover = _MOVERS[mover]
                if mover == CHANCE:
                    outcomes_of_chance = state.chance_outcomes()
                    legal = [outcome for outcome, _ in outcomes_of_chance]
                    odds += [probability for _, probability in outcomes_of_chance]
                else:
                    won = state.player_return(0)
            movers.append(mover)
            outcomes.append(won)
            rewards.append(won if self.pays_at_end or source < 0 else state.player_reward(0))
            num_choices.append(len(legal))
            choices += legal
        return Positions(
            np.array(movers, np.int8),
            np.array(rewards, np.float32),
            np.array(outcomes, np.float32),
            np.array(num_choices, np.int32),
            np.array(choices, np.int32),
            np.array(odds, np.float32),
        )

    def keep(self, game: int, places: np.ndarray) -> None:
        states = self._states[game]
        self._states[game] = [states[place] for place in places.tolist()]

    def show(self, games: Sequence[int], places: Sequence[int], obs: Mapping[str, Any]) -> None:
        observations, masks, indices = obs[OBSERVATION], obs[ACTION_MASK], obs.get(AGENT_INDEX)
        set_from, seen, views = self._observer.set_from, self._observer.tensor, self._views.by_mover
        for row, (game, place) in enumerate(zip(games, places, strict=True)):
            state = self._states[game][place]
            mover = state.current_player()
            view = views[mover][mover]
            set_from(state, mover)
            view.tensor[...] = seen
            observations[row][...] = view.whole
            mask = masks[row]
            mask.fill(0)
            mask[state.legal_actions()] = 1
            if indices is not None:
                indices[row][...] = self._indices[mover]

    def action_name(self, game: int, place: int, action: int) -> str:
        name: str = self._states[game][place].action_to_string(action)
        return name

    def play_out(self, games: Sequence[int], places: Sequence[int]) -> np.ndarray:
        won = []
        for game, place in zip(games, places, strict=True):
            state = self._states[game][place]
            if self.pays_at_end:
                of_mover = self._playouts.mcts_search(state).total_reward
                won.append(-of_mover if state.current_player() == 1 else of_mover)
            else:
                self._num_played_out += 1
                so_far = state.player_return(0)
                won.append(pyspiel.evaluate_bots(state.clone(), self._bots, self._num_played_out)[0] - so_far)
        return np.array(won, np.float32)


def why_not(tensor_game: TensorGame) -> str | None:
    """Returns why a search cannot play this game, as a clause; None: it can."""
    game = tensor_game.game
    reason = why_unforeseeable(tensor_game)
    if reason is None and game.num_players() > 2:
        reason = f"has {game.num_players()} players, and a search is for one or two"
    elif reason is None and game.num_players() == 2 and game.get_type().utility != pyspiel.GameType.Utility.ZERO_SUM:
        reason = "is not zero-sum, and a search takes what one wins for what the other loses"
    return reason
