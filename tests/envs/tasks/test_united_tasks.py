"""The rows of several tasks: each has its own numbers at the front, zeros behind them, and masks that say so."""

import pickle
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Memory, play
from hypothesis import given
from hypothesis import strategies as st

from sf import envs
from sf.envs import ActionSpec, EnvOptions, StepResult, registry
from sf.envs.custom.registered import registered
from sf.envs.spaces.observations import obs_arrays
from sf.envs.tasks import united
from sf.envs.tasks.file import taken_over
from sf.envs.tasks.heads import unite_heads
from sf.envs.tasks.united import TASK, FoundTasks, unite

TOYS = f"tasks:{Path(__file__).parents[2] / 'data' / 'tasks' / 'toys.yaml'}"
NUM_ENVS = 3


def test_the_heads_of_the_scenarios_of_doom_are_four_in_which_an_action_is_the_same_choice_everywhere():
    pytest.importorskip("vizdoom")
    parts = unite("tasks:doom_single", EnvOptions())
    spec = parts[0].spec
    assert spec.action_names == (
        ("NOOP", "MOVE_LEFT", "MOVE_RIGHT", "ATTACK"),
        ("NOOP", "TURN_LEFT", "TURN_RIGHT", "MOVE_FORWARD", "MOVE_BACKWARD"),
        ("NOOP", "MOVE_FORWARD", "MOVE_BACKWARD"),
        ("NOOP", "ATTACK"),
    )
    assert spec.action_space == gym.spaces.MultiDiscrete([4, 5, 3, 2])
    for part in parts:
        names = [tuple(spec.action_names[head.united][i] for i in head.choices) for head in part.heads]
        assert tuple(names) == part.own.action_names
        assert len({head.united for head in part.heads}) == len(part.heads)
    assert spec.obs_space["obs"].shape == (72, 128, 3)


NAMES = st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=4, unique=True).map(lambda names: ("NOOP", *names))


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=5))
def test_every_choice_of_every_task_has_a_place_of_its_name_and_no_two_heads_of_a_task_share_one(tasks):
    united = unite_heads(tasks)
    for heads, places in zip(tasks, united.of_tasks, strict=True):
        assert [tuple(united.names[own.united][i] for i in own.choices) for own in places] == [*map(tuple, heads)]
        assert len({own.united for own in places}) == len(places)
    assert all(len({*names}) == len(names) for names in united.names)
    used = {(own.united, i) for places in united.of_tasks for own in places for i in own.choices}
    assert used == {(head, i) for head, names in enumerate(united.names) for i in range(len(names))}


def own_group(env, kwargs="{}"):
    return envs.make_group(env, NUM_ENVS, EnvOptions(env_kwargs=kwargs), seed=5, first_env_idx=6)


@pytest.mark.parametrize(
    ("number", "env", "kwargs", "num_choices"),
    [(1, "toy_counting", '{"env_idx": 201}', 8), (2, "toy_memory", "{}", 2)],
)
def test_the_rows_of_a_task_are_those_of_its_environment_with_what_it_lacks(number, env, kwargs, num_choices):
    name = ("long", "short", "toy_memory")[number]
    group = envs.make_group(TOYS, NUM_ENVS, EnvOptions(task=name), seed=5, first_env_idx=6)
    assert group.spec.obs_space["obs"].shape == (4,)
    assert group.spec.action_space == gym.spaces.Discrete(8)
    assert [*group.spec.tasks.items()] == [("long", 2.0), ("short", 1.0), ("toy_memory", 1.0)]
    first, steps = play(group, 40)
    own = own_group(env, kwargs)
    rows = obs_arrays(own.spec.obs_space, NUM_ENVS)
    own.reset({key: [*array] for key, array in rows.items()})
    result = StepResult.empty(NUM_ENVS)
    length = rows["obs"].shape[1]
    seen = [first, *(step.obs for step in steps)]
    for step, obs in zip([None, *steps], seen, strict=True):
        if step is not None:
            episodes = own.step(step.discrete, step.continuous, {k: [*array] for k, array in rows.items()}, result)
            for field in ("reward", "terminated", "truncated", "valid", "first"):
                assert (getattr(result, field) == getattr(step.result, field)).all()
            assert [each.episode_return for each in episodes] == [each.episode_return for each in step.episodes]
            for each in step.episodes:
                assert each.stats[f"return/{name}"] == each.episode_return
                scored = {"score/toy_memory": 2 * each.episode_return - 1} if number == 2 else {}
                assert each.stats.keys() == {f"return/{name}"} | scored.keys()
                assert each.stats.items() >= scored.items()
        assert (obs["obs"][:, :length] == rows["obs"]).all()
        assert (obs["obs"][:, length:] == 0).all()
        assert (obs[TASK] == np.eye(3)[number]).all()
        assert (obs["action_mask"] == (np.arange(8) < num_choices)).all()
    assert sum(len(step.episodes) for step in steps) > 5
    own.close()


class Camera(gym.Env):
    """Shows an image whose pixels say their row and column, and takes two numbers; a choice is forbidden in turn."""

    def __init__(self, height=4, width=6, mask=True):
        self.height, self.width = height, width
        spaces = {"image": gym.spaces.Box(0, 255, (height, width, 1), np.uint8)}
        if mask:
            spaces["action_mask"] = gym.spaces.Box(0, 1, (3,), np.int8)
        self.observation_space = gym.spaces.Dict(spaces)
        self.action_space = gym.spaces.Tuple(
            [gym.spaces.Discrete(3, start=5), gym.spaces.Box(-1, 1, (2 if mask else 3,), np.float32)]
        )
        self.mask = mask

    def obs(self):
        rows, columns = np.mgrid[: self.height, : self.width]
        obs = {"image": (10 * rows + columns)[..., None].astype(np.uint8)}
        return {**obs, "action_mask": np.array([1, self.count % 2, 1], np.int8)} if self.mask else obs

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.obs(), {}

    def step(self, action):
        choice, numbers = action
        self.count += 1
        reward = 100 * choice + float(numbers.sum()) + len(numbers)
        return self.obs(), reward, self.count == 3, False, {}


@pytest.fixture
def cameras(tmp_path):
    registered_before = dict(registered)
    envs.register_env("camera_for_tasks")(Camera)
    path = tmp_path / "cameras.yaml"
    path.write_text(
        "tasks:\n- {env: camera_for_tasks, name: small}\n"
        "- {env: camera_for_tasks, name: large, env_kwargs: {height: 8, width: 9, mask: false}}\n"
    )
    yield f"tasks:{path}"
    registered.clear()
    registered.update(registered_before)


def test_images_are_scaled_to_the_largest_and_masks_and_numbers_keep_what_each_task_has(cameras):
    for number, (name, (height, width)) in enumerate({"small": (4, 6), "large": (8, 9)}.items()):
        group = envs.make_group(cameras, 2, EnvOptions(task=name), seed=0, first_env_idx=0)
        spec = ActionSpec.of(group.spec.action_space)
        assert (spec.discrete_sizes, spec.num_continuous, spec.is_partial) == ((3,), 3, True)
        memory, result = Memory(group), StepResult.empty(2)
        group.reset(memory.rows)
        for count in range(2):
            obs = memory.taken()
            rows, columns = np.arange(8) * height // 8, np.arange(9) * width // 9
            assert (obs["image"][..., 0] == 10 * rows[:, None] + columns).all()
            assert (obs["continuous_mask"] == [1, 1, name == "large"]).all()
            assert (obs["action_mask"] == [1, 1 if name == "large" else count % 2, 1]).all()
            assert (obs[TASK] == np.eye(2)[number]).all()
            memory = Memory(group)
            discrete, continuous = np.array([[0], [2]], np.int32), np.full((2, 3), 0.25, np.float32)
            group.step(discrete, continuous, memory.rows, result)
            num_numbers = 3 if name == "large" else 2
            assert result.reward.tolist() == [100 * choice + 1.25 * num_numbers for choice in (5, 7)]
        group.close()


def test_groups_that_name_no_task_take_them_in_turn():
    shown = []
    for group_idx in range(4):
        group = envs.make_group(TOYS, NUM_ENVS, EnvOptions(), seed=0, first_env_idx=group_idx * NUM_ENVS)
        memory = Memory(group)
        group.reset(memory.rows)
        shown.append(memory.taken()[TASK].argmax(1).tolist())
        group.close()
    assert shown == [[number] * NUM_ENVS for number in (0, 1, 2, 0)]


def test_a_worker_makes_no_environments_to_know_their_spaces_nor_needs_the_file(tmp_path, monkeypatch):
    path = tmp_path / "tasks.yaml"
    path.write_text("tasks: [toy_bandit, toy_memory]")
    env_id = f"tasks:{path}"
    sent = pickle.dumps(FoundTasks.of(env_id, EnvOptions(task="toy_memory")))
    path.unlink()
    monkeypatch.setattr(united, "_found", {})
    monkeypatch.setattr(registry, "describe", lambda *_: pytest.fail("an environment was made"))
    pickle.loads(sent).take_over()
    try:
        group = envs.make_group(env_id, 2, EnvOptions(task="toy_memory"), seed=0, first_env_idx=0)
        assert [*group.spec.tasks] == ["toy_bandit", "toy_memory"]
        group.close()
    finally:
        del taken_over[env_id]
