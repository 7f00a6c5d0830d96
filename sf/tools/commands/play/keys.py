"""The keys of a person who plays: those that are pressed, and which of them stand for which choice of an action.

A key by name comes first: arrows for what goes left, right, up and down, space for what fires. Names that are made of
several, such as ALE's UPRIGHTFIRE, are keys held together. Beside that, each choice has a key of its own in the order
of `ORDER`, if the action is one choice. Of several heads, each choice has one by its name, or else the next of `ORDER`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ORDER = "123456789abcdefghijklmnopqrstuvwxyz"
"""Keys for what has none by its name."""

NOTHING = "return"
"""The key that chooses nothing, where the game waits for one."""

_IDLE = ("NOOP", "NOTHING", "NO_OP", "NONE", "STAY", "STILL", "IDLE", "WAIT")

_BY_NAME = {
    **dict.fromkeys(("UP", "NORTH", "LOOK_UP"), ("up",)),
    **dict.fromkeys(("DOWN", "SOUTH", "LOOK_DOWN"), ("down",)),
    **dict.fromkeys(("LEFT", "WEST", "TURN_LEFT"), ("left",)),
    **dict.fromkeys(("RIGHT", "EAST", "TURN_RIGHT"), ("right",)),
    **dict.fromkeys(("FIRE", "ATTACK", "SHOOT"), ("space",)),
    **dict.fromkeys(("MOVE_FORWARD", "FORWARD", "MOVE_UP"), ("up", "w")),
    **dict.fromkeys(("MOVE_BACKWARD", "BACKWARD", "MOVE_DOWN"), ("down", "s")),
    **dict.fromkeys(("MOVE_LEFT", "STRAFE_LEFT"), ("left", "a")),
    **dict.fromkeys(("MOVE_RIGHT", "STRAFE_RIGHT"), ("right", "d")),
    "JUMP": ("space", "j"),
    "SPEED": ("left shift",),
    "USE": ("e",),
}
"""Keys by the name of a choice, the one to be preferred first."""

_PARTS = ("UP", "DOWN", "LEFT", "RIGHT", "FIRE")  # of names that are made of several
_WEAPON = re.compile(r"SELECT_WEAPON(\d)")
_AMOUNT = re.compile(r"(.*?)[ _]*(\d+(?:\.\d+)?)$")  # TURN_LEFT 6: by how much
_ON_THE_KEYPAD = {"enter": "return"}  # what has no brackets there


class Keyboard:
    """A window tells it of each key, by the name that pygame has for it: "left", "space", "a"."""

    def __init__(self) -> None:
        self._down: dict[str, None] = {}  # in the order in which they were pressed
        self._pressed: list[str] = []

    def note(self, key: str, is_down: bool) -> None:
        key = _ON_THE_KEYPAD.get(key, key.strip("[]"))
        self._down.pop(key, None)
        if is_down:
            self._down[key] = None
            self._pressed.append(key)

    def held(self) -> list[str]:
        """The keys that are down, or were since the last call: a short press counts, too. The last pressed comes last.

        Takes all presses.
        """
        pressed = list(dict.fromkeys(reversed(self._pressed)))[::-1]
        self._pressed.clear()
        return [key for key in self._down if key not in pressed] + pressed

    def next_press(self) -> list[str]:
        """The keys that are down, and last of all the one that was pressed first of those that nobody has taken.

        Takes that press. Call it where there `is_pressed`.
        """
        key = self._pressed.pop(0)
        return [each for each in self._down if each != key] + [key]

    @property
    def is_pressed(self) -> bool:
        """Returns whether there is a press that nobody has taken."""
        return bool(self._pressed)

    def forget(self) -> None:
        """Take all presses. Keys that are down stay so."""
        self._pressed.clear()


@dataclass(frozen=True)
class Binding:
    """Keys that are held together for a choice of a head."""

    keys: frozenset[str]
    head: int
    choice: int


class KeyMap:
    """names: of each choice of each head; a head may have choices without keys. idle: of each head the choice where no
    key is held.
    """

    def __init__(self, names: Sequence[Sequence[str]], bindings: Sequence[Binding]) -> None:
        self.names = names
        self.idle = [_idle(of_head) for of_head in names]
        self._bindings = bindings

    def chosen(self, held: Sequence[str]) -> list[int | None]:
        """The choice of each head by the keys that are held, the last pressed last; None: none of its keys is.

        Where the keys of several choices are held, it is the one with the most keys, and else the one that was pressed
        last.
        """
        since = {key: n for n, key in enumerate(held)}
        best: list[tuple[int, int] | None] = [None] * len(self.names)
        choices: list[int | None] = [None] * len(self.names)
        for each in self._bindings:
            rank = (len(each.keys), max(since.get(key, -1) for key in each.keys))
            before = best[each.head]
            if each.keys <= since.keys() and (before is None or rank > before):
                best[each.head], choices[each.head] = rank, each.choice
        return choices

    def has(self, key: str) -> bool:
        """Whether it is one of the keys of a choice."""
        return any(key in each.keys for each in self._bindings)

    def lines(self) -> Iterator[tuple[int, int, str]]:
        """Of each choice that has keys: its head, its number, and its keys in words."""
        keys_of: dict[tuple[int, int], list[str]] = {}
        for each in self._bindings:
            keys_of.setdefault((each.head, each.choice), []).append("+".join(sorted(each.keys, key=_arrows_first)))
        for (head, choice), keys in sorted(keys_of.items()):
            yield head, choice, " or ".join(keys)


def key_map(names: Sequence[Sequence[str]]) -> KeyMap:
    """The keys of an action with these names of choices, by head. Choices for which no key is left have none."""
    bindings: list[Binding] = []
    taken: set[frozenset[str]] = set()
    wishes = [
        (keys, head, choice)
        for head, of_head in enumerate(names)
        for choice, keys in _wishes(of_head, is_alone=len(names) == 1)
    ]
    for keys, head, choice in sorted(wishes, key=lambda wish: len(wish[0])):  # the choosy ones first
        free = next((key for key in keys if key not in taken), None)
        if free is not None:
            taken.add(free)
            bindings.append(Binding(free, head, choice))
    left = iter([key for key in ORDER if frozenset((key,)) not in taken])
    has_key = {(each.head, each.choice) for each in bindings}
    for head, of_head in enumerate(names):
        for choice in range(len(of_head)):
            is_wanted = len(names) == 1 or (_is_for_keys(of_head, choice) and (head, choice) not in has_key)
            key = next(left, None) if is_wanted else None
            if key is not None:
                bindings.append(Binding(frozenset((key,)), head, choice))
    return KeyMap(names, bindings)


def _idle(names: Sequence[str]) -> int:
    return next((n for n, name in enumerate(names) if name.upper() in _IDLE), 0)


def _is_for_keys(names: Sequence[str], choice: int) -> bool:
    """Whether a choice of one head among several needs a key: not if idle, or another amount of one with a key."""
    has_same = len(_of_the_same_base(names, choice)) > 1 and bool(_keys_by_name(_base(names[choice])))
    return choice != _idle(names) and not has_same


def _wishes(names: Sequence[str], is_alone: bool) -> Iterator[tuple[int, list[frozenset[str]]]]:
    """The keys that a choice of this head would have by its name, for those that would have some.

    Of choices that differ in an amount alone, it is the one at a third of them.
    """
    for choice, name in enumerate(names):
        weapon = _WEAPON.fullmatch(name)
        if weapon and not is_alone:  # there, digits are for the order
            yield choice, [frozenset(weapon[1])]
            continue
        keys = _keys_by_name(_base(name))
        if keys:
            same = _of_the_same_base(names, choice)
            if choice == same[(len(same) - 1) // 3]:
                yield choice, keys


def _of_the_same_base(names: Sequence[str], choice: int) -> list[int]:
    """The choices whose names differ from this one in an amount alone, the smallest first."""
    base = _base(names[choice])
    return sorted((n for n, name in enumerate(names) if _base(name) == base), key=lambda n: _amount(names[n]))


def _base(name: str) -> str:
    found = _AMOUNT.fullmatch(name)
    return found[1] if found and found[1] else name


def _amount(name: str) -> float:
    found = _AMOUNT.fullmatch(name)
    return float(found[2]) if found and found[1] else 0.0


def _keys_by_name(name: str) -> list[frozenset[str]]:
    name = "_".join(re.findall(r"[A-Z0-9]+", name.upper()))
    if name in _BY_NAME:
        return [frozenset((key,)) for key in _BY_NAME[name]]
    joined = name.replace("_", "")
    parts = re.findall("|".join(_PARTS), joined)
    if len(parts) > 1 and "".join(parts) == joined:
        return [frozenset(_BY_NAME[part][0] for part in parts)]
    return []


def _arrows_first(key: str) -> tuple[bool, str]:
    return key not in ("up", "down", "left", "right"), key
