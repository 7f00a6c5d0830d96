"""Searches play on in copies of Gymnasium environments, which are what the environments would become."""

import copy
import random

import gymnasium as gym
import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, StepResult, UsageError
from sf.envs.group import CHANCE, OVER
from sf.envs.groups.forward import NUM_OUTCOMES
from sf.envs.groups.gym import GymGroup
from sf.envs.guard import GuardedGroup
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.episodes import Play
from sf.evaluation.play.opponents import Opponent, with_single_envs
from sf.search.search import Search, SearchSettings

COUNTS = np.zeros(1)  # what an environment should not keep elsewhere


class Corridor(gym.Env):
    """Ten cells, and a step to the right costs something: only the end, which is too far for chance, pays it back.

    Another reward close by, for the left, is what random play sees. kind: what else is the case with it.
    """

    observation_space = gym.spaces.Dict(
        {"cell": gym.spaces.Box(-1, 99, (1,), np.float32), "action_mask": gym.spaces.MultiBinary(3)}
    )
    action_space = gym.spaces.Discrete(3)

    def __init__(self, kind="plain"):
        self.kind, self.buffer = kind, np.zeros(1, np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.num = 1, 0
        if self.kind == "cannot be copied":
            self.steps = (number for number in range(99))
        return self.obs(), {}

    def obs(self):
        self.buffer[0] = self.cell  # the same array at each step
        if self.kind == "kept elsewhere":
            self.buffer[0] = COUNTS[0]
        return {"cell": self.buffer, "action_mask": np.array([1, 1, self.num % 2], np.int8)}

    def step(self, action):
        assert action < 2 or self.num % 2, "it is not allowed"
        self.num += 1
        COUNTS[0] += 1
        self.cell += 1 if action == 1 else -1 if action == 0 else 0
        if self.kind == "draws":
            self.cell += int(self.np_random.integers(0, 2))
        if self.kind == "draws from nowhere":
            self.cell += random.randrange(3)
        reward = {0: 0.3, 6: 5.0}.get(self.cell, -0.1)
        return self.obs(), reward, self.cell in (0, 6), self.num >= 20, {}


def group_of(kind="plain", num=2, frameskip=1):
    group = GymGroup("corridor", [Corridor(kind) for _ in range(num)], 3, 0, frameskip)
    rows = rows_of(group, num)
    group.reset(rows)
    return group, rows


def rows_of(group, num):
    return {key: list(rows) for key, rows in obs_arrays(group.spec.obs_space, num).items()}


def stepped(group, rows, actions):
    result = StepResult.empty(group.num_actors)
    group.step(np.array(actions, np.int32)[:, None], np.zeros((len(actions), 0), np.float32), rows, result)
    return result


def same(first, second):
    return all(np.array_equal(a, b) for key in first for a, b in zip(first[key], second[key], strict=True))


@pytest.mark.parametrize("frameskip", [1, 2])
@pytest.mark.parametrize("env", ["corridor", "CartPole-v1"])
def test_positions_are_those_of_the_environment_with_these_actions(env, frameskip):
    """Also after steps of the group, which stays what it was."""
    if env == "corridor":
        group, rows = group_of(num=1, frameskip=frameskip)
    else:
        options = EnvOptions(env_frameskip=frameskip, single_envs=True)
        group = envs.make_group(env, 1, options, seed=3, first_env_idx=0)
        rows = rows_of(group, 1)
        group.reset(rows)
    assert group.spec.can_search
    model = group.forward_model(seed=5)
    seen = rows_of(group, 1)
    rng = np.random.default_rng(0)
    num_ends = 0
    for _ in range(12):
        model.begin(0, group.game(0))
        at = model.play([0], [-1], [-1], [0])
        model.show([0], [0], seen)
        assert same(seen, rows)
        for place in range(1, 9):
            if "action_mask" in rows:
                assert at.choices.tolist() == np.flatnonzero(rows["action_mask"][0]).tolist()
            action = int(rng.choice(at.choices))
            model.play_out([0], [place - 1])  # which nobody notices
            at = model.play([0], [place - 1], [action], [place])
            result = stepped(group, rows, [action])
            assert at.reward[0] == result.reward[0]
            is_over = bool(result.terminated[0] or result.truncated[0])
            assert (at.mover[0] == OVER) == is_over
            if is_over:
                num_ends += 1
                if result.truncated[0]:
                    assert group.game(0) is None  # its next action is ignored
                    stepped(group, rows, [0])
                break
            model.show([0], [place], seen)
            assert same(seen, rows)
    assert num_ends or frameskip == 1


def test_chance_is_not_foreseen_and_the_group_draws_as_it_would():
    """All outcomes are in the model, and what the group draws depends on no search."""
    alone, rows = group_of("draws", num=1)
    cells_alone = [stepped(alone, rows, [0]) and float(rows["cell"][0][0]) for _ in range(40)]
    group, rows = group_of("draws", num=1)
    model = group.forward_model(seed=5)
    cells, drawn = [], []
    for _ in range(40):
        state = group.game(0)
        if state is not None:
            model.begin(0, state)
            model.play_out([0], [0])
            before = float(rows["cell"][0][0])
            at = model.play([0], [0], [0], [1])
            assert at.mover[0] == CHANCE
            assert at.odds.tolist() == [1 / NUM_OUTCOMES] * NUM_OUTCOMES
            model.play([0] * 8, [1] * 8, range(8), range(2, 10))
            seen = rows_of(group, 8)
            model.show([0] * 8, range(2, 10), seen)
            drawn += [float(cell[0]) - before for cell in seen["cell"]]
        stepped(group, rows, [0])
        cells.append(float(rows["cell"][0][0]))
    assert cells == cells_alone
    assert set(drawn) == {-1.0, 0.0}
    assert 0.35 < np.mean(np.array(drawn) == 0.0) < 0.65


def test_a_search_finds_what_random_play_does_not():
    """The near reward is what most of random play ends with, and it takes no time to know its value."""
    group, _ = group_of(num=1)
    model = group.forward_model(seed=5)
    model.begin(0, group.game(0))
    search = Search(model, SearchSettings(400, playout_share=1.0), 1)
    search.begin([0])
    while not search.is_done:
        asked = search.leaves()
        if len(asked.game):
            search.evaluate(asked, np.zeros((len(asked.game), 3)), np.zeros(len(asked.game)))
    found = search.read(0)
    assert found.action[found.score.argmax()] == 1
    assert found.visits.max() > 300
    assert found.root_value > 2


def player(name, env="CartPole-v1", kwargs="{}"):
    options = with_single_envs([name], EnvOptions(env_kwargs=kwargs))
    spec = envs.describe(env, options)
    return Opponent.named(name, env, options, spec.native_obs_space, spec.action_space).player(), options


class Failing(gym.Wrapper):
    """Fails in a step of the environment itself, not of its copies."""

    def __init__(self, env, faults):
        super().__init__(env)
        self.faults = faults

    def step(self, action):
        if next(self.faults):
            raise RuntimeError
        return self.env.step(action)

    def __deepcopy__(self, memo):
        return copy.deepcopy(self.env, memo)


@pytest.mark.parametrize(("name", "falls"), [("random", True), ("search:10", False)])
def test_a_player_that_searches_balances_a_pole_and_goes_on_after_a_fault(name, falls):
    faults = iter([False] * 9 + [True] + [False] * 99)
    group = GuardedGroup(
        lambda attempt: GymGroup("pole", [Failing(gym.make("CartPole-v1"), faults) for _ in range(2)], attempt, 0)
    )
    going = Play(group, [player(name)[0]], np.zeros((99, 1), int), range(2), 2, 1, deterministic=False)
    assert bool([each for _ in range(32) for each in going.step()]) == falls
    assert len(group.pop_faults()) == 1
    assert np.isnan(going.value).all() == falls


@pytest.mark.parametrize("kind", ["cannot be copied", "kept elsewhere", "draws from nowhere"])
def test_an_environment_that_copies_badly_is_refused(kind):
    group, _ = group_of(kind)
    with pytest.raises(UsageError, match="__deepcopy__"):
        group.forward_model(seed=5).begin(0, group.game(0))


@pytest.mark.parametrize(
    ("name", "env", "match"),
    [
        ("search:5", "Pendulum-v1", "Discrete"),
        ("search:5", "toy_match_pennies", "2 agents"),
        ("search:5", "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv", "single"),
        ("search:5:zoo/CartPole-v1", "Acrobot-v1", "trained with other"),
    ],
)
def test_what_cannot_be_searched_is_refused(name, env, match):
    with pytest.raises(UsageError, match=match):
        player(name, env)


def test_it_is_refused_where_its_environments_are_in_another_process():
    searching, _ = player("search:5")
    with pytest.raises(UsageError, match="another process"):
        searching.actors(1, 0)
    vectorised = envs.make_group("CartPole-v1", 1, EnvOptions(), seed=1, first_env_idx=0)
    with pytest.raises(UsageError, match="single"):
        searching.actors_in_group(vectorised, 1, 0)
