"""The loop of matches: who plays how often, whose episodes count, and what the command makes of it."""

import dataclasses
import json
import shutil
import sys
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from untrained import untrained

from sf import envs
from sf.config import Config
from sf.envs import EnvOptions, EnvSpec, Planes, StepResult
from sf.envs.guard import GuardedGroup
from sf.envs.registry import name_of
from sf.envs.spaces import space_json
from sf.evaluation import evaluator
from sf.evaluation.play.contestants import find_policies, require_spaces
from sf.evaluation.play.episodes import Play, make_lineups
from sf.evaluation.play.named_checkpoint import find_checkpoint
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.evaluation.results import Evaluation
from sf.evaluation.task import EvaluationTask, _take, evaluate
from sf.storage import best_checkpoint, checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.system.processes.reports import BegunAnew, EpisodesPlayed
from sf.tools.commands import evaluate as evaluate_command


class Lengths(gym.Env):
    """The episodes of environment i of a group are i + 1 steps long, and worth as much."""

    num_made = 0

    def __init__(self):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (1,))
        self.action_space = gym.spaces.Discrete(2)
        self.length = Lengths.num_made % 4 + 1
        Lengths.num_made += 1

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(1, np.float32), 1.0, self.t == self.length, False, {"episode_stats": {"length": self.length}}


class Match:
    """What the matches here have in common."""

    def observation_space(self, agent):
        return gym.spaces.Box(0.0, 1.0, (1,))

    def action_space(self, agent):
        return gym.spaces.Discrete(2)

    def close(self):
        pass


class Guests(Match):
    """A match is 30 steps of the host. In every second one a guest drops in again and again, for 3 steps."""

    possible_agents = ("host", "guest")

    def __init__(self):
        self.match = -1

    def reset(self, seed=None, options=None):
        self.match += 1
        self.t = 0
        self.agents = ["host", "guest"] if self.match % 2 == 0 else ["host"]
        return dict.fromkeys(self.agents, np.zeros(1, np.float32)), {}

    def step(self, actions):
        self.t += 1
        acted = list(self.agents)
        gone = {agent: (agent == "guest" and self.t % 5 == 3) or self.t == 30 for agent in acted}
        self.agents = [agent for agent in acted if not gone[agent]]
        if self.t % 5 == 0 and self.t < 30 and self.match % 2 == 0:
            self.agents.append("guest")
        obs = dict.fromkeys({*acted, *self.agents}, np.zeros(1, np.float32))
        infos = {agent: {"episode_stats": {"match": self.match}} for agent in obs}
        return obs, dict.fromkeys(acted, 1.0), gone, dict.fromkeys(acted, False), infos


class Breaks(Match):
    """One agent leaves with 1 at its first step. The first environment that is made fails then, at its second."""

    possible_agents = ("early", "late")
    num_made = 0

    def __init__(self):
        Breaks.num_made += 1
        self.fails = Breaks.num_made == 1

    def reset(self, seed=None, options=None):
        self.agents = [*self.possible_agents]
        return dict.fromkeys(self.agents, np.zeros(1, np.float32)), {}

    def step(self, actions):
        acted = list(self.agents)
        if len(acted) == 1 and self.fails:
            raise RuntimeError("broken")
        gone = acted[0]
        self.agents.remove(gone)
        obs = dict.fromkeys(acted, np.zeros(1, np.float32))
        rewards = {agent: float(agent == gone) for agent in acted}
        ends = {agent: agent == gone for agent in acted}
        return obs, rewards, ends, dict.fromkeys(acted, False), {}


class Levels(gym.Env):
    """An episode is a step, and its return the number of the level that the environment has drawn."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.level = float(self.np_random.integers(10**6))
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), self.level, True, False, {}


class Latecomer(Match):
    """A match of two is 3 steps. `late` is absent from the first one of the environment. `breaks` is how many of the
    environments that are made fail at their second step.
    """

    possible_agents = ("late", "early")
    num_made = 0

    def __init__(self, breaks=0):
        self.fails = Latecomer.num_made < breaks
        Latecomer.num_made += 1
        self.match = -1

    def reset(self, seed=None, options=None):
        self.match += 1
        self.t = 0
        self.agents = ["late", "early"] if self.match else ["early"]
        return dict.fromkeys(self.agents, np.zeros(1, np.float32)), {}

    def step(self, actions):
        self.t += 1
        if self.t == 2 and self.fails:
            raise RuntimeError("broken")
        acted = list(self.agents)
        self.agents = [] if self.t == 3 else acted
        obs = dict.fromkeys(acted, np.zeros(1, np.float32))
        return obs, dict.fromkeys(acted, 1.0), dict.fromkeys(acted, self.t == 3), dict.fromkeys(acted, False), {}


class Relay(Match):
    """A match is 4 steps. One agent plays at a time, and each comes in the very step in which the other one leaves."""

    possible_agents = ("one", "other")

    def __init__(self):
        self.match = -1

    def reset(self, seed=None, options=None):
        self.match += 1
        self.t = 0
        self.agents = ["one"]
        return {"one": np.zeros(1, np.float32)}, {}

    def step(self, actions):
        (gone,) = self.agents
        self.t += 1
        self.agents = [] if self.t == 4 else [self.possible_agents[self.t % 2]]
        obs = dict.fromkeys({gone, *self.agents}, np.zeros(1, np.float32))
        is_truncated = self.t % 4 in (1, 2)
        infos = {gone: {"episode_stats": {"match": self.match}}}
        return obs, {gone: 1.0}, {gone: not is_truncated}, {gone: is_truncated}, infos


envs.register_env("lengths", Lengths)
envs.register_parallel_env("relay", Relay)
envs.register_parallel_env("latecomer", Latecomer)
envs.register_parallel_env("breaks", Breaks)
envs.register_parallel_env("guests", Guests)


def play_all(play):
    played = []
    while not play.is_done:
        played += play.step()
    return played


def make_play(env, num_envs, policies, lineups, **options):
    Lengths.num_made = 0
    group = envs.make_group(env, num_envs, EnvOptions(**options), seed=0, first_env_idx=0)
    return Play(group, policies, lineups, range(num_envs), num_envs, seed=0, deterministic=False)


@pytest.mark.parametrize(("num_policies", "num_agents", "num_episodes"), [(1, 1, 7), (3, 1, 5), (2, 2, 9), (4, 3, 10)])
def test_every_policy_plays_as_often_as_every_other_one_in_every_place(num_policies, num_agents, num_episodes):
    lineups = make_lineups(num_policies, num_agents, num_episodes, seed=0)
    assert lineups.shape[1] == num_agents
    counts = np.stack([np.bincount(seat, minlength=num_policies) for seat in lineups.T])
    assert (counts == counts[0, 0]).all()
    assert num_episodes <= counts.sum(axis=0)[0] < num_episodes + num_agents


def test_policies_meet_all_others_and_themselves_only_where_there_are_too_few():
    pairs = {tuple(lineup) for lineup in make_lineups(3, 2, 100, seed=0).tolist()}
    assert pairs == {(i, j) for i in range(3) for j in range(3) if i != j}
    of_four = {tuple(lineup) for lineup in make_lineups(4, 2, 200, seed=0).tolist()}
    assert of_four == {(i, j) for i in range(4) for j in range(4) if i != j}
    teams = {tuple(lineup) for lineup in make_lineups(2, 4, 200, seed=0).tolist()}
    assert {sum(team) for team in teams} == {2}
    assert len(teams) == 6  # all ways to split four agents


def test_whole_teams_swap_places():
    sides = (0, 1, 0, 1)
    lineups = make_lineups(2, 4, 40, seed=0, sides=sides)
    assert lineups.shape == (20, 4)  # each policy has two agents of each match
    assert sorted(set(map(tuple, lineups.tolist()))) == [(0, 1, 0, 1), (1, 0, 1, 0)]
    assert lineups[:, 0].sum() == 10
    of_three = make_lineups(3, 4, 200, seed=0, sides=sides)
    assert (of_three[:, :2] == of_three[:, 2:]).all()
    assert {tuple(lineup) for lineup in of_three[:, :2].tolist()} == {
        (i, j) for i in range(3) for j in range(3) if i != j
    }


def test_short_episodes_count_no_more_than_long_ones():
    policy = TorchPolicy(untrained("lengths"), "test")
    played = play_all(make_play("lengths", 4, [policy], make_lineups(1, 1, 10, seed=0)))
    assert sorted(episode.match_idx for episode in played) == list(range(10))
    lengths = [episode.num_steps for episode in sorted(played, key=lambda episode: episode.match_idx)]
    assert lengths == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]


def test_each_match_is_played_by_its_lineup():
    policies = [TorchPolicy(untrained("toy_match_rps", seed=seed), f"{seed}") for seed in range(3)]
    lineups = make_lineups(3, 2, 20, seed=1)
    played = play_all(make_play("toy_match_rps", 4, policies, lineups))
    found = np.full_like(lineups, -1)
    for episode in played:
        assert found[episode.match_idx, episode.agent_idx] == -1
        found[episode.match_idx, episode.agent_idx] = episode.policy_idx
    np.testing.assert_array_equal(found, lineups)


def test_an_episode_belongs_to_the_match_it_was_played_in_whoever_comes_goes_or_stays_away():
    policies = [TorchPolicy(untrained("guests", seed=seed), f"{seed}") for seed in range(2)]
    lineups = make_lineups(2, 2, 8, seed=3)
    played = play_all(make_play("guests", 1, policies, lineups))
    assert all(episode.match_idx == episode.stats["match"] for episode in played)
    assert all(episode.policy_idx == lineups[episode.match_idx, episode.agent_idx] for episode in played)
    assert [episode.num_steps for episode in played if episode.agent_idx == 0] == [30] * len(lineups)
    visits = [episode.match_idx for episode in played if episode.agent_idx == 1]
    assert visits == [match for match in range(0, len(lineups), 2) for _ in range(6)]


def test_a_match_in_which_one_agent_comes_as_the_other_one_leaves_goes_on():
    played = play_all(make_play("relay", 1, [TorchPolicy(untrained("relay"), "test")], np.zeros((3, 2), int)))
    assert [(each.match_idx, each.agent_idx) for each in played] == [(m, t % 2) for m in range(3) for t in range(4)]
    assert all(each.match_idx == each.stats["match"] for each in played)


@pytest.mark.parametrize("breaks", [0, 1])
def test_an_agent_that_is_absent_at_the_start_or_after_a_fault_does_not_keep_a_match_from_ending(breaks):
    policy, options = TorchPolicy(untrained("latecomer"), "test"), EnvOptions(env_kwargs=json.dumps({"breaks": breaks}))
    Latecomer.num_made = 0
    group = GuardedGroup(lambda attempt: envs.make_group("latecomer", 1, options, seed=attempt, first_env_idx=0))
    play = Play(group, [policy], np.zeros((3, 2), int), range(1), 1, seed=0, deterministic=False)
    played, is_playing = [], []
    for _ in range(9 + 2 * breaks):
        played += play.step()
        is_playing.append(play.is_playing.tolist())
    assert len(group.pop_faults()) == breaks
    assert play.is_done
    assert [(each.match_idx, each.agent_idx) for each in played] == [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert is_playing[2 * breaks] == [False, True]


def task(env="lengths", **changes):
    settings = {"num_episodes": 12, "num_workers": 2, "num_envs_per_worker": 2, "options": EnvOptions()}
    settings["players"] = {"a": untrained(env)}
    return EvaluationTask(env=env, **{**settings, **changes})


@pytest.mark.long
def test_an_evaluation_gives_the_same_episodes_again():
    first, second = (evaluate(task("CartPole-v1", num_episodes=6)) for _ in range(2))
    assert first.episodes == second.episodes
    assert [episode.match_idx for episode in first.episodes] == list(range(6))
    assert len({episode.episode_return for episode in first.episodes}) > 1
    assert evaluate(task("CartPole-v1", num_episodes=2, num_workers=1, seed=1)).episodes != first.episodes[:2]


def test_a_match_has_a_score_against_each_opponent():
    policies = {name: untrained("toy_match_rps", seed=i) for i, name in enumerate("ab")}
    evaluation = evaluate(task("toy_match_rps", players=policies, num_episodes=20, num_workers=1))
    for i in range(2):
        assert evaluation.score_against(i, i) is None
        assert evaluation.score_against(i, 1 - i).num == evaluation.statistics(i)["return"].num == 20
    assert evaluation.statistics(0).keys() >= {"return", "num_steps", "num_frames", "rock"}
    nothing = Evaluation("true_objective")
    assert (nothing.statistics(0), nothing.score_of(0), nothing.score_against(0, 1)) == ({}, None, None)


def test_a_match_of_teams_has_a_score_for_each():
    teams = [["agent_[03]"], ["agent_[12]"]]
    options = EnvOptions(env_kwargs='{"num_agents": 4}', teams=teams, show_agent=False)
    policies = {name: untrained("toy_match_counting", seed=i) for i, name in enumerate("ab")}
    asked = task("toy_match_counting", players=policies, options=options, num_episodes=20, num_workers=1)
    evaluation = evaluate(asked)
    matches = evaluation.scores_of_matches()
    assert len(matches) == 10
    for match_idx, sides in matches.items():
        own = [each for each in evaluation.episodes if each.match_idx == match_idx]
        assert sorted(policy for policy, _ in sides.values()) == [0, 1]
        for side, members in enumerate([(0, 3), (1, 2)]):
            of_side = [each for each in own if each.agent_idx in members]
            assert {each.policy_idx for each in of_side} == {sides[side][0]}
            assert sides[side][1] == sum(each.episode_return for each in of_side)
    assert evaluation.win_rate(0, 1).num == 10
    assert evaluation.score_against(0, 1).num == 10


def test_a_match_whose_environment_failed_is_played_again():
    kwargs = json.dumps({"faults": ["raise"], "probability": 0.02})
    evaluation = evaluate(task("toy_faulty", options=EnvOptions(env_kwargs=kwargs), num_episodes=20))
    assert evaluation.num_env_faults > 0
    assert [episode.match_idx for episode in evaluation.episodes] == list(range(20))


def test_what_had_ended_of_a_match_whose_environment_failed_does_not_count():
    policies = [TorchPolicy(untrained("breaks"), name) for name in "ab"]
    Breaks.num_made = 0
    group = GuardedGroup(lambda attempt: envs.make_group("breaks", 1, EnvOptions(), seed=attempt, first_env_idx=0))
    play = Play(group, policies, np.array([[0, 1]]), range(1), 1, seed=0, deterministic=False)
    evaluation = Evaluation("true_objective")
    while not play.is_done:
        played = [dataclasses.asdict(each) for each in play.step()]
        for match_idx in play.pop_begun_anew():
            assert len(evaluation.episodes) == 1
            _take(None, BegunAnew(match_idx), evaluation)
        _take(None, EpisodesPlayed(played), evaluation)
    assert len(group.pop_faults()) == 1
    assert [(each.match_idx, each.policy_idx) for each in evaluation.episodes] == [(0, 0), (0, 1)]
    # Nor in the evaluations of a run.
    config = Config().replace(env="breaks", eval_episodes=4, eval_num_envs=2)
    args = SimpleNamespace(config=config, sides=(0, 1), roles=(), counters=SimpleNamespace(working=lambda: None))
    saved = untrained("breaks")
    Breaks.num_made = 0
    evaluation = evaluator._play(args, [saved])
    assert evaluation.num_env_faults == 1
    assert sorted((each.match_idx, each.agent_idx) for each in evaluation.episodes) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_no_level_of_training_is_played_again_also_of_a_class_that_other_processes_cannot_import():
    name = name_of(type("Drawn", (Levels,), {}))
    group = envs.make_group(name, 16, EnvOptions(), seed=0, first_env_idx=0)
    rows = {"obs": list(np.zeros((16, 1), np.float32))}
    result = StepResult.empty(16)
    actions = np.zeros((16, 1), np.int32), np.zeros((16, 0), np.float32)
    group.reset(rows)
    trained = {episode.episode_return for _ in range(40) for episode in group.step(*actions, rows, result)}
    assert len(trained) > 600
    played = {episode.episode_return for episode in evaluate(task(name, num_episodes=40)).episodes}
    assert len(played) > 35
    assert not trained & played


def test_an_environment_that_cannot_be_made_or_always_fails_ends_the_evaluation():
    with pytest.raises(ValueError, match="env_kwargs"):
        evaluate(task("CartPole-v1", options=EnvOptions(env_kwargs='{"nonsense": 1}')))
    options = EnvOptions(env_kwargs=json.dumps({"faults": ["raise"], "probability": 1.0}))
    with pytest.raises(RuntimeError, match=r"player-\d .*have failed"):
        evaluate(task("toy_faulty", options=options))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("train_dir") / "cartpole"
    checkpoint.save(path / "checkpoints", untrained("CartPole-v1"), 1234, keep=2)
    (path / "config.yaml").write_text("env: CartPole-v1\n")
    return path


def test_the_command_prints_a_table_writes_both_files_and_says_how_many_matches_were_won(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_players.py").write_text("def rock(obs):\n    return 0\n")
    path = tmp_path / "rps"
    checkpoint.save(path / "checkpoints", untrained("toy_match_rps"), 10, keep=2)
    (path / "config.yaml").write_text("env: toy_match_rps\n")
    words = ["rps", "--against", "random", "own_players:rock", "--episodes", "24", "--num_workers", "1"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["sf-eval", *words, "--json", "won.json", "--csv", "won.csv"])
    try:
        evaluate_command.main()
    finally:
        sys.modules.pop("own_players", None)
    said = capsys.readouterr().out
    assert "win rate" in said
    assert "24 episodes" in said
    result = json.loads((tmp_path / "won.json").read_text())
    own = [episode["episode_return"] for episode in result["episodes"] if episode["policy_idx"] == 0]
    first = result["policies"][0]
    assert first["statistics"]["return"]["mean"] == pytest.approx(np.mean(own))
    assert [each["checkpoint"] for each in result["policies"]][1:] == ["random", "own_players:rock"]
    assert [each["env_steps"] for each in result["policies"]] == [1234, None, None]
    rates = first["win_rates"]
    weights = [rate["num"] for rate in rates[1:]]
    assert (rates[0], sum(weights)) == (None, 24)
    assert result["win_rate"] == pytest.approx(np.average([rate["mean"] for rate in rates[1:]], weights=weights))
    back = result["policies"][2]["win_rates"][0]
    assert back["mean"] + rates[2]["mean"] == pytest.approx(1.0)
    header, *rows = (tmp_path / "won.csv").read_text().splitlines()
    assert header.startswith("checkpoint,match,agent,return,num_steps,num_frames")
    assert len(rows) == len(result["episodes"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--episodes", "0"], "episodes is 0"),
        (["--checkpoint", "best"], "no best checkpoint"),
        (["--policy", "2"], "policy is 2"),
        (["--override", "doom_map"], "NAME=VALUE"),
        (["--override", "doom_match_s=["], "override is 'doom_match_s=['"),
        (["--override", "atari_episodic_life=true"], "atari_episodic_life"),
        (["--checkpoint", "first"], "checkpoint is 'first'"),
        (["--against", "policy.onnx"], "policy.onnx is an export"),
    ],
)
def test_a_wrong_flag_is_a_mistake_of_the_user(run, flags, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sf-eval", str(run), *flags])
    with pytest.raises(SystemExit) as exit_info:
        evaluate_command.main()
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


def test_neither_the_best_nor_another_policy_is_asked_of_what_is_a_checkpoint_itself(run, tmp_path):
    run = shutil.copytree(run, tmp_path / "cartpole")
    (file,) = (run / "checkpoints").iterdir()
    for find in (lambda: find_policies(file, (file,), "best", None), lambda: find_checkpoint(file, "best")):
        with pytest.raises(ValueError, match="is a checkpoint itself"):
            find()
    with pytest.raises(ValueError, match="policy is 1"):
        find_policies(file, (), "latest", 1)
    best_checkpoint.save_best(file.parent, untrained("CartPole-v1", env_steps=1111), 1.0)
    of_run, of_file = find_policies(run, (file,), "best", None).values()  # it holds for the run among them
    assert (of_run.state["env_steps"], of_file.state["env_steps"]) == (1111, 1234)


def test_a_policy_of_other_observations_or_actions_is_refused_before_anything_is_played():
    players = {"mine": untrained("CartPole-v1")}
    with pytest.raises(ValueError, match=r"observations of Acrobot-v1 are .*\(6,\).*\(4,\)"):
        evaluate(EvaluationTask("Acrobot-v1", EnvOptions(), players, 1))
    spec = dataclasses.replace(envs.describe("CartPole-v1", EnvOptions()), action_space=gym.spaces.Discrete(3))
    with pytest.raises(ValueError, match=r"actions of CartPole-v1 are .*\(3,\)"):
        require_spaces(players, "CartPole-v1", spec, EnvOptions())


@pytest.mark.parametrize(("before", "now"), [(None, 0.1), (0.1, None), (0.1, 0.2)])
def test_planes_in_other_steps_are_other_observations(before, now):
    policy, own = untrained("CartPole-v1"), gym.spaces.Dict({"obs": Planes(2, 3, 4, now)})
    state = {**policy.state, "obs_space": space_json.to_json(gym.spaces.Dict({"obs": Planes(2, 3, 4, before)}))}
    spec = EnvSpec(own, gym.spaces.Discrete(2))
    with pytest.raises(ValueError, match="the observations of boards"):
        require_spaces({"mine": Checkpoint({}, state)}, "boards", spec, EnvOptions())
    state["obs_space"] = space_json.to_json(own)
    require_spaces({"mine": Checkpoint({}, state)}, "boards", spec, EnvOptions())
