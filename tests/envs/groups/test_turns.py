"""Games whose agents take turns: one of ours, and PettingZoo's."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Step, play
from masked_env import Nim

from sf.envs import EnvOptions, make_group, make_rendered_group
from sf.envs.errors import ApiError, UsageError
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.turns import TurnsTogether, as_parallel


def played(num_steps: int, **kwargs: Any) -> tuple[dict[str, np.ndarray], list[Step]]:
    game = as_parallel("nim", Nim(**kwargs), 1)
    return play(ParallelGroup("nim", [game], 0, 0), num_steps)


def test_who_waits_is_allowed_nothing_and_its_choice_changes_nothing():
    first_obs, steps = played(60)
    obs, heap, num_games = first_obs, 10, 0
    on_turn = 0
    for step in steps:
        assert (obs["heap"] == [[heap, 0], [heap, 1]]).all()
        assert obs["action_mask"][on_turn].tolist() == [pieces <= heap for pieces in (1, 2, 3)]
        assert obs["action_mask"][1 - on_turn].tolist() == [0, 0, 0]
        heap -= 1 + step.discrete[on_turn, 0]
        assert step.result.valid.all()
        over = bool(heap == 0)
        assert (step.result.terminated == over).all()
        assert (step.result.first == over).all()
        assert step.result.reward[on_turn] == (1.0 if over else 0.0)
        assert step.result.reward[1 - on_turn] == (-1.0 if over else 0.0)
        assert [episode.episode_return for episode in step.episodes] == ([1, -1], [-1, 1])[on_turn] * over
        on_turn = 0 if over else 1 - on_turn
        heap = 10 if over else heap
        num_games += over
        obs = step.obs
    assert num_games > 5


@pytest.mark.parametrize("masks", ["infos", "none"])
def test_a_mask_is_made_where_the_observation_has_none(masks):
    game = TurnsTogether(Nim(heap=2, masks=masks))
    space = game.observation_space("first")
    assert space["action_mask"] == gym.spaces.Box(0, 1, (3,), np.int8)
    obs, _ = game.reset(seed=0)
    assert all(space.contains(of_agent) for of_agent in obs.values())
    assert obs["first"]["action_mask"].tolist() == ([1, 1, 0] if masks == "infos" else [1, 1, 1])
    assert obs["second"]["action_mask"].tolist() == [0, 0, 0]
    assert obs["second"]["observation"].tolist() == [2, 1]


def test_a_truncated_game_shows_how_it_ended_and_allows_nothing_more():
    _, steps = played(3, truncate_at=2)
    assert steps[1].result.truncated.all()
    assert steps[1].obs["heap"][:, 0].tolist() == [10 - 2 - steps[0].discrete[0, 0] - steps[1].discrete[1, 0]] * 2
    assert not steps[1].obs["action_mask"].any()
    assert not steps[2].result.valid.any()
    assert steps[2].result.first.all()


class Dropouts(Nim):
    """Three count down; who makes the heap even leaves, the others play on."""

    possible_agents = ("a", "b", "c")

    def step(self, action):
        agent = self.agent_selection
        self.rewards = dict.fromkeys(self.agents, 0.0)
        after = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        if self.terminations[agent]:
            assert action is None
            self.agents.remove(agent)
            del self.terminations[agent]
        else:
            self.heap -= 1
            self.rewards[agent] = 1.0
            self.terminations[agent] = self.heap % 2 == 0
        self.agent_selection = after


def test_who_has_ended_leaves_and_the_others_play_on():
    game = TurnsTogether(Dropouts(heap=10))
    obs, _ = game.reset(seed=0)
    on_turn, rosters = [], []
    while game.agents:
        on_turn += [agent for agent, seen in obs.items() if seen["action_mask"].any()]
        obs, rewards, terminations, *_ = game.step(dict.fromkeys(game.agents, 0))
        assert rewards == {agent: float(agent == on_turn[-1]) for agent in rewards}
        assert [agent for agent in terminations if not terminations[agent]] == game.agents
        rosters.append("".join(game.agents))
    assert on_turn == ["a", "b", "c", "a", "c", "c"]
    assert rosters == ["abc", "abc", "abc", "ac", "c", ""]


class Heirs(Dropouts):
    """Whoever moves pays 10 to each that has ended and not left."""

    def step(self, action):
        heirs = [agent for agent in self.agents if self.terminations[agent]]
        super().step(action)
        if action is not None:
            self.rewards.update(dict.fromkeys(heirs, 10.0))
        self.infos = {agent: {"ended": True} if self.terminations[agent] else {} for agent in self.agents}
        for heir in heirs:
            self.infos.pop(heir, None)


def test_who_has_ended_is_paid_until_it_leaves_and_moves_no_more():
    game = TurnsTogether(Heirs(heap=10))
    game.reset(seed=0)
    totals, ends = dict.fromkeys("abc", 0.0), []
    for turn in range(6):
        _, rewards, terminations, _, infos = game.step(dict.fromkeys(game.agents, 0))
        ends += [(turn, agent) for agent, has_ended in terminations.items() if has_ended]
        assert all(infos[agent] == {"ended": True} for agent, has_ended in terminations.items() if has_ended)
        for agent, reward in rewards.items():
            totals[agent] += reward
    # b ends with turn 1, while c and a still move; a with turn 3, before c.
    assert totals == {"a": 2 + 10, "b": 1 + 10 + 10, "c": 3}
    assert ends == [(3, "b"), (4, "a"), (5, "c")]


class Knockout(Nim):
    """Whoever moves knocks out the next; with the second one who leaves, the last is paid, and the game is over."""

    possible_agents = ("a", "b", "c")

    def step(self, action):
        agent = self.agent_selection
        after = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        if self.terminations[agent]:
            assert action is None
            for values in (self.terminations, self.truncations, self.rewards, self.infos):
                del values[agent]
            self.agents.remove(agent)
            if len(self.agents) == 1:
                self.rewards[after], self.terminations[after] = 5.0, True
        else:
            self.rewards[agent] = 1.0
            self.terminations[after] = True
        self.agent_selection = after


def test_what_follows_from_leaving_counts():
    """The rewards of such a step are part of what PettingZoo's `last` adds up."""
    game = as_parallel("knockout", Knockout(), 1)
    game.reset(seed=0)
    _, rewards, terminations, _, _ = game.step(dict.fromkeys("abc", 0))
    assert (game.agents, rewards) == (["a", "c"], {"a": 1.0, "b": 0.0, "c": 0.0})
    assert terminations == {"a": False, "b": True, "c": False}
    _, rewards, terminations, _, _ = game.step(dict.fromkeys("ac", 0))
    assert (game.agents, rewards) == ([], {"a": 0.0, "c": 1.0 + 5.0})
    assert terminations == {"a": True, "c": True}


class OneBuffer(Nim):
    """Each observation, and each mask, is written over the one before."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._buffer, self._bits = np.zeros(2, np.float32), np.zeros(3, np.int8)

    def observe(self, agent):
        obs = super().observe(agent)
        if self._masks == "obs":
            self._buffer[:], self._bits[:] = obs["heap"], obs["action_mask"]
            return {"heap": self._buffer, "action_mask": self._bits}
        self._buffer[:] = obs
        return self._buffer


@pytest.mark.parametrize("masks", ["obs", "none"])
def test_observations_that_share_one_array_are_those_of_each_agent(masks):
    first_obs, steps = play(ParallelGroup("buffer", [as_parallel("buffer", OneBuffer(masks=masks), 1)], 0, 0), 40)
    key = "heap" if masks == "obs" else "observation"
    for obs in (first_obs, *(step.obs for step in steps)):
        assert obs[key][:, 1].tolist() == [0, 1]
        assert obs["action_mask"].any(axis=1).sum() == 1


class Undead(Knockout):
    """Agents that have ended stay in `agents`."""

    def step(self, action):
        if action is not None:
            super().step(action)


class Arrivals(Nim):
    """The second player comes after the first move, and the first one is gone with its second."""

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.agents = ["first"]

    def step(self, action):
        assert action is not None
        super().step(action)
        if self.heap <= 5:
            self.agents = ["second"]
        elif "second" not in self.agents:
            self.agents.append("second")


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("nobody", [None, "third"])
def test_a_turn_of_nobody_is_an_error_of_the_environment(nobody, after):
    game = Nim()
    match, name = as_parallel("nim", game, 1), ("reset", "step")[after]
    real = getattr(game, name)

    def call(*args, **kwargs):
        real(*args, **kwargs)
        game.agent_selection = nobody

    setattr(game, name, call)
    with pytest.raises(ApiError, match=f"agent_selection is {nobody!r}"):
        play(ParallelGroup("nim", [match], 0, 0), 1 + after)


def test_who_comes_later_plays_and_who_is_gone_without_a_word_or_does_not_leave_is_named():
    group = ParallelGroup("arrivals", [as_parallel("arrivals", Arrivals(), 1)], 0, 0)
    with pytest.raises(UsageError, match="'first' was not terminated"):
        play(group, 10)
    game = as_parallel("arrivals", Arrivals(), 1)
    game.reset(seed=0)
    obs, rewards, *_ = game.step({"first": 0})
    assert (game.agents, list(rewards)) == (["first", "second"], ["first"])
    assert obs["second"]["action_mask"].all()
    assert not obs["first"]["action_mask"].any()
    group = ParallelGroup("undead", [as_parallel("undead", Undead(), 1)], 0, 0)
    with pytest.raises(ApiError, match=r"undead: agent '\w+' had ended"):
        play(group, 10)
    nameless, match = Nim(), as_parallel("nim", Nim(), 1)
    nameless.possible_agents, match.possible_agents = (), ["first"]
    with pytest.raises(UsageError, match="possible_agents"):
        as_parallel("nim", nameless, 1)
    with pytest.raises(UsageError, match="possible_agents"):
        play(ParallelGroup("nim", [match], 0, 0), 1)


def test_a_seed_reaches_the_game_and_frames_are_not_skipped():
    game = Nim()
    group = ParallelGroup("nim", [as_parallel("nim", game, 1)], 3, 5)
    play(group, 1)
    assert isinstance(game.seeds[0], int)
    options = EnvOptions(env_frameskip=4)
    for make in (make_group, make_rendered_group):
        with pytest.raises(UsageError, match="env_frameskip is 4"):
            make("masked_env:Nim", 1, options, seed=0, first_env_idx=0)


@pytest.mark.parametrize("env_id", ["pettingzoo:classic/connect_four_v3", "pettingzoo.classic.tictactoe_v3:env"])
def test_board_games_of_pettingzoo_are_played_by_their_rules(env_id):
    """They end a game in which somebody moves as may not be, and say so."""
    pytest.importorskip("pettingzoo")
    group = make_group(env_id, 3, EnvOptions(), seed=1, first_env_idx=0)
    _, steps = play(group, 150)
    episodes = [episode for step in steps for episode in step.episodes]
    assert len(episodes) > 10
    assert {abs(episode.episode_return) for episode in episodes} <= {0.0, 1.0}
    assert sum(episode.episode_return for episode in episodes) == 0
    assert min(episode.num_steps for episode in episodes) >= 5
    moves = [(step.obs["action_mask"].reshape(3, 2, -1).any(-1)).sum(1).tolist() for step in steps]
    assert all(num_on_turn == [1, 1, 1] for num_on_turn in moves)


def test_a_game_that_draws_is_filmed_once_for_both():
    group = make_rendered_group("masked_env:Nim", 2, EnvOptions(), seed=0, first_env_idx=0)
    assert (group.num_views, group.pictures_per_s) == (1, 2.0)
    _, steps = play(group, 1)
    heaps = [film[-1][0, 0, 0] for film in group.pictures()]
    assert heaps == [10 - 1 - steps[0].discrete[n, 0] for n in (0, 2)]
