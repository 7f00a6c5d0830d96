"""What a person does with the keys: the choices of each step, and what is said of those that are not allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.tools.commands.play.console import Console, Line
from sf.tools.commands.play.keys import NOTHING, ORDER, Keyboard, KeyMap, key_map

_NEXT_PAGE = "page down"


class WindowClosedError(Exception):
    """While the game waited for a key."""


class Controls:
    """The keys of one environment. Call `choose` for each decision.

    Where there are more actions than keys, the keys are for those that the action mask allows, in their order.
    """

    def __init__(self, env_id: str, spec: EnvSpec, waits: bool, keyboard: Keyboard, console: Console) -> None:
        """waits: for a key at each decision; else a step in which no key is down takes the idle choices.

        Raises UsageError where there are too many actions for the keys.
        """
        self._sizes = ActionSpec.of(spec.action_space).discrete_sizes
        self._names = spec.action_names or _numbered(self._sizes)
        self._waits = waits
        self._is_paged = len(self._sizes) == 1 and self._sizes[0] > len(ORDER)
        if self._is_paged and not (waits and ACTION_MASK in spec.obs_space.spaces):
            raise UsageError(
                f"{env_id} has {self._sizes[0]} actions, and there are {len(ORDER)} keys for them: name an environment "
                "with fewer, or one that waits for a move and has an action mask"
            )
        self._keyboard = keyboard
        self._console = console
        self._maps: dict[tuple[str, ...], KeyMap] = {}
        self._map = key_map(self._names)
        console.num_lines = len(ORDER) if self._is_paged else len([*self._map.lines()])

    @property
    def idle(self) -> list[int]:
        """The choice of each head where nothing is chosen."""
        return self._map.idle

    def begin(self) -> None:
        """An episode begins. Where the game does not wait at each decision, it waits here. Raises WindowClosedError."""
        self._keyboard.forget()
        if self._waits:
            return
        self._console.lines = self._lines(self._map, None, ())
        self._console.said = "press any key to begin"
        self._wait_for_press()
        self._keyboard.forget()
        self._console.said = ""

    def choose(self, mask: np.ndarray | None, moves: Mapping[int, str]) -> list[int]:
        """A choice of each head that the mask allows.

        mask: [sum of the heads' sizes]. moves: what the allowed actions are called now, if the position decides that.
        Raises WindowClosedError.
        """
        if self._is_paged:
            assert mask is not None
            return [self._choose_of_many(np.flatnonzero(mask).tolist(), moves)]
        keys = self._map_of([moves.get(n, "") for n in range(self._sizes[0])]) if moves else self._map
        allowed = None if mask is None else np.split(mask.astype(bool), np.cumsum(self._sizes)[:-1])
        if self._waits:
            return self._choose_in_turn(keys, allowed)
        choices = keys.chosen(self._keyboard.held())
        self._console.said = ""
        taken = [self._allowed(head, choice, keys, allowed) for head, choice in enumerate(choices)]
        self._console.lines = self._lines(keys, allowed, taken)
        return taken

    def _choose_in_turn(self, keys: KeyMap, allowed: Sequence[np.ndarray] | None) -> list[int]:
        self._console.lines = self._lines(keys, allowed, ())
        self._console.said = self._console.said or "your turn"
        while True:
            self._wait_for_press()
            held = self._keyboard.next_press()
            if held[-1] != NOTHING and not keys.has(held[-1]):
                continue  # another key, and what is held besides was a move already
            choices: list[int | None] = [*keys.idle] if held[-1] == NOTHING else keys.chosen(held)
            if all(choice is None for choice in choices):
                continue
            self._console.said = ""
            taken = [self._allowed(head, choice, keys, allowed) for head, choice in enumerate(choices)]
            if not self._console.said:
                return taken

    def _choose_of_many(self, allowed: Sequence[int], moves: Mapping[int, str]) -> int:
        page, num_pages = 0, -(-len(allowed) // len(ORDER))
        while True:
            of_page = allowed[page * len(ORDER) : (page + 1) * len(ORDER)]
            keys = self._map_of([moves.get(n) or self._names[0][n] for n in of_page])
            self._console.lines = self._lines(keys, None, ())
            self._console.said = f"your turn{f': page {page + 1} of {num_pages}, page down' if num_pages > 1 else ''}"
            self._wait_for_press()
            held = self._keyboard.next_press()
            if held[-1] == _NEXT_PAGE:
                page = (page + 1) % num_pages
            elif keys.has(held[-1]):
                (choice,) = keys.chosen(held)
                if choice is not None:
                    self._console.said = ""
                    return of_page[choice]

    def _wait_for_press(self) -> None:
        if not self._console.wait_for(lambda: self._keyboard.is_pressed):
            raise WindowClosedError

    def _allowed(self, head: int, choice: int | None, keys: KeyMap, allowed: Sequence[np.ndarray] | None) -> int:
        """The choice, or one in its place that is allowed."""
        taken = keys.idle[head] if choice is None else choice
        if allowed is None or allowed[head][taken]:
            return taken
        if choice is not None:
            self._console.said = f"{keys.names[head][taken] or self._names[head][taken]} is not allowed now"
        return keys.idle[head] if allowed[head][keys.idle[head]] else int(allowed[head].argmax())

    def _map_of(self, names: Sequence[str]) -> KeyMap:
        """Of the one head, with these names."""
        if tuple(names) not in self._maps:
            self._maps = {tuple(names): key_map([names])}  # the others are of other positions
        return self._maps[tuple(names)]

    def _lines(self, keys: KeyMap, allowed: Sequence[np.ndarray] | None, taken: Sequence[int]) -> tuple[Line, ...]:
        return tuple(
            Line(
                words,
                keys.names[head][choice] or self._names[head][choice],
                allowed is None or bool(allowed[head][choice]),
                bool(taken) and taken[head] == choice,
            )
            for head, choice, words in keys.lines()
        )


def _numbered(sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    if len(sizes) == 1:
        return (tuple(f"action {n}" for n in range(sizes[0])),)
    return tuple(tuple(f"choice {head}: {n}" for n in range(size)) for head, size in enumerate(sizes, 1))
