"""Keeps demonstrations as a learner reads them: rows in files that are mapped into memory, so they may be larger.

An episode of L steps is L+1 rows, in the layout of a trajectory (`sf.shared.rows`): the last row has its final
observation, and no action. So any T+1 rows in a row are a trajectory, whichever episodes they are of.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.reading_back import action_encoder
from sf.storage.demonstrations.minari_set import MinariEpisode, MinariSet

OBS = "obs/"
_STARTS, _ABOUT = "starts", "about.json"


class DemonstratedRows:
    """Rows that exist on disk.

    arrays: each [N, ...], read-only: `obs/KEY` of each key; discrete, continuous, reward, terminated; first, whether an
    episode begins; valid, whether the row has an action. starts: [E+1] int64, of the episodes, and the end.
    """

    def __init__(self, directory: Path) -> None:
        names = json.loads((directory / _ABOUT).read_text())["arrays"]
        self.arrays = {name: np.load(directory / file, mmap_mode="r") for name, file in names.items()}
        self.starts: np.ndarray = np.load(directory / f"{_STARTS}.npy")

    @property
    def num_rows(self) -> int:
        return int(self.starts[-1])

    @property
    def num_episodes(self) -> int:
        return len(self.starts) - 1


def convert(
    sources: Iterable[MinariSet], env: str, spec: EnvSpec, directory: Path, on_progress: Callable[[int, int], None]
) -> None:
    """Writes the episodes of data sets as rows, whole or not at all. spec: of the policy.

    on_progress: called with the number of steps that are written, and of all. Raises UsageError for what does not fit,
    with the episode.
    """
    sources = list(sources)
    layouts = [_Layout(source, env, spec) for source in sources]
    num_episodes = sum(source.num_episodes for source in sources)
    num_rows = sum(source.num_steps for source in sources) + num_episodes
    aside = directory.with_name(f"{directory.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        arrays = _new_arrays(aside, spec, num_rows)
        starts = [0]
        for layout in layouts:
            for rows in layout.episodes():
                begin, end = starts[-1], starts[-1] + len(rows["valid"])
                if end > num_rows:
                    raise UsageError(f"{layout.named} has more steps than it says: it is damaged, so name another")
                for name, values in rows.items():
                    arrays[name][begin:end] = values
                starts.append(end)
                on_progress(end - len(starts) + 1, num_rows - num_episodes)
        if starts[-1] != num_rows:
            raise UsageError(
                f"{' and '.join(layout.named for layout in layouts)} has {starts[-1] - num_episodes:,} steps, and says "
                f"that it has {num_rows - num_episodes:,}: it is damaged, so name another"
            )
        for array in arrays.values():
            array.flush()  # type: ignore[attr-defined]  # a memory map
        np.save(aside / f"{_STARTS}.npy", np.array(starts, np.int64))
        files = {name: _file(name) for name in arrays}
        (aside / _ABOUT).write_text(json.dumps({"arrays": files}))
        if not directory.exists():  # another trainer of the run may have been faster
            aside.rename(directory)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def require_fits(source: MinariSet, env: str, spec: EnvSpec) -> None:
    """Raises UsageError where the spaces of a data set are not those of the environment. spec: of the policy."""
    _Layout(source, env, spec)


def _new_arrays(directory: Path, spec: EnvSpec, num_rows: int) -> dict[str, np.ndarray]:
    action = ActionSpec.of(spec.action_space)
    fields: dict[str, tuple[tuple[int, ...], Any]] = {
        OBS + key: (box.shape or (), box.dtype) for key, box in spec.actor_obs_space.items()
    }
    fields |= {
        "discrete": ((len(action.discrete_sizes),), np.int32),
        "continuous": ((action.num_continuous,), np.float32),
        "reward": ((), np.float32),
        **dict.fromkeys(("terminated", "first", "valid"), ((), np.bool_)),
    }

    def new(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.lib.format.open_memmap(directory / _file(name), "w+", dtype, (num_rows, *shape))

    return {name: new(name, *of_one) for name, of_one in fields.items()}


def _file(name: str) -> str:
    return name.replace("/", "__") + ".npy"


class _Layout:
    """Lays the episodes of a data set out as rows. named: the data set."""

    def __init__(self, source: MinariSet, env: str, spec: EnvSpec) -> None:
        """Raises UsageError where its spaces are not those of the environment."""
        self.named = source.named
        self._source, self._spec = source, spec
        self._action = ActionSpec.of(spec.action_space)
        seen, acted = source.observation_space, source.action_space
        self._writer = next((each for each in self._writers(env) if _fits(seen, each.env_space)), None)
        if self._writer is None:
            raise UsageError(
                f"demonstrations {self.named} has the observations {seen}, and those of {env} are "
                f"{spec.native_obs_space}: name a data set of this environment, with the same wrappers"
            )
        if not _fits(acted, spec.action_space):
            raise UsageError(
                f"demonstrations {self.named} has the actions {acted}, and those of {env} are {spec.action_space}: "
                "name a data set of this environment"
            )
        self._encode = action_encoder(spec.action_space)

    def _writers(self, env: str) -> Iterator[ObsWriter]:
        """Yields those for the two forms that observations may have: that of the environment, where this is all that a
        policy sees, and that of the rows."""
        wanted = self._spec.actor_obs_space
        for space in (self._spec.native_obs_space, wanted):
            writer = ObsWriter(env, space)
            if writer.space.spaces.keys() == wanted.spaces.keys():
                yield writer

    def episodes(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields the rows of each episode. Raises UsageError for one that cannot be trained on."""
        for number, episode in enumerate(self._source.episodes()):
            with self._named(number):
                rows = self._rows(episode)
            yield rows

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        try:
            yield
        except (UsageError, ValueError, IndexError) as error:
            raise UsageError(
                f"demonstrations {self.named}, episode {number}: {error}: mend it, or name another data set"
            ) from None

    def _rows(self, episode: MinariEpisode) -> dict[str, np.ndarray]:
        num_steps = len(episode.rewards)
        assert self._writer is not None
        rows = {
            OBS + key: np.zeros((num_steps + 1, *(box.shape or ())), box.dtype)
            for key, box in self._spec.actor_obs_space.items()
        }
        observations = _unstacked(episode.observations, num_steps + 1, "observations")
        into = {key.removeprefix(OBS): list(array) for key, array in rows.items()}
        for n, observation in enumerate(observations):
            self._writer.write(observation, into, n)
        actions = [self._encode(action) for action in _unstacked(episode.actions, num_steps, "actions")]
        terminated, truncated = (np.asarray(flags, bool) for flags in (episode.terminations, episode.truncations))
        if not num_steps or len(terminated) != num_steps or len(truncated) != num_steps:
            raise ValueError("its parts are not of one length")
        if not (terminated[-1] or truncated[-1]):
            raise ValueError("it is cut short: it ends neither by termination nor by truncation")
        if (terminated | truncated)[:-1].any():
            raise ValueError("it goes on after its end")
        rows |= {
            "discrete": _with_one_more(np.stack([discrete for discrete, _ in actions])),
            "continuous": _with_one_more(np.stack([continuous for _, continuous in actions])),
            "reward": _with_one_more(np.asarray(episode.rewards, np.float32)),
            "terminated": _with_one_more(terminated),
            "first": np.arange(num_steps + 1) == 0,
            "valid": np.arange(num_steps + 1) < num_steps,
        }
        for name, values in rows.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise ValueError(f"{name.removeprefix(OBS)} has NaN or infinite numbers")
        self._require_allowed(rows)
        return rows

    def _require_allowed(self, rows: Mapping[str, np.ndarray]) -> None:
        """Raises ValueError for an action that its mask forbids."""
        masks = rows.get(OBS + ACTION_MASK)
        if masks is None or self._action.num_continuous:
            return
        allowed = masks[:-1].reshape(len(masks) - 1, -1) != 0
        start = 0
        for head, size in enumerate(self._action.discrete_sizes):
            of_head = allowed[:, start : start + size]
            is_wrong = of_head.any(1) & ~np.take_along_axis(of_head, rows["discrete"][:-1, head, None], 1)[:, 0]
            if is_wrong.any():
                step = int(is_wrong.argmax())
                raise ValueError(f"the action mask of step {step} forbids the action {rows['discrete'][step, head]}")
            start += size


def _with_one_more(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, np.zeros_like(values[:1])])


def _unstacked(values: Any, num: int, what: str) -> Iterator[Any]:
    """Yields each of `num` nested values. Raises ValueError where there are more or fewer."""
    for leaf in _arrays(values):
        if len(leaf) != num:
            raise ValueError(f"it has {len(leaf)} {what} where {num} belong")
    return (_at(values, n) for n in range(num))


def _arrays(values: Any) -> Iterator[Any]:
    if isinstance(values, dict | tuple):
        for part in values.values() if isinstance(values, dict) else values:
            yield from _arrays(part)
    else:
        yield values


def _at(values: Any, n: int) -> Any:
    if isinstance(values, dict):
        return {name: _at(part, n) for name, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_at(part, n) for part in values)
    return values[n]


def _fits(found: Any, wanted: Any) -> bool:
    """Returns whether what one space contains can be read as of another: bounds and the size of floats may differ."""
    if isinstance(wanted, gym.spaces.Dict):
        return (
            isinstance(found, gym.spaces.Dict)
            and wanted.spaces.keys() <= found.spaces.keys()
            and all(_fits(found[key], space) for key, space in wanted.items())
        )
    if isinstance(wanted, gym.spaces.Tuple):
        return (
            isinstance(found, gym.spaces.Tuple)
            and len(found) == len(wanted)
            and all(map(_fits, found.spaces, wanted.spaces))
        )
    if isinstance(wanted, gym.spaces.Discrete):
        return isinstance(found, gym.spaces.Discrete) and (found.n, found.start) == (wanted.n, wanted.start)
    if isinstance(wanted, gym.spaces.MultiDiscrete):
        is_like = isinstance(found, gym.spaces.MultiDiscrete) and found.shape == wanted.shape
        return is_like and bool((found.nvec == wanted.nvec).all() and (found.start == wanted.start).all())
    is_of_integers = [space.dtype is not None and space.dtype.kind in "iub" for space in (found, wanted)]
    return found.shape == wanted.shape and is_of_integers[0] == is_of_integers[1]
