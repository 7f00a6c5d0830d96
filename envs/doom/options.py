"""The flags of Doom."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import require

MOST_TEAMS = 8  # of the engine


@dataclass(frozen=True)
class DoomOptions:
    """A part of `sf.envs.options.EnvOptions`."""

    doom_shaping: bool = True
    """Doom: train on shaped rewards. The reported return is never shaped: it is the scenario's own, or the frags of
    a match."""

    doom_map: str | None = None
    """Doom matches: a map in doom_wad. Default: MAP02 of cig.wad, or the first map of another WAD."""

    doom_wad: str | None = None
    """Doom matches: path of a WAD, or the name of one that ships with ViZDoom. Default: cig.wad."""

    doom_num_agents: int | None = None
    """doom_deathmatch: agents per match. Default: 4."""

    doom_num_bots: int | None = None
    """Bots of the engine per match. Default: 0 in doom_deathmatch, 7 in doom_deathmatch_bots."""

    doom_bot_difficulty: int | None = None
    """Doom matches: how well all bots aim and react, from 0 to 100. Default: ViZDoom's own mix of bots."""

    doom_teams: int | None = None
    """Doom matches of agents alone: number of teams of one size, whose members cannot hurt each other; the first agents
    are the first team. A team wins by the frags of its members. Default: each agent plays for itself."""

    doom_match_s: float = 240.0
    """Doom matches: time limit in seconds of game time (35 tics each)."""

    def check(self) -> None:
        """Raises UsageError for a value that cannot be."""
        agents, bots, difficulty = self.doom_num_agents, self.doom_num_bots, self.doom_bot_difficulty
        teams = self.doom_teams
        require(agents is None or agents >= 1, f"doom_num_agents is {agents}: at least 1")
        require(bots is None or bots >= 0, f"doom_num_bots is {bots}: 0 or greater")
        require(difficulty is None or 0 <= difficulty <= 100, f"doom_bot_difficulty is {difficulty}: from 0 to 100")
        require(
            teams is None or 2 <= teams <= MOST_TEAMS, f"doom_teams is {teams}: from 2 to {MOST_TEAMS}, or leave it out"
        )
        require(
            1.0 <= self.doom_match_s <= 3600.0,
            f"doom_match_s is {self.doom_match_s}: from 1 second to an hour of the game",
        )
