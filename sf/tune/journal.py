"""The file of a study, one JSON object a line, as Optuna reads it. A kill costs what was being written."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from sf.envs.errors import UsageError
from sf.storage import json_lines


class Journal(JournalFileBackend):
    """path: made if it is missing. Raises UsageError where it cannot be read or written, or has a damaged line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file_lock = _FileLock(str(path))
        try:
            super().__init__(str(path), lock_obj=self._file_lock)
            _require_whole(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}): make it readable and writable") from None

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Raises UsageError where the file cannot be read."""
        try:
            yield from super().read_logs(log_number_from)
        except OSError as error:
            raise UsageError(f"{self._path} cannot be read ({error.strerror}): {_GOES_ON}") from None

    def append_logs(self, logs: Sequence[dict[str, Any]]) -> None:
        """All or none, after what a kill left of a line is removed. Raises UsageError where that is not possible."""
        lines = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in logs)
        try:
            self._file_lock.acquire()
            try:
                json_lines.append(self._path, lines)
            finally:
                self._file_lock.release()
        except OSError as error:
            raise UsageError(f"{self._path} cannot be written ({error.strerror}): {_GOES_ON}") from None


_GOES_ON = "the search ends, and the same command goes on when that is mended"


class _FileLock(JournalFileOpenLock):
    """Optuna's own, which optuna-dashboard waits for, too. It names the process that has it: where that was killed, the
    next start need not wait until Optuna takes the lock for forgotten."""

    def __init__(self, filepath: str) -> None:
        super().__init__(filepath)
        path = Path(self._lock_file)
        try:
            machine, _, pid = path.read_text(encoding="utf-8").rpartition(" ")
            if machine == _machine() and not _is_alive(int(pid)):
                path.unlink()
        except (OSError, ValueError, OverflowError):  # there is none, or it is Optuna's
            pass

    def acquire(self) -> bool:
        is_acquired = super().acquire()
        with suppress(OSError):  # a full disk
            Path(self._lock_file).write_text(f"{_machine()} {os.getpid()}", encoding="utf-8")
        return is_acquired


def _machine() -> str:
    """Whose process numbers these are: of this boot of this machine, in this container. Raises OSError."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return f"{boot_id} {os.readlink('/proc/self/ns/pid')}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        pass
    return True


def _require_whole(path: Path) -> None:
    """Raises UsageError for a line that is no record. A last line without an end is none: it is removed later."""
    for number, line in enumerate(json_lines.whole_lines(path), start=1):
        try:
            is_record = isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            is_record = False
        if not is_record:
            raise UsageError(
                f"{path}, line {number}, is damaged: put back a copy of the file from before, or move {path.parent} "
                "away, which begins the search anew"
            )
