"""Matches against scripts of who plays when, the counting match, and environments that do not keep to the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Step, play

from sf.envs import UsageError
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.remarks import handed_to
from sf.envs.toys.matches import CountingMatch

AGENTS = "abc"


class Script:
    """Plays the same match again and again: `rosters` says who plays after reset and after each step.

    Who is missing in the next roster was terminated, who is there in upper case was truncated. An observation is
    [match, steps of the match, agent_idx], all from 1; a step pays the agent's number.
    """

    def __init__(self, *rosters: str) -> None:
        self.possible_agents = list(AGENTS)
        self._rosters = rosters
        self._match = 0
        self.agents: list[str] = []
        self.seeds: list[int | None] = []
        self.actions: list[dict[str, int]] = []
        self.closed = False

    def observation_space(self, agent: str) -> gym.Space:
        return gym.spaces.Box(0.0, 100.0, (3,), np.float32)

    def action_space(self, agent: str) -> gym.Space:
        return gym.spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None):
        self.seeds.append(seed)
        self._match += 1
        self._step = 0
        self.agents = list(self._rosters[0])
        return self._obs(), {}

    def step(self, actions: dict[str, int]):
        assert actions.keys() == set(self.agents)
        self.actions.append(actions)
        self._step += 1
        acted, roster = self.agents, self._rosters[self._step]
        terminations = {agent: agent not in roster.lower() for agent in acted}
        truncations = {agent: agent.upper() in roster for agent in acted}
        rewards = {agent: 1.0 + AGENTS.index(agent) for agent in acted}
        infos = {agent: {"episode_stats": {"step": self._step}} for agent in acted}
        self.agents = [agent for agent in roster if agent.islower()]
        return self._obs(), rewards, terminations, truncations, infos

    def close(self) -> None:
        self.closed = True

    def _obs(self) -> dict[str, np.ndarray]:
        return {agent: np.array((self._match, self._step + 1, i + 1), np.float32) for i, agent in enumerate(AGENTS)}


def rows_of(steps: list[Step], actor_idx: int) -> list[str]:
    """Each row in letters: v valid, d terminated, t truncated, f first, o where the observation is not zeros."""
    names = {"v": "valid", "d": "terminated", "t": "truncated", "f": "first"}
    rows = []
    for step in steps:
        flags = [letter for letter, name in names.items() if getattr(step.result, name)[actor_idx]]
        rows.append("".join(flags) + "o" * bool(step.obs["obs"][actor_idx].any()))
    return rows


@pytest.mark.parametrize(
    ("rosters", "rows"),
    [
        (("abc", "abc", ""), [["vo", "vdfo", "vo", "vdfo"]] * 3),
        (("abc", "abc", "ABC"), [["vo", "vto", "fo", "vo", "vto"]] * 3),
        (
            ("abc", "abc", "B"),  # the others have no final observation to show
            [["vo", "vd", "fo", "vo"], ["vo", "vto", "fo", "vo"], ["vo", "vd", "fo", "vo"]],
        ),
        (
            ("abc", "bC", "b", ""),  # the truncation is long past when the match ends
            [["vd", "", "fo", "vd"], ["vo", "vo", "vdfo", "vo"], ["vto", "", "fo", "vto"]],
        ),
        (
            ("abc", "bC", ""),  # the final observation of c is shown, then all begin anew
            [["vd", "fo", "vd"], ["vo", "vdfo", "vo"], ["vto", "fo", "vto"]],
        ),
        (
            ("abc", "Ac", "ac", "abc", ""),  # back after the final observation, and after one row of zeros
            [["vto", "fo", "vo", "vdfo"], ["vd", "", "fo", "vdfo"], ["vo", "vo", "vo", "vdfo"]],
        ),
        (
            ("b", "ab", "bA", ""),  # c never plays
            [["fo", "vto", "", "fo"], ["vo", "vo", "vdfo", "vo"], ["", "", "", ""]],
        ),
    ],
    ids=["terminated", "truncated", "one_truncated", "left", "left_just_before", "come_back", "come_late"],
)
def test_rows_follow_who_plays(rosters: tuple[str, ...], rows: list[list[str]]) -> None:
    _, steps = play(ParallelGroup("script", [Script(*rosters)], 0, 0), len(rows[0]))
    assert [rows_of(steps, n) for n in range(3)] == rows


def test_a_match_begins_with_zeros_for_whoever_is_not_there_and_is_closed() -> None:
    env = Script("b", "")
    first_obs, _ = play(ParallelGroup("script", [env], 0, 0), 1)
    assert first_obs["obs"].tolist() == [[0, 0, 0], [1, 1, 2], [0, 0, 0]]
    assert env.closed


@pytest.mark.parametrize("episodes_per_match", [1, 3])
def test_every_observation_is_the_one_that_follows_the_action(episodes_per_match: int) -> None:
    num_agents, num_matches, first_env_idx = 3, 4, 10
    envs = [CountingMatch(num_agents, episodes_per_match, first_env_idx + m) for m in range(num_matches)]
    first_obs, steps = play(ParallelGroup("counting", envs, 0, first_env_idx), 300)
    away_rows, kinds = 0, set()
    for n in range(num_agents * num_matches):
        env_idx, agent_idx = first_env_idx + n // num_agents, n % num_agents
        episode, count = 0, 0
        assert first_obs["obs"][n].tolist() == [env_idx, agent_idx, 0, 0, -1]
        for step in steps:
            row, obs = step.result, step.obs["obs"][n].astype(int).tolist()
            ended = False
            if row.valid[n]:
                count += 1
                ended = count == CountingMatch.num_steps(env_idx, agent_idx, episode)
                truncates = CountingMatch.truncates(agent_idx, episode)
                assert row.reward[n] == count
                assert row.terminated[n] == (ended and not truncates)
                assert row.truncated[n] == (ended and truncates)
            kinds.add((bool(row.valid[n]), ended, bool(row.truncated[n]), bool(row.first[n])))
            if row.first[n]:
                episode, count = episode + 1, 0
                assert obs == [env_idx, agent_idx, episode, 0, -1]
            elif row.valid[n] and not row.terminated[n]:
                assert obs == [env_idx, agent_idx, episode, count, step.discrete[n, 0]]
            else:
                assert obs == [0, 0, 0, 0, 0]
                away_rows += 1
    assert away_rows > 50
    assert len(kinds) == 6  # plays, terminated with and without a match that goes on, truncated, away, comes


def test_every_action_reaches_the_agent_of_its_actor() -> None:
    envs = [Script("abc", "ac", "ab", ""), Script("abc", "abc", "ABC")]
    _, steps = play(ParallelGroup("script", envs, 0, 0), 3)
    sent = [step.discrete[:, 0].tolist() for step in steps]
    assert [list(actions.items()) for actions in envs[0].actions] == [
        [("a", sent[0][0]), ("b", sent[0][1]), ("c", sent[0][2])],
        [("a", sent[1][0]), ("c", sent[1][2])],
        [("a", sent[2][0]), ("b", sent[2][1])],
    ]
    assert [list(actions.values()) for actions in envs[1].actions] == [sent[0][3:], sent[1][3:]]


def test_an_agent_has_an_episode_of_its_own_for_each_time_it_plays() -> None:
    _, steps = play(ParallelGroup("script", [Script("abc", "ab", "aB", "abc", "")], 0, 0), 5)
    episodes = [[(e.actor_idx, e.episode_return, e.num_steps, e.stats) for e in step.episodes] for step in steps]
    assert episodes == [
        [(2, 3.0, 1, {"step": 1.0})],
        [(1, 4.0, 2, {"step": 2.0})],
        [],
        [(0, 4.0, 4, {"step": 4.0}), (1, 2.0, 1, {"step": 4.0}), (2, 3.0, 1, {"step": 4.0})],
        [(2, 3.0, 1, {"step": 1.0})],
    ]


def test_frameskip_repeats_actions_adds_rewards_and_stops_where_somebody_leaves_or_comes_back() -> None:
    env = Script("ab", "ab", "ab", "a", "ab", "ab", "")
    group = ParallelGroup("script", [env], 0, 0, frameskip=2)
    _, steps = play(group, 4)
    assert group.spec.frameskip == 2
    assert [step.result.reward.tolist() for step in steps] == [[2, 4, 0], [1, 2, 0], [1, 0, 0], [2, 4, 0]]
    assert [rows_of(steps, n) for n in range(2)] == [["vo", "vo", "vo", "vdfo"], ["vo", "vd", "fo", "vdfo"]]
    assert [(e.actor_idx, e.num_steps, e.num_frames) for step in steps for e in step.episodes] == [
        (1, 2, 3),
        (0, 4, 6),
        (1, 1, 2),
    ]
    assert env.actions[0] == env.actions[1]


def test_every_match_of_a_run_gets_its_own_seed_whatever_its_group() -> None:
    envs = [Script("abc", "") for _ in range(6)]
    play(ParallelGroup("script", envs[:4], 7, 0), 1)
    play(ParallelGroup("script", envs[4:], 7, 4), 1)
    seeds = [env.seeds[0] for env in envs]
    assert len(set(seeds)) == 6
    again = [Script("abc", "") for _ in range(3)]
    play(ParallelGroup("script", again, 7, 3), 1)
    assert [env.seeds[0] for env in again] == seeds[3:]
    assert envs[0].seeds[1] is None  # the generator goes on with the second match


def _with(**members: Any) -> Script:
    env = Script("abc", "abc", "")
    for name, member in members.items():
        setattr(env, name, member)
    return env


def _obs_space(agent: str) -> gym.Space:
    return gym.spaces.Box(0.0, 1.0, (3 if agent != "c" else 4, 2), np.float32)


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"observation_space": _obs_space}, "agent 'a' .*agent 'c'"),
        ({"action_space": lambda agent: gym.spaces.Text(3)}, "action space"),
        *(({"possible_agents": agents}, "possible_agents") for agents in ([], 2, "abc")),
    ],
)
def test_what_cannot_be_trained_on_is_refused_before_anything_runs(members: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=f"^bad: .*{named}"):
        ParallelGroup("bad", [_with(**members)], 0, 0)


def test_environments_of_one_group_have_the_same_agents_in_any_order() -> None:
    with pytest.raises(UsageError, match="possible_agents"):
        ParallelGroup("bad", [_with(), _with(possible_agents=["a", "b"])], 0, 0)
    assert ParallelGroup("fine", [_with(), _with(possible_agents=["c", "b", "a"])], 0, 0).num_actors == 6


def _begins_with(agents: Any) -> Script:
    env = _with()
    obs = env.reset()
    env.reset = lambda seed=None: vars(env).update(agents=agents) or obs
    return env


def _spoilt(spoil: Callable[[tuple], tuple]) -> Script:
    env = _with()
    honest = env.step
    env.step = lambda actions: spoil(honest(actions))
    return env


class Vanishing(Script):
    """An agent is gone without an end; termination wins where an agent is also truncated."""

    def step(self, actions: dict[str, int]):
        obs, rewards, terminations, _, infos = super().step(actions)
        if terminations["a"]:
            return obs, rewards, terminations, dict.fromkeys(actions, True), infos
        self.agents.remove("b")
        return obs, rewards, terminations, dict.fromkeys(actions, False), infos


@pytest.mark.parametrize(
    ("env", "named"),
    [
        *((_begins_with(agents), "`agents`") for agents in ([], ["a", "z"], ["a", "a"], None, "ab")),
        (_spoilt(lambda step: (step[0], {"a": 1.0, "b": 1.0}, *step[2:])), "no reward for agent 'c'"),
        (_spoilt(lambda step: ({"a": step[0]["a"], "b": step[0]["b"]}, *step[1:])), "no observation for agent 'c'"),
        (_spoilt(lambda step: (*step[:2], {"a": False, "b": False, "c": True}, *step[3:])), "'c' was terminated"),
        (Vanishing("abc", "abc", ""), "'b' was not terminated"),
    ],
)
def test_a_match_that_does_not_keep_to_the_api_is_an_error(env: Script, named: str) -> None:
    with pytest.raises(UsageError, match=f"^bad: .*{named}"):
        play(ParallelGroup("bad", [env], 0, 0), 1)


def test_termination_wins_where_an_agent_is_also_truncated_and_what_is_out_of_its_space_is_named() -> None:
    env = Vanishing("abc", "")
    env.observation_space = lambda agent: gym.spaces.Box(0.0, 0.5, (3,), np.float32)
    remarks = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        _, steps = play(ParallelGroup("both", [env], 0, 0), 2)
    assert [rows_of(steps, n) for n in range(3)] == [["vdfo", "vdfo"]] * 3
    assert [remark.partition(",")[0] for remark in remarks] == ["both: observation 'obs'[0] is 1.0"]
