"""The record of a population in its run directory, for a resumed run and for people.

population.jsonl   one event in each line: the start of a policy, a mutation, a replacement
population.log     the same in sentences, made from population.jsonl

Only the parent writes. Events are on the disk before they are carried out. So after a kill the record may be ahead of
the policies, but never behind. A half-written last line was not carried out, and is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from sf.league.population.evolution import Decision, Member
from sf.league.population.lineage import Event, PolicyHistory, histories, sentences
from sf.storage import text_files
from sf.storage.run_dir import write_atomically

EVENTS = "population.jsonl"
SENTENCES = "population.log"


class PopulationRecord:
    """The record in a run directory: continued, or begun where there is none.

    initial: hyperparameters of each policy at its start, by policy id. A policy in the record has those of its last
    event instead. Raises ValueError where the record is damaged or of a larger population, OSError where it cannot be
    written.
    """

    def __init__(self, run_dir: Path, initial: Mapping[int, Mapping[str, float]]) -> None:
        self._run_dir = run_dir
        self.events: list[Event] = read_events(run_dir) if (run_dir / EVENTS).exists() else []
        known = self.policies.keys()
        if known - initial.keys():
            raise ValueError(
                f"num_policies is {len(initial)}, but {run_dir / EVENTS} is of {len(known)} policies: set num_policies "
                f"to {len(known)}, or start over with --restart_behavior restart"
            )
        self._extend(  # even by nothing: this repairs what a kill left half written
            [
                Event(number, "start", policy_id, 0, None, None, None, dict(initial[policy_id]))
                for number, policy_id in enumerate(sorted(initial.keys() - known), start=len(self.events))
            ]
        )

    @property
    def policies(self) -> dict[int, PolicyHistory]:
        """The state to resume with, by policy id.

        Where a policy's checkpoint has an earlier `weights_event`, its last replacement has to be repeated.
        """
        return histories(self.events)

    @property
    def num_decisions(self) -> int:
        return sum(event.kind != "start" for event in self.events)

    def add(self, decisions: Sequence[Decision], members: Sequence[Member], env_steps: Mapping[int, int]) -> list[str]:
        """Record the decisions of one generation before they are carried out. Returns a sentence for each.

        members: all policies in question. env_steps: that each policy has trained on, by policy id. Raises OSError
        where they cannot be written. Then none is recorded, and none may be carried out.
        """
        objectives = {member.policy_id: member.objective for member in members}
        return self._extend(
            [
                Event(
                    number=number,
                    kind="mutation" if decision.copies is None else "replacement",
                    policy_id=decision.policy_id,
                    env_steps=env_steps[decision.policy_id],
                    objective=objectives[decision.policy_id],
                    copies=decision.copies,
                    copied_objective=None if decision.copies is None else objectives[decision.copies],
                    hyperparameters=dict(decision.hyperparameters),
                )
                for number, decision in enumerate(decisions, start=len(self.events))
            ]
        )

    def _extend(self, added: Sequence[Event]) -> list[str]:
        events, num_old = [*self.events, *added], len(self.events)
        _append(self._run_dir / EVENTS, [json.dumps(asdict(event)) for event in events], num_old)
        self.events = events
        lines = sentences(events)
        with suppress(OSError):  # the next call writes it again, from the events
            _append(self._run_dir / SENTENCES, lines, num_old)
        return lines[num_old:]


def read_events(run_dir: Path) -> list[Event]:
    """All whole events. Raises ValueError where one is damaged or the record cannot be read, FileNotFoundError where it
    is not there."""
    path = run_dir / EVENTS
    try:
        text = path.read_bytes()
    except (PermissionError, IsADirectoryError) as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): restore the file, or its permissions") from None
    events: list[Event] = []
    known: set[int] = set()  # policies that have started
    for line in text.split(b"\n")[:-1]:  # after the last line end comes nothing, or half a line
        try:
            event = Event(**json.loads(line))
            _require_kinds(event, known)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}, line {len(events) + 1}, is no event ({error}): restore the file") from None
        if event.number != len(events):
            raise ValueError(
                f"{path}, line {len(events) + 1}, is event {event.number} instead of {len(events)}: restore the file"
            )
        events.append(event)
        known.add(event.policy_id)
    return events


def _require_kinds(event: Event, known: Collection[int]) -> None:
    """Raises ValueError for an event that no population has written. known: the policies that have started."""
    counts = (event.number, event.policy_id, event.env_steps)
    numbers = list(event.hyperparameters.values()) if isinstance(event.hyperparameters, dict) else [None]
    if event.kind != "start":
        numbers.append(event.objective)
    if event.kind == "replacement":
        numbers.append(event.copied_objective)
    if not all(type(value) is int and value >= 0 for value in counts):
        raise ValueError("number, policy_id and env_steps must be whole numbers")
    if not all(type(value) in (int, float) for value in numbers):
        raise ValueError("hyperparameters and objectives must be numbers")
    of_others = {
        "start": True,
        "mutation": event.policy_id in known,
        "replacement": {event.policy_id, event.copies} <= {*known},
    }
    if not of_others.get(event.kind, False):
        raise ValueError("its policy has not started")


def _append(path: Path, lines: Sequence[str], num_old: int) -> None:
    """Append the lines from number `num_old` on, all or none. Raises OSError.

    A file that has another size than it should is written again as a whole: it may end in half a line, or its directory
    may have been removed.
    """
    texts = [f"{line}\n".encode() for line in lines]
    old_size = sum(len(text) for text in texts[:num_old])
    if (path.stat().st_size if path.exists() else 0) != old_size:
        write_atomically(path, b"".join(texts))
        return
    text_files.append(path, b"".join(texts[num_old:]))
