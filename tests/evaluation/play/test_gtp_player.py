"""Programs that speak the Go Text Protocol, as players, and policies that speak it to a program."""

import os
import select
import shlex
import signal
import subprocess
import sys
import textwrap
from io import StringIO

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from untrained import untrained  # noqa: E402

from sf import envs  # noqa: E402
from sf.envs import EnvOptions, StepResult, UsageError  # noqa: E402
from sf.envs.spaces.observations import obs_arrays  # noqa: E402
from sf.evaluation.play.games import gtp_player  # noqa: E402
from sf.evaluation.play.games.gtp import action_of, black_lead, stones, vertex  # noqa: E402
from sf.evaluation.play.games.gtp_player import Engine  # noqa: E402
from sf.evaluation.play.opponents import Opponent, is_name  # noqa: E402
from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: E402
from sf.storage import checkpoint  # noqa: E402
from sf.tools.commands.gtp.server import Game, serve  # noqa: E402

GO = "openspiel:go"
SMALL = '{"board_size": 5}'
ANSWERS = """
import random, sys
def answers(reply):
    for line in sys.stdin:
        sys.stdout.write("=" + reply(*line.split()) + "\\n\\n")
        sys.stdout.flush()
"""
RANDOM_ENGINE = """
import pyspiel
def reply(command, *words):
    global state
    if command == "clear_board":
        state = pyspiel.load_game("go", {"board_size": 5}).new_initial_state()
    if command == "play":
        move = "PASS" if words[1] == "pass" else words[1].lower()
        state.apply_action(state.string_to_action(f"{words[0][0].upper()} {move}"))
    if command == "genmove":
        with open(sys.argv[1], "a") as file:
            print(state, file=file)
        action = random.choice(state.legal_actions())
        move = state.action_to_string(action).split()[1].upper()
        state.apply_action(action)
        return " " + move
    return ""
answers(reply)
"""
RECORDER = """
def reply(*words):
    with open(sys.argv[1], "a") as file:
        print(*words, file=file)
    return " Resign" if words[0] == "genmove" else ""
answers(reply)
"""
WILLING = """
answers(lambda command, *_: " A1" if command == "genmove" else "")
"""
SILENT = "import signal; signal.pause()"
OUTLIVES = ANSWERS + "import signal\nprint('=\\n', flush=True)\nsignal.pause()"


@pytest.fixture
def script(tmp_path):
    """Makes the name of a player of a program in Python, with a file that it may write to."""

    def make(code):
        path = tmp_path / "an engine.py"  # a name that has to be quoted
        path.write_text(ANSWERS + code)
        return "gtp:" + shlex.join([sys.executable, str(path), str(tmp_path / "written")])

    return make


def player(name, kwargs=SMALL, env=GO):
    options = EnvOptions(env_kwargs=kwargs)
    spec = envs.describe(env, options)
    return Opponent(name, env, options, spec.native_obs_space, spec.action_space).player()


class Matches:
    """A player as white, or black, against random moves."""

    def __init__(self, actors, seat, kwargs=SMALL):
        self.group = envs.make_group(GO, 1, EnvOptions(env_kwargs=kwargs), seed=3, first_env_idx=0)
        self.actors, self.seat = actors, seat
        self.obs, self.result = obs_arrays(self.group.spec.obs_space, 2), StepResult.empty(2)
        self.group.reset(self.obs)
        self.first = np.ones(2, bool)
        self.rng = np.random.default_rng(0)

    @property
    def own(self):
        """What the player sees now, whether a game begins, and whether it is its turn."""
        rows = {key: rows[self.seat : self.seat + 1].copy() for key, rows in self.obs.items()}
        return rows, self.first[self.seat : self.seat + 1].copy(), bool(self.obs["action_mask"][self.seat].any())

    def step(self):
        """Returns what the player has done."""
        rows, first, _ = self.own
        acted = int(self.actors.act(rows, first, deterministic=True).discrete[0, 0])
        mask = self.obs["action_mask"][1 - self.seat]
        actions = np.zeros((2, 1), np.int32)
        actions[self.seat] = acted
        actions[1 - self.seat] = self.rng.choice(np.flatnonzero(mask)) if mask.any() else 0
        self.group.step(actions, np.zeros((2, 0), np.float32), self.obs, self.result)
        self.first = self.result.first.copy()
        return acted


def test_actions_are_the_vertices_that_openspiel_names():
    for size in (2, 9, 19):
        state = pyspiel.load_game("go", {"board_size": size}).new_initial_state()
        for action in state.legal_actions():
            assert vertex(action, size).lower() == state.action_to_string(action).split()[1].lower()
            assert action_of(vertex(action, size), size) == action
    for word in ("", "i3", "d", "d0", "k1", "d10", "d-1", "d²", "resign"):
        assert action_of(word, 9) is None


@pytest.mark.parametrize("seat", [0, 1])
def test_a_program_sees_the_board_that_is_played(script, tmp_path, seat):
    matches = Matches(player(script(RANDOM_ENGINE)).actors(1, seed=0), seat)
    boards, num_games = [], 0
    while num_games < 3:
        num_games += int(matches.first[0])
        if matches.own[2]:
            boards.append(str(matches.group._matches[0]))
        matches.step()
    assert len(boards) > 10
    assert (tmp_path / "written").read_text() == "".join(f"{board}\n" for board in boards)


def test_handicap_stones_are_played_and_a_program_that_resigns_passes(script, tmp_path):
    matches = Matches(player(script(RECORDER), '{"handicap": 2, "komi": 0.5}').actors(1, seed=0), 1, '{"handicap": 2}')
    assert matches.step() == 19 * 19
    assert (tmp_path / "written").read_text().splitlines() == [
        *("boardsize 19", "clear_board", "komi 2.5", "play black D4", "play black Q16"),
        *("genmove white", "play white pass"),
    ]


WRONG = {
    "no such program": ("gtp:no/such/program", None),
    "it ends": ("gtp:true", None),
    "it speaks something else": ("gtp:cat", None),
    "it answers without end": ("gtp:cat /dev/zero", None),
    "it does not answer": (None, SILENT),
    "it refuses": (None, "print('? unacceptable size\\n', flush=True); sys.stdin.read()"),
    "it plays where a stone is": (None, WILLING),
    "it plays what is nowhere": (None, "answers(lambda *_: ' Z99')"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_program_is_said_with_its_name(what, script, monkeypatch):
    name, code = WRONG[what]
    name = name or script(code)
    if what == "it does not answer":
        monkeypatch.setattr(gtp_player, "ANSWER_WITHIN_S", 0.1)
    matches = Matches(player(name).actors(1, seed=0), 0)

    def play():
        for _ in range(10):  # A1 is legal once
            matches.step()

    with pytest.raises(UsageError) as caught:
        play()
    assert f"player {name!r}" in str(caught.value)


@pytest.mark.parametrize(("name", "env"), [("gtp:", GO), ("gtp:a 'b", GO), ("gtp:gnugo", "openspiel:tic_tac_toe")])
def test_a_name_that_is_no_command_or_is_for_another_game_is_refused(name, env):
    assert is_name(name)
    with pytest.raises(UsageError, match=name):
        player(name, "{}", env)


def wait_for_end_of(pid):
    """Raises an error if it does not come within ten seconds."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([process], [], [], 10)[0]
    finally:
        os.close(process)


def test_a_program_ends_with_its_player():
    engine = Engine("gtp", [sys.executable, "-c", OUTLIVES])
    engine.ask("name")
    pid = engine._process.pid
    os.kill(pid, 0)
    del engine
    wait_for_end_of(pid)


def test_a_program_ends_with_a_process_that_is_killed():
    code = f"""
    import signal, sys
    from sf.evaluation.play.games.gtp_player import Engine
    engine = Engine("gtp", [sys.executable, "-c", {OUTLIVES!r}])
    engine.ask("name")
    print(engine._process.pid, flush=True)
    signal.pause()
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    with parent:
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        parent.send_signal(signal.SIGKILL)
    wait_for_end_of(pid)


def test_a_policy_with_a_memory_plays_by_sf_gtp_what_it_plays_in_its_environment(tmp_path):
    saved = untrained(GO, env_kwargs=SMALL, core="gru")
    checkpoint.write(tmp_path / "go.safetensors", saved)
    main = "from sf.tools.commands.gtp.command import main; main()"
    command = [sys.executable, "-c", main, str(tmp_path / "go.safetensors"), "--deterministic", "true"]
    matches = Matches(player("gtp:" + shlex.join(command)).actors(1, seed=0), 1)
    here = TorchPolicy(saved, "here").actors(1, seed=0)
    num_games = num_moves = 0
    while num_games < 4 and num_moves < 60:
        num_games += int(matches.first[0])
        rows, first, is_own_turn = matches.own
        expected = int(here.act(rows, first, deterministic=True).discrete[0, 0])
        acted = matches.step()
        if is_own_turn:
            assert acted == expected
            num_moves += 1
    assert num_games > 1
    assert num_moves > 10


def answers(game, *commands):
    out = StringIO()
    serve(game, "a name", [f"{command}\n" for command in commands], out)
    return out.getvalue().removesuffix("\n\n").split("\n\n")


def new_game(env_kwargs=SMALL):
    policy = TorchPolicy(untrained(GO, env_kwargs=SMALL, core="gru"), "policy")
    return Game(GO, EnvOptions(env_kwargs=env_kwargs), policy, 0, deterministic=True)


def test_a_move_that_is_taken_back_was_never_made():
    game = new_game()
    answers(game, "play b C3", "genmove w", "play b A1")
    before = str(game.state)
    (move,) = answers(game, "genmove w")
    assert answers(game, "undo", "play b E5", "undo") == ["= "] * 3  # black moves twice in a row: white has passed
    assert str(game.state) == before
    assert answers(game, "genmove white", "clear_board", "undo") == [move, "= ", "? cannot undo"]


def test_what_cannot_be_answered_is_refused_and_changes_nothing():
    game = new_game()
    wrong = ["boardsize 9", "play b F6", "play red A1", "play b", "komi much", "serve", "_game", "__init__ 1 2"]
    said = answers(game, "# a remark", "", "7 play b A1", "8 play w A1", *wrong, "9 quit", "name")
    assert [answer.split()[0] for answer in said] == ["=7", "?8", *["?"] * len(wrong), "=9"]
    assert game.state.history() == [0]
    said = answers(game, "play w pass", "play b pass", "genmove w", "final_score")
    assert [answer[0] for answer in said] == ["=", "=", "?", "="]
    with pytest.raises(UsageError):
        Game(GO, EnvOptions(env_kwargs='{"handicap": 2}'), player("random"), 0, deterministic=True)


def test_the_score_is_that_of_openspiel():
    rng = np.random.default_rng(0)
    game = pyspiel.load_game("go", {"board_size": 5, "komi": 0.5})
    for _ in range(50):
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(int(rng.choice(state.legal_actions())))
        superko = not any(state.returns())
        assert superko or np.sign(black_lead(stones(state)) - 0.5) == state.returns()[0]
