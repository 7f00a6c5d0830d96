"""Programs that play Go: `gtp:COMMAND` starts one, such as `gtp:gnugo --mode gtp`, and asks it for moves.

Each actor has a program of its own, which is started when it first has to move and told each move that the actor sees.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sf.config.trust import PROGRAM
from sf.envs.errors import UsageError
from sf.envs.openspiel.games import load
from sf.envs.openspiel.views import OBSERVATION
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK
from sf.evaluation.play.games.following import Follower
from sf.evaluation.play.games.gtp import COLOURS, GO, PASS, RESIGN, action_of, board_size, stones, vertex
from sf.evaluation.play.player import OneByOne
from sf.system.processes.creator import die_with_creator

ANSWER_WITHIN_S = 100.0  # below --worker_timeout_s, so that a player worker can still say which program it waits for
_MOST_BYTES = 1 << 20  # of an answer


class GtpPlayer:
    """Plays what a program says that speaks the Go Text Protocol. `deterministic` does not reach it.

    A program that resigns passes instead, and is asked again when it is its turn again: OpenSpiel counts the board.
    """

    def __init__(self, name: str, env_id: str, options: EnvOptions) -> None:
        """Raises UsageError for a command that cannot be read, and for another game."""
        if env_id != GO:
            raise UsageError(f"player {name!r} plays only {GO}, and env is {env_id}: name another player")
        try:
            self._command = shlex.split(name.removeprefix(PROGRAM))
        except ValueError as error:
            raise UsageError(f"player {name!r} is not a command ({error}): write it as in a shell") from None
        if not self._command:
            raise UsageError(f"player {name!r} names no program: write for example {PROGRAM}gnugo --mode gtp")
        self._name = name
        self._tensor_game = load(env_id, options.kwargs, seed=0)

    def actors(self, num_actors: int, seed: int) -> OneByOne:
        rng = np.random.default_rng(seed)
        players = [
            _Actor(self._name, self._command, self._tensor_game.game, Follower(self._name, self._tensor_game), rng)
            for _ in range(num_actors)
        ]

        def act(n: int, rows: Mapping[str, np.ndarray], is_first: bool) -> tuple[np.ndarray, np.ndarray]:
            return np.array([players[n].move(rows, is_first)], np.int32), np.zeros(0, np.float32)

        return OneByOne(act)


class _Actor:
    """Follows one game at a time, with one program."""

    def __init__(
        self, name: str, command: Sequence[str], game: Any, follower: Follower, rng: np.random.Generator
    ) -> None:
        self._name = name
        self._command = command
        self._game = game
        self._size = board_size(game)
        self._follower = follower
        self._rng = rng
        self._engine: Engine | None = None
        self._num_told: int | None = None  # moves of this game that the program knows; None: it has not begun there

    def move(self, rows: Mapping[str, np.ndarray], is_first: bool) -> int:
        if is_first:
            self._follower.start()
            self._num_told = None
        state = self._follower.look(rows[OBSERVATION])
        mask = rows[ACTION_MASK]
        if not mask.any():  # it is not its turn
            return 0
        if state is None:
            return int(self._rng.choice(np.flatnonzero(mask)))
        action = self._asked(state)
        self._follower.play(action)
        return action

    def _asked(self, state: Any) -> int:
        """Returns the move of the program, which then knows all moves up to this one."""
        if self._engine is None:
            self._engine = Engine(self._name, self._command)
        engine = self._engine
        if self._num_told is None:
            self._begin(engine)
            self._num_told = 0
        moves = state.full_history()
        for move in moves[self._num_told :]:
            engine.ask(f"play {COLOURS[move.player]} {vertex(move.action, self._size)}")
        colour = COLOURS[state.current_player()]
        said = engine.ask(f"genmove {colour}")
        if said.lower() == RESIGN:
            said = PASS
            engine.ask(f"play {colour} {PASS}")
        action = action_of(said, self._size)
        if action is None or action not in state.legal_actions():
            raise UsageError(
                f"player {self._name!r} plays {said[:100]!r} as {colour}, which is not legal in {GO}: give its program "
                "options for rules without suicide, or name another player"
            )
        self._num_told = len(moves) + 1
        return action

    def _begin(self, engine: Engine) -> None:
        parameters = self._game.get_parameters()
        board = stones(self._game.new_initial_state())
        handicap = np.flatnonzero(board)  # stones of black, each of which OpenSpiel gives white a point for
        engine.ask(f"boardsize {self._size}")
        engine.ask("clear_board")
        engine.ask(f"komi {parameters['komi'] + len(handicap):g}")
        for action in handicap:
            engine.ask(f"play {COLOURS[0]} {vertex(int(action), self._size)}")


class Engine:
    """A program that answers one command at a time. It ends with this object, and with the process that started it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        """name: of its player, for messages. Raises UsageError if the program cannot be started."""
        self._name = name
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for us; and what it has started itself ends with it
                preexec_fn=die_with_creator,  # noqa: PLW1509  it only calls prctl, also where there are threads
            )
        except (OSError, ValueError) as error:  # ValueError: a null byte
            raise UsageError(
                f"player {name!r} cannot be started ({error}): install the program, or name it by its path"
            ) from None
        self._end = weakref.finalize(self, _end, self._process)
        self._output = select.poll()
        assert self._process.stdout is not None
        self._output.register(self._process.stdout, select.POLLIN)

    def ask(self, command: str) -> str:
        """Returns the answer to a command. Raises UsageError where there is none, or where it is a refusal."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended, which is said where the answer is read
            self._process.stdin.write(f"{command}\n".encode())
        answer = self._answer(command)
        if answer.startswith("?"):
            raise self._failure(command, f"answers {answer[:200]!r}", "give it options for this game")
        return answer[1:].strip()

    def _answer(self, command: str) -> str:
        assert self._process.stdout is not None
        until = time.monotonic() + ANSWER_WITHIN_S
        answer = b""
        while not answer.endswith(b"\n\n"):
            if not self._output.poll(max(0.0, until - time.monotonic()) * 1000):
                raise self._failure(command, f"does not answer within {ANSWER_WITHIN_S:g} s", "have it search less")
            read = os.read(self._process.stdout.fileno(), 1 << 16)
            if not read:
                raise self._failure(command, "has ended", "start it in a terminal to see why")
            answer = (answer + read).replace(b"\r", b"").lstrip()
            if answer[:1] not in (b"", b"=", b"?") or len(answer) > _MOST_BYTES:
                said = answer[:100].decode(errors="backslashreplace")
                raise self._failure(command, f"answers {said!r}, which is not GTP", "add the option that starts GTP")
        return answer.decode(errors="replace").strip()

    def _failure(self, command: str, what: str, to_do: str) -> UsageError:
        self._end()
        return UsageError(
            f"player {self._name!r}: its program, asked {command!r}, {what}: {to_do}, or name another player"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # not waited for yet, so the id is still its own
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
