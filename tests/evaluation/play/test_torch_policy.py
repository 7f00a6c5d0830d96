from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
import torch
from untrained import untrained

from sf.evaluation.play.policy import load_policy
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.storage import best_checkpoint, checkpoint


def test_a_policy_acts_on_what_the_environment_returns():
    policy = TorchPolicy(untrained("CartPole-v1"), "test")
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    for _ in range(5):
        action = policy.act(obs)
        assert env.action_space.contains(action)
        obs, *_ = env.step(action)
    assert policy.obs_space == env.observation_space
    assert policy.action_space == env.action_space
    assert (policy.env_id, policy.env_steps) == ("CartPole-v1", 1234)


@pytest.mark.parametrize(
    ("env_id", "flags"),
    [
        ("CartPole-v1", {}),
        ("own_single:Counting", {"env_kwargs": {"limit": 5}, "env_frameskip": 2}),
        ("toy_memory", {}),
        ("atari_pong", {}),
        ("doom_basic", {}),
    ],
)
def test_a_policy_makes_the_environment_that_it_was_trained_in(env_id, flags, tmp_path, monkeypatch):
    (tmp_path / "own_single.py").write_text(_COUNTING)
    monkeypatch.syspath_prepend(tmp_path)
    policy = TorchPolicy(untrained(env_id, **flags), "test")
    env = policy.make_env()
    assert (env.observation_space, env.action_space) == (policy.obs_space, policy.action_space)
    first, _ = env.reset(seed=7)
    for _ in range(3):
        env.step(policy.act(first))
    np.testing.assert_equal(env.reset(seed=7)[0], first)
    env.close()


def test_the_environment_of_a_policy_ends_and_begins_episodes(tmp_path, monkeypatch):
    (tmp_path / "own_single.py").write_text(_COUNTING)
    monkeypatch.syspath_prepend(tmp_path)
    with closing(TorchPolicy(untrained("own_single:Counting", env_kwargs={"limit": 3}), "test").make_env()) as env:
        for ends_by in (2, 3):  # truncated, terminated
            assert env.reset()[0] == [0.0]
            with pytest.raises(ValueError, match="7 is not in"):
                env.step(7)
            for _ in range(2):
                *_, info = env.step(0)
                assert not info
            *_, info = env.step(int(ends_by == 3))
            assert info == {"episode": {"r": 3.0, "l": 3}, "episode_stats": {}}
            with pytest.raises(gym.error.ResetNeeded):
                env.step(0)
        env.reset()
        env.step(0)
        assert env.reset()[0] == [0.0]  # in the middle of an episode


def test_an_environment_of_several_agents_is_none_of_gymnasiums():
    with pytest.raises(ValueError, match="has 2 agents"):
        TorchPolicy(untrained("toy_match_counting"), "test").make_env()


_COUNTING = """
import gymnasium as gym, numpy as np

class Counting(gym.Env):
    observation_space = gym.spaces.Box(-1, 100, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, limit):
        self.limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        is_over = self.count == self.limit
        return np.full(1, self.count, np.float32), 1.0, is_over and action == 1, is_over and action == 0, {}
"""


def test_a_deterministic_policy_takes_the_most_probable_action():
    policy = TorchPolicy(untrained("CartPole-v1", seed=3), "test")
    obs = np.array([0.5, -1.0, 0.1, 2.0], np.float32)
    params = policy.network.step(
        {"obs": torch.from_numpy(obs)[None]}, torch.zeros(1, 0), torch.tensor([True])
    ).params  # [1, 2]
    actions = {policy.act(obs, deterministic=True) for _ in range(20)}
    assert actions == {int(params.argmax())}
    assert {policy.act(obs) for _ in range(200)} == {0, 1}


def test_an_observation_of_another_shape_or_whose_numbers_a_recurrent_state_would_keep_is_refused():
    policy = TorchPolicy(untrained("CartPole-v1", core="gru"), "test")
    obs = np.full(4, 0.1, np.float32)
    policy.act(obs)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        policy.act(np.zeros(3, np.float32))
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match="'obs' has NaN or infinite numbers"):
            policy.act(np.array([0, 0, number, 0], np.float32))
    assert policy.act(obs) in (0, 1)
    assert policy._actors._state.isfinite().all()


@pytest.mark.parametrize("core", ["gru", "lstm", "mingru", "transformer"])
def test_actors_carry_their_states_as_the_learner_unrolls_them(core):
    policy = TorchPolicy(untrained("toy_memory", core=core), "test")
    ((key, box),) = policy.flat_obs_space.items()
    steps, num_actors = 6, 3
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, 1, (steps, num_actors, *box.shape)).astype(np.float32)
    first = rng.random((steps, num_actors)) < 0.3
    first[0] = True
    unrolled = policy.network.unroll(
        {key: torch.from_numpy(obs)}, torch.zeros(num_actors, policy.network.state_size), torch.from_numpy(first)
    )
    actors = policy.actors(num_actors, seed=0)
    for t in range(steps):
        for who in (np.array([2]), np.array([0, 1])):  # apart, as with several policies in one group
            actions = actors.act({key: obs[t, who]}, first[t, who], who)
            torch.testing.assert_close(torch.from_numpy(actions.value), unrolled.value[t, who], rtol=1e-4, atol=1e-5)


def test_reset_makes_a_recurrent_policy_forget():
    policy = TorchPolicy(untrained("toy_memory", core="gru"), "test")
    obs = policy.obs_space.sample()
    state_after_one = []
    for _ in range(2):
        policy.reset()
        policy.act(obs)
        state_after_one.append(policy._actors._state.clone())
    policy.act(obs)
    assert torch.equal(*state_after_one)
    assert not torch.equal(policy._actors._state, state_after_one[0])


def test_a_policy_is_loaded_from_a_run_or_from_a_file(tmp_path):
    saved = untrained("CartPole-v1")
    directory = tmp_path / "run" / "checkpoints"
    old = checkpoint.save(directory, saved, 100, keep=2)
    new = checkpoint.save(directory, untrained("CartPole-v1", env_steps=200), 200, keep=2)
    (tmp_path / "run" / "config.yaml").write_text("env: CartPole-v1\n")
    assert load_policy(tmp_path / "run").name == str(new)
    assert load_policy(old).env_steps == 1234
    new.write_bytes(new.read_bytes()[:-1] + b"x")
    said = []
    assert load_policy(tmp_path / "run", say=said.append).name == str(old)
    assert "checksum" in said[0]
    assert new.exists()  # a reader moves nothing


def test_a_best_checkpoint_that_a_run_replaces_while_it_is_read_gives_way_to_the_new_one(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("env: CartPole-v1\n")
    directory, load = tmp_path / "checkpoints", checkpoint.load
    assert best_checkpoint.best_score(directory) == -np.inf
    old = best_checkpoint.save_best(directory, untrained("CartPole-v1", env_steps=100), 1.0)

    def replaced(path):
        monkeypatch.setattr(checkpoint, "load", load)
        assert path == old
        best_checkpoint.save_best(directory, untrained("CartPole-v1", env_steps=200), 2.0)
        return load(path)

    monkeypatch.setattr(checkpoint, "load", replaced)
    assert load_policy(tmp_path, "best").env_steps == 200
    assert best_checkpoint.best_score(directory) == 2.0
    assert len(list(directory.iterdir())) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: load_policy(path / "nothing"), "neither a checkpoint nor"),
        (lambda path: load_policy(path, policy_id=1), "policy is 1"),
        (lambda path: load_policy(path, "newest"), "checkpoint is 'newest'"),
        (lambda path: load_policy(path, "best"), "no best checkpoint"),
        (lambda path: load_policy(path, policy_id="a"), "policy_id is 'a'"),
        (lambda path: load_policy(path, device="tpu"), "device is 'tpu'"),
        (load_policy, "no complete checkpoint"),
    ],
)
def test_what_is_not_there_is_said(tmp_path, make, message):
    (tmp_path / "config.yaml").write_text("env: CartPole-v1\n")
    with pytest.raises(ValueError, match=message):
        make(tmp_path)
