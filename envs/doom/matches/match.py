"""One match: the engines of its agents, joined and stepped in lockstep, and bots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, nullcontext, suppress

import vizdoom

from sf.envs.doom.engine import MAX_ATTEMPTS, Watchdog, start_engine, start_joined_engines
from sf.envs.doom.game import Game, Rows
from sf.envs.doom.matches.network import PrivateNetwork, ReservedPort
from sf.envs.doom.matches.player import Player
from sf.envs.doom.matches.tasks import BOT_DIFFICULTY, MATCH_S, TICS_PER_S, BotsFile, MatchSetup, bot_name
from sf.envs.group import Episode

JOIN_LIMIT_S = 40.0  # it takes a second where nothing else runs
MAX_TICS_FOR_BOTS = 70  # it takes two or three, if the map is large enough
TICS_IN_STEP = 4  # in a row: an engine changes its lead within two
MAX_TICS_OUT_OF_STEP = 20

# The dead come to life at once, far from all others, and safe for a moment. Nobody leaves before the time is over.
RULES = (
    "-deathmatch +sv_forcerespawn 1 +sv_respawnprotect 1 +sv_spawnfarthest 1 +viz_respawn_delay 0 +sv_noexit 1 "
    "+sv_noautoaim 1 +sv_nocrouch 1 +sv_nojump 1 +sv_nofreelook 1"
)
_TEAM_RULES = "+teamplay 1 +teamdamage 0"

log = logging.getLogger(__name__)


class Match(Game):
    """The first agent's engine is the host of the game, and those of the others join it over UDP, on this machine.

    With one agent there is no network, and the speed is that of a single-player game.

    The engines are peers: each simulates the whole game, from the actions of all players, which they send each other
    a tic ahead. So they are stepped in turn, from one thread and with none of them ever waiting for another, at nearly
    twice the speed that they have side by side on one core.

    The time limit is kept here and not in the engine, for the sake of the final observation: see `sf.envs.doom.game`.
    """

    def __init__(
        self,
        setup: MatchSetup,
        frameskip: int,
        shaped: bool,
        seed: int,
        make_engine: Callable[[], vizdoom.DoomGame] = vizdoom.DoomGame,
    ) -> None:
        """seed: 32 bits, the same for all engines: they must agree on everything that is random.

        Raises RuntimeError where an engine does not start, or they do not find each other.
        """
        self._frameskip = frameskip
        self._time_limit = self._next_time_limit = setup.time_limit
        self._bot_difficulty = setup.bot_difficulty
        self._num_bots = setup.num_bots
        self._winning_is_objective = setup.winning_is_objective
        self._teams = setup.teams
        self._players = [Player(setup, shaped, seed, make_engine) for _ in range(setup.num_agents)]
        self._host = self._players[0].game
        self._watchdog: Watchdog | nullcontext[None] = nullcontext()
        with ExitStack() as started:
            rules = f"{RULES} {_TEAM_RULES}" if setup.teams else RULES
            if setup.bot_difficulty is not None:
                bots = BotsFile()
                started.callback(bots.close)
                rules += f" +viz_bots_path {bots.path}"
            for player in self._players:
                started.callback(player.game.close)
            if len(self._players) == 1:
                self._host.set_game_args(f"-host 1 {rules}")
                start_engine(self._host)
            else:
                self._watchdog = Watchdog(self._join(rules, started))
                started.callback(self._watchdog.close)  # before the games are: it kills the engines
            self._started = started.pop_all()

    def reset(self, obs: Rows) -> None:
        # Each engine plays on until the host has changed the map, so they need a thread each.
        with self._watchdog, ThreadPoolExecutor(len(self._players)) as threads:
            list(threads.map(vizdoom.DoomGame.new_episode, [player.game for player in self._players]))
            self._fall_into_step(threads)
        self._add_bots()
        self._num_steps = self._tics = 0
        self._time_limit = self._next_time_limit
        for player, rows in zip(self._players, obs, strict=True):
            player.begin(rows)

    def step(self, choices: Sequence[Sequence[int]], obs: Rows) -> tuple[list[float], bool, bool]:
        """See `Game.step`. A match ends by its time limit only: terminated is always False."""
        tics = min(self._frameskip, self._time_limit - self._tics)
        for player, own_choices in zip(self._players, choices, strict=True):
            player.act(own_choices)
        self._advance(tics)
        self._tics += tics
        self._num_steps += 1
        truncated = self._tics == self._time_limit
        rewards = [player.observe(rows, truncated) for player, rows in zip(self._players, obs, strict=True)]
        return rewards, False, truncated

    def set_shaping(self, agent_idx: int, weights: Sequence[float]) -> None:
        self._players[agent_idx].set_shaping(weights)

    def set_options(self, values: Mapping[str, float]) -> None:
        """See `sf.envs.doom.matches.tasks.schedulable`."""
        if MATCH_S in values:
            self._next_time_limit = round(values[MATCH_S] * TICS_PER_S)
        if BOT_DIFFICULTY in values:
            self._bot_difficulty = int(values[BOT_DIFFICULTY])

    def episodes(self, first_actor_idx: int) -> list[Episode]:
        teams = {player.number: team for player, team in zip(self._players, self._teams, strict=False)}
        return [
            player.episode(first_actor_idx + i, self._num_steps, self._tics, self._winning_is_objective, teams)
            for i, player in enumerate(self._players)
        ]

    def returns(self) -> list[float]:
        return [player.frags for player in self._players]

    def frags_of_bots(self) -> list[float]:
        """Returns the frags of each bot in the present episode."""
        own = {player.number for player in self._players}
        return [frags for number, frags in self._players[0].frags_of_all().items() if number not in own]

    def shown(self) -> list[vizdoom.DoomGame]:
        """Returns the engine that shows what each agent sees."""
        return [player.game for player in self._players]

    def close(self) -> None:
        self._started.close()

    def _join(self, rules: str, started: ExitStack) -> list[int]:
        """Returns the process ids of the engines. The port stays reserved as long as the match lives."""
        games = [player.game for player in self._players]
        namespaces: Sequence[int] = ()
        with suppress(OSError):  # without one, the ports are reserved on the whole machine
            network = PrivateNetwork()
            started.callback(network.close)
            namespaces = network.fds
        for attempt in range(1, MAX_ATTEMPTS + 1):
            port = ReservedPort()
            limit = f"+viz_connect_timeout {JOIN_LIMIT_S:.0f}"
            of_teams = [f"+team {team}" for team in self._teams] or [""] * len(games)
            self._host.set_game_args(f"-host {len(games)} -port {port.number} {limit} {rules} {of_teams[0]}")
            for game, of_team in zip(games[1:], of_teams[1:], strict=True):
                game.set_game_args(f"-join 127.0.0.1:{port.number} {limit} {of_team}")
            try:
                pids = start_joined_engines(games, JOIN_LIMIT_S, namespaces)
            except TimeoutError as error:
                port.close()
                log.warning("port %d, attempt %d of %d: %s", port.number, attempt, MAX_ATTEMPTS, error)
            else:
                started.callback(port.close)
                return pids
        raise RuntimeError(
            f"{len(games)} Doom engines did not join each other in {MAX_ATTEMPTS} attempts: the machine may be too "
            "busy to start them (use fewer workers), or not allow UDP on 127.0.0.1"
        )

    def _fall_into_step(self, threads: ThreadPoolExecutor) -> None:
        """Play a few tics until every engine sends its actions one tic ahead.

        An engine waits for the actions of all others, so only then can the engines be stepped in turn. They keep that
        lead while they are: an engine that is behind the host's sends two tics at once, and one that is too far ahead
        sends none. After a change of the map the leads are a matter of chance. So every engine has a thread here: the
        host's goes first, and the others follow also where it waits.
        """
        patience_s = 0.02
        in_step = 0
        for _ in range(MAX_TICS_OUT_OF_STEP):
            tics, waited = [], False
            for player in self._players:
                tics.append(threads.submit(player.game.advance_action, 1, True))
                waited |= bool(wait(tics[-1:], patience_s).not_done)
            for tic in tics:
                tic.result()
            in_step = 0 if waited else in_step + 1
            if in_step == TICS_IN_STEP:
                return
            if waited:
                patience_s *= 1.5  # it may be the machine that is slow
        raise RuntimeError(f"{len(self._players)} Doom engines did not fall into step: is the machine very busy?")

    def _add_bots(self) -> None:
        """Let the bots in, and play on until all agents live: bots kill whoever stands where they spawn."""
        for place in range(self._num_bots):
            name = "" if self._bot_difficulty is None else bot_name(self._bot_difficulty, place)
            self._host.send_game_command(f"addbot {name}".rstrip())
        num_players = len(self._players) + self._num_bots
        for _ in range(MAX_TICS_FOR_BOTS):
            everybody_is_in = self._host.get_game_variable(vizdoom.GameVariable.PLAYER_COUNT) == num_players
            if everybody_is_in and not any(player.game.is_player_dead() for player in self._players):
                return
            self._advance(1)
        raise RuntimeError(
            f"not all of {self._num_bots} bots came to the match within {MAX_TICS_FOR_BOTS} tics: use fewer, or "
            "another doom_map"
        )

    def _advance(self, tics: int) -> None:
        with self._watchdog:
            for tic in range(1, tics + 1):
                for player in self._players:
                    player.game.advance_action(1, tic == tics)  # nothing is drawn before the last
