"""One independent seed for every environment of a run, and for every process that has some."""

from __future__ import annotations

import random

import numpy as np


def env_seed(seed: int, *key: int) -> int:
    """A seed for what `key` stands for in a run seeded with `seed`: an environment, by its index over the whole run.

    From 1 to 2^31 - 1: the Atari emulator takes a signed 32-bit number and reads 0 as "not seeded".
    """
    state = np.random.SeedSequence([seed, *key]).generate_state(1)[0]
    return 1 + int(state) % (2**31 - 1)


def seed_process(seed: int, *key: int) -> None:
    """Seed the generators of `random` and NumPy that a whole process shares; `key`: what tells it from the others.

    Environments should draw from their own generator, and some do not: processes that are forked from one would then
    all draw the same.
    """
    state = np.random.SeedSequence([seed, *key]).generate_state(2)
    random.seed(int(state[0]))
    np.random.seed(int(state[1]))
