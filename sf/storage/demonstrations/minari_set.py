"""Reads and writes Minari data sets (Farama's format for episodes) on this machine.

What somebody else's data set says is data: nothing is unpickled, the environment that it names is never imported, and
nothing is downloaded.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError

INSTALL = "pip install '.[demos]'"
_ID = re.compile(r"([-_\w]+/)*[-_\w]+-v\d+")
_METADATA = "metadata.json"


class MinariEpisode(NamedTuple):
    """L steps of one agent, in the form of the environment.

    observations: of L+1 steps, nested as the space is, with arrays [L+1, ...]. actions: the same of L steps. rewards:
    [L] float. terminations, truncations: [L] bool.
    """

    observations: Any
    actions: Any
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray


class MinariSet:
    """A data set that exists.

    num_episodes, num_steps: as it says itself. observation_space, action_space: what its episodes are made of.
    """

    def __init__(self, named: str) -> None:
        """named: an id, such as connect-four/mcts-v0, or the path of a data set.

        Raises UsageError where there is none, or one that cannot be read.
        """
        self.named = named
        self.path = _data_of(named)
        with self._readable():
            from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415  an extra

            said = json.loads((self.path / _METADATA).read_text())
            if not {"observation_space", "action_space"} <= said.keys():  # Minari would make the environment
                raise ValueError("it does not say what its observations and actions are")
            self._storage = MinariStorage.read(self.path)
            self.num_episodes, self.num_steps = int(said["total_episodes"]), int(said["total_steps"])
        self.observation_space: gym.Space = self._storage.observation_space
        self.action_space: gym.Space = self._storage.action_space
        if not self.num_episodes:
            raise UsageError(f"{self.named} has no episode: record some with sf-record, or name another data set")

    def episodes(self) -> Iterator[MinariEpisode]:
        """Yields all episodes, one in memory at a time. Raises UsageError where the file is cut short."""
        with self._readable():
            for found in self._storage.get_episodes(range(self.num_episodes)):
                yield MinariEpisode(
                    found["observations"],
                    found["actions"],
                    *(np.asarray(found[name]) for name in ("rewards", "terminations", "truncations")),
                )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise UsageError(f"{self.named}: reading it needs {error.name or error}: {INSTALL}") from None
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, AssertionError) as error:
            reason = str(error) or type(error).__name__
            raise UsageError(
                f"{self.named} cannot be read ({reason}): it is damaged, cut short or no Minari data set: name another"
            ) from None


def _data_of(named: str) -> Path:
    """Raises UsageError where there is no data set of this name."""
    path = Path(named)
    if not path.exists():
        path = path_of(named)
    for directory in (path / "data", path):
        if (directory / _METADATA).is_file():
            return directory
    raise UsageError(
        f"there is no data set {named!r} on this machine: record one with sf-record, download one with "
        f"`minari download {named}`, or name the path of one"
    )


def path_of(dataset_id: str) -> Path:
    """Returns where the data set of this id is, or will be. Raises UsageError without Minari, or for no id."""
    try:
        from minari.storage import get_dataset_path  # noqa: PLC0415  an extra
    except ImportError:
        raise UsageError(f"data set {dataset_id!r}: Minari is not installed: {INSTALL}") from None
    if not _ID.fullmatch(dataset_id):
        raise UsageError(
            f"{dataset_id!r} is neither the path of a data set nor a name of one: a name is (GROUP/)NAME-vNUMBER, for "
            "example connect-four/mcts-v0"
        )
    return Path(get_dataset_path(dataset_id))


def write(
    dataset_id: str,
    observation_space: gym.Space,
    action_space: gym.Space,
    episodes: Iterable[MinariEpisode],
    about: Mapping[str, str],
) -> Path:
    """Writes a data set of these episodes, whole or not at all, and returns where it is. Pictures are kept exactly.

    about: further metadata, such as Minari's algorithm_name and description. Raises UsageError where there is a data
    set of this id.
    """
    path = path_of(dataset_id)
    if path.exists():
        raise UsageError(f"there is a data set {dataset_id} at {path}: take another name, or delete it")
    import minari  # noqa: PLC0415  an extra
    from minari.data_collector import EpisodeBuffer  # noqa: PLC0415
    from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

    aside = path.with_name(f".{path.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)  # of a command that was killed
    (aside / "data").mkdir(parents=True)
    storage = MinariStorage.new(
        aside / "data", observation_space, action_space, data_format="hdf5", jpeg_encoding=False
    )
    storage.update_metadata({"dataset_id": dataset_id, "minari_version": minari.__version__, **about})
    storage.update_episodes(
        EpisodeBuffer(
            observations=each.observations,
            actions=each.actions,
            rewards=each.rewards,
            terminations=each.terminations,
            truncations=each.truncations,
        )
        for each in episodes
    )
    aside.rename(path)
    return path
