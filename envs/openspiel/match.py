"""One game of OpenSpiel, from decision to decision: chance between them is drawn here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from sf.envs.errors import UsageError
from sf.envs.openspiel.games import TensorGame
from sf.envs.openspiel.views import ALL_AT_ONCE, Views

_CHANCE = int(pyspiel.PlayerId.CHANCE)
_NOBODY = int(pyspiel.PlayerId.TERMINAL)  # the game is over
_TRAIT_GAMES = 20  # of random play, which show the traits of a game
_MOST_TRAIT_DECISIONS = 3000  # that are looked at; a game of chess has some hundreds
_MOST_GAMES_WITHOUT_DECISION = 1000  # in a row; a hand of blackjack may be over when it is dealt


class Traits(NamedTuple):
    """Says what spares the matches of a game some calls at each decision.

    looks_alike: every player sees the same tensor. pays_at_end: nobody has won anything before a game is over.
    """

    looks_alike: bool = False
    pays_at_end: bool = False


_UNKNOWN = Traits()


class Match:
    """P players, who play one game after another."""

    def __init__(
        self,
        env_id: str,
        tensor_game: TensorGame,
        views: Views,
        seed: int,
        traits: Traits = _UNKNOWN,
    ) -> None:
        """seed: of chance."""
        self.env_id, self.tensor_game = env_id, tensor_game
        self._game = tensor_game.game
        self._observer = tensor_game.make_observer()
        self._views = views
        self._traits = traits
        self._rng = random.Random(seed)
        self.num_players: int = self._game.num_players()
        self._all = range(self.num_players)
        self._nothing = [0.0] * self.num_players
        self._state: Any = None
        self._mover = _NOBODY  # or a player, or ALL_AT_ONCE
        self._legal: list[Sequence[int]] = [()] * self.num_players  # actions of those who act
        self._returns = self._nothing
        self.num_decisions = 0
        self.is_over = True
        self._has_resigned = False

    def start(self) -> None:
        """Begin the next game in which somebody has something to decide."""
        self._has_resigned = False
        for _ in range(_MOST_GAMES_WITHOUT_DECISION):
            self._state = self._game.new_initial_state()
            self._go_on()
            if not self.is_over:
                self._returns = self._nothing
                self.num_decisions = 0
                return
        raise UsageError(f"{self.env_id}: its games end before anybody acts: change its parameters in env_kwargs")

    def look_at(self, state: Any) -> None:
        """Go on from this state of the game, in which somebody acts. The state is not copied."""
        self._state = state
        self._go_on()

    def play(self, choices: Sequence[int], first: int = 0) -> list[float]:
        """Carry out the choice of the mover, or of all. Returns the reward [P] of each player for it.

        first: where the choices of the P players begin.
        Raises UsageError for an action that is not legal, of which OpenSpiel may crash.
        """
        state, mover = self._state, self._mover
        if self._has_resigned:
            self.is_over = True
            self.num_decisions += 1
            lowest, highest = self._game.min_utility(), self._game.max_utility()
            self._returns = [lowest if player == mover else highest for player in self._all]
            return self._returns
        if mover == ALL_AT_ONCE:
            state.apply_actions([self._action(p, choices[first + p]) for p in range(self.num_players)])
        else:
            choice = choices[first + mover]
            state.apply_action(choice if choice in self._legal[mover] else self._action(mover, choice))
        self._go_on()
        self.num_decisions += 1
        if self._traits.pays_at_end and not self.is_over:
            return self._nothing
        # Not `rewards`, which are those of the last action alone: chance may have followed.
        before, self._returns = self._returns, state.returns()
        if self._returns == before:
            return self._nothing
        return [now - then for now, then in zip(self._returns, before, strict=True)]

    def resign(self) -> None:
        """Let the mover lose in the place of its next choice, in a game of two players which pays at its end."""
        self._has_resigned = True

    def show(
        self,
        observations: np.ndarray | Sequence[np.ndarray],
        masks: np.ndarray | Sequence[np.ndarray],
        first: int = 0,
    ) -> None:
        """Write what each player sees [n + 2P] or [C + 2P, H, W], and which actions it may choose [A].

        first: where the rows of the P players begin.
        """
        state, mover, at = self._state, self._mover, first
        set_from, seen = self._observer.set_from, self._observer.tensor
        looks_alike = self._traits.looks_alike
        if looks_alike:
            set_from(state, 0)
            self._views.tensors[mover][...] = seen
        for player, whole, tensor in self._views.by_mover[mover]:
            if not looks_alike:
                set_from(state, player)
                tensor[...] = seen
            observations[at][...] = whole
            masks[at].fill(0)
            at += 1
        for player in self._all if mover == ALL_AT_ONCE else (mover,):
            mask = masks[first + player]
            for action in self._legal[player]:
                mask[action] = 1

    def position(self) -> Any:
        """Returns a copy of the state of the game."""
        return self._state.clone()

    def legal(self, player: int) -> Sequence[int]:
        """Returns the actions that a player may choose now: none where it waits."""
        return self._legal[player] if self._mover in (player, ALL_AT_ONCE) else ()

    def returns(self) -> list[float]:
        """Returns [P] what each player has won in this game so far."""
        return self._returns

    def __str__(self) -> str:
        return str(self._state)

    def _action(self, player: int, choice: int) -> int:
        legal = self._legal[player]
        if choice in legal:
            return choice
        if legal:
            raise UsageError(
                f"{self.env_id}: player {player} chose action {choice}, which is not legal there: a model of your own "
                "has to apply the action_mask, as sf.model.distributions does"
            )
        return 0  # what OpenSpiel expects of a player who has no action where all act at once

    def _go_on(self) -> None:
        """Draw chance until a player acts or the game is over."""
        state = self._state
        mover = state.current_player()
        while mover == _CHANCE:
            state.apply_action(self._drawn(state.chance_outcomes()))
            mover = state.current_player()
        self._mover = mover
        if mover >= 0:
            self._legal[mover] = state.legal_actions()
        elif mover == ALL_AT_ONCE:
            self._legal[:] = [state.legal_actions(p) for p in self._all]
        self.is_over = mover == _NOBODY

    def _drawn(self, outcomes: Sequence[tuple[int, float]]) -> int:
        """One of these actions, each with its probability."""
        left = self._rng.random()
        for action, probability in outcomes:
            left -= probability
            if left < 0:
                return action
        return outcomes[-1][0]  # probabilities that were rounded add up to a little less than 1


def traits_of(tensor_game: TensorGame) -> Traits:
    """Returns what the game says of itself, if random play agrees: some that deny it pay before their end."""
    game_type = tensor_game.game.get_type()
    looks_alike = game_type.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    pays_at_end = game_type.reward_model == pyspiel.GameType.RewardModel.TERMINAL
    if not (looks_alike or pays_at_end):
        return Traits()
    rng, observer, players = random.Random(0), tensor_game.make_observer(), range(tensor_game.game.num_players())
    num_decisions = 0
    for _ in range(_TRAIT_GAMES):
        state = tensor_game.game.new_initial_state()
        while not state.is_terminal() and num_decisions < _MOST_TRAIT_DECISIONS:
            pays_at_end = pays_at_end and not any(state.returns())
            if state.is_chance_node():
                state.apply_action(rng.choice(state.chance_outcomes())[0])
                continue
            if looks_alike:
                observer.set_from(state, 0)
                first = observer.tensor.copy()
                for player in players:
                    observer.set_from(state, player)
                    looks_alike = looks_alike and np.array_equal(observer.tensor, first)
            if state.is_simultaneous_node():
                state.apply_actions([rng.choice(state.legal_actions(player) or [0]) for player in players])
            else:
                state.apply_action(rng.choice(state.legal_actions()))
            num_decisions += 1
    return Traits(looks_alike, pays_at_end)
