"""A person plays by the command: the keys reach the environment, the game waits, and what comes out is said."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from masked_env import Nim
from typist import Typist
from untrained import untrained

from sf.envs import EnvOptions
from sf.evaluation.play.episodes import Played
from sf.storage import checkpoint
from sf.storage.demonstrations.minari_set import MinariSet
from sf.storage.run_dir import RunDir
from sf.tools.commands.play import command, game
from sf.tools.commands.play.console import Console


@pytest.fixture
def sf_play(status_of, monkeypatch, capsys):
    """A function: exit status, stdout and stderr."""
    monkeypatch.setattr(game, "_HOLD_S", 0.0)
    return lambda *words: (status_of(command.main, *words), *capsys.readouterr())


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("train_dir") / "rps"
    checkpoint.save(RunDir(path).checkpoints, untrained("toy_match_rps"), 1234, keep=2)
    RunDir(path).config.write_text("env: toy_match_rps\n")
    return path


def test_a_key_that_is_held_acts_at_each_step_and_a_short_press_once(tmp_path, monkeypatch, sf_play):
    # Picture 1 shows where the episode begins, picture n + 1 what step n led to.
    typist = Typist(monkeypatch, ["x"], {3: "+left", 5: "-left", 6: "+right -right"})
    path = tmp_path / "played.json"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    status, out, err = sf_play("keyed_env:Keyed", "--episodes", 1, "--json", path, "--record", "keyed-v0")
    assert (status, err) == (0, "")
    (recorded,) = MinariSet("keyed-v0").episodes()
    assert np.bincount(recorded.actions).tolist() == [3, 2, 1]
    assert "keyed-v0: 1 episodes, 6 steps, mean return 6.00" in out
    assert "episode 1: return 6.00, 6 steps, noop 3, left 2, right 1" in out
    assert typist.said == ["press any key to begin"]
    played = json.loads(path.read_text())
    assert (played["played"], played["players"], played["mean_return"]) == ("keyed_env:Keyed", ["you"], 6.0)
    assert [(each["player"], each["num_steps"]) for each in played["episodes"]] == [("you", 6)]


def test_a_game_that_waits_goes_on_with_each_key_that_is_one_of_its_own(monkeypatch, sf_play):
    keys = ["left", "x", "3", "f1", "return", "right", "2", "1"]
    Typist(monkeypatch, [*keys, "left"])
    flags = ["--wait", "true", "--episodes", 2]
    status, out, _ = sf_play("keyed_env:Keyed", *flags)  # closed in the second episode
    assert status == 0
    assert "episode 1: return 6.00, 6 steps, noop 2, left 2, right 2" in out
    assert "of 1 episode\n" in out


def test_in_a_game_of_turns_a_move_that_is_not_allowed_is_said_and_another_asked_for(tmp_path, monkeypatch, sf_play):
    typist = Typist(monkeypatch, ["3", "2", "1"])
    path = tmp_path / "played.json"
    flags = ["--env_kwargs", '{"heap": 2}', "--episodes", 1, "--fps", 240, "--json", path]
    monkeypatch.setitem(Nim.metadata, "render_fps", 30)  # it waits since its agents take turns
    status, out, err = sf_play("masked_env:Nim", *flags)
    assert (status, err) == (0, "")
    assert typist.said == ["your turn", "action 2 is not allowed now"]
    assert [line.is_allowed for line in typist.lines[0]] == [True, True, False]
    assert "match 1, agent 1 (you): return 1.00, 1 steps" in out
    assert "match 1, agent 2 (random): return -1.00" in out
    assert "match 1: you won" in out
    assert json.loads(path.read_text())["win_rate"] == 1.0


def test_the_person_is_each_agent_in_turn_or_the_one_that_is_named(monkeypatch, sf_play):
    Typist(monkeypatch, ["1"] * 3)  # whoever is first takes the only piece, and wins
    nim = ["masked_env:Nim", "--env_kwargs", '{"heap": 1}', "--episodes", 2, "--fps", 240]
    _, out, _ = sf_play(*nim)
    assert ("match 1: you won" in out, "match 2: you lost" in out) == (True, True)
    _, out, _ = sf_play(*nim, "--agent", 1)
    assert ("match 1: you won" in out, "match 2: you won" in out) == (True, True)


def test_who_is_one_agent_throughout_meets_each_opponent_in_turn():
    three = game.Game("x", EnvOptions(), 2, dict.fromkeys("ABC"))
    assert three.lineups(4, agent=1).tolist() == [[0, 1], [0, 2], [0, 3], [0, 1]]
    assert three.lineups(4, agent=None).tolist() == [[0, 1], [1, 0], [0, 2], [2, 0]]


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ([1.0, 1.0, -1.0, -1.0], "you won"),
        ([-1.0, -1.0, 1.0, 1.0], "you lost"),
        ([1.0, 1.0, 1.0, 1.0], "a draw"),
        ([1.0, 0.0, 0.0, 2.0], "you lost"),
    ],
)
def test_a_team_wins_together(scores, verdict, capsys):
    of_match = [Played(0, a, min(a, 1), score, 1, 1, {}) for a, score in enumerate(scores)]
    assert game._what_came_out(of_match, is_over=True).startswith(f"{verdict}: ")
    assert capsys.readouterr().out == f"match 1: {verdict}\n"


@pytest.mark.parametrize("others", [[], ["--against", "test_play_command:paper"]])
def test_the_policy_of_a_run_is_the_opponent_or_whoever_is_named(others, run_dir, monkeypatch, sf_play):
    Typist(monkeypatch, ["x"] * 2, {1: "+3"})  # scissors
    status, out, err = sf_play(run_dir, *others, "--episodes", 2)
    assert (status, err) == (0, "")
    name = others[1] if others else "rps/checkpoints/checkpoint_000001_000000001234"
    assert f"match 1, agent 2 ({name})" in out
    assert f"match 2, agent 1 ({name})" in out
    assert "scissors 1" in out
    if "paper" in name:
        assert "you: mean return 1.00, from 1.00 to 1.00, of 2 episodes" in out
    if not others:
        Typist(monkeypatch, ["x"])
        status, out, _ = sf_play("toy_match_rps", "--against", run_dir, "--episodes", 1)
        assert (status, "agent 1 (you)" in out) == (0, True)


def paper(obs):
    return 1


def test_who_has_won_is_said_when_the_match_is_over_though_agents_leave_it_one_by_one(monkeypatch, sf_play):
    Typist(monkeypatch, ["x"] * 2)
    status, out, err = sf_play("toy_match_counting", "--episodes", 2, "--fps", 240)
    assert (status, err) == (0, "")
    lines = [line for line in out.splitlines() if line.startswith("match")]
    assert [line.split(":")[0] for line in lines[:3]] == [
        "match 1, agent 1 (you)",
        "match 1, agent 2 (random)",
        "match 1",
    ]
    assert len(lines) == 6
    returns = [float(line.split("return ")[1].split(",")[0]) for line in lines[:2]]
    assert lines[2] == f"match 1: {'you won' if returns[0] > returns[1] else 'you lost'}"


@pytest.mark.parametrize("env", ["atari_pong", "doom_basic"])
def test_atari_and_doom_are_played_in_colour_with_arrows_and_space(env, monkeypatch, sf_play):
    typist = Typist(monkeypatch, ["x"], {2: "+space", 25: "+escape"})
    status, out, err = sf_play(env, "--fps", 240)
    assert (status, err) == (0, "")
    assert {"space or 2", "space or 4"} & {line.keys for line in typist.lines[0]}
    assert "no episode has come to its end" in out


def test_closing_the_window_ends_the_command_and_keeps_what_was_played(tmp_path, monkeypatch, sf_play):
    path = tmp_path / "played.json"
    Typist(monkeypatch)
    status, out, err = sf_play("keyed_env:Keyed", "--json", path)
    assert (status, out, err) == (0, "no episode has come to its end\n", "")
    assert json.loads(path.read_text())["mean_return"] is None


def test_ctrl_c_while_the_game_waits_ends_it(monkeypatch, sf_play):
    Typist(monkeypatch, ["f1"])
    real = Console.wait_for

    def wait_for(console, came):
        signal.raise_signal(signal.SIGINT)
        return real(console, came)

    monkeypatch.setattr(Console, "wait_for", wait_for)
    status, out, err = sf_play("keyed_env:Keyed")
    assert (status, out, err) == (128 + signal.SIGINT, "no episode has come to its end\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["keyed_env:Keyed", "--episodes", "0"], "episodes is 0"),
        (["keyed_env:Keyed", "--against", "random"], "has one agent"),
        (["keyed_env:Keyed", "--agent", "2"], "agent is 2"),
        (["toy_match_rps", "--policy", "3", "--override", "env_frameskip=1"], "policy is 3"),
        (["keyed_env:Keyed", "--override", "nonsense=1"], "NAME=VALUE"),
        (["keyed_env:Keyed", "--env_kwargs", "{"], "env_kwargs is not JSON"),
        (["keyed_env:Keyed", "--json", "/proc/none/x.json"], "--json"),
        (["toy_match_rps", "--against", "zoo/CartPole-v1"], "obs_space"),
        (["toy_match_rps", "--against", "openspiel:mcts:5"], "env is toy_match_rps"),
        (["MountainCarContinuous-v0"], "continuous actions"),
        (["CartPole-v9"], "CartPole-v1"),
        (["zoo/nothing"], "zoo"),
    ],
)
def test_a_wrong_flag_ends_it_with_status_2(arguments, message, monkeypatch, sf_play):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    status, out, err = sf_play(*arguments)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())


def test_without_a_screen_or_a_library_it_ends_with_status_2(monkeypatch, sf_play):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    status, _, err = sf_play("CartPole-v1")
    assert (status, "screen" in err) == (2, True)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for library in ("PIL", "pygame"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            status, _, err = sf_play("keyed_env:Keyed")
        assert (status, ".[video]" in err) == (2, True)


def test_who_plays_alone_does_not_wait_for_torch_to_be_imported():
    code = (
        "import sys; from sf.tools.commands.play.command import PlayFlags; "
        "from sf.tools.commands.play.game import *; "
        "print(find_game(PlayFlags('CartPole-v1')).names, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['you'] False\n"


def test_who_is_named_against_one_agent_becomes_part_of_the_environment(tmp_path, monkeypatch, sf_play):
    Typist(monkeypatch, ["x"])
    monkeypatch.setattr(game, "kwargs_against", lambda env, name: {"num_steps": int(name)})
    path = tmp_path / "played.json"
    words = ("--against", "4", "--env_kwargs", '{"truncates": true}', "--episodes", 1, "--fps", 240, "--json", path)
    status, _, err = sf_play("keyed_env:Keyed", *words)
    assert (status, err) == (0, "")
    assert json.loads(path.read_text())["episodes"][0]["num_steps"] == 4
