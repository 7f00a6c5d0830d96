"""Everything about an environment that a flag can change. Each field is a command-line flag of the same name."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class EnvOptions:
    """Options of environments; each family reads its own and leaves the rest alone."""

    env_frameskip: int | None = None
    """Frames the simulator advances for one decision. Default: what the environment is usually trained with."""

    env_kwargs: str = "{}"
    """JSON object of keyword arguments for gymnasium.make, for example '{"continuous": true}'."""

    atari_episodic_life: bool = False
    """Atari: the loss of a life ends the episode for the learner (the score is still that of the whole game)."""

    atari_clip_rewards: bool = True
    """Atari: rewards are clipped to [-1, 1] for the learner (the score is not)."""

    atari_sticky: float | None = None
    """Atari: probability that the emulator repeats the previous action instead of the one it is given.
    Default: 0 for atari_NAME, 0.25 for ALE/NAME-v5."""

    doom_shaping: bool = True
    """Doom: add the scenario's shaped rewards. The reported return is always the scenario's own."""

    def __post_init__(self) -> None:
        if self.env_frameskip is not None and self.env_frameskip < 1:
            raise ValueError(f"env_frameskip is {self.env_frameskip}: it must be at least 1 frame a step")
        if self.atari_sticky is not None and not 0.0 <= self.atari_sticky < 1.0:
            raise ValueError(f"atari_sticky is {self.atari_sticky}: a probability from 0 to below 1")
        self.kwargs  # noqa: B018  a wrong JSON is reported at once

    @property
    def kwargs(self) -> dict:
        """`env_kwargs` as a dictionary. Raises ValueError where it is not a JSON object."""
        try:
            parsed = json.loads(self.env_kwargs)
        except json.JSONDecodeError as error:
            raise ValueError(f"env_kwargs is not JSON ({error}): write it as '{{\"name\": value}}'") from None
        if not isinstance(parsed, dict):
            raise ValueError(f"env_kwargs is {self.env_kwargs}: it must be a JSON object, '{{\"name\": value}}'")
        return parsed
