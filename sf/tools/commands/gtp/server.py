"""Answers the commands of the Go Text Protocol with the moves of a player, which is a policy or any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TextIO

import numpy as np

from sf import envs
from sf.envs import EnvOptions, StepResult
from sf.envs.errors import UsageError
from sf.envs.openspiel.games import load
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.games.gtp import COLOURS, action_of, black_lead, board_size, stones, vertex
from sf.evaluation.play.own_rows import actors_in
from sf.evaluation.play.player import Player


class Game:
    """Holds a game of go in which a player is asked for moves of either colour.

    The player has an actor of each colour. It is shown every position, as an environment does, so that it can remember
    or follow the game; but all actions are masked in a position that the game has gone on from.

    state: OpenSpiel's. size: of the board. komi: as OpenSpiel counts it.
    """

    def __init__(self, env: str, options: EnvOptions, player: Player, seed: int, deterministic: bool) -> None:
        """Raises UsageError for a game that begins with handicap stones, which the protocol has no word for."""
        self._game = load(env, options.kwargs, seed=0).game
        parameters = self._game.get_parameters()
        if parameters["handicap"] > 1:
            raise UsageError(
                f"env_kwargs has the handicap {parameters['handicap']}, and sf-gtp begins with an empty board: name a "
                "policy that was trained without"
            )
        self.size, self.komi = board_size(self._game), float(parameters["komi"])
        self._pass = self.size * self.size
        self._group = envs.make_group(env, 1, options, seed=seed, first_env_idx=0)
        self._obs = obs_arrays(self._group.spec.obs_space, len(COLOURS))
        self._rows = {key: list(rows) for key, rows in self._obs.items()}
        self._result = StepResult.empty(len(COLOURS))
        self._actors = [actors_in(self._group, player, 1, seed + colour) for colour in range(len(COLOURS))]
        self._deterministic = deterministic
        self.clear()

    def clear(self) -> None:
        self._moves: list[list[int]] = []  # of each command, with the passes that it implies
        self._replay()

    def undo(self) -> bool:
        """Takes back what the last command played. Returns whether there was one."""
        if not self._moves:
            return False
        self._moves.pop()
        self._replay()
        return True

    def play(self, colour: int, action: int) -> bool:
        """Returns whether the move is legal and was carried out."""
        if self._turn_to(colour) and action in self.state.legal_actions():
            self._carry_out(action)
            return True
        self.undo()
        return False

    def choose(self, colour: int) -> int | None:
        """Returns the action that the player chooses, and carries it out. Returns None if the game is over."""
        if not self._turn_to(colour):
            self.undo()
            return None
        for number in range(self._num_shown[colour], len(self._positions)):
            obs = {key: rows[colour : colour + 1].copy() for key, rows in self._positions[number].items()}
            if number < len(self._positions) - 1:
                obs[ACTION_MASK][:] = 0
            acted = self._actors[colour].act(obs, np.array([number == 0]), None, self._deterministic)
        self._num_shown[colour] = len(self._positions)
        action = int(acted.discrete[0, 0])
        self._carry_out(action)
        return action

    def _turn_to(self, colour: int) -> bool:
        """Begins a move. The other colour passes if it is its turn: the protocol lets a colour move twice in a row.

        Returns whether the game goes on.
        """
        self._moves.append([])
        if self.state.current_player() == 1 - colour:
            self._carry_out(self._pass)
        return not self.state.is_terminal()

    def _carry_out(self, action: int) -> None:
        self._moves[-1].append(action)
        self._apply(action)

    def _apply(self, action: int) -> None:
        self.state.apply_action(action)
        if self.state.is_terminal():  # the group would begin the next game
            return
        discrete, continuous = np.full((len(COLOURS), 1), action, np.int32), np.zeros((len(COLOURS), 0), np.float32)
        self._group.step(discrete, continuous, self._rows, self._result)
        self._keep_position()

    def _replay(self) -> None:
        """Sets up the position after all moves."""
        self.state = self._game.new_initial_state()
        self._group.reset(self._rows)
        self._positions: list[dict[str, np.ndarray]] = []  # {key: [2, ...]} what both colours see
        self._num_shown = [0] * len(COLOURS)  # of the positions, to the actor of each colour
        self._keep_position()
        for action in [action for actions in self._moves for action in actions]:
            self._apply(action)

    def _keep_position(self) -> None:
        self._positions.append({key: rows.copy() for key, rows in self._obs.items()})


class _RefusedError(Exception):
    """Its text is the answer to a command."""


class _Commands:
    """Has a method for each command of the protocol, which gets its arguments and returns the answer."""

    def __init__(self, game: Game, name: str) -> None:
        self._game = game
        self._name = name
        self._komi = game.komi

    def protocol_version(self) -> str:
        return "2"

    def name(self) -> str:
        return self._name

    def version(self) -> str:
        return ""  # what has none says so

    def known_command(self, command: str) -> str:
        return "true" if command in _COMMANDS else "false"

    def list_commands(self) -> str:
        return "\n".join(_COMMANDS)

    def boardsize(self, size: str) -> str:
        if size != str(self._game.size):
            raise _RefusedError("unacceptable size")
        self._game.clear()
        return ""

    def clear_board(self) -> str:
        self._game.clear()
        return ""

    def komi(self, komi: str) -> str:
        """The policy does not see it: it counts in `final_score` alone."""
        try:
            self._komi = float(komi)
        except ValueError:
            raise _RefusedError("komi not a float") from None
        return ""

    def play(self, colour: str, word: str) -> str:
        action = action_of(word, self._game.size)
        if action is None:
            raise _RefusedError("invalid coordinate")
        if not self._game.play(_colour(colour), action):
            raise _RefusedError("illegal move")
        return ""

    def genmove(self, colour: str) -> str:
        action = self._game.choose(_colour(colour))
        if action is None:
            raise _RefusedError("the game is over")
        return vertex(action, self._game.size)

    def undo(self) -> str:
        if not self._game.undo():
            raise _RefusedError("cannot undo")
        return ""

    def showboard(self) -> str:
        _, *board = str(self._game.state).strip().splitlines()
        return "\n" + "\n".join(line for line in board if line)

    def final_score(self) -> str:
        state = self._game.state
        is_drawn = state.is_terminal() and not any(state.returns())  # a position has come again
        lead = 0.0 if is_drawn else black_lead(stones(state)) - self._komi
        return f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0"

    def quit(self) -> str:
        return ""


_COMMANDS = [name for name in vars(_Commands) if not name.startswith("_")]


def serve(game: Game, name: str, commands: Iterable[str], out: TextIO) -> None:
    """Answer commands, one a line, until `quit` or their end. name: what the player is called."""
    methods = _Commands(game, name)
    for line in commands:
        words = line.partition("#")[0].split()
        number = words.pop(0) if words and words[0].isdecimal() else ""
        if not words:
            continue
        try:
            print(f"={number} {_answer(methods, *words)}\n", file=out, flush=True)
        except _RefusedError as refusal:
            print(f"?{number} {refusal}\n", file=out, flush=True)
        if words[0] == "quit":
            return


def _answer(methods: _Commands, command: str, *arguments: str) -> str:
    if command not in _COMMANDS:
        raise _RefusedError("unknown command")
    method: Callable[..., str] = getattr(methods, command)
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        raise _RefusedError("syntax error") from None
    return method(*arguments)


def _colour(word: str) -> int:
    for colour, name in enumerate(COLOURS):
        if word.lower() in (name, name[0]):
            return colour
    raise _RefusedError("invalid color")
