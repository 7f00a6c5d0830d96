"""The flags of Doom."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import require


@dataclass(frozen=True)
class DoomOptions:
    """A part of `sf.envs.options.EnvOptions`."""

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

    def check(self) -> None:
        """Raises UsageError for a value that cannot be."""
        agents, bots, difficulty = self.doom_num_agents, self.doom_num_bots, self.doom_bot_difficulty
        require(agents is None or agents >= 1, f"doom_num_agents is {agents}: at least 1")
        require(bots is None or bots >= 0, f"doom_num_bots is {bots}: 0 or greater")
        require(difficulty is None or 0 <= difficulty <= 100, f"doom_bot_difficulty is {difficulty}: from 0 to 100")
        require(
            1.0 <= self.doom_match_s <= 3600.0,
            f"doom_match_s is {self.doom_match_s}: from 1 second to an hour of the game",
        )
