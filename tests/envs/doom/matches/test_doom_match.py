"""Matches with real engines: few steps, and every way in which engines leave each other alone."""

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import vizdoom
from doom_owner import ENVIRONMENT, OWNER, engine_pids, shared_files
from doom_stage import Stage
from waiting import eventually

from sf.envs.doom import engine
from sf.envs.doom.group import make_group
from sf.envs.doom.matches import match
from sf.envs.doom.matches.network import PORTS, PrivateNetwork, ReservedPort
from sf.envs.options import EnvOptions

NOTHING = (0, 0, 0, 0, 0, 0, 10)
TURN = (0, 0, 0, 0, 0, 0, 20)
ORDINARY = {"terminated": False, "truncated": False, "valid": True, "first": False}


def games_of(stage: Stage) -> list[vizdoom.DoomGame]:
    """Of the episodes that are under way."""
    return [game for played in stage.group._games for game in dict.fromkeys(played.shown())]


def engines_behind(launcher_pids: set[int]) -> set[int]:
    """Engines that have joined a game are children of what has started them."""
    return {pid for launcher in launcher_pids for pid in engine_pids(launcher)}


def test_both_agents_of_a_duel_end_at_the_time_limit_and_begin_again_together(stage):
    duel = stage("doom_duel", doom_match_s=3)  # the world looks green as long as who came to life is safe
    for _ in range(52):
        assert duel.step(NOTHING) == []
        assert duel.flags(0) == duel.flags(1) == ORDINARY
    before = duel.image()
    episodes = duel.step(NOTHING)
    assert duel.flags(0) == duel.flags(1) == ORDINARY | {"truncated": True}
    assert np.abs(duel.image().astype(int) - before).mean() < 20  # a final observation, of the same scene
    assert [(e.actor_idx, e.num_steps, e.num_frames) for e in episodes] == [(0, 53, 105), (1, 53, 105)]
    assert all(e.stats["tie"] == 1 and e.stats["true_objective"] == 0 for e in episodes)
    assert duel.step(TURN) == []
    assert duel.flags(0) == duel.flags(1) == ORDINARY | {"valid": False, "first": True}
    assert duel.result.reward.tolist() == [0, 0]
    duel.step(NOTHING)
    assert duel.flags(0) == ORDINARY
    times = {game.get_episode_time() for game in games_of(duel)}
    assert len(times) == 1
    assert min(times) < 30


@pytest.fixture(scope="module")
def duels():
    group = make_group("doom_duel", 2, EnvOptions(doom_match_s=2), seed=3, first_env_idx=0)
    yield Stage(group)
    group.close()


def test_each_agent_turns_by_its_own_action_and_all_engines_play_the_same_game(stage, duels):
    games = games_of(duels)
    first, other = starts_of(games[:2]), starts_of(games[2:])
    for _ in range(30):
        duels.step(TURN, NOTHING, NOTHING, TURN)
    assert [int(game.get_game_variable(vizdoom.GameVariable.PLAYER_NUMBER)) for game in games] == [0, 1, 0, 1]
    angles = [game.get_game_variable(vizdoom.GameVariable.ANGLE) for game in games]
    duels.step(TURN, NOTHING, NOTHING, TURN)
    turned = [
        before != game.get_game_variable(vizdoom.GameVariable.ANGLE) for before, game in zip(angles, games, strict=True)
    ]
    assert turned == [True, False, False, True]
    assert (duels.image(0) != duels.image(1)).any()
    for n in range(4):
        assert duels.group.spec.obs_space.contains({key: rows[n] for key, rows in duels.obs.items()})
    assert starts_of(games_of(stage("doom_duel"))) == first != other  # the seed decides where players start


def starts_of(games):
    variables = (vizdoom.GameVariable.POSITION_X, vizdoom.GameVariable.POSITION_Y)
    return [round(game.get_game_variable(each)) for game in games for each in variables]


def test_bots_come_in_every_episode_and_count_as_players_in_every_engine(stage):
    match_with_bots = stage(
        "doom_deathmatch", doom_num_agents=2, doom_num_bots=3, doom_match_s=1, doom_bot_difficulty=9
    )
    for _ in range(2):
        for game in games_of(match_with_bots):
            server = game.get_server_state()
            assert server.player_count == 5
            assert not game.is_player_dead()
            assert all(name.startswith("Bot") for name in server.players_names[2:5])
        while not match_with_bots.result.first[0]:
            match_with_bots.step(NOTHING)
        match_with_bots.result.first[0] = False


def test_an_agent_alone_plays_against_the_bots_of_the_engine(stage):
    duel = stage("doom_duel_bots", doom_match_s=1)
    rng = np.random.default_rng(0)
    episodes = []
    while not episodes:
        episodes = duel.step(tuple(int(rng.integers(size)) for size in (3, 3, 8, 2, 2, 2, 21)))
        assert duel.group.spec.obs_space.contains({key: rows[0] for key, rows in duel.obs.items()})
    assert duel.obs["measurements"][0][6] == pytest.approx(2 / 5)  # PLAYER_COUNT
    [episode] = episodes
    assert episode.stats["true_objective"] == episode.stats["frags"] == episode.episode_return
    assert (episode.num_steps, episode.num_frames) == (18, 35)


def test_who_dies_comes_to_life_at_once_also_within_a_step(stage):
    duel = stage("doom_duel", env_frameskip=4, doom_match_s=20, doom_shaping=False)
    for _ in range(30):  # who has just come to life is safe for a moment
        duel.step(NOTHING)
    rewards = np.zeros(2)
    for game in games_of(duel):
        game.send_game_command("kill")
    for _ in range(3):
        duel.step(NOTHING)
        rewards += duel.result.reward
    assert rewards.tolist() == [-1, -1]  # a frag each
    assert not any(game.is_player_dead() for game in games_of(duel))


def test_who_kills_itself_loses_a_frag_by_weights_of_its_own_and_the_duel(duels):
    while not duels.step(NOTHING):
        pass
    duels.step(NOTHING)  # resets
    weights = np.array([-7.0 if name == "death_up" else 0.0 for name in duels.group.spec.shaping])
    duels.group.set_shaping(2, weights)
    for game in games_of(duels)[::2]:
        game.send_game_command("kill")
    rewards, episodes = np.zeros(4), []
    while not episodes:
        episodes = duels.step(NOTHING)
        rewards += duels.result.reward
    loser, winner, *_ = episodes
    assert (loser.stats["frags"], loser.stats["deaths"], loser.stats["true_objective"]) == (-1, 1, 0)
    assert (winner.stats["frags"], winner.stats["win"], winner.stats["true_objective"]) == (0, 1, 1)
    assert rewards[0] == pytest.approx(-0.001 - 1 - 100 * 0.01, abs=0.01)  # a frag, a death, its health
    assert loser.stats["shaped_return"] == pytest.approx(rewards[0])
    assert loser.episode_return == -1
    assert rewards[2] == -7


def test_no_two_reserved_ports_are_alike_until_one_is_given_back(monkeypatch):
    monkeypatch.setattr("sf.envs.doom.matches.network.PORTS", range(20_000, 20_003))
    with ReservedPort() as one, ReservedPort() as two, ReservedPort() as three:
        assert {one.number, two.number, three.number} == {20_000, 20_001, 20_002}
        with pytest.raises(RuntimeError, match="every UDP port"):
            ReservedPort()
        two.close()
        with ReservedPort() as again:
            assert again.number == two.number


def ports_in_use():
    """UDP ports of this machine that an engine may have been told to take."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return {int(line.split()[1].rpartition(":")[2], 16) for line in lines} & set(PORTS)


def test_matches_have_a_network_each_take_no_port_of_the_machine_and_let_go_of_it(stage, monkeypatch):
    try:
        PrivateNetwork().close()
    except OSError:
        pytest.skip("the kernel allows no network namespaces here")
    monkeypatch.setattr(ReservedPort, "__init__", lambda port: setattr(port, "number", PORTS[0]))  # the same for all
    monkeypatch.setattr(ReservedPort, "close", lambda port: None)
    before = ports_in_use()
    duels = [stage("doom_duel") for _ in range(2)]
    for duel in duels:
        duel.step(NOTHING)
    assert ports_in_use() <= before
    duels[0].group.close()
    num_descriptors = count_descriptors()
    stage("doom_duel").group.close()
    assert count_descriptors() == num_descriptors


def count_descriptors():
    gc.collect()  # engines of ViZDoom close some when they are freed
    return len(os.listdir("/proc/self/fd"))


def no_private_network():
    raise PermissionError


def test_without_networks_of_their_own_matches_of_two_groups_have_a_port_each(stage, monkeypatch):
    monkeypatch.setattr(match, "PrivateNetwork", no_private_network)
    monkeypatch.setattr("sf.envs.doom.matches.network.PORTS", range(20_000, 20_040))
    arguments = []
    init = engine.start_joined_engines

    def note(games, limit_s, namespaces):
        assert not namespaces
        arguments.append(games[0].get_game_args().split())
        return init(games, limit_s)

    monkeypatch.setattr(match, "start_joined_engines", note)
    first, second = stage("doom_duel"), stage("doom_duel")
    ports = [words[words.index("-port") + 1] for words in arguments]
    assert len(set(ports)) == 2
    first.step(NOTHING)
    second.step(NOTHING)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP])
def test_an_engine_that_dies_or_hangs_makes_the_step_raise_and_close_ends_the_others(stage, monkeypatch, signal_number):
    monkeypatch.setattr("sf.envs.doom.matches.network.PORTS", range(20_050, 20_051))
    monkeypatch.setattr(engine, "PATIENCE_MS", 1000)  # enough for the start on a busy machine
    before = set(engine_pids(os.getpid()))
    num_threads = threading.active_count()
    duel = stage("doom_duel")
    launchers = set(engine_pids(os.getpid())) - before
    engines = engines_behind(launchers)
    instance_ids = [game.get_instance_id() for game in games_of(duel)]
    assert len(engines) == 2
    os.kill(min(engines), signal_number)
    with pytest.raises(engine.START_ERRORS):
        duel.step(NOTHING)
    duel.group.close()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in launchers | engines))
    ReservedPort().close()  # its port is free again
    assert not shared_files(instance_ids)
    assert threading.active_count() == num_threads


def test_the_engines_of_a_match_die_with_their_owner(tmp_path):
    code = OWNER.replace('"doom_basic", 2', '"doom_duel", 1').replace("env._game", "env.shown()[0]")
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=tmp_path, env=ENVIRONMENT) as owner:
        assert owner.stdout is not None
        instance_ids = owner.stdout.readline().split()
        launchers = set(engine_pids(owner.pid))
        engines = engines_behind(launchers)
        assert len(launchers) == len(engines) == 2
        owner.kill()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in launchers | engines))
    assert not shared_files(instance_ids)
    assert not list(tmp_path.iterdir())


def test_a_match_that_nobody_joins_is_tried_on_other_ports_and_leaves_no_engine(monkeypatch):
    """A host that cannot be reached: the others call at a port where nobody is."""
    monkeypatch.setattr(match, "JOIN_LIMIT_S", 1.0)
    monkeypatch.setattr(match, "MAX_ATTEMPTS", 2)
    tried = []

    def call_elsewhere(games, limit_s, namespaces):
        words = games[0].get_game_args().split()
        tried.append(words[words.index("-port") + 1])
        games[1].set_game_args("-join 127.0.0.1:9 +viz_connect_timeout 1")
        return engine.start_joined_engines(games, limit_s, namespaces)

    monkeypatch.setattr(match, "start_joined_engines", call_elsewhere)
    before = set(engine_pids(os.getpid()))
    with pytest.raises(RuntimeError, match="did not join"):
        make_group("doom_duel", 1, EnvOptions(), seed=3, first_env_idx=0)
    assert len(set(tried)) == 2
    assert set(engine_pids(os.getpid())) == before
