"""Holds the games of a group as Python sees them: arrays, and calls of what is compiled."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence

import numpy as np

from sf.envs.field_types import require
from sf.envs.rts.engine import ais, compiled, state
from sf.envs.rts.engine.units import UNITS, Unit, table
from sf.envs.rts.settings import GAMES, Settings
from sf.envs.rts.soundness import fault_of

VERSION = 4
"""Of snapshots and replays. It changes with the rules of the engine, so that an old file is refused instead of played
differently."""

_MAGIC = b"sf-rts"


def command_of(ai: str) -> int:
    """Returns what stands for "this AI commands" among the choices of a player."""
    return -1 - ais.AIS.index(ai)


class Games:
    """E games of one kind, each with two sides."""

    def __init__(
        self, settings: Settings, seeds: Sequence[int], num_players: int = 1, units: tuple[Unit, ...] = UNITS
    ) -> None:
        """seeds: of each game. num_players: how many sides are commanded from outside, the first or both."""
        self.settings = settings
        self.num = len(seeds)
        self.num_players = num_players
        self.by_kind = settings.actions == "by_type"
        self.worlds = state.allocate(self.num, table(units), settings.size, settings.room)
        kinds = hashlib.sha256(self.worlds.kinds.tobytes()).hexdigest()[:16]
        self._head = [VERSION, settings.game, settings.size, settings.room, kinds]
        self.seed(seeds)
        self.worlds.games["rules"] = GAMES.index(settings.game)
        self.worlds.games["winner"] = state.DRAW  # not begun
        self.worlds.games["carrier"] = -1
        self._set_times(np.ones(self.num, bool))
        self._goes_on = np.full(self.num, -1, np.int64)
        self._all = np.arange(self.num)
        self._nothing = np.zeros((self.num, 0, 1), np.int64)
        self._rewards = np.zeros((self.num, 2))

    @property
    def winner(self) -> np.ndarray:
        """Returns [E] -1 where the game goes on, else 0, 1, or 2 for a draw."""
        return self.worlds.games["winner"]

    @property
    def ticks(self) -> np.ndarray:
        """Returns the ticks [E] of each game so far."""
        return self.worlds.games["tick"]

    def seed(self, seeds: Sequence[int]) -> None:
        """Random numbers of the games that begin from now on."""
        self.worlds.games["rng"] = np.asarray(seeds, np.uint64)

    def set_ai(self, g: int, player: int, name: str) -> None:
        """Let an AI command a player from the next tick on: one of `sf.envs.rts.engine.ais.AIS`."""
        self.worlds.players[g, player]["ai"] = ais.AIS.index(name)

    def begin(self, which: np.ndarray, helped_ticks: np.ndarray | None = None, helper: str = "simple") -> None:
        """Begin these games [E] anew. helped_ticks: [E], how long an AI plays for player 0 before this returns."""
        self._set_times(which)  # a snapshot may have brought others
        begins = np.where(which, 0 if helped_ticks is None else helped_ticks, -1).astype(np.int64)
        compiled.advance(
            self.worlds, begins, self.settings.extra, ais.AIS.index(helper), self._nothing, False, 0, self._rewards
        )

    def advance(self, choices: np.ndarray, num_ticks: int) -> tuple[np.ndarray, int]:
        """Carry out commands [E, P, H] int64, and let all games go on. Returns rewards [E, 2] and the ticks played.

        Where the first of a player's choices is `command_of` an AI, that one commands it for these ticks.
        """
        if choices.shape[1]:
            is_ai = choices[..., 0] < 0
            self.worlds.players["ai"][:, : choices.shape[1]] = np.where(is_ai, -1 - choices[..., 0], ais.NO_AI)
            choices = np.where(is_ai[..., np.newaxis], 0, choices)
        played = compiled.advance(self.worlds, self._goes_on, 0, 0, choices, self.by_kind, num_ticks, self._rewards)
        return self._rewards.copy(), played

    def watch(self, num_ticks: int) -> int:
        """Let AIs play all games. Returns the number of ticks."""
        return compiled.advance(self.worlds, self._goes_on, 0, 0, self._nothing, False, num_ticks, self._rewards)

    def observe(self, plane_of: np.ndarray, planes: np.ndarray, masks: np.ndarray) -> None:
        """Write what the players see: see `sf.envs.rts.engine.compiled.observe`."""
        compiled.observe(self.worlds, self._all, self.num_players, plane_of, planes, masks)

    def advise(self, asked: Sequence[str], commands: np.ndarray, are_same: np.ndarray) -> None:
        """Write what AIs would do: see `sf.envs.rts.engine.compiled.advise`."""
        numbers = np.array([ais.AIS.index(name) for name in asked], np.int64)
        compiled.advise(self.worlds, self.num_players, numbers, commands, are_same)

    def snapshot(self, g: int) -> bytes:
        """Returns all of one game, compressed; `restore` goes on from it to the bit."""
        return _MAGIC + json.dumps(self._head).encode() + b"\n" + zlib.compress(self._raw(g), 3)

    def digest(self, g: int) -> str:
        """SHA-256 of all of one game."""
        return hashlib.sha256(self._raw(g)).hexdigest()

    def restore(self, g: int, data: bytes) -> None:
        """Raises UsageError for what is no snapshot of such a game, or one of a state that cannot be."""
        head, _, packed = data.partition(b"\n")
        wanted, parts = self._head, self._arrays(g)
        num_bytes = sum(part.nbytes for part in parts)
        try:
            found = json.loads(head.removeprefix(_MAGIC)) if head.startswith(_MAGIC) else None
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(packed, num_bytes + 1) if found == wanted else b""
        except (ValueError, RecursionError, zlib.error):
            found, raw = None, b""
        require(
            found == wanted and len(raw) == num_bytes,
            f"the snapshot has version, game, size, room, units {str(found)[:100]}, and the environment has {wanted}: "
            "restore it into an environment with its game, settings and units",
        )
        read: list[np.ndarray] = []
        offset = 0
        for part in parts:
            read.append(np.frombuffer(raw, part.dtype, part.size, offset).reshape(part.shape))
            offset += part.nbytes
        fault = fault_of(state.Worlds._make([*read, self.worlds.kinds]), self.settings)
        require(fault is None, f"the snapshot is damaged: {fault}; take a new one")
        for part, values in zip(parts, read, strict=True):
            part[...] = values

    def _set_times(self, which: np.ndarray) -> None:
        """Write the ticks of the settings into these games [E]."""
        self.worlds.games["max_ticks"][which] = self.settings.most_ticks
        self.worlds.players["frame_skip"][which] = self.settings.opponent_frame_skip

    def _raw(self, g: int) -> bytes:
        return b"".join(part.tobytes() for part in self._arrays(g))

    def _arrays(self, g: int) -> list[np.ndarray]:
        worlds = self.worlds
        return [worlds.games[g : g + 1], worlds.players[g], worlds.units[g], worlds.cells[g], worlds.ground[g]]
