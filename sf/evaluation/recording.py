"""Records what players do in episodes, in files that `sf-record` makes a data set of.

A part is one file with some episodes behind each other, as rows of a group of environments. It is written whole or not
at all, so whatever was recorded before a kill is there.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sf.envs import EnvSpec, UsageError
from sf.envs.spaces.actions import decoder
from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.reading_back import trajectory_reader
from sf.evaluation.play.episodes import Play, Played
from sf.storage.demonstrations import minari_set
from sf.storage.demonstrations.minari_set import MinariEpisode
from sf.storage.run_dir import write_atomically

_PART_BYTES, _PART_S = 16 << 20, 5.0  # that a file has, or waits for, before it is written
_OBS = "obs/"
_ABOUT = "about.json"
_OF_STEPS = ("discrete", "continuous", "reward", "terminated", "truncated")


class Recorded(NamedTuple):
    """An episode of one agent: observations {key: [L+1, ...]} and the fields of L steps, by name."""

    observations: Mapping[str, np.ndarray]
    steps: Mapping[str, np.ndarray]


class RecordedPlay(Play):
    """Plays matches, and keeps the episodes of some of the players in a directory.

    An observation after a termination is not shown by a group, so the one before stands there again.
    """

    def __init__(self, parts: Parts, num_recorded: int, *args: Any) -> None:
        """num_recorded: of the players, the first ones, are recorded. args: as for `Play`."""
        self._parts, self._num_recorded = parts, num_recorded
        super().__init__(*args)
        num_envs = len(self.match_idx)
        self._rows_of: list[list[tuple[dict[str, np.ndarray], tuple[Any, ...]]]] = [[] for _ in self._position]
        self._whole: list[list[Recorded]] = [[] for _ in range(num_envs)]  # of the match that each plays

    def step(self) -> list[Played]:
        seen = {key: rows.copy() for key, rows in self.obs.items()}
        counts = self.is_playing & (self._policy < self._num_recorded)
        counts &= (self.match_idx < len(self._lineups))[self._position]
        match_idx = self.match_idx
        played = super().step()
        result = self._result
        for n in np.flatnonzero(counts & result.valid):
            ends = bool(result.terminated[n]), bool(result.truncated[n])
            action = self._discrete[n].copy(), self._continuous[n].copy()
            self._rows_of[n].append(({key: rows[n] for key, rows in seen.items()}, (*action, result.reward[n], *ends)))
            if any(ends):
                last = {key: rows[n].copy() for key, rows in (seen if ends[0] else self.obs).items()}
                self._whole[self._position[n]].append(_joined(self._rows_of[n], last))
                self._rows_of[n] = []
        for env in np.flatnonzero(self.match_idx != match_idx):
            self._parts.add(self._whole[env])
            self._whole[env] = []
        if self._begun_anew:
            for env in np.flatnonzero(np.isin(self.match_idx, self._begun_anew)):
                self._whole[env] = []
                for n in np.flatnonzero(self._position == env):
                    self._rows_of[n] = []
        return played


def _joined(rows: Sequence[tuple[dict[str, np.ndarray], tuple[Any, ...]]], last: Mapping[str, np.ndarray]) -> Recorded:
    observations = {key: np.stack([*(seen[key] for seen, _ in rows), last[key]]) for key in last}
    steps = zip(*(of_step for _, of_step in rows), strict=True)
    return Recorded(observations, {name: np.stack(values) for name, values in zip(_OF_STEPS, steps, strict=True)})


class Parts:
    """Writes the parts of one process. prefix: of the names of its files, which no other process has."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._directory, self._prefix = directory, prefix
        self._number, self._num_bytes = 0, 0
        self._episodes: list[Recorded] = []
        self._write_at = time.monotonic() + _PART_S

    def add(self, episodes: Sequence[Recorded]) -> None:
        """Keep the episodes of a match that is over."""
        self._episodes += episodes
        for episode in episodes:
            self._num_bytes += sum(array.nbytes for array in episode.observations.values())
        if self._num_bytes > _PART_BYTES or time.monotonic() > self._write_at:
            self.write()

    def write(self) -> None:
        """Write all episodes that are in no file yet."""
        if not self._episodes:
            return
        named = [
            {_OBS + key: rows for key, rows in each.observations.items()} | dict(each.steps) for each in self._episodes
        ]
        arrays = {name: np.concatenate([each[name] for each in named]) for name in named[0]}
        lengths = np.array([len(each.steps["reward"]) for each in self._episodes])
        path = self._directory / f"{self._prefix}-{self._number:06d}.npz"
        aside = path.with_suffix(".partial")
        with aside.open("wb") as file:
            np.savez(file, **arrays, lengths=lengths)  # type: ignore[arg-type]  # NumPy takes arrays by any name
            os.fsync(file.fileno())
        aside.rename(path)
        self._episodes, self._num_bytes, self._number = [], 0, self._number + 1
        self._write_at = time.monotonic() + _PART_S


class Finished(NamedTuple):
    """Says what a recording has become. mean_return: of the recorded rewards."""

    path: Path
    num_episodes: int
    num_steps: int
    mean_return: float
    num_bytes: int


class Recording:
    """A data set that is being recorded. directory: of its parts, beside the place of the data set."""

    def __init__(self, dataset_id: str, env: str, spec: EnvSpec, who: Mapping[str, Any]) -> None:
        """who: plays, and how: the same where a recording goes on. Raises UsageError for an id that is taken, and for
        parts that others have recorded."""
        self._id, self._env = dataset_id, env
        path = minari_set.path_of(dataset_id)
        if path.exists():
            raise UsageError(f"there is a data set {dataset_id} at {path}: take another name, or delete it")
        self._form = _NativeForm(env, spec)  # what is wrong with the spaces is said now
        self.directory = path.with_name(f".{path.name}.recording")
        file, said = self.directory / _ABOUT, json.loads(json.dumps(dict(who)))
        if not file.is_file():
            self.directory.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps(said).encode())
        elif json.loads(file.read_text()) != said:
            raise UsageError(
                f"an unfinished recording of {dataset_id} was begun otherwise ({file.read_text()}): repeat that "
                f"command, or delete {self.directory}"
            )

    def parts(self, prefix: str) -> Parts:
        """Returns the writer of one process, whose prefix no other one has."""
        return Parts(self.directory, f"{self.count():08d}-{prefix}")

    def count(self) -> int:
        """Returns how many episodes are recorded."""
        return sum(len(_load(path)["lengths"]) for path in self._parts())

    def finish(self, author: str, command: str) -> Finished:
        """Write the data set, and remove the parts. author: who has played."""
        returns, num_steps = [], 0
        for episode in self._episodes():
            returns.append(float(episode.steps["reward"].sum()))
            num_steps += len(episode.steps["reward"])
        about = {"algorithm_name": author, "description": f"{self._env} by {author}, recorded with {command}"}
        native = map(self._form.episode, self._episodes())
        spaces = self._form.observation_space, self._form.action_space
        path = minari_set.write(self._id, *spaces, native, about)
        shutil.rmtree(self.directory)
        num_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        return Finished(path, len(returns), num_steps, float(np.mean(returns)), num_bytes)

    def _parts(self) -> list[Path]:
        return sorted(self.directory.glob("*.npz"))

    def _episodes(self) -> Iterator[Recorded]:
        for path in self._parts():
            arrays = dict(_load(path))
            step = row = 0
            for length in arrays["lengths"].tolist():
                observations = {
                    name.removeprefix(_OBS): array[row : row + length + 1]
                    for name, array in arrays.items()
                    if name.startswith(_OBS)
                }
                yield Recorded(observations, {name: arrays[name][step : step + length] for name in _OF_STEPS})
                step, row = step + length, row + length + 1


def _load(path: Path) -> Any:
    return np.load(path, allow_pickle=False)


class _NativeForm:
    """Turns recorded episodes into the form of the environment itself.

    observation_space: of what the environment returns, or a Dict of what a policy sees, where that is more.
    """

    def __init__(self, env: str, spec: EnvSpec) -> None:
        writer = ObsWriter(env, spec.native_obs_space)
        shows_all = writer.space.spaces.keys() == spec.actor_obs_space.spaces.keys()
        self.observation_space = writer.env_space if shows_all else spec.actor_obs_space
        self.action_space = spec.action_space
        self._read = trajectory_reader(self.observation_space)
        self._decode = decoder(spec.action_space)

    def episode(self, recorded: Recorded) -> MinariEpisode:
        steps = recorded.steps
        actions = [self._decode(*action) for action in zip(steps["discrete"], steps["continuous"], strict=True)]
        return MinariEpisode(
            self._read(recorded.observations),
            _stacked(actions),
            steps["reward"].astype(np.float64),
            steps["terminated"],
            steps["truncated"],
        )


def _stacked(actions: Sequence[Any]) -> Any:
    if isinstance(actions[0], dict):
        return {name: _stacked([action[name] for action in actions]) for name in actions[0]}
    if isinstance(actions[0], tuple):
        return tuple(_stacked(part) for part in zip(*actions, strict=True))
    return np.stack(actions)
