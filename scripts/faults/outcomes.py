"""What a campaign has found: one outcome a fault, in a file and as a table."""

from __future__ import annotations

import dataclasses
import json
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recording import json_file, machine
from rich import box
from rich.table import Table

from sf.system.machine.cores import num_usable_cores

_COLUMNS = ("fault", "times", "recovered", "s", "s at most", "s to end at most", "frames lost", "episodes lost")


@dataclass(frozen=True)
class Outcome:
    task: str
    fault: str
    seconds: float  # until training had gone on, in a resumed run where it was ended
    seconds_to_end: float | None  # where it was
    frames_lost: int  # that training had to do without, or again
    episodes_lost: int
    broken: str | None  # what was promised and did not happen
    shard: int = 0  # of those side by side
    at_s: float = 0.0  # since the start of the campaign
    load: float = 0.0  # of the machine over the last minute

    @property
    def sentence(self) -> str:
        found = f"{self.seconds:.1f} s" if self.broken is None else f"NOT RECOVERED: {self.broken}"
        return f"{self.at_s:5.0f} s  shard {self.shard}  {self.task:10} {self.fault}: {found}"


@dataclass(frozen=True)
class Results:
    """facts: how and where the campaign ran."""

    outcomes: list[Outcome]
    facts: dict[str, Any]

    @property
    def num_recovered(self) -> int:
        return sum(outcome.broken is None for outcome in self.outcomes)

    def write(self, path: Path | None) -> None:
        json_file.write(path, {**self.facts, "outcomes": [dataclasses.asdict(o) for o in self.outcomes]})

    @classmethod
    def read(cls, path: Path) -> Results:
        found = json.loads(path.read_text())
        return cls([Outcome(**outcome) for outcome in found.pop("outcomes")], found)


def facts_of(command: Sequence[str]) -> dict[str, Any]:
    """Of a campaign that begins."""
    return {
        "command": list(command),
        "commit": machine.commit(),
        "began": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": num_usable_cores(),
        "executable": Path(sys.executable).name,
    }


def table(results: Results, faults: Sequence[str]) -> Table:
    """A row a kind of fault, in the order of `faults`."""
    of_kind: dict[str, list[Outcome]] = {}
    for outcome in results.outcomes:
        of_kind.setdefault(outcome.fault, []).append(outcome)
    found = Table(*_COLUMNS, box=box.MARKDOWN)
    for name in sorted(of_kind, key=lambda name: (faults.index(name) if name in faults else len(faults), name)):
        found.add_row(name, *_cells(of_kind[name]))
    return found


def _cells(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    seconds = [outcome.seconds for outcome in outcomes]
    to_end = [outcome.seconds_to_end for outcome in outcomes if outcome.seconds_to_end is not None]
    recovered = [outcome for outcome in outcomes if outcome.broken is None]  # what others have lost nobody knows
    return (
        str(len(outcomes)),
        str(len(recovered)),
        f"{statistics.median(seconds):.1f}",
        f"{max(seconds):.1f}",
        f"{max(to_end):.1f}" if to_end else "",
        f"{statistics.median(outcome.frames_lost for outcome in recovered):,.0f}" if recovered else "",
        f"{statistics.median(outcome.episodes_lost for outcome in recovered):.0f}" if recovered else "",
    )


def sentences(results: Results) -> list[str]:
    """What the table does not say: how many faults of how many kinds, where, of which tasks, and all that broke."""
    outcomes, facts = results.outcomes, results.facts
    said = [f"{len(outcomes)} faults, {results.num_recovered} recovered"]
    if outcomes:
        loads = [outcome.load for outcome in outcomes]
        minutes = max(outcome.at_s for outcome in outcomes) / 60
        kinds = len({outcome.fault for outcome in outcomes})
        said[0] += (
            f"; {kinds} kinds, {minutes:.0f} minutes, commit {facts.get('commit')}, "
            f"{facts.get('cores')} cores, load {min(loads):.0f} to {max(loads):.0f}"
        )
        tasks = Counter(outcome.task for outcome in outcomes)
        said.append("by task: " + ", ".join(f"{task} {num}" for task, num in tasks.items()))
    broken = [outcome for outcome in outcomes if outcome.broken is not None]
    return [*said, *(f"BROKEN {outcome.task}, {outcome.fault}: {outcome.broken}" for outcome in broken)]
