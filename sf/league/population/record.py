"""The record of a population in its run directory, for a resumed run and for people.

population.jsonl   one event in each line: the start of a policy, a mutation, a replacement
population.log     the same in sentences, made from population.jsonl

Only the parent writes. Events are on the disk before they are carried out. So after a kill the record may be ahead of
the policies, but never behind. A half-written last line was not carried out, and is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sf.league.population.evolution import Decision, Member
from sf.metrics.readable import rounded
from sf.storage import text_files
from sf.storage.json_rows import row_of
from sf.storage.run_dir import write_atomically

EVENTS = "population.jsonl"
SENTENCES = "population.log"
_SHOWN_ANCESTORS = 5  # in a sentence


@dataclass(frozen=True)
class Event:
    """Records what happened to one policy."""

    number: int  # 0, 1, 2, ... in the record
    kind: str  # start, mutation, replacement
    policy_id: int
    env_steps: int  # that this policy had been trained on
    objective: float | None
    copies: int | None  # replacement: the policy whose weights and hyperparameters it received
    copied_objective: float | None
    hyperparameters: Mapping[str, float]  # all of them, from then on


@dataclass(frozen=True)
class Ancestor:
    """The policy whose weights another one received, and when."""

    policy_id: int
    env_steps: int  # that the receiving policy had been trained on


@dataclass(frozen=True)
class PolicyHistory:
    """Holds what the events of the population say of one policy."""

    hyperparameters: Mapping[str, float]
    ancestors: tuple[Ancestor, ...]  # where its weights come from, the latest first; none: from its own start
    weights_event: int  # number of the event that gave it these weights: its start, or its last replacement


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
                f"num_policies is {len(initial)}, but {run_dir / EVENTS} has {len(known)} policies: set num_policies "
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
    """Reads all whole events. Raises ValueError for a damaged or unreadable record, FileNotFoundError for none."""
    path = run_dir / EVENTS
    try:
        text = path.read_bytes()
    except (PermissionError, IsADirectoryError) as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): restore the file, or its permissions") from None
    events: list[Event] = []
    known: set[int] = set()  # policies that have started
    for line in text.split(b"\n")[:-1]:  # after the last line end comes nothing, or half a line
        try:
            event = row_of(Event, json.loads(line))
            _require_possible(event, known)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"{path}, line {len(events) + 1}, is not a valid event ({error}): restore the file"
            ) from None
        if event.number != len(events):
            raise ValueError(
                f"{path}, line {len(events) + 1}, is event {event.number} instead of {len(events)}: restore the file"
            )
        events.append(event)
        known.add(event.policy_id)
    return events


def _require_possible(event: Event, known: Collection[int]) -> None:
    """Raises ValueError for an event that no population has written. known: the policies that have started."""
    if event.kind not in ("start", "mutation", "replacement"):
        raise ValueError(f"its kind is {event.kind}")
    if event.kind != "start" and (event.policy_id not in known or event.objective is None):
        raise ValueError("its policy has not started, or has no objective")
    if event.kind == "replacement" and (event.copies not in known or event.copied_objective is None):
        raise ValueError("the policy that it copies has not started, or has no objective")


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


def histories(events: Iterable[Event]) -> dict[int, PolicyHistory]:
    """The state of each policy after these events, by policy id."""
    policies: dict[int, PolicyHistory] = {}
    for event in events:
        policies[event.policy_id] = _after(event, policies)
    return policies


def sentences(events: Iterable[Event]) -> list[str]:
    """Each event in words."""
    policies: dict[int, PolicyHistory] = {}
    lines = []
    for event in events:
        earlier = policies.get(event.policy_id)
        policies[event.policy_id] = _after(event, policies)
        parts = [
            _what_happened(event),
            _changes(earlier.hyperparameters if earlier else {}, event.hyperparameters),
            lineage(event.policy_id, policies) if earlier else "",
        ]
        lines.append("; ".join(part for part in parts if part))
    return lines


def lineage(policy_id: int, policies: Mapping[int, PolicyHistory]) -> str:
    """Returns "policy 3 <- policy 1 at 2.0M <- start" if it has had the weights of policy 1 since 2.0M env steps."""
    ancestors = policies[policy_id].ancestors
    links = [f"policy {policy_id}", *(f"policy {a.policy_id} at {rounded(a.env_steps)}" for a in ancestors)]
    num_left_out = len(ancestors) - _SHOWN_ANCESTORS
    if num_left_out > 0:
        links[-num_left_out:] = [f"{num_left_out} more"]
    return " <- ".join([*links, "start"])


def _after(event: Event, before: Mapping[int, PolicyHistory]) -> PolicyHistory:
    if event.kind == "start":
        return PolicyHistory(event.hyperparameters, (), event.number)
    if event.copies is None:
        own = before[event.policy_id]
        return PolicyHistory(event.hyperparameters, own.ancestors, own.weights_event)
    ancestors = (Ancestor(event.copies, event.env_steps), *before[event.copies].ancestors)
    return PolicyHistory(event.hyperparameters, ancestors, event.number)


def _what_happened(event: Event) -> str:
    policy = f"{event.env_steps:,} env steps: policy {event.policy_id}"
    if event.kind == "start":
        return f"{policy} starts"
    if event.kind == "mutation":
        return f"{policy} (objective {event.objective:.4g}) is mutated"
    return (
        f"{policy} (objective {event.objective:.4g}) takes over weights and hyperparameters of policy {event.copies} "
        f"(objective {event.copied_objective:.4g})"
    )


def _changes(old: Mapping[str, float], new: Mapping[str, float]) -> str:
    changes = []
    for name, value in new.items():
        if name not in old:
            changes.append(f"{name} {value:.4g}")
        elif value != old[name]:
            changes.append(f"{name} {old[name]:.4g} -> {value:.4g}")
    return ", ".join(changes)
