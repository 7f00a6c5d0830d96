"""The engine's own bots, at a difficulty that the user chooses."""

from __future__ import annotations

import os

NUM_BOTS = 15  # the engine has 16 players, one of which is an agent
SKILLS = ("aiming", "perfection", "reaction", "isp")  # isp: instant shooting power; each from 0 to 100


class BotsFile:
    """A file, in memory, of bots that are all of one difficulty, for an engine to read."""

    def __init__(self, difficulty: int) -> None:
        """difficulty: 0 to 100."""
        skills = "".join(f"    {name} {difficulty}\n" for name in SKILLS)
        bots = [
            f'{{\n    name Bot{i}\n{skills}    color "40 cf 00"\n    skin base\n}}\n' for i in range(1, NUM_BOTS + 1)
        ]
        self._fd = os.memfd_create("bots.cfg")
        os.write(self._fd, "\n".join(bots).encode())
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        os.close(self._fd)
