"""One independent seed for every environment of a run."""

from __future__ import annotations

import numpy as np


def env_seed(seed: int, env_idx: int) -> int:
    """The seed of environment `env_idx` (counted over the whole run) in a run seeded with `seed`.

    From 1 to 2^31 - 1: the Atari emulator takes a signed 32-bit number and reads 0 as "not seeded".
    """
    state = np.random.SeedSequence([seed, env_idx]).generate_state(1)[0]
    return 1 + int(state) % (2**31 - 1)
