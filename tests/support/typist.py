"""A person at a screen that nobody sees: keys are pressed when the game waits for one, or at a picture."""

from sf.tools.commands.play.console import Console
from sf.tools.commands.play.window import Window

_WAIT_FOR, _SHOW = Console.wait_for, Window.show


class Typist:
    """at_wait: keys that are pressed and released, one each time the game waits; after the last, the window is closed.

    at_picture: by the number of the picture that is shown, from 1, a key that goes down ("+left") or up ("-left").
    said, lines: what the console had when the game waited, each time. num_pictures: that were shown.
    """

    def __init__(self, monkeypatch, at_wait=(), at_picture=None):
        monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
        self.said, self.lines = [], []
        self.num_pictures = 0
        self._keys = iter(at_wait)
        self._at_picture = at_picture or {}
        monkeypatch.setattr(Console, "wait_for", lambda *args: self._at_a_wait(*args))  # noqa: PLW0108  it binds
        monkeypatch.setattr(Window, "show", lambda *args: self._at_a_picture(*args))  # noqa: PLW0108

    def _at_a_wait(self, console, came):
        self.said.append(console.said)
        self.lines.append(console.lines)
        key = next(self._keys, "escape")
        post(f"+{key}")
        post(f"-{key}")
        return _WAIT_FOR(console, came)

    def _at_a_picture(self, window, picture):
        self.num_pictures += 1
        for key in self._at_picture.get(self.num_pictures, "").split():
            post(key)
        return _SHOW(window, picture)


def post(key):
    import pygame  # noqa: PLC0415  it reads the name of the screen's driver when it is imported

    kind = {"+": pygame.KEYDOWN, "-": pygame.KEYUP}[key[0]]
    pygame.event.post(pygame.event.Event(kind, key=pygame.key.key_code(key[1:])))
