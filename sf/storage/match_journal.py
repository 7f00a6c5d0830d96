"""Finished matches on their way to the record: files in which they outlive every process of the run.

A rollout worker appends each match to a file of its own as it ends. The parent reads these files, and writes what is
new to league.jsonl about once a second, each row with the line that it comes from. So a run that is killed and resumed
finds the matches that its record lacks, and takes none twice. The files are removed when the record has all of them.

[[0, 3], [1.0, -1.0]]    # a line: who played each agent, and the scores
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sf.storage.text_files import append_whole, open_to_append
from sf.system.messages import say

DIRECTORY = "league/journal"  # in that of the run

_LARGEST = 4 * 2**20  # bytes of a file


@dataclass(frozen=True)
class PlayedMatch:
    """who: played each agent that took part, a policy or P + i for player i of the pool. scores: of each."""

    who: tuple[int, ...]
    scores: tuple[float, ...]


class Journal:
    """Writes the matches of a rollout worker. It begins a file with the first, and another one when that is large."""

    def __init__(self, run_dir: Path) -> None:
        self._directory = run_dir / DIRECTORY
        self._name = secrets.token_hex(4)  # unlike that of any other worker, before or after
        self._num_files = 0
        self._file: BinaryIO | None = None
        self._path = run_dir  # of the file, once there is one
        self._unwritten = b""  # while the disk takes nothing

    def add(self, matches: Iterable[PlayedMatch]) -> None:
        """They are safe from a kill when this returns, unless the disk takes nothing: then the next call tries again.

        The parent, which writes to the same disk, says so.
        """
        self._unwritten += b"".join(json.dumps([match.who, match.scores]).encode() + b"\n" for match in matches)
        if not self._unwritten:
            return
        try:
            append_whole(self._open_file(), self._unwritten)
        except OSError:
            return
        self._unwritten = b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open_file(self) -> BinaryIO:
        """The one to write to. Raises OSError."""
        if self._file is not None:
            status = os.fstat(self._file.fileno())
            if status.st_size < _LARGEST and _is_at(self._path, status):  # somebody may have moved or removed it
                return self._file
            self._file.close()
            self._file = None
        self._directory.mkdir(parents=True, exist_ok=True)
        self._path = self._directory / f"{self._name}-{self._num_files}.jsonl"
        self._file = open_to_append(self._path)
        self._num_files += 1
        return self._file


def _is_at(path: Path, status: os.stat_result) -> bool:
    """Returns whether the file of this status is the one at `path`. Raises OSError if that cannot be told."""
    try:
        return os.path.samestat(path.lstat(), status)
    except FileNotFoundError:
        return False


@dataclass
class _Reading:
    """Says how far a file has been read."""

    num_bytes: int = 0
    num_lines: int = 0


class JournalReader:
    """Reads what all rollout workers have written, those of an earlier session of the run as well.

    recorded: how many lines of a file the record has. Tells the user of a line that is no match.
    """

    def __init__(self, run_dir: Path, recorded: Mapping[str, int]) -> None:
        self._directory = run_dir / DIRECTORY
        self._recorded = recorded
        self._readings: dict[str, _Reading] = {}  # by file

    def read(self, num_mains: int, num_players: int) -> list[tuple[str, int, PlayedMatch]]:
        """Matches that neither the record nor an earlier call had: the file, the line from 1 on, the match.

        num_mains: policies that are no exploiters, one of which is in every match. num_players: all policies and
        players of the pool.
        """
        found = []
        for path in self._files():
            reading = self._readings.setdefault(path.stem, _Reading())
            for line in _whole_lines_from(path, reading.num_bytes):
                reading.num_bytes += len(line)
                reading.num_lines += 1
                if reading.num_lines <= self._recorded.get(path.stem, 0):
                    continue
                match = _match_of(line, num_mains, num_players)
                if match is None:
                    say(f"league: line {reading.num_lines} of {path} is no match between players: it is left out")
                else:
                    found.append((path.stem, reading.num_lines, match))
        return found

    def remove_ended(self) -> None:
        """Files whose worker has begun the next one, and that were read to their ends, which the record has."""
        names = {path.stem for path in self._files()}
        for stem in names & self._readings.keys():
            worker, _, number = stem.rpartition("-")
            has_next = number.isdecimal() and f"{worker}-{int(number) + 1}" in names
            if has_next and self._path(stem).stat().st_size == self._readings[stem].num_bytes:
                self._remove(stem)

    def remove_all(self) -> None:
        """Nobody writes any more, and the record has what was read."""
        for path in self._files():
            if path.stem in self._readings:
                self._remove(path.stem)
        with suppress(OSError):  # not there, or something else is in it
            self._directory.rmdir()

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob("*.jsonl"))

    def _remove(self, stem: str) -> None:
        self._path(stem).unlink(missing_ok=True)
        del self._readings[stem]

    def _path(self, stem: str) -> Path:
        return self._directory / f"{stem}.jsonl"


def _whole_lines_from(path: Path, num_bytes: int) -> list[bytes]:
    """With their ends. None where the file is gone."""
    try:
        with path.open("rb") as file:
            file.seek(num_bytes)
            return [line for line in file if line.endswith(b"\n")]
    except OSError:
        return []


def _match_of(line: bytes, num_mains: int, num_players: int) -> PlayedMatch | None:
    """Returns None if it is no match of players 0 to num_players - 1, or none that a policy below num_mains was in."""
    try:
        who, scores = json.loads(line)
        if not all(type(each) is int and 0 <= each < num_players for each in who):
            return None
        if len(who) != len(scores) or not all(_is_number(score) for score in scores) or min(who) >= num_mains:
            return None
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return PlayedMatch(tuple(who), tuple(scores))


def _is_number(score: object) -> bool:
    return isinstance(score, int | float) and math.isfinite(score)
