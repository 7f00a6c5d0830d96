"""Trajectories and minibatches whose sizes follow the number of actors."""

import pytest

from sf.config import Config
from sf.config.auto_sizes import with_sizes
from sf.run import planning

AUTO = {"rollout": "auto", "batch_size": "auto", "num_batches_per_epoch": 8}


def sizes(num_actors, has_memory=False, **flags):
    """Steps of a trajectory, and samples of a minibatch."""
    config = with_sizes(Config().replace(**{**AUTO, **flags}), num_actors, has_memory)
    return config.rollout, config.learner.batch_size


@pytest.mark.parametrize(
    ("num_actors", "rollout", "batch_size"),
    [
        (1, 64, 256),
        (16, 64, 256),
        (32, 64, 256),
        (96, 16, 192),
        (100, 16, 400),
        (128, 16, 256),
        (256, 16, 512),
        (1024, 16, 2048),
    ],
)
def test_many_actors_make_shorter_trajectories_and_then_larger_minibatches(num_actors, rollout, batch_size):
    assert sizes(num_actors) == (rollout, batch_size)


@pytest.mark.parametrize(
    ("num_actors", "rollout", "batch_size"),
    [(1, 64, 64), (16, 64, 64), (32, 64, 64), (96, 16, 48), (256, 16, 128), (1024, 16, 512)],
)
def test_many_minibatches_are_small_ones(num_actors, rollout, batch_size):
    assert sizes(num_actors, num_batches_per_epoch=32) == (rollout, batch_size)


@pytest.mark.parametrize("num_actors", [1, 3, 7, 16, 33, 100, 257, 1000, 1024])
@pytest.mark.parametrize("flags", [{}, {"batch_size": "auto", "rollout": 48}, {"num_batches_per_epoch": 3}])
@pytest.mark.parametrize("has_memory", [False, True])
def test_an_iteration_holds_a_trajectory_of_every_actor(num_actors, flags, has_memory):
    config = with_sizes(Config().replace(**{**AUTO, **flags}), num_actors, has_memory)
    assert config.slots_per_iteration >= num_actors
    assert config.learner.batch_size >= 128


def test_a_recurrent_core_keeps_long_trajectories():
    assert sizes(1024, has_memory=True) == (64, 64 * 128)


@pytest.mark.parametrize("num_actors", [1, 3, 6, 12, 16, 24, 32, 36, 40, 80, 96, 100, 120, 257, 288, 1000])
def test_an_iteration_holds_whole_rounds_where_that_is_near(num_actors):
    """With 257 it would be eight rounds in place of one."""
    config = with_sizes(Config().replace(**AUTO), num_actors, has_memory=False)
    assert (config.slots_per_iteration % num_actors == 0) == (num_actors != 257)


@pytest.mark.parametrize("num_actors", [1, 3, 6, 16, 32, 100, 257])
def test_a_synchronous_iteration_holds_whole_rounds(num_actors):
    config = with_sizes(Config().replace(**AUTO, async_rl=False), num_actors, has_memory=False)
    assert config.slots_per_iteration % num_actors == 0


@pytest.mark.parametrize(
    ("batch_size", "num_actors", "rollout"),
    [(256, 1, 64), (1000, 1, 50), (48, 1, 48), (7, 1, 7), (256, 32, 64), (100, 32, 20), (60, 32, 20), (1024, 1024, 16)],
)
def test_a_trajectory_divides_a_minibatch_that_was_named(batch_size, num_actors, rollout):
    assert sizes(num_actors, batch_size=batch_size) == (rollout, batch_size)


@pytest.mark.parametrize("batch_size", [1009, 1994])
def test_a_minibatch_that_no_trajectory_divides_is_refused(batch_size):
    nearest = round(batch_size / 16) * 16
    with pytest.raises(ValueError, match=f"batch_size is {batch_size}: no length .* for example {nearest}, or name"):
        sizes(32, batch_size=batch_size)


def test_what_was_named_stays():
    assert sizes(1024, rollout=128, batch_size=512) == (128, 512)


@pytest.mark.parametrize(
    ("past_share", "num_policies", "expected"), [(0.0, 1, 40), (0.5, 1, 30), (1.0, 1, 20), (0.5, 2, 15)]
)
def test_actors_that_players_play_are_left_out(past_share, num_policies, expected, monkeypatch):
    pytest.importorskip("pyspiel")
    seen = []

    def sizes_of(config, num_actors, has_memory):
        seen.append(num_actors)
        return with_sizes(config, num_actors, has_memory)

    monkeypatch.setattr(planning, "with_sizes", sizes_of)
    workers = {"num_workers": 2, "num_envs_per_worker": 10, "worker_num_splits": 2}
    past = {"past_share": past_share, "snapshot_every_env_steps": 1000} if past_share else {}
    flags = {**AUTO, **workers, **past, "num_policies": num_policies, "device": "cpu"}
    planning.make_plan(Config().replace(env="openspiel:tic_tac_toe", **flags))
    assert seen == [expected]


@pytest.mark.parametrize(("num_envs", "num_groups"), [(1, 1), (2, 2), (7, 1), (8, 2)])
def test_a_worker_has_two_groups_unless_its_environments_are_odd(num_envs, num_groups):
    sampler = Config().replace(num_envs_per_worker=num_envs).sampler
    assert (sampler.num_groups_per_worker, sampler.num_envs_per_group) == (num_groups, num_envs // num_groups)
