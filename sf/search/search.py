"""A search in several games at once, whose leaves are evaluated together.

`Search.run` alternates: `leaves` looks for positions to evaluate, a network or random play says what they are worth,
and `evaluate` hands that back, until `is_done`. A rollout worker does so itself, since it gets the answers as messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sf.envs.group import ForwardModel
from sf.search.forest import Forest, Leaves, Root, SearchRules

GUMBEL, PUCT = "gumbel", "puct"
_LONGEST_LINE = 6  # moves that are shown
_LARGEST_BATCH_SHARE = 8  # of the simulations of a move, this part at most is on its way at once


@dataclass(frozen=True)
class SearchSettings:
    """Says how much is searched for a move.

    root: `GUMBEL` or `PUCT`. playout_share: of the value of a leaf, what random play from there is counted as; the rest
    is the network's. discount: of the policy. batch: of leaves that is worth waiting for, from all games together.
    prior_temperature: divides the policy's logits, so that above 1 the search also tries what the policy hardly would.
    """

    num_simulations: int
    root: str = PUCT
    playout_share: float = 0.0
    discount: float = 1.0
    batch: int = 16
    prior_temperature: float = 1.0

    def rules(self, model: ForwardModel) -> SearchRules:
        return SearchRules(
            is_gumbel=self.root == GUMBEL,
            num_players=model.num_players,
            discount=self.discount,
            low=model.low,
            high=model.high,
            is_proving=model.num_players > 1 and model.pays_at_end,
        )


class Asked(NamedTuple):
    """Says which positions are to be evaluated: game, node and mover are [M] int32."""

    game: np.ndarray
    node: np.ndarray
    mover: np.ndarray


Judge = Callable[[Asked], tuple[np.ndarray, np.ndarray]]
"""Returns logits [M, A] and values [M] of positions, see `Search.evaluate`."""


class Search:
    """Searches G games."""

    def __init__(self, model: ForwardModel, settings: SearchSettings, num_games: int) -> None:
        self.model = model
        self._settings = settings
        self._forest = Forest(settings.rules(model), num_games)
        self._games = np.empty(0, np.int32)  # that are searched
        self._new: list[Leaves] = []  # roots that are to be described
        self._is_known = np.zeros(num_games, bool)  # [G] the root is evaluated
        self._ordered = np.full(num_games, settings.num_simulations, np.int64)  # [G] simulations of a move

    @property
    def num_bytes(self) -> int:
        """Returns the memory that the trees have."""
        return self._forest.num_bytes

    @property
    def is_done(self) -> bool:
        """Returns whether all games have had their simulations."""
        return not len(self._games)

    def begin(self, games: Sequence[int], num_simulations: np.ndarray | None = None) -> None:
        """Search these games for a move. Those that `descend` has not kept begin with a new tree, from place 0 of the
        model. num_simulations: [len(games)]; None: those of the settings."""
        self._games = np.array(games, np.int32)
        self._ordered[self._games] = self._settings.num_simulations if num_simulations is None else num_simulations
        for game in games:
            if not self._is_known[game]:
                self._new.append(self._forest.plant(game))
            else:
                self._forest.order(game, int(self._ordered[game]))

    def run(self, games: Sequence[int], judge: Judge) -> None:
        """Search these games for a move, from the beginning to the end."""
        self.begin(games)
        while not self.is_done:
            asked = self.leaves()
            if len(asked.game):
                self.evaluate(asked, *judge(asked))

    def leaves(self) -> Asked:
        """Go on to positions that are to be evaluated. They may be none, of games that are nearly decided."""
        new = Leaves(*map(np.concatenate, zip(*self._new, strict=True))) if self._new else self._selected()
        self._new = []
        found = []
        while len(new.game):
            positions = self.model.play(*(part.tolist() for part in (new.game, new.parent, new.action, new.node)))
            drawn, asked = self._forest.describe(new, positions)
            found.append(Asked(new.game[asked], new.node[asked], positions.mover[asked]))
            new = drawn
        return Asked(*map(np.concatenate, zip(*found, strict=True))) if found else Asked(new.game, new.node, new.game)

    def evaluate(self, asked: Asked, logits: np.ndarray, values: np.ndarray) -> None:
        """logits: [M, A] float32 of all actions. values: [M] float32, for whoever moves there, by the network."""
        share = self._settings.playout_share
        if share > 0.0:
            by_chance = self.model.play_out(asked.game.tolist(), asked.node.tolist())
            values = (1.0 - share) * values + share * np.where(asked.mover == 1, -by_chance, by_chance)
        self._forest.evaluate(asked.game, asked.node, logits / self._settings.prior_temperature, values)
        for game in asked.game[asked.node == 0].tolist():
            self._is_known[game] = True
            self._forest.order(game, int(self._ordered[game]))
        self._forget_done()

    def is_known(self, game: int) -> bool:
        """Returns whether a tree is kept from an earlier move."""
        return bool(self._is_known[game])

    def disturb(self, game: int, noise: np.ndarray, share: float = 0.0) -> None:
        """See `Forest.disturb`."""
        self._forest.disturb(game, noise, share)

    def depth(self, asked: Asked) -> int:
        """Returns how many moves behind the roots these positions are, all together."""
        return self._forest.depth(asked.game, asked.node)

    def num_simulations(self, game: int) -> int:
        """Returns how many simulations the tree of a game has, those included that were kept from earlier moves."""
        return self._forest.num_visits(game) - 1 if self._is_known[game] else 0

    def mover(self, game: int) -> int:
        return self._forest.mover(game)

    def num_choices(self, game: int) -> int:
        return self._forest.num_choices(game)

    def read(self, game: int) -> Root:
        return self._forest.read(game)

    def line(self, game: int, action: int) -> list[str]:
        """Returns the moves that are expected after an action at the root, itself the first, by their names."""
        nodes, actions = self._forest.line(game, action, _LONGEST_LINE)
        return [self.model.action_name(game, *each) for each in zip(nodes.tolist(), actions.tolist(), strict=True)]

    def names(self, game: int, actions: Sequence[int]) -> list[str]:
        """Returns the names of actions at the root."""
        return [self.model.action_name(game, 0, action) for action in actions]

    def descend(self, game: int, action: int) -> None:
        """A move was made in a game: go on with what is known behind it, if the rules of the root allow that."""
        if self._settings.root != PUCT:
            self.forget(game)
            return
        kept = self._forest.descend(game, action)
        self._is_known[game] = len(kept) > 0
        if len(kept):
            self.model.keep(game, kept)

    def forget(self, game: int) -> None:
        """Forget the tree of a game, where another game begins or its moves are not known."""
        self._is_known[game] = False

    def _selected(self) -> Leaves:
        num = len(self._games)
        fewest = int(self._ordered[self._games].min())
        most = max(1, min(self._settings.batch // num, fewest // _LARGEST_BATCH_SHARE))
        found = self._forest.select(self._games, most)
        if not len(found.game):
            self._forget_done()
        return found

    def _forget_done(self) -> None:
        is_left = [not self._is_known[game] or self._forest.num_left(game) > 0 for game in self._games.tolist()]
        self._games = self._games[is_left]
