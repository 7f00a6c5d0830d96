"""`sf-envs`: which names it finds, and what it says of them."""

import json
import os
import shlex
import subprocess
import sys

import gymnasium as gym
import pytest

from sf import envs
from sf.envs import EnvOptions
from sf.envs.custom.registered import registered
from sf.envs.registry import known_names
from sf.tools.commands.envs import command, descriptions
from sf.tools.commands.envs.names import find


@pytest.fixture
def own_env():
    """Registers environments under the name `own`, until the test ends."""

    def register(factory):
        envs.register_env("own", factory)

    yield register
    registered.pop("own", None)


def run(capsys, monkeypatch, *args):
    monkeypatch.setattr(sys, "argv", ["sf-envs", *args])
    command.main()
    return capsys.readouterr().out


def test_names_are_found_by_their_parts_by_pattern_and_by_family():
    known = known_names()
    assert {known[env].name for env in find(None)} >= {"doom", "atari", "toy", "gymnasium"}
    assert find("DUEL") == find("doom_duel*") == ["doom_duel", "doom_duel_bots"]
    assert find("doom_duel") == ["doom_duel"]
    assert "toy_bandit" in find(None, "toy")
    assert {known[env].name for env in find(None, "toy")} == {"toy"}


def test_other_spellings_and_older_versions_are_found_only_by_their_names():
    found = find(None)
    assert {"atari_pong", "CartPole-v1"} <= {*found}
    for unlisted in ("ALE/Pong-v5", "PongNoFrameskip-v4", "CartPole-v0"):
        assert unlisted not in found
        assert unlisted in find(unlisted)


def test_a_name_that_is_known_to_nobody_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean doom_basic"):
        find("doom_basicc")
    with pytest.raises(ValueError, match="nothing of the family toy"):
        find("CartPole", "toy")


def test_games_of_pettingzoo_are_listed_once_whether_agents_take_turns_or_not():
    pytest.importorskip("pettingzoo")
    found = find(None, "pettingzoo")
    assert {"pettingzoo:classic/connect_four-v3", "pettingzoo:butterfly/knights_archers_zombies-v11"} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("no display,\n  start one"), "no display, start one"),
        (ModuleNotFoundError("No module named 'simulator.core'", name="simulator.core"), "pip install simulator"),
        (KeyError(), "KeyError"),
    ],
)
def test_an_environment_that_fails_is_listed_with_its_reason_beside_the_others(own_env, error, sentence):
    def fails():
        raise error

    own_env(fails)
    failed, made = descriptions.describe_all(["own", "toy_bandit"], EnvOptions())
    assert failed.spec is None
    assert sentence in failed.error
    assert made.spec is not None


def test_json_says_what_an_agent_sees_and_does(capsys, monkeypatch):
    duel, bots = json.loads(run(capsys, monkeypatch, "doom_due*", "--json", "true"))
    assert (duel["env"], duel["num_agents"], duel["frameskip"], duel["preset"]) == ("doom_duel", 2, 2, "doom_duel")
    assert duel["obs"]["obs"] == {"shape": [72, 128, 3], "dtype": "uint8"}
    assert (duel["error"], bots["num_agents"]) == (None, 1)


def test_without_a_terminal_a_line_is_an_environment(capsys, monkeypatch):
    header, *lines = run(capsys, monkeypatch, "toy_match").splitlines()
    assert header.split() == ["env", "observation", "action", "agents", "frameskip", "preset"]
    names = [line.split()[0] for line in lines]
    assert names == ["toy_match_counting", "toy_match_cycle", "toy_match_pennies", "toy_match_rps"]
    header, *lines = run(capsys, monkeypatch).splitlines()
    assert header.split() == ["family", "env", "preset"]
    assert ["doom", "doom_basic", "doom_basic"] in [line.split() for line in lines]


def test_what_an_environment_prints_is_not_in_the_list(capfd, monkeypatch, own_env):
    def chatty():
        print("hello from the simulator")
        os.write(1, b"hello from its engine\n")
        return gym.make("CartPole-v1")

    own_env(chatty)
    [described] = json.loads(run(capfd, monkeypatch, "own", "--json", "--seconds", "0"))
    assert described["action"] == "Discrete(2)"


def test_a_reader_that_leaves_early_is_told_nothing_and_torch_is_not_imported():
    code = "import sys, sf.tools.commands.envs.command as c; c.find(None); assert 'torch' not in sys.modules; c.main()"
    bash = ["bash", "-o", "pipefail", "-c", f'{shlex.quote(sys.executable)} -c "{code}" | head -1']
    done = subprocess.run(bash, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) in ((0, ""), (141, ""))
