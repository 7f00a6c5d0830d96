"""Plays games against an AI on for a search, in copies inside the compiled engine.

A search sees the whole state of a game, what the fog hides from the player as well. Nothing but the AI `random` draws
random numbers while a game goes on; against it, a decision leads to chance with `NUM_OUTCOMES` samples of what may
follow. All copies draw other numbers than the game itself will.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sf.envs.group import CHANCE, OVER, ObsRows, Positions
from sf.envs.rts.controls import OBSERVATION, Controls
from sf.envs.rts.engine import ais, compiled, playing_on
from sf.envs.rts.engine.state import NOBODY, Worlds, allocate
from sf.envs.rts.settings import Settings
from sf.envs.spaces.actions import ACTION_MASK

NUM_OUTCOMES = 8
MOST_TICKS = 6000  # of random play; what comes behind them does not count
_SPARE = 0  # the copy in which random play goes on
_FIRST_CAPACITY = 64


class Game(NamedTuple):
    """Names a game of a group. planes: what its player sees, [history * C, S, S] int8."""

    worlds: Worlds
    number: int
    planes: np.ndarray


class _Place(NamedTuple):
    """Holds a position. entry: of the copy of the game. action: in that copy, whose outcome chance decides; None: the
    copy itself is the position."""

    entry: int
    action: int | None = None


class RtsModel:
    """Is a `sf.envs.group.ForwardModel` of games of one player with a Discrete action space.

    All positions are copies in the arrays of one `Worlds`, whose entries are used again once a game has begun anew.
    num_ticks: that were played in all copies.
    """

    num_players = 1
    low = high = 0.0  # not known, and not used for one player
    pays_at_end = False

    def __init__(self, settings: Settings, controls: Controls, kinds: np.ndarray, seed: int) -> None:
        """kinds: [K], see `sf.envs.rts.engine.units`. seed: of chance and of random play."""
        assert controls.is_single
        playing_on.warm_up()
        self._settings = settings
        self._controls = controls
        (self.num_actions,) = controls.head_sizes
        self._num_masked = self.num_actions if controls.has_mask else 0
        self._rng = np.random.default_rng(seed)
        self._worlds = allocate(_FIRST_CAPACITY, kinds, settings.size, settings.room)
        self._free = list(range(_SPARE + 1, _FIRST_CAPACITY))
        self._places: dict[int, list[_Place]] = {}  # by game
        self._against_random: set[int] = set()  # games
        self.num_ticks = 0
        num_planes = len(controls.plane_names)
        # [N, history * C, S, S] what the player sees in each entry. Without a history it is drawn when it is asked for.
        shape = (_FIRST_CAPACITY, settings.history * num_planes, settings.size, settings.size)
        self._seen = np.zeros(shape, np.int8) if settings.history > 1 else None

    def begin(self, game: int, state: Game) -> None:
        self._release({place.entry for place in self._places.pop(game, ())})
        entry = self._take()
        for own, theirs in zip(self._worlds[:-1], state.worlds[:-1], strict=True):
            own[entry] = theirs[state.number]
        if self._seen is not None:
            self._seen[entry] = state.planes
        self._places[game] = [_Place(entry)]
        self._against_random.discard(game)
        if self._worlds.players[entry, 1]["ai"] == ais.RANDOM:
            self._against_random.add(game)

    def play(
        self, games: Sequence[int], sources: Sequence[int], actions: Sequence[int], places: Sequence[int]
    ) -> Positions:
        befores, afters, done = [], [], []
        is_chance = np.zeros(len(games), bool)
        for row, (game, source, action, place) in enumerate(zip(games, sources, actions, places, strict=True)):
            known = self._places[game]
            before = known[place if source < 0 else source]
            after, what = before.entry, playing_on.NOTHING
            if source >= 0:
                assert place == len(known), "positions are made in their order"
                is_chance[row] = before.action is None and game in self._against_random and self._draws(before.entry)
                if is_chance[row]:
                    known.append(_Place(before.entry, action))
                else:
                    after, what = self._take(), action if before.action is None else before.action
                    known.append(_Place(after))
            befores.append(before.entry)
            afters.append(after)
            done.append(what)
        rewards, masks = self._play_on(befores, afters, done)
        if self._seen is not None:
            self._look(befores, afters, done)
        is_over = self._worlds.games["winner"][afters] != NOBODY
        can = np.zeros((len(games), max(self.num_actions, NUM_OUTCOMES)), bool)  # [M, A] or of chance
        can[:, : self.num_actions] = masks if self._num_masked else True
        can[is_chance] = np.arange(can.shape[1]) < NUM_OUTCOMES
        can[is_over] = False
        num_choices = can.sum(1, dtype=np.int32)
        return Positions(
            np.where(is_over, OVER, np.where(is_chance, CHANCE, 0)).astype(np.int8),
            rewards.astype(np.float32),
            np.zeros(len(games), np.float32),
            num_choices,
            np.nonzero(can)[1].astype(np.int32),
            np.repeat(1.0 / np.maximum(num_choices, 1), num_choices).astype(np.float32),
        )

    def keep(self, game: int, places: np.ndarray) -> None:
        known = self._places[game]
        kept = [known[place] for place in places.tolist()]
        self._release({place.entry for place in known} - {place.entry for place in kept})
        self._places[game] = kept

    def show(self, games: Sequence[int], places: Sequence[int], obs: ObsRows) -> None:
        entries = self._entries(games, places)
        planes, masks = self._observed(entries)
        if self._seen is not None:
            planes = self._seen[entries]
        for row, seen in zip(obs[OBSERVATION if self._num_masked else "obs"], planes, strict=False):
            row[...] = seen
        if self._num_masked:
            for row, mask in zip(obs[ACTION_MASK], masks, strict=False):
                row[...] = mask

    def play_out(self, games: Sequence[int], places: Sequence[int]) -> np.ndarray:
        """Plays `MOST_TICKS` at most."""
        num = len(games)
        rewards, _ = self._play_on(self._entries(games, places), [_SPARE] * num, [playing_on.RANDOM] * num)
        return rewards.astype(np.float32)

    def action_name(self, game: int, place: int, action: int) -> str:
        is_position = self._places[game][place].action is None
        return self._controls.action_names[action] if is_position else f"chance {action}"

    def _entries(self, games: Sequence[int], places: Sequence[int]) -> list[int]:
        return [self._places[game][place].entry for game, place in zip(games, places, strict=True)]

    def _play_on(self, sources: list[int], targets: list[int], actions: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Returns what player 0 was paid, [M] float64, and may do then, [M, A] int8, or [M, 0] where all is allowed."""
        rewards, masks = np.zeros(len(sources)), np.zeros((len(sources), self._num_masked), np.int8)
        seeds = self._rng.integers(2**64, size=len(sources), dtype=np.uint64)
        numbers = (np.array(each, np.int64) for each in (sources, targets, actions))
        ticks = self._settings.skip, MOST_TICKS
        self.num_ticks += playing_on.play_on(self._worlds, *numbers, seeds, *ticks, self.num_actions, masks, rewards)
        return rewards, masks

    def _draws(self, entry: int) -> bool:
        """Returns whether the AI commands in the next decision."""
        ticks, skip = int(self._worlds.games["tick"][entry]), int(self._worlds.players[entry, 1]["frame_skip"])
        return (ticks + self._settings.skip) // skip > ticks // skip

    def _look(self, sources: list[int], targets: list[int], actions: list[int]) -> None:
        """Put what the player sees in new positions before what it has seen."""
        assert self._seen is not None
        new = np.array(actions) != playing_on.NOTHING
        befores, afters = np.array(sources)[new], np.array(targets)[new]
        now, _ = self._observed(afters)
        self._seen[afters] = np.concatenate((now, self._seen[befores, : -now.shape[1]]), axis=1)

    def _observed(self, entries: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the planes [M, C, S, S] int8 that the player sees now, and the masks [M, A] or [M, 0]."""
        side = self._settings.size
        planes = np.zeros((len(entries), 1, len(self._controls.plane_names), side, side), np.int8)
        masks = np.zeros((len(entries), 1, self._num_masked), np.int8)
        which = np.array(entries, np.int64)
        compiled.observe(self._worlds, which, 1, self._controls.plane_of, planes, masks)
        return planes[:, 0], masks[:, 0]

    def _take(self) -> int:
        """Returns an entry that nothing uses. There are twice as many where all are used."""
        if not self._free:
            num, settings = len(self._worlds.games), self._settings
            larger = allocate(2 * num, self._worlds.kinds, settings.size, settings.room)
            for new, old in zip(larger[:-1], self._worlds[:-1], strict=True):
                new[:num] = old
            self._worlds = larger
            if self._seen is not None:
                self._seen = np.concatenate((self._seen, np.zeros_like(self._seen)))
            self._free = list(range(num, 2 * num))
        return self._free.pop()

    def _release(self, entries: set[int]) -> None:
        self._free.extend(entries)
