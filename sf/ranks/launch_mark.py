"""Whether the run in the directory is that of this launch: the launch's id, in a file beside the run.

A launch is all starts of the ranks by one torchrun or one `--num_learners`. With `--restart_behavior restart` or
`overwrite` a start that fails before the new run is under way puts back the earlier one. Ranks that are started again
tell by the mark which of the two they find: their own they resume, in the place of the other they begin anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sf.ranks.place import Place
from sf.storage import text_files
from sf.storage.run_dir import write_atomically


class LaunchMark:
    """The mark of the launch that this rank belongs to. Only the first rank sets it."""

    def __init__(self, folder: Path, place: Place, variables: Mapping[str, str] | None = None) -> None:
        """folder: for what ranks write. variables: of the environment."""
        variables = os.environ if variables is None else variables
        self._path = folder / "under_way"
        self._launch = variables.get("TORCHELASTIC_RUN_ID", "")
        self._is_of_this_rank = place.is_by_torchrun and place.is_first
        self._is_set = False

    def is_there(self) -> bool:
        """Whether this launch has set it. Raises ValueError where a link is in its place."""
        text_files.require_file(self._path)
        try:
            return self._path.read_text(errors="replace") == self._launch
        except OSError:  # nobody has
            return False

    def set(self) -> None:
        """No earlier run will be put back. May be called again and again: a disk that is full now has room later."""
        if self._is_of_this_rank and not self._is_set:
            with suppress(OSError):
                write_atomically(self._path, self._launch.encode())
                self._is_set = True

    def remove(self) -> None:
        """At the first start: torchrun without --rdzv-id calls all launches the same. One of another launch stays."""
        if self._is_of_this_rank and self.is_there():
            with suppress(OSError):
                self._path.unlink()
