"""The keys of a person who plays: those that are down, and those that were pressed since somebody asked."""

from __future__ import annotations

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
        """Whether there is a press that nobody has taken."""
        return bool(self._pressed)

    def forget(self) -> None:
        """Take all presses. Keys that are down stay so."""
        self._pressed.clear()
