"""Reads demonstrations as trajectories, which stand in a batch beside those of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from sf.learner.batches.batch import Batch
from sf.learner.demonstrations.field import DEMONSTRATED
from sf.storage.demonstrations.demonstrated_rows import DemonstratedRows

_ONE_IN = 10  # episodes is held out


class DemonstrationSampler:
    """Draws trajectories from rows on disk: T steps from anywhere, over the ends of episodes.

    A core begins each with a state of zeros. The rows are a ring, so a trajectory may be longer than all of them.
    Which ones are drawn depends on the version of the policy, so a synchronous run that is resumed draws the same.
    """

    def __init__(self, rows: DemonstratedRows, seed: tuple[int, ...], version: Callable[[], int]) -> None:
        """seed: of this learner. version: of its policy, at present."""
        self._rows = rows
        self._seed, self._version = seed, version
        self._drawn_at, self._times = -1, 0  # the version at which trajectories were drawn last, and how often
        numbers = np.arange(rows.num_episodes)
        held_out = numbers % _ONE_IN == _ONE_IN - 1
        if rows.num_episodes > 1 and not held_out.any():
            held_out[-1] = True
        lengths = np.diff(rows.starts)
        self._is_held_out = np.repeat(held_out, lengths)  # [N]
        self._held_out = numbers[held_out]

    def fill(self, batch: Batch, first_column: int) -> None:
        """Fill the columns of a batch in host memory from `first_column` on. None of their steps is valid."""
        for column, start in enumerate(self._draw(batch.num_trajectories - first_column), first_column):
            self._write(batch, column, start)
            batch.valid[:, column] = False

    def fill_for_training(self, batch: Batch) -> None:
        """Fill a whole batch in host memory, to train on alone, without the episodes that are held out."""
        for column, start in enumerate(self._draw(batch.num_trajectories)):
            at = self._write(batch, column, start)
            held_out = torch.from_numpy(self._is_held_out[at[:-1]])
            batch.fields[DEMONSTRATED][:, column] &= ~held_out
            batch.valid[:, column] &= ~held_out
        batch.policy_version.fill_(self._version())

    def held_out(self, batch: Batch, at_most: int) -> Iterator[None]:
        """Fill a batch in host memory again and again, with the episodes that are held out, each once.

        at_most: this many trajectories, about evenly from all of these episodes.
        """
        num_steps = len(batch.reward)
        starts = self._rows.starts
        windows = [
            (start, starts[episode + 1])
            for episode in self._held_out
            for start in range(starts[episode], starts[episode + 1], num_steps)
        ]
        windows = windows[:: -(-len(windows) // at_most)] if windows else []
        for begin in range(0, len(windows), batch.num_trajectories):
            batch.valid[:] = False
            batch.fields[DEMONSTRATED][:] = False
            for column, (start, end) in enumerate(windows[begin : begin + batch.num_trajectories]):
                self._write(batch, column, start)
                batch.fields[DEMONSTRATED][end - start :, column] = False
            yield

    def _draw(self, num: int) -> np.ndarray:
        version = self._version()
        self._times = self._times + 1 if version == self._drawn_at else 0
        self._drawn_at = version
        rng = np.random.default_rng((*self._seed, version, self._times))
        return rng.integers(self._rows.num_rows, size=num)

    def _write(self, batch: Batch, column: int, start: int) -> np.ndarray:
        """Write T+1 rows from `start` on into a column. Returns where they are among all, [T+1]."""
        num_steps, num_rows = len(batch.reward), self._rows.num_rows
        at = np.arange(start, start + num_steps + 1) % num_rows
        is_in_order = start + num_steps + 1 <= num_rows
        for name, target in batch.named().items():
            source = self._rows.arrays.get(name)
            into = target[:, column]
            if source is None:
                into.zero_()  # a behaviour policy that is not known, and what the critic alone sees
                continue
            rows = source[start : start + len(into)] if is_in_order else source[at[: len(into)]]
            into.numpy()[...] = rows
        batch.fields[DEMONSTRATED][:, column] = batch.valid[:, column]
        batch.state[column] = 0.0
        return at
