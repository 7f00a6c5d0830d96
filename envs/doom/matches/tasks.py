"""The multiplayer Doom tasks: one table, what the flags make of its rows, and bots of a difficulty."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sf.envs.doom.matches.wads import deathmatch_starts, find_wad, is_complete_game
from sf.envs.doom.shaping import AGAINST_BOTS, SELF_PLAY, Shaping
from sf.envs.errors import UsageError
from sf.envs.options import EnvOptions

MATCH_S, BOT_DIFFICULTY = "doom_match_s", "doom_bot_difficulty"
MOST_DIFFICULT = 100  # bots
FRAMESKIP = 2
TICS_PER_S = 35
MAX_PLAYERS = 16  # of the engine, bots included
_BOT_SKILLS = ("aiming", "perfection", "reaction", "isp")  # isp: instant shooting power; each from 0 to 100
PLACES_OF_A_DEATHMATCH = 4  # that a map for one has, by the rules of the game
DEFAULT_WAD, DEFAULT_MAP = "cig.wad", "MAP02"  # docs/doom.md says why


@dataclass(frozen=True)
class MatchTask:
    """A row of the table. A number of None is the user's to choose."""

    agents: int | None
    bots: int | None
    default_agents: int
    default_bots: int
    shaping: Shaping


MATCHES = {
    "doom_duel": MatchTask(2, 0, 2, 0, SELF_PLAY),
    "doom_deathmatch": MatchTask(None, None, 4, 0, SELF_PLAY),
    "doom_duel_bots": MatchTask(1, 1, 1, 1, AGAINST_BOTS),
    "doom_deathmatch_bots": MatchTask(1, None, 1, 7, AGAINST_BOTS),
}


@dataclass(frozen=True)
class MatchSetup:
    """Holds all that a match needs to know."""

    num_agents: int
    num_bots: int
    bot_difficulty: int | None
    wad: Path
    wad_is_complete: bool  # nothing is below it; else Freedoom, with its weapons and monsters, is
    map_name: str
    time_limit: int  # tics
    shaping: Shaping
    winning_is_objective: bool  # else the frags are
    teams: tuple[int, ...] = ()  # of the agents; (): each plays for itself


def schedulable(setup: MatchSetup) -> dict[str, tuple[float, float]]:
    """Returns the options that a match may begin with, see `sf.envs.added.episode_options`: the flags of these names.

    Bots have a difficulty that can change where they were given one.
    """
    difficulty = {BOT_DIFFICULTY: (0, MOST_DIFFICULT)} if setup.num_bots and setup.bot_difficulty is not None else {}
    return {MATCH_S: (1.0, 3600.0), **difficulty}


def match_setup(env_id: str, options: EnvOptions) -> MatchSetup:
    """Raises UsageError for a number of players, a WAD or a map that the task or the engine cannot do with."""
    task = MATCHES[env_id]
    num_agents = _choose("doom_num_agents", options.doom_num_agents, task.agents, task.default_agents, env_id)
    num_bots = _choose("doom_num_bots", options.doom_num_bots, task.bots, task.default_bots, env_id)
    if not 2 <= num_agents + num_bots <= MAX_PLAYERS:
        raise UsageError(
            f"doom_num_agents is {num_agents} and doom_num_bots {num_bots}: a match takes 2 to {MAX_PLAYERS} players, "
            "bots included"
        )
    wad = find_wad(options.doom_wad or DEFAULT_WAD)
    map_name = _find_map(wad, options)
    places = deathmatch_starts(wad)[map_name]
    # With the two of multi_duel.wad, the engine crashes for three players and more. With four it never has.
    if places < min(num_agents + num_bots, PLACES_OF_A_DEATHMATCH):
        raise UsageError(
            f"doom_map {map_name} of {wad.name} has {places} places to start from, and the match "
            f"{num_agents + num_bots} players: name another map, or {places} players by --doom_num_agents and "
            "--doom_num_bots"
        )
    return MatchSetup(
        num_agents,
        num_bots,
        options.doom_bot_difficulty,
        wad,
        is_complete_game(wad),
        map_name,
        round(options.doom_match_s * TICS_PER_S),
        task.shaping,
        winning_is_objective=num_agents > 1,
        teams=_teams(options.doom_teams, num_agents, num_bots),
    )


def _teams(num_teams: int | None, num_agents: int, num_bots: int) -> tuple[int, ...]:
    """Returns the team of each agent. Raises UsageError where they cannot be of one size, or bots would be in none."""
    if num_teams is None:
        return ()
    if num_bots:
        raise UsageError(f"doom_teams is {num_teams}, and {num_bots} bots would be in no team: set --doom_num_bots 0")
    if num_agents % num_teams:
        raise UsageError(
            f"doom_teams is {num_teams}, and a match has {num_agents} agents: make doom_num_agents a multiple of it"
        )
    return tuple(agent * num_teams // num_agents for agent in range(num_agents))


def _choose(flag: str, chosen: int | None, fixed: int | None, default: int, env_id: str) -> int:
    if fixed is not None and chosen not in (None, fixed):
        raise UsageError(f"{flag} is {chosen}: {env_id} has {fixed}; doom_deathmatch takes any number")
    return default if chosen is None else chosen


def _find_map(wad: Path, options: EnvOptions) -> str:
    starts = deathmatch_starts(wad)
    playable = [name for name, count in starts.items() if count > 0]
    if not playable:
        raise UsageError(f"doom_wad is {str(wad)!r}: none of its maps has a place to start from in a deathmatch")
    if options.doom_map is None:
        return DEFAULT_MAP if wad == find_wad(DEFAULT_WAD) else playable[0]
    name = options.doom_map.upper()
    if name not in playable:
        trouble = "has no place to start from in a deathmatch" if name in starts else "is not in it"
        raise UsageError(
            f"doom_map is {options.doom_map!r}, doom_wad {wad.name}: the map {trouble}; use {', '.join(playable)}"
        )
    return name


class BotsFile:
    """A file, in memory, of bots of all difficulties, for an engine to read when it starts."""

    def __init__(self) -> None:
        places = range(MAX_PLAYERS)
        bots = "\n".join(_bot(difficulty, place) for difficulty in range(MOST_DIFFICULT + 1) for place in places)
        self._fd = os.memfd_create("bots.cfg")
        os.write(self._fd, bots.encode())
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        os.close(self._fd)


def bot_name(difficulty: int, place: int) -> str:
    """Returns the name of a bot in a `BotsFile`. place: tells it from others of this difficulty."""
    return f"Bot{difficulty}_{place}"


def _bot(difficulty: int, place: int) -> str:
    skills = "".join(f"    {name} {difficulty}\n" for name in _BOT_SKILLS)
    return f'{{\n    name {bot_name(difficulty, place)}\n{skills}    color "40 cf 00"\n    skin base\n}}\n'
