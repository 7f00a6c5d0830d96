"""Everything about an environment that a flag can change. Each field is a command-line flag of the same name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sf.envs.errors import UsageError
from sf.envs.field_types import AS_JSON, check_fields


@dataclass(frozen=True)
class EnvOptions:
    """Options of environments; each family reads its own and leaves the rest alone."""

    env_frameskip: int | None = None
    """Frames the simulator advances for one decision. Default: what the environment is usually trained with."""

    env_kwargs: str = field(default="{}", metadata=AS_JSON)
    """JSON object of keyword arguments for the environment, for example '{"continuous": true}'. A file and Python may
    have a mapping instead."""

    strict_spaces: bool = False
    """An observation outside of the low and high of its Box is an error, at every step. Default: one in 127 is
    looked at; where it is outside, that is said once, and training goes on."""

    atari_episodic_life: bool = False
    """Atari: the loss of a life ends the episode for the learner (the score is still that of the whole game)."""

    atari_clip_rewards: bool = True
    """Atari: rewards are clipped to [-1, 1] for the learner (the score is not)."""

    atari_sticky: float | None = None
    """Atari: probability that the emulator repeats the previous action instead of the one it is given.
    Default: 0 for atari_NAME, 0.25 for ALE/NAME-v5."""

    doom_shaping: bool = True
    """Doom: shaped rewards for the learner. The reported return is always the scenario's own; of a match, the frags."""

    doom_map: str | None = None
    """Doom matches: a map of doom_wad. Default: MAP02 of cig.wad, or the first one of another doom_wad."""

    doom_wad: str | None = None
    """Doom matches: path of a WAD, or the name of one that comes with ViZDoom. Default: cig.wad."""

    doom_num_agents: int | None = None
    """doom_deathmatch: agents of a match. Default: 4."""

    doom_num_bots: int | None = None
    """doom_deathmatch, doom_deathmatch_bots: the engine's own bots in a match. Default: none, and 7."""

    doom_bot_difficulty: int | None = None
    """Doom matches: how well all bots aim and react, from 0 to 100. Default: ViZDoom's bots, which differ."""

    doom_match_s: float = 240.0
    """Doom matches: time limit, in seconds of the game (35 tics each)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.env_frameskip is not None and self.env_frameskip < 1:
            raise UsageError(f"env_frameskip is {self.env_frameskip}: it must be at least 1 frame a step")
        if self.atari_sticky is not None and not 0.0 <= self.atari_sticky < 1.0:
            raise UsageError(f"atari_sticky is {self.atari_sticky}: a probability from 0 to below 1")
        if self.doom_num_agents is not None and self.doom_num_agents < 1:
            raise UsageError(f"doom_num_agents is {self.doom_num_agents}: at least 1")
        if self.doom_num_bots is not None and self.doom_num_bots < 0:
            raise UsageError(f"doom_num_bots is {self.doom_num_bots}: 0 or greater")
        if self.doom_bot_difficulty is not None and not 0 <= self.doom_bot_difficulty <= 100:
            raise UsageError(f"doom_bot_difficulty is {self.doom_bot_difficulty}: from 0 to 100")
        if not 1.0 <= self.doom_match_s <= 3600.0:
            raise UsageError(f"doom_match_s is {self.doom_match_s}: from 1 second to an hour of the game")
        self.kwargs  # noqa: B018  a wrong JSON is reported at once

    @property
    def kwargs(self) -> dict:
        """`env_kwargs` as a dictionary. Raises UsageError where it is not a JSON object."""
        try:
            parsed = json.loads(self.env_kwargs)
        except json.JSONDecodeError as error:
            raise UsageError(f"env_kwargs is not JSON ({error}): write it as '{{\"name\": value}}'") from None
        if not isinstance(parsed, dict):
            raise UsageError(f"env_kwargs is {self.env_kwargs}: it must be a JSON object, '{{\"name\": value}}'")
        return parsed
