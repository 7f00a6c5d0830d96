"""The events of a population and what follows from them: the state and the ancestors of each policy, in data and words.

Pure; sf.league.population.record keeps the events in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sf.metrics.readable import rounded

_SHOWN_ANCESTORS = 5  # in a sentence


@dataclass(frozen=True)
class Event:
    """What happened to one policy."""

    number: int  # 0, 1, 2, ... in the record
    kind: Literal["start", "mutation", "replacement"]
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
    """What the events of the population say of one policy."""

    hyperparameters: Mapping[str, float]
    ancestors: tuple[Ancestor, ...]  # where its weights come from, the latest first; none: from its own start
    weights_event: int  # number of the event that gave it these weights: its start, or its last replacement


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
    """For example "policy 3 <- policy 1 at 2.0M <- start": it has had the weights of policy 1 since 2.0M env steps."""
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
