"""The preprocessing of Mnih et al. 2015: its numbers, and the part of it that is done here for several players.

ALE does it itself for one player.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.field_types import require

FRAMESKIP = 4
FRAMES_PER_S = 60.0
SWITCHES = {"full_action_space", "grayscale", "maxpool", "use_fire_reset"}
LEAST = {"img_height": 1, "img_width": 1, "max_num_frames_per_episode": 1, "noop_max": 0, "stack_num": 1}


def require_value(env_id: str, name: str, value: Any) -> None:
    """Raises UsageError for an argument that the preprocessing does not have, or a value that it cannot have.

    The emulator waits for ever with some others.
    """
    if name in SWITCHES:
        require(isinstance(value, bool), f"env_kwargs has the {name} {value!r}: true or false")
    elif name in LEAST:
        is_right = type(value) is int and LEAST[name] <= value < 2**31
        require(is_right, f"env_kwargs has the {name} {value!r}: a whole number, at least {LEAST[name]}")
    else:
        allowed = ", ".join(sorted({*SWITCHES, *LEAST}))
        raise UsageError(f"env_kwargs has {name!r}, unknown to {env_id}: it may have {allowed}")


class Resize:
    """Scales screens [H, W] uint8 to [height, width] uint8: each pixel is the mean of the area that it covers.

    This is OpenCV's INTER_AREA, by which ALE scales the screens of one player.
    """

    def __init__(self, screen: tuple[int, int], height: int, width: int) -> None:
        """screen: H and W."""
        self._rows = _shares(screen[0], height)
        self._columns = _shares(screen[1], width)

    def __call__(self, screen: np.ndarray) -> np.ndarray:
        # Not by matrix products: NumPy spreads those over all cores, which other workers use.
        for shares in (self._rows, self._columns):
            parts = [weight[:, None] * screen[at] for at, weight in shares]
            screen = sum(parts[1:], parts[0]).T  # the other axis is next, and both are in place in the end
        return np.rint(screen).astype(np.uint8)


def _shares(num_pixels: int, num_scaled: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns, for the first pixel that each scaled one covers, the second, and so on: which it is [num_scaled], and
    its share of the mean [num_scaled]."""
    begins = np.arange(num_scaled) * num_pixels / num_scaled
    ends = begins + num_pixels / num_scaled
    found = []
    for k in range(int(np.ceil(ends - np.floor(begins)).max())):
        at = np.floor(begins).astype(int) + k
        share = np.clip(np.minimum(at + 1, ends) - np.maximum(at, begins), 0.0, None) / (ends - begins)
        found.append((np.minimum(at, num_pixels - 1), share.astype(np.float32)))
    return found
