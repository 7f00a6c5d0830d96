"""Time limits: what a truncated episode counts as, and one early cut of each environment at a random step."""

import dataclasses
import logging
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, EnvSpec, StepResult
from sf.envs.added.clock import CLOCK, ClockedGroup
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.guard import GuardedGroup
from sf.rollout.episode_ends import Decorrelation, EndsAtTruncations, truncations_are_ends
from sf.rollout.recorders import Step

# What a truncated episode counts as


OWN = EnvSpec(gym.spaces.Dict(obs=gym.spaces.Box(0, 1, (1,))), gym.spaces.Discrete(2), has_own_time_limit=True)
AROUND = EnvSpec(OWN.obs_space, OWN.action_space, has_own_time_limit=False)


@pytest.mark.parametrize(
    ("bootstrap", "spec", "are_ends"),
    [
        ("auto", OWN, True),
        ("auto", AROUND, False),
        (True, OWN, False),
        (True, AROUND, False),
        (False, OWN, True),
        (False, AROUND, True),
    ],
)
def test_a_truncated_episode_counts_as_the_flag_says_and_by_default_as_its_limit_is_whose(bootstrap, spec, are_ends):
    assert truncations_are_ends(bootstrap, spec) == are_ends


@pytest.mark.parametrize(("bootstrap", "is_said"), [("auto", True), (False, False)])
def test_a_truncation_is_marked_as_an_end_and_that_is_said_where_nobody_chose_it(bootstrap, is_said, caplog):
    terminated = np.zeros((6, 2), bool)
    truncations = EndsAtTruncations("walk", bootstrap, terminated)
    result = StepResult.empty(3)  # of an actor that goes on, one that is terminated, and one that will be truncated
    result.terminated[1] = True
    step = Step(np.array([5, 1, 3]), 1, result, [], result.first)
    with caplog.at_level(logging.WARNING, "sf.envs"):
        truncations.after_step(step)
        assert not caplog.messages  # nothing was truncated
        assert np.argwhere(terminated).tolist() == [[1, 1]]
        result.truncated[2] = True
        truncations.after_step(step)
    assert np.argwhere(terminated).tolist() == [[1, 1], [3, 1]]
    assert result.terminated.tolist() == [False, True, False]  # what the environment said stays
    said = [message for message in caplog.messages if "walk returns truncated=True by itself" in message]
    assert bool(said) == is_said


class TruncatesItself(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, True, {}


class TwoTruncate(TruncatesItself):
    observation_space = gym.spaces.Tuple([TruncatesItself.observation_space] * 2)
    action_space = gym.spaces.Tuple([TruncatesItself.action_space] * 2)

    def reset(self, *, seed=None, options=None):
        return (np.zeros(1, np.float32),) * 2, {}

    def step(self, action):
        return (np.zeros(1, np.float32),) * 2, [0.0, 0.0], False, True, {}


def pendulums(num_envs):
    return gym.vector.SyncVectorEnv([lambda: gym.make("Pendulum-v1")] * num_envs)


LIMITED = ('{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 5}}',)
envs.register_env("truncates_itself", TruncatesItself)
envs.register_env("two_truncate", TwoTruncate)
envs.register_vector_env("pendulums", pendulums)


@pytest.mark.parametrize(
    ("name", "options", "is_own"),
    [
        ("truncates_itself", {}, True),
        ("truncates_itself", {"env_wrappers": LIMITED}, False),
        ("two_truncate", {}, True),
        ("two_truncate", {"env_wrappers": LIMITED}, False),
        ("pendulums", {}, False),
        ("Pendulum-v1", {}, False),
        ("CartPole-v1", {}, False),  # its vectorised version, which has no wrapper
        ("pettingzoo:classic/rps_v2", {}, True),
        ("atari_pong", {}, False),
        ("toy_counting", {}, False),
    ],
)
def test_a_limit_is_the_environments_own_unless_it_lies_around_it(name, options, is_own):
    if name.startswith("pettingzoo"):
        pytest.importorskip("pettingzoo")
    assert envs.describe(name, EnvOptions(**options)).has_own_time_limit == is_own


# Environments with a time limit do not stay in step


NUM_ENVS, LIMIT = 16, 10


class Counting(gym.Env):
    """The observation is the number of steps of the episode."""

    observation_space = gym.spaces.Box(0, np.inf, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, ends_at=None):
        self._ends_at = ends_at

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._steps += 1
        return np.full(1, self._steps, np.float32), 1.0, self._steps == self._ends_at, False, {}


class Pair:
    """The same for two agents, with PettingZoo's parallel API and a limit of its own."""

    metadata: ClassVar = {}
    possible_agents = ("a", "b")

    def observation_space(self, agent):
        return Counting.observation_space

    def action_space(self, agent):
        return Counting.action_space

    def reset(self, seed=None, options=None):
        self._steps = 0
        self.agents = [*self.possible_agents]
        return self._all(np.zeros(1, np.float32)), self._all({})

    def step(self, actions):
        self._steps += 1
        is_over = self._steps == LIMIT
        answer = self._all(np.full(1, self._steps, np.float32)), self._all(1.0), self._all(False), self._all(is_over)
        self.agents = [] if is_over else self.agents
        return *answer, self._all({})

    def _all(self, value):
        return dict.fromkeys(self.possible_agents, value)

    def close(self):
        pass


class PairWithBreaks(Pair):
    """The second agent leaves after a step, and is back two steps later."""

    def reset(self, seed=None, options=None):
        self._came_at = 0
        return super().reset(seed)

    def step(self, actions):
        acted = {*self.agents}
        observations, rewards, _, truncations, infos = super().step(actions)
        leaves = {agent: agent == "b" and not truncations[agent] for agent in self.possible_agents}
        if self.agents:
            if self._steps == self._came_at + 3:
                self._came_at = self._steps
            self.agents = ["a", "b"] if self._steps == self._came_at else ["a"]
        of_b = np.full(1, self._steps - self._came_at, np.float32)
        answer = {**observations, "b": of_b}, rewards, leaves, truncations
        return *({agent: part[agent] for agent in acted | {*self.agents}} for part in answer), infos


class Limited(gym.Wrapper):
    """A limit that nobody knows beforehand."""

    def step(self, action):
        obs, reward, terminated, _, info = self.env.step(action)
        return obs, reward, terminated, obs[0] == LIMIT, info


gym.register("counting-v0", Counting, max_episode_steps=LIMIT)


def singles_of_known_limit():
    envs = [gym.make("counting-v0", disable_env_checker=True) for _ in range(NUM_ENVS)]
    return ClockedGroup(GymGroup("counting", envs, 0, 0))


def singles():
    return ClockedGroup(GymGroup("counting", [Limited(Counting()) for _ in range(NUM_ENVS)], 0, 0))


def pairs():
    return ClockedGroup(ParallelGroup("pair", [Pair() for _ in range(NUM_ENVS)], 0, 0))


def pairs_with_breaks():
    return ParallelGroup("pair", [PairWithBreaks() for _ in range(NUM_ENVS)], 0, 0)


def played(group, num_steps, seed=0):
    """Observations [T+1, N], results and finished episodes of each step."""
    guarded = GuardedGroup(lambda attempt: group)
    assert guarded.spec.can_cut
    rng = np.random.default_rng(seed)
    cuts = []

    def cut(env_idx):
        cuts.append(env_idx)
        guarded.cut(env_idx)

    spec = guarded.spec
    decorrelation = Decorrelation(cut, guarded.num_actors // spec.num_agents, spec.num_agents, spec.time_limit, rng)
    rows = {key: np.zeros((guarded.num_actors, 1), np.float32) for key in guarded.spec.obs_space}
    views = {key: list(array) for key, array in rows.items()}
    guarded.reset(views)
    key = next(key for key in rows if key != CLOCK)
    seen, steps = [rows[key][:, 0].copy()], []
    actions = np.zeros((guarded.num_actors, 1), np.int32), np.zeros((guarded.num_actors, 0), np.float32)
    for _ in range(num_steps):
        result = StepResult.empty(guarded.num_actors)
        finished = guarded.step(*actions, views, result)
        decorrelation.after_step(Step(None, 0, result, finished, result.first))
        seen.append(rows[key][:, 0].copy())
        assert CLOCK not in rows or (rows[CLOCK] == rows[key]).all()
        steps.append((result, finished))
    return np.array(seen), steps, cuts


@pytest.mark.parametrize(("make", "in_step_for"), [(singles_of_known_limit, 1), (singles, LIMIT), (pairs, LIMIT)])
def test_episodes_are_spread_over_all_steps_after_one_cut_of_each(make, in_step_for):
    seen, steps, cuts = played(make(), 20 * LIMIT)
    assert len({*seen[in_step_for // 2].tolist()}) == 1
    assert len({*seen[in_step_for + LIMIT].tolist()}) > 5
    assert len({*seen[-1].tolist()}) > 5
    assert len(cuts) == len({*cuts}) > 0.7 * NUM_ENVS  # a few are due at their ends
    # What goes on there is what a late reset looks like: an ignored action, and then a first observation.
    begun_late = np.array([result.first & ~result.valid for result, _ in steps])
    truncated = np.array([result.truncated for result, _ in steps])
    cut = begun_late[1:] & ~truncated[:-1]
    num_agents = cut.shape[1] // NUM_ENVS
    assert cut.sum(axis=0).tolist() == [float(n // num_agents in cuts) for n in range(cut.shape[1])]
    for t, n in np.argwhere(cut):
        result, _ = steps[t + 1]
        assert result.reward[n] == 0
        assert not result.terminated[n]
        assert (seen[t + 2, n], 0 < seen[t + 1, n] < LIMIT) == (0, True)
    # It is no episode of the statistics, and every other one is whole.
    episodes = [episode for _, finished in steps for episode in finished]
    assert {episode.num_steps for episode in episodes} == {LIMIT}
    assert len(episodes) == truncated.sum()


def test_a_match_whose_agents_come_and_go_is_cut_as_well():
    seen, _, cuts = played(pairs_with_breaks(), 20 * LIMIT)
    assert len(cuts) == len({*cuts}) > 0.7 * NUM_ENVS
    assert len({*seen[-1, ::2].tolist()}) > 5


def test_what_ends_by_itself_is_left_alone():
    group = GymGroup("counting", [Counting(ends_at=3 + n % 4) for n in range(NUM_ENVS)], 0, 0)
    seen, _, cuts = played(ClockedGroup(group), 60)
    assert not cuts
    assert seen.max() <= 6


def test_what_ends_by_itself_before_its_cut_is_left_alone_from_then_on():
    envs = [Counting(ends_at=3) for _ in range(NUM_ENVS)]
    group = GymGroup("counting", envs, 0, 0)
    group.spec = dataclasses.replace(group.spec, time_limit=LIMIT)
    seen, _, cuts = played(group, 60)
    assert 0 < len(cuts) < NUM_ENVS / 2
    assert len({*seen[3].tolist()}) > 1
    assert (seen[6 + 3 :] == seen[6:-3]).all()  # all in threes


def test_the_same_seed_cuts_alike():
    first, second, other = (played(singles(), 60, seed)[0] for seed in (1, 1, 2))
    assert (first == second).all()
    assert (first != other).any()


def test_a_limit_that_is_shorter_than_the_one_that_is_known_is_found_out():
    envs = [Limited(Counting()) for _ in range(64)]
    group = GymGroup("counting", envs, 0, 0)
    group.spec = dataclasses.replace(group.spec, time_limit=4 * LIMIT)  # a wrapper repeats actions, say
    seen, _, cuts = played(ClockedGroup(group), 12 * LIMIT)
    assert sorted(cuts) == list(range(64))
    counts = np.bincount(seen[-1].astype(int), minlength=LIMIT)
    assert counts.max() < 64 / 2
