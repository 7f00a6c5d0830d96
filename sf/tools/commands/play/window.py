"""A screen that is a window: Esc or Q closes it, space pauses. Where a person plays, keys are for the game."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sf.system.machine.extras import how_to_install

_SHARE_OF_DESKTOP = 0.9
_PATIENCE_MS = 100


class Window:
    """Shows pictures at the pace of real time."""

    is_full = False  # there is always room for more
    max_fps = 60.0

    def __init__(
        self,
        interrupted: Callable[[], bool],
        note_key: Callable[[str, bool], None] | None = None,
        instead: str = "give --video FILE.mp4",
    ) -> None:
        """interrupted: whether to stop waiting, also in a pause. note_key: told of each key by its name, and whether it
        goes down; then Esc alone closes the window, and Tab pauses. instead: what to do where there can be no window.

        Raises ValueError where there is no screen to show a window on, or pygame is missing.
        """
        if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")):
            raise ValueError(f"there is no screen here (neither DISPLAY nor WAYLAND_DISPLAY is set): {instead}")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame  # noqa: PLC0415  an extra
        except ImportError:
            raise ValueError(f"a window needs pygame: {how_to_install('video')}; or {instead}") from None
        self._pygame: Any = pygame
        self._interrupted = interrupted
        self._note_key = note_key
        self._closing: tuple[int, ...] = (pygame.K_ESCAPE, pygame.K_q) if note_key is None else (pygame.K_ESCAPE,)
        self._pausing: int = pygame.K_SPACE if note_key is None else pygame.K_TAB
        try:
            pygame.display.init()
        except pygame.error as error:
            raise ValueError(f"no window can be opened ({error}): {instead}") from None
        width, height = pygame.display.get_desktop_sizes()[0]
        self.limit = (int(width * _SHARE_OF_DESKTOP), int(height * _SHARE_OF_DESKTOP))
        self._due = 0.0  # when the next picture is to be shown, by time.monotonic()
        self._fps = 0.0

    def open(self, size: tuple[int, int], fps: float, title: str) -> None:
        self._fps = fps
        self._surface = self._pygame.display.set_mode(size)
        self._pygame.display.set_caption(title)

    def show(self, picture: np.ndarray) -> bool:
        """picture: [H, W, 3] uint8. Waits for its time. Returns False when the user has closed the window."""
        self._draw(picture)
        self._due = max(time.monotonic(), self._due + 1.0 / self._fps)
        return self._wait(lambda: self._due - time.monotonic())

    def wait_for(self, came: Callable[[], bool], picture: np.ndarray) -> bool:
        """Leave this picture on the screen until something has come. Returns as `show` does."""
        self._draw(picture)
        return self._wait(lambda: 0.0 if came() else math.inf)

    def finish(self) -> bool:
        """Nothing is left behind."""
        return False

    def close(self) -> None:
        self._pygame.display.quit()

    def _draw(self, picture: np.ndarray) -> None:
        pygame = self._pygame
        height, width, _ = picture.shape
        self._surface.blit(pygame.image.frombuffer(picture.tobytes(), (width, height), "RGB"), (0, 0))
        pygame.display.flip()

    def _wait(self, left_s: Callable[[], float]) -> bool:
        """left_s: seconds to wait; asked anew after each event."""
        pygame = self._pygame
        paused = False
        while not self._interrupted():
            left_ms = _PATIENCE_MS if paused else math.ceil(min(_PATIENCE_MS, 1000.0 * left_s()))
            first = [pygame.event.wait(left_ms)] if left_ms > 0 else []
            for event in (*first, *pygame.event.get()):
                key = event.key if event.type == pygame.KEYDOWN else None
                if event.type == pygame.QUIT or key in self._closing:
                    return False
                if key == self._pausing:
                    paused = not paused
                elif self._note_key is not None and (event.type == pygame.KEYUP or (key is not None and not paused)):
                    self._note_key(pygame.key.name(event.key), key is not None)
            if not paused and left_s() <= 0:
                return True
        return False
