"""The flags of Atari games."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import require


@dataclass(frozen=True)
class AtariOptions:
    """A part of `sf.envs.options.EnvOptions`."""

    atari_episodic_life: bool = False
    """Atari: a lost life ends the episode for the learner. The reported score is still that of the whole game, and
    evaluations play whole games."""

    atari_clip_rewards: bool = True
    """Atari: clip the learner's rewards to [-1, 1]. The reported score is not clipped."""

    atari_sticky: float | None = None
    """Atari: probability that the emulator repeats the previous action instead of the new one (sticky actions).
    Default: 0 for atari_NAME and pettingzoo:atari/NAME, 0.25 for ALE/NAME-v5."""

    atari_raw: bool = False
    """pettingzoo:atari/NAME: show the players the raw screen of each frame, in colour, instead of what atari_NAME shows
    (84x84 grey, 4 frames, frameskip 4). Rewards are not clipped then. Other environments ignore it."""

    def check(self) -> None:
        """Raises UsageError for a value that cannot be."""
        sticky = self.atari_sticky
        require(sticky is None or 0.0 <= sticky < 1.0, f"atari_sticky is {sticky}: a probability from 0 to below 1")
