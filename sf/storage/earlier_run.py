"""The earlier run in the directory of a new one: it is moved aside, and nothing of it is lost before the new run is
under way.

`restart` leaves it aside, as NAME.old1. `overwrite` deletes it once all processes of the new run are ready. A start
that fails before that puts it back. A start that is killed leaves it at NAME.overwritten1, and the next start says so.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from sf.system.messages import say


class EarlierRun:
    """Holds what was in the directory of a run before this start."""

    def __init__(self, path: Path, treatment: Literal["resume", "restart", "overwrite"]) -> None:
        """Move it aside, unless it is resumed. Raises OSError where that cannot be done."""
        self._path = path
        self._aside: Path | None = None
        self._is_deleted = treatment == "overwrite"
        if treatment != "resume":
            self._aside = _free_name(path, "overwritten" if self._is_deleted else "old")
            path.rename(self._aside)

    @property
    def is_aside(self) -> bool:
        """Returns whether there is one, which would come back if the new run did not get under way."""
        return self._aside is not None

    def settle(self) -> None:
        """The new run is under way. Further calls do nothing."""
        aside, self._aside = self._aside, None
        if aside is not None and self._is_deleted:
            try:
                shutil.rmtree(aside)
            except OSError as error:
                say(f"{aside} is the overwritten run, which could not be deleted ({error}): delete it")

    def put_back(self) -> None:
        """The new run did not get under way: delete what it wrote. Does nothing after `settle`."""
        aside, self._aside = self._aside, None
        if aside is None:
            return
        sentence = f"the new run did not start: the earlier one is still in {self._path}"
        try:
            with suppress(FileNotFoundError):
                shutil.rmtree(self._path)
            aside.rename(self._path)
        except OSError as error:
            sentence = f"the earlier run is in {aside}, and could not be put back ({error})"
        with suppress(OSError, ValueError):  # nobody reads it: why the run did not start is still to be said
            say(sentence)

    @contextmanager
    def put_back_unless_settled(self) -> Iterator[None]:
        """Put it back at the end of the block, also after an exception, unless it is settled by then."""
        try:
            yield
        finally:
            self.put_back()


def left_behind(path: Path) -> list[Path]:
    """Finds what killed starts with `overwrite` have left beside `path`."""
    return sorted(path.parent.glob(f"{glob.escape(path.name)}.overwritten[0-9]*"))


def _free_name(path: Path, suffix: str) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.{suffix}{number}")).exists():
        number += 1
    return candidate
