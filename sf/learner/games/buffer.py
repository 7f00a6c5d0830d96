"""The buffer of games: the positions of the latest games that have ended, from which batches are drawn.

The buffer is in shared memory, so a learner that dies leaves it whole to its successor. A file beside the checkpoints
keeps it for a run that is resumed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sf.envs.errors import UsageError
from sf.shared.kept_games import COUNTS, position_arrays
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.system.arrays import SharedArrays
from sf.system.messages import say

FILE = "games.safetensors"  # in the directory of the checkpoints


class GameBuffer:
    """Keeps games, the oldest of which make room. Only one process may write. Its threads may do so at any time.

    A position is worth `samples_per_position` samples, which is the credit of the learner. What was not drawn of a
    position before it is gone is forgone, but for the samples of one iteration.
    """

    def __init__(self, arrays: SharedArrays, samples_per_position: float, samples_per_iteration: int = 0) -> None:
        """arrays: see `sf.shared.kept_games.allocate_games`."""
        self._arrays, self._positions = arrays, position_arrays(arrays)
        self._length = arrays["length"]
        self._samples_per_position, self._samples_per_iteration = samples_per_position, samples_per_iteration
        self._capacity = len(next(iter(self._positions.values())))
        self._lock = threading.Lock()

    @property
    def num_games(self) -> int:
        """Returns how many games are in it, each as one of its agents has seen it."""
        counts = self._counts()
        return int(counts["end_game"] - counts["first_game"])

    @property
    def num_games_ended(self) -> int:
        """Returns how many games have come in all."""
        return int(self._counts()["end_game"])

    @property
    def num_positions(self) -> int:
        counts = self._counts()
        return int(counts["end_position"] - counts["first_position"])

    @property
    def credit(self) -> float:
        """Returns how many samples may be drawn."""
        return self._counts()["credit"]

    @property
    def samples_per_position(self) -> float:
        """Returns how many samples were drawn of each position that has come, as a mean."""
        counts = self._counts()
        return counts["num_drawn"] / max(1.0, counts["end_position"])

    def add(self, game: Mapping[str, np.ndarray]) -> None:
        """Add a game, [D, ...] by field, in the place of the oldest. One that is longer than the buffer is left out."""
        with self._lock:
            self._add(game)

    def draw(self, num: int, key: tuple[int, ...], num_times: int = 1) -> dict[str, np.ndarray]:
        """Returns positions that are drawn uniformly, with replacement, [num, ...] by field.

        key: of the random numbers, which also depend on how many samples were drawn before. num_times: each of these
        is trained on.
        """
        with self._lock:
            counts, drawn = self._counts(), num * num_times
            first, end = int(counts["first_position"]), int(counts["end_position"])
            rng = np.random.default_rng((*key, int(counts["num_drawn"])))
            at = rng.integers(first, end, size=num) % self._capacity
            self._write({**counts, "num_drawn": counts["num_drawn"] + drawn, "credit": counts["credit"] - drawn})
            return {name: array[at] for name, array in self._positions.items()}

    def save(self, directory: Path) -> None:
        """Write it beside the checkpoints. Raises OSError."""
        with self._lock:
            counts = self._counts()
            at = np.arange(int(counts["first_position"]), int(counts["end_position"])) % self._capacity
            games = np.arange(int(counts["first_game"]), int(counts["end_game"])) % len(self._length)
            tensors = {name: torch.from_numpy(array[at]) for name, array in self._positions.items()}
            lengths = {"length": torch.from_numpy(self._length[games])}
        checkpoint.write(directory / FILE, Checkpoint({**tensors, **lengths}, {"counts": counts}))

    def load_if_empty(self, directory: Path) -> None:
        """Go on with what was saved there, in a run that is resumed. A file that cannot be used is left alone."""
        path = directory / FILE
        if self.num_games_ended or not path.exists():
            return
        try:
            saved = checkpoint.load(path)
            self._load(saved.tensors, saved.state["counts"])
        except (OSError, ValueError, KeyError) as error:
            say(f"the buffer of games begins empty: {path} cannot be used ({error})")

    def _add(self, game: Mapping[str, np.ndarray]) -> None:
        counts, num = self._counts(), len(next(iter(game.values())))
        if num > self._capacity:
            return
        first_position, end_position = int(counts["first_position"]), int(counts["end_position"])
        first_game, end_game = int(counts["first_game"]), int(counts["end_game"])
        while end_position + num - first_position > self._capacity or end_game - first_game >= len(self._length):
            first_position += int(self._length[first_game % len(self._length)])
            first_game += 1
        left = {"first_position": first_position, "first_game": first_game}
        self._write({**counts, **left})  # before anything of it is overwritten
        at = np.arange(end_position, end_position + num) % self._capacity
        for name, array in self._positions.items():
            array[at] = game[name]
        self._length[end_game % len(self._length)] = num
        end_position += num
        most = max(self._samples_per_position * (end_position - first_position), self._samples_per_iteration)
        credit = min(counts["credit"] + self._samples_per_position * num, most)
        come = {"end_position": end_position, "end_game": end_game + 1, "credit": credit}
        self._write({**counts, **left, **come})

    def _load(self, tensors: Mapping[str, torch.Tensor], counts: Mapping[str, Any]) -> None:
        """Raises ValueError where these are positions of another run."""
        for name, array in self._positions.items():
            found = tensors[name].numpy()
            if found.shape[1:] != array.shape[1:] or found.dtype != array.dtype:
                raise UsageError(
                    f"its {name} is {found.dtype} {found.shape[1:]}, and {array.dtype} {array.shape[1:]} here"
                )
        lengths = tensors["length"].tolist()
        # So that what follows is numbered as it was then.
        before = {"position": counts["end_position"] - sum(lengths), "game": counts["end_game"] - len(lengths)}
        self._write({f"{end}_{of}": number for of, number in before.items() for end in ("first", "end")})
        begin = 0
        for length in lengths:
            self.add({name: tensors[name].numpy()[begin : begin + length] for name in self._positions})
            begin += length
        self._write({**self._counts(), "num_drawn": counts["num_drawn"], "credit": counts["credit"]})

    def _counts(self) -> dict[str, float]:
        row = self._arrays["counts"][int(self._arrays["latest"][0])]
        return dict(zip(COUNTS, row.tolist(), strict=True))

    def _write(self, counts: Mapping[str, float]) -> None:
        """All counts change at once, whenever this process is killed."""
        target = 1 - int(self._arrays["latest"][0])
        self._arrays["counts"][target] = [counts.get(name, 0.0) for name in COUNTS]
        self._arrays["latest"][0] = target
