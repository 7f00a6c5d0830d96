"""The directory of a search: its lines, and the policies of its players."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sf.config.older import as_today
from sf.envs import UsageError
from sf.evaluation.play.named_checkpoint import require_known_code
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint, without_optimizer
from sf.tools.psro import record
from sf.tools.psro.best_response import read_policy
from sf.tools.psro.flags import files_of
from sf.tools.psro.record import RESPONSES, Iteration, Line, SeatIteration

_POLICIES = "policies"  # a folder in that of the search


@dataclass(frozen=True)
class SearchDirectory:
    """Reads and writes what a search keeps. settings: those that a resumed search must have, too."""

    path: Path
    settings: Mapping[str, Any]
    is_trusted: bool

    @property
    def responses(self) -> Path:
        return self.path / RESPONSES

    def lines(self, kind: type[Line]) -> list[Line]:
        """Returns the iterations so far. Raises ValueError for a damaged or another search than these settings ask."""
        found = record.read(self.path / record.NAME, kind)
        there = as_today(found[0].settings) if found else {}
        for name, value in self.settings.items():
            if there.get(name, value) != value:  # an older search does not say everything
                raise UsageError(
                    f"{name} is {value}, but the search in {self.path} has {there.get(name)}: name another --experiment"
                )
        return found

    def append(self, line: Iteration | SeatIteration) -> None:
        """Write an iteration that is over. Raises UsageError where that is not possible."""
        with files_of(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            record.append(self.path / record.NAME, line)

    def load(self, path: str | None, iteration: int) -> Checkpoint | None:
        """Returns a player that has joined, or None for random moves. path: as `keep` returned it."""
        if path is None:
            return None
        saved = read_policy(self.path / path, f"of iteration {iteration}")
        require_known_code(saved, self.path / path, self.is_trusted)
        return saved

    def keep(self, player: str, saved: Checkpoint) -> tuple[str, Checkpoint]:
        """Write what it takes to play. Returns the path in the directory, and what was written."""
        policy, file = without_optimizer(saved), self._file(player)
        with files_of(self.path):
            file.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(file, policy)
        return str(file.relative_to(self.path)), policy

    def reference(self, player: str, policy: Checkpoint | None) -> str:
        """Returns the player as `--players` names it. policy: None for random moves."""
        return player if policy is None else str(self._file(player))

    def _file(self, player: str) -> Path:
        return self.path / _POLICIES / f"{player}.safetensors"
