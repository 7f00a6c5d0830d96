"""A player of `toy_match_counting` that always does the same, and looks whether that is what happens."""

import os
from functools import partial

ACTION = 7


class Stubborn:
    def __init__(self):
        self._has_acted = False

    def reset(self):
        self._has_acted = False

    def act(self, observation):
        _, _, _, step, action = observation.tolist()
        if step == action == 0:  # zeros: the agent has left, and others play on
            return 0
        assert (action == ACTION) == (step > 0) == self._has_acted, (step, action)
        self._has_acted = True
        return ACTION


class NeedsMore(Stubborn):
    def __init__(self, what):
        super().__init__()
        self.what = what


def two(observation, step):
    return ACTION


with_a_step = partial(two, step=0)


class OnlyHere(Stubborn):
    """In the process that SF_TEST_PID names. Elsewhere it cannot be made."""

    def __init__(self):
        super().__init__()
        if os.environ["SF_TEST_PID"] != str(os.getpid()):
            raise ValueError("made elsewhere")
