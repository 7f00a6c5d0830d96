"""A screen that is a window: Esc or Q closes it, space pauses."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sf.machine.extras import how_to_install

_SHARE_OF_DESKTOP = 0.9
_PATIENCE_MS = 100


class Window:
    """Shows pictures at the pace of real time."""

    is_full = False  # there is always room for more
    max_fps = 60.0

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        """interrupted: whether to stop waiting, also in a pause.

        Raises ValueError where there is no screen to show a window on, or pygame is missing.
        """
        if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")):
            raise ValueError(
                "there is no screen here (neither DISPLAY nor WAYLAND_DISPLAY is set): give --video FILE.mp4"
            )
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame  # noqa: PLC0415  an extra
        except ImportError:
            raise ValueError(f"a window needs pygame: {how_to_install('video')}; or give --video FILE.mp4") from None
        self._pygame: Any = pygame
        self._interrupted = interrupted
        try:
            pygame.display.init()
        except pygame.error as error:
            raise ValueError(f"no window can be opened ({error}): give --video FILE.mp4") from None
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
        pygame = self._pygame
        height, width, _ = picture.shape
        self._surface.blit(pygame.image.frombuffer(picture.tobytes(), (width, height), "RGB"), (0, 0))
        pygame.display.flip()
        self._due = max(time.monotonic(), self._due + 1.0 / self._fps)
        paused = False
        while not self._interrupted():
            left_ms = _PATIENCE_MS if paused else min(_PATIENCE_MS, math.ceil(1000.0 * (self._due - time.monotonic())))
            first = [pygame.event.wait(left_ms)] if left_ms > 0 else []
            for event in (*first, *pygame.event.get()):
                key = event.key if event.type == pygame.KEYDOWN else None
                if event.type == pygame.QUIT or key in (pygame.K_ESCAPE, pygame.K_q):
                    return False
                if key == pygame.K_SPACE:
                    paused = not paused
            if not paused and time.monotonic() >= self._due:
                return True
        return False

    def finish(self) -> bool:
        """Nothing is left behind."""
        return False

    def close(self) -> None:
        self._pygame.display.quit()
