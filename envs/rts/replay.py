"""Replays: the state in which a game began, and every command since. The engine makes the rest again, to the bit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.field_types import require
from sf.envs.rts.controls import controls
from sf.envs.rts.engine.state import NOBODY
from sf.envs.rts.games import VERSION, Games, command_of
from sf.envs.rts.settings import OPPONENTS, Settings

SUFFIX = ".rts"
_TO_DO = f"name a file {SUFFIX} that an environment of this version has written"
_LARGEST = 1 << 26  # bytes of what is in a file: one that claims more is no replay


@dataclass(frozen=True)
class Replay:
    """One game. A file of it is a zip of arrays, and runs no code."""

    settings: Settings
    start: bytes  # a snapshot
    choices: np.ndarray  # [D, P, H] int8: the commands of each decision
    end: str  # SHA-256 of the last state

    def __post_init__(self) -> None:
        """Raises UsageError for commands that its game does not have."""
        sizes = controls(self.settings).head_sizes
        most_players = 1 if self.settings.game == "tower" else 2
        choices = self.choices
        require(
            choices.dtype == np.int8
            and choices.ndim == 3
            and len(choices) > 0
            and 1 <= choices.shape[1] <= most_players
            and choices.shape[2] == len(sizes),
            f"the commands of the replay are {choices.dtype} of shape {choices.shape}, not int8 of decisions, players "
            f"and {len(sizes)}: {_TO_DO}",
        )
        ais = [command_of(ai) for ai in ("nobody", "random", *OPPONENTS[self.settings.game])]
        are_known = ((choices >= 0) & (choices < sizes)) | np.isin(choices[..., :1], ais)
        require(bool(are_known.all()), f"a command of the replay is none of its game: {_TO_DO}")

    def games(self) -> Iterator[Games]:
        """Yields the same game after each decision, beginning with its start; the object is one.

        Raises UsageError where it does not end with the last command, or in another state than was recorded.
        """
        games = Games(self.settings, [1], self.choices.shape[1])
        games.restore(0, self.start)
        yield games
        num = len(self.choices)
        for d, choices in enumerate(self.choices):
            require(games.winner[0] == NOBODY, f"the replay has {num} decisions, but its game ends after {d}: {_TO_DO}")
            games.advance(choices[np.newaxis].astype(np.int64), self.settings.skip)
            yield games
        require(
            games.winner[0] != NOBODY,
            f"the replay has no commands after {num} decisions, but its game goes on: {_TO_DO}",
        )
        require(games.digest(0) == self.end, f"the replay ends in another state than its game did: {_TO_DO}")

    def save(self, path: Path) -> None:
        head = {
            "version": VERSION,
            "settings": asdict(replace(self.settings, replays=None, replay=None)),
            "end": self.end,
        }
        encoded, start = (np.frombuffer(data, np.uint8) for data in (json.dumps(head).encode(), self.start))
        with path.open("wb") as file:
            np.savez_compressed(file, head=encoded, start=start, choices=self.choices)

    def save_in(self, folder: Path) -> Path:
        """Save it to a file that is named after its game."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.settings.game}_{self.end[:16]}{SUFFIX}"
        partial = path.with_suffix(f".{os.getpid()}.part")
        self.save(partial)
        partial.replace(path)
        return path

    @classmethod
    def load(cls, path: Path) -> Replay:
        """Raises UsageError for what is no replay, or is one of another version."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                if sum(part.file_size for part in arrays.zip.infolist()) > _LARGEST:
                    raise UsageError(f"it unpacks to more than {_LARGEST} bytes")
                head = json.loads(arrays["head"].tobytes())
                start, choices = arrays["start"].tobytes(), arrays["choices"]
            version, end = head["version"], str(head["end"])
            if version == VERSION:
                settings = Settings(**{**head["settings"], "replays": None, "replay": None})
        except Exception as error:  # whatever NumPy, zip and JSON make of the bytes of any file
            raise UsageError(
                f"{path} is not a replay ({error}): name a file {SUFFIX} that an environment has written"
            ) from None
        require(
            version == VERSION,
            f"{path} is a replay of version {version}, and this is {VERSION}: play it with its own version",
        )
        try:
            return cls(settings, start, choices, end)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None


class Recorder:
    """Keeps what a replay of the game under way needs."""

    def __init__(self, settings: Settings, num_players: int) -> None:
        self._settings = settings
        self._num_players = num_players
        self._start = b""
        self._choices: list[np.ndarray] = []

    def begin(self, snapshot: bytes) -> None:
        """A game goes on from here, from its beginning or from where it was restored."""
        self._start, self._choices = snapshot, []

    def add(self, choices: np.ndarray) -> None:
        """choices: [P, H]"""
        self._choices.append(np.array(choices, np.int8))

    def finish(self, digest: str) -> Replay:
        """digest: of the state in which the game has ended."""
        choices = np.array(self._choices, np.int8).reshape(len(self._choices), self._num_players, -1)
        return Replay(self._settings, self._start, choices, digest)
