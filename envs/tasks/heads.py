"""The discrete heads of several tasks as one list, united by what their choices are called.

Heads that name a choice alike become one head with the choices of both, so "ATTACK" is the same choice in all tasks.
Two heads of one task stay two. Heads whose choices have no names are united by their position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sf.envs.group import EnvSpec
from sf.envs.spaces.actions import ActionSpec

_NOTHING = "NOOP"  # no reason to unite two heads, since most have it


class OwnHead(NamedTuple):
    """Says where a head of a task is. united: among the heads of all tasks. choices: of each of its own choices, the
    number among those of that head."""

    united: int
    choices: tuple[int, ...]


class UnitedHeads(NamedTuple):
    """names: of the choices of each head, in their order. of_tasks: the heads of each task, in its own order."""

    names: tuple[tuple[str, ...], ...]
    of_tasks: tuple[tuple[OwnHead, ...], ...]


def unite_heads(tasks: Sequence[Sequence[Sequence[str]]]) -> UnitedHeads:
    """Unites the heads of tasks, each given by the names of its choices.

    Each head joins the one, of those that no other head of its task has joined, with which it has the largest share of
    names in common. It begins another one if they share no name, or only that of doing nothing.
    """
    united: list[list[str]] = []
    of_tasks = []
    for heads in tasks:
        taken: list[OwnHead] = []
        for names in heads:
            idx = _best(united, names, {own.united for own in taken})
            if idx == len(united):
                united.append([])
            head = united[idx]
            head += [name for name in names if name not in head]
            taken.append(OwnHead(idx, tuple(map(head.index, names))))
        of_tasks.append(tuple(taken))
    return UnitedHeads(tuple(map(tuple, united)), tuple(of_tasks))


def choice_names(spec: EnvSpec) -> list[tuple[str, ...]]:
    """Returns a name for each choice of each head. One without names of its own has those of its position."""
    sizes = ActionSpec.of(spec.action_space).discrete_sizes
    given = spec.action_names or [()] * len(sizes)
    return [
        tuple(names) if len({*names}) == size else tuple(f"head {head} choice {choice}" for choice in range(size))
        for head, (names, size) in enumerate(zip(given, sizes, strict=True))
    ]


def _best(united: Sequence[Sequence[str]], names: Sequence[str], taken: set[int]) -> int:
    """Returns the head to join, or the number of all heads for another one."""
    shares = {}
    for idx, head in enumerate(united):
        common = {*head} & {*names}
        if idx not in taken and common - {_NOTHING}:
            shares[idx] = len(common) / len({*head} | {*names})
    return max(shares, key=shares.__getitem__, default=len(united))  # the first of several
