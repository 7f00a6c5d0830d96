"""Replays: the state in which a game began, and every command since. The engine makes the rest again, to the bit."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.rts.games import VERSION, Games
from sf.envs.rts.settings import Settings

SUFFIX = ".rts"


@dataclass(frozen=True)
class Replay:
    """One game. A file of it is a zip of arrays, and runs no code."""

    settings: Settings
    start: bytes  # a snapshot
    choices: np.ndarray  # [D, P, H] int8: the commands of each decision
    end: str  # SHA-256 of the last state

    def games(self) -> Iterator[Games]:
        """The same game after each decision, beginning with its start; the object is one.

        Raises UsageError where the last state is not the one that was recorded.
        """
        games = Games(self.settings, [1], self.choices.shape[1])
        games.restore(0, self.start)
        yield games
        for choices in self.choices:
            games.advance(choices[np.newaxis].astype(np.int64), self.settings.skip)
            yield games
        if state_digest(games.snapshot(0)) != self.end:
            raise UsageError("the replay ends in another state than its game did: the engine has changed since")

    def save(self, path: Path) -> None:
        head = {"version": VERSION, "settings": asdict(self.settings), "end": self.end}
        arrays = {
            "head": np.frombuffer(json.dumps(head).encode(), np.uint8),
            "start": np.frombuffer(self.start, np.uint8),
            "choices": self.choices,
        }
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
        path.write_bytes(packed.getvalue())

    def save_in(self, folder: Path) -> Path:
        """Into a file that is named after its game."""
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
                head = json.loads(arrays["head"].tobytes())
                start, choices = arrays["start"].tobytes(), arrays["choices"]
            version, end = head["version"], str(head["end"])
            known = version != VERSION or Settings(**head["settings"])
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise UsageError(
                f"{path} is no replay ({error}): name a file {SUFFIX} that an environment has written"
            ) from None
        if not isinstance(known, Settings):
            raise UsageError(
                f"{path} is a replay of version {version}, and this is {VERSION}: play it with its own version"
            )
        if choices.ndim != 3 or choices.dtype != np.int8:
            raise UsageError(f"{path} is no replay: its commands are {choices.dtype} of shape {choices.shape}")
        return cls(known, start, choices, end)


class Recorder:
    """Keeps what a replay of the game under way needs."""

    def __init__(self, settings: Settings, num_players: int) -> None:
        self._settings = settings
        self._num_players = num_players
        self._start = b""
        self._choices: list[np.ndarray] = []

    def begin(self, snapshot: bytes) -> None:
        self._start, self._choices = snapshot, []

    def add(self, choices: np.ndarray) -> None:
        """choices: [P, H]"""
        self._choices.append(np.array(choices, np.int8))

    def finish(self, snapshot: bytes) -> Replay:
        choices = np.array(self._choices, np.int8).reshape(len(self._choices), self._num_players, -1)
        return Replay(self._settings, self._start, choices, state_digest(snapshot))


def state_digest(snapshot: bytes) -> str:
    return hashlib.sha256(snapshot).hexdigest()
