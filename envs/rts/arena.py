"""Episodes of a group of games, for players that are asked: the group and the single environments are made of it."""

from __future__ import annotations

import random
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.field_types import require
from sf.envs.rts.controls import OBSERVATION, controls
from sf.envs.rts.engine import ais
from sf.envs.rts.engine.compiled import warm_up
from sf.envs.rts.engine.state import DRAW, NOBODY, World
from sf.envs.rts.engine.units import UNITS, Unit
from sf.envs.rts.games import Games
from sf.envs.rts.replay import Recorder, Replay
from sf.envs.rts.settings import Settings
from sf.envs.spaces.actions import ACTION_MASK

if TYPE_CHECKING:
    from sf.envs.rts.picture import ArenaCamera

_LARGEST_SEED = 2**64 - 1
HELP = "help"
"""The option of an episode that says for how many ticks at most the AI plays in the place of the player."""
MOST_HELP = 1000


class Arena:
    """E games with P players each that are asked every `frame_skip` ticks; the others are AIs."""

    def __init__(
        self,
        settings: Settings,
        seeds: Sequence[int],
        num_players: int = 1,
        units: tuple[Unit, ...] = UNITS,
        commands: Mapping[str, Callable[..., None]] | None = None,
    ) -> None:
        """commands: see `sf.envs.rts.env.RtsEnv`."""
        warm_up()
        commands = commands or {}
        if commands and settings.actions != "global":
            raise UsageError("commands of your own are for actions 'global': leave actions out")
        if (commands or tuple(units) != UNITS) and (settings.replays, settings.replay) != (None, None):
            raise UsageError(
                "replays cannot store commands or units of your own: leave out replays and replay, or these"
            )
        if settings.replays is not None:
            _require_folder(Path(settings.replays))
        self._replay = None if settings.replay is None else _replay(settings, num_players)
        self._decision = [0] * len(seeds)
        self.watcher: ArenaCamera | None = None  # is told of what happens, after every few ticks
        self._commands = list(commands.values())
        self.settings = settings
        self._mixture = settings.mixture
        self.games = Games(settings, seeds, num_players, units)
        self.controls = controls(settings, units, tuple(commands))
        if commands and len(set(self.controls.action_names)) < len(self.controls.action_names):
            raise UsageError(f"commands are {list(commands)}: give each a name that no command of the game has")
        self._num_own = self.controls.head_sizes[0] - len(commands)  # of the engine's commands
        self.num_players = num_players
        self._rngs = [random.Random(seed) for seed in seeds]
        self._is_seeded = False  # by `seed`
        self._help = [0] * len(seeds)
        self._opponents = [""] * len(seeds)
        self._recorders = [Recorder(settings, num_players) for _ in seeds] if settings.replays else []
        shape = (len(seeds), num_players)
        self._num_planes = len(self.controls.plane_names)
        side = settings.size
        self._now = np.zeros((*shape, self._num_planes, side, side), np.int8)
        history = self._num_planes * settings.history
        self.planes = self._now if settings.history == 1 else np.zeros((*shape, history, side, side), np.int8)
        self.masks = np.zeros((*shape, sum(self.controls.head_sizes) if self.controls.has_mask else 0), np.int8)

    def set_help(self, g: int, ticks: int) -> None:
        """Let the AI play up to this many ticks at the beginning of the next episodes of a game, in the place of the
        player: how many is drawn, from 0 on (ELF, Tian et al. 2017, section 5)."""
        self._help[g] = ticks

    def begin_seeded(self, seed: int | None) -> None:
        """Begin all games anew, all with this seed. Without one, random numbers go on, at first from a random one.

        Raises UsageError for what is no seed.
        """
        is_seed = isinstance(seed, int | np.integer) and 0 <= seed <= _LARGEST_SEED
        require(seed is None or is_seed, f"seed is {seed!r}: an integer from 0 to {_LARGEST_SEED}")
        if seed is not None or not self._is_seeded:
            self.seed([secrets.randbits(64) if seed is None else int(seed)] * self.games.num)
        self.begin(np.ones(self.games.num, bool))

    def begin(self, which: np.ndarray) -> None:
        """Begin the games [E] anew, and look."""
        if self._replay is None:
            self._begin_anew(which)
        else:
            for g in np.flatnonzero(which).tolist():
                self.games.restore(g, self._replay.start)
                self._decision[g] = 0
        if self.watcher is not None:
            self.watcher.began(which)
        self.look(which)

    def _begin_anew(self, which: np.ndarray) -> None:
        helped = np.zeros(len(which), np.int64)
        for g in np.flatnonzero(which).tolist():
            if self.num_players == 1:
                self._draw_opponent(g)
            helped[g] = self._rngs[g].randint(0, self._help[g])
        helpers = np.array([opponent or "nobody" for opponent in self._opponents])  # in the place of player 0
        for helper in set(helpers[which].tolist()):
            self.games.begin(which & (helpers == helper), helped, helper)
        while (ended := which & (self.games.winner != NOBODY)).any():  # while the AI still played
            self.games.begin(ended)
        if self._recorders:
            for g in np.flatnonzero(which).tolist():
                self._recorders[g].begin(self.games.snapshot(g))

    def step(self, choices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Commands [E, P, H] -> what each player was paid [E, P], and which games have ended [E]; those must begin anew
        before the next step.
        """
        for recorder, each in zip(self._recorders, choices, strict=False):
            recorder.add(each)
        if self._replay is not None:
            choices = np.stack([self._replay.choices[d] for d in self._decision])
            self._decision = [d + 1 for d in self._decision]
        elif self._commands:
            choices = self._with_own_commands(choices)
        rewards = self._advance(np.ascontiguousarray(choices, np.int64))
        ended = self.games.winner != NOBODY
        if self.watcher is not None:
            self.watcher.paid(rewards[:, : self.num_players], ended)
        for g, recorder in enumerate(self._recorders):
            if ended[g]:
                recorder.finish(self.games.digest(g)).save_in(Path(str(self.settings.replays)))
        return rewards[:, : self.num_players], ended

    def require_game(self) -> None:
        """Raises UsageError where a game is over or has not begun: for callers that may forget to begin anew."""
        require((self.games.winner == NOBODY).all(), "no game is under way: call reset before step")

    def restore(self, snapshot: bytes) -> None:
        """The only game goes on from there, and so does its recording. Its history of observations is empty.

        One player goes on against the AI that the game has. A game of a match has none, and gets one of the settings.
        Raises UsageError for what is no snapshot of such a game.
        """
        if self._replay is not None:
            raise UsageError("this environment plays a replay, which a snapshot would interrupt: leave replay out")
        self.games.restore(0, snapshot)
        if self.num_players == 1:
            self._opponents[0] = ais.AIS[self.games.worlds.players[0, 1]["ai"]]
            if self._opponents[0] == "nobody":
                self._draw_opponent(0)
        for recorder in self._recorders:
            recorder.begin(self.games.snapshot(0))
        self.look(np.ones(1, bool))

    def look(self, anew: np.ndarray | None = None) -> None:
        """Write `planes` and `masks`. anew: [E], of which there is no history."""
        self.games.observe(self.controls.plane_of, self._now, self.masks)
        if self.planes is self._now:
            return
        c = self._num_planes
        self.planes[:, :, c:] = self.planes[:, :, :-c].copy()
        self.planes[:, :, :c] = self._now
        if anew is not None:
            self.planes[anew, :, c:] = 0

    def seen_by(self, player: int) -> Any:
        """Returns a copy of what a player of the first game sees."""
        planes = self.planes[0, player].copy()
        if not self.controls.has_mask:
            return planes
        return {OBSERVATION: planes, ACTION_MASK: self.masks[0, player].copy()}

    def stats(self, g: int, player: int) -> dict[str, float]:
        """Returns the statistics of a game that has ended."""
        winner, own = int(self.games.winner[g]), self.games.worlds.players[g, player]
        won = 0.5 if winner == DRAW else float(winner == player)
        found = {"won": won, "true_objective": won, "ticks": float(self.games.ticks[g]), "kills": float(own["kills"])}
        if self.settings.game == "tower":
            found["leaks"] = float(own["leaks"])
        if self.settings.game == "flag":
            found["score"] = float(own["score"])
        if self._opponents[g] in self._mixture and len(self._mixture) > 1:
            found[f"won_against_{self._opponents[g]}"] = won
        return found

    def seed(self, seeds: Sequence[int]) -> None:
        """Begin the random numbers of all games anew."""
        self.games.seed(seeds)
        self._rngs = [random.Random(seed) for seed in seeds]
        self._is_seeded = True

    def _advance(self, choices: np.ndarray) -> np.ndarray:
        """Returns the rewards [E, 2]."""
        ticks, watcher = self.settings.skip, self.watcher
        if watcher is None:
            return self.games.advance(choices, ticks)[0]
        rewards = np.zeros((self.games.num, 2))
        for start in range(0, ticks, watcher.ticks_a_picture):
            goes_on = self.games.winner == NOBODY
            num_ticks = min(watcher.ticks_a_picture, ticks - start)
            rewards += self.games.advance(choices if start == 0 else choices[:, :0], num_ticks)[0]
            watcher.moved(goes_on)
        return rewards

    def _with_own_commands(self, choices: np.ndarray) -> np.ndarray:
        """Carries them out, and returns the choices with "idle" in their place."""
        choices = choices.copy()
        games, players, units, cells, ground, kinds = self.games.worlds
        for g, player in np.argwhere(choices[..., 0] >= self._num_own).tolist():
            world = World(games[g], players[g], units[g], cells[g], ground[g], kinds)
            self._commands[choices[g, player, 0] - self._num_own](world, player)
            choices[g, player, 0] = 0
        return choices

    def _draw_opponent(self, g: int) -> None:
        self._opponents[g] = self._rngs[g].choices(list(self._mixture), list(self._mixture.values()))[0]
        self.games.set_ai(g, 1, self._opponents[g])


def _require_folder(folder: Path) -> None:
    """Raises UsageError where files cannot be written there, before a game is played for nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise UsageError(f"replays is {str(folder)!r}, where no file can be written ({error}): name a folder") from None


def _replay(settings: Settings, num_players: int) -> Replay:
    """Raises UsageError where it is of another game, or does not come to the end that it has recorded."""
    replay = Replay.load(Path(str(settings.replay)))
    wanted, has = (settings.game, settings.actions, num_players), replay.settings
    found = (has.game, has.actions, replay.choices.shape[1])
    if wanted != found or (has.size, has.room, has.skip) != (settings.size, settings.room, settings.skip):
        raise UsageError(
            f"replay {settings.replay} was recorded with {has} and {found[2]} players: use the same settings here"
        )
    try:
        for _ in replay.games():
            pass
    except UsageError as error:
        raise UsageError(f"{settings.replay}: {error}") from None
    return replay
