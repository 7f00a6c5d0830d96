"""Values of flags that are auto: sizes that follow the number of actors, and the schedule of the learning rate."""

import pytest

from sf.config import Config
from sf.config.auto_values import with_learning_rate, with_sizes
from sf.run import planning
from sf.run.planning import make_plan
from sf.run.startup.starting_flags import make_config

AUTO = {"rollout": "auto", "batch_size": "auto", "num_batches_per_epoch": 8}


def sizes(num_actors, has_memory=False, **flags):
    """Steps of a trajectory, and samples of a minibatch."""
    config = with_sizes(Config().replace(**{**AUTO, **flags}), num_actors, has_memory)
    return config.rollout, config.learner.batch_size


@pytest.mark.parametrize(
    ("num_actors", "rollout", "batch_size", "of_32_minibatches"),
    [
        (1, 64, 256, 64),
        (96, 16, 192, 48),
        (100, 16, 400, 64),
        (1024, 16, 2048, 512),
    ],
)
def test_many_actors_make_shorter_trajectories_and_then_larger_minibatches(
    num_actors, rollout, batch_size, of_32_minibatches
):
    assert sizes(num_actors) == (rollout, batch_size)
    assert sizes(num_actors, num_batches_per_epoch=32) == (rollout, of_32_minibatches)


@pytest.mark.parametrize("num_actors", [1, 7, 33, 257, 1024])
@pytest.mark.parametrize("flags", [{}, {"batch_size": "auto", "rollout": 48}, {"num_batches_per_epoch": 3}])
@pytest.mark.parametrize("has_memory", [False, True])
def test_an_iteration_holds_a_trajectory_of_every_actor(num_actors, flags, has_memory):
    config = with_sizes(Config().replace(**{**AUTO, **flags}), num_actors, has_memory)
    assert config.slots_per_iteration >= num_actors
    assert config.learner.batch_size >= 128


def test_a_recurrent_core_keeps_long_trajectories():
    assert sizes(1024, has_memory=True) == (64, 64 * 128)


@pytest.mark.parametrize("num_actors", [1, 3, 6, 16, 32, 36, 80, 100, 257, 1000])
@pytest.mark.parametrize("async_rl", [False, True])
def test_an_iteration_holds_whole_rounds_where_it_has_to_or_that_is_near(num_actors, async_rl):
    """With 257 it would be eight rounds in place of one."""
    config = with_sizes(Config().replace(**AUTO, async_rl=async_rl), num_actors, has_memory=False)
    assert (config.slots_per_iteration % num_actors == 0) == (num_actors != 257 or not async_rl)


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

    def sizes_of(config, num_actors, *rest):
        seen.append(num_actors)
        return with_sizes(config, num_actors, *rest)

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


def learner_with(has_memory=False, num_continuous=0, **flags):
    return with_learning_rate(Config().replace(**flags), has_memory, num_continuous).learner


def chosen(has_memory=False, **flags):
    learner = learner_with(has_memory, **flags)
    return learner.lr_schedule, learner.lr_adaptive_max


@pytest.mark.parametrize(
    ("flags", "schedule"),
    [({}, "constant"), ({"train_for_env_steps": 1000}, "linear"), ({"train_for_seconds": 60}, "linear")],
)
def test_the_rate_falls_where_the_run_has_an_end(flags, schedule):
    assert chosen(lr_schedule="auto", **flags)[0] == schedule
    assert chosen(lr_schedule="cosine", train_for_env_steps=1000)[0] == "cosine"


def test_a_recurrent_network_has_the_lower_limit():
    auto = {"learning_rate": 3e-4, "lr_adaptive_max": "auto"}
    assert chosen(**auto)[1] == pytest.approx(6e-4)
    assert chosen(has_memory=True, **auto)[1] == pytest.approx(3e-4)
    assert chosen(has_memory=True, lr_adaptive_max=0.002)[1] == 0.002
    assert chosen(lr_adaptive_max="auto", learning_rate=1e-8)[1] == 1e-6  # lr_adaptive_min


@pytest.mark.parametrize(("batch_size", "final"), [(256, 0.0), (1024, 0.0), (1032, None), (2048, None)])
def test_the_limit_falls_to_0_unless_iterations_are_large(batch_size, final):
    flags = {"rollout": 8, "batch_size": batch_size, "num_batches_per_epoch": 8}
    assert learner_with(**flags, lr_adaptive_max_final="auto").lr_adaptive_max_final == final
    assert learner_with(**flags, lr_adaptive_max_final=1e-4).lr_adaptive_max_final == 1e-4
    assert learner_with(**flags).lr_adaptive_max_final is None


@pytest.mark.parametrize(("num_envs", "final"), [(16, 0.0), (128, 0.0), (512, None)])
def test_the_limit_follows_the_number_of_actors_where_sizes_do(num_envs, final):
    flags = {"env": "toy_memory", "config": "vector", "device": "cpu", "num_envs_per_worker": num_envs}
    assert make_plan(make_config(**flags)).config.learner.lr_adaptive_max_final == final


@pytest.mark.parametrize(("num_continuous", "expected"), [(0, 0.008), (1, 0.008), (4, 0.016), (9, 0.024)])
def test_the_divergence_may_be_larger_with_more_continuous_actions(num_continuous, expected):
    learner = learner_with(num_continuous=num_continuous, lr_schedule_kl_threshold="auto")
    assert learner.lr_schedule_kl_threshold == pytest.approx(expected)
    assert learner_with(num_continuous=num_continuous, lr_schedule_kl_threshold=0.01).lr_schedule_kl_threshold == 0.01


@pytest.mark.parametrize(("core", "highest"), [("none", 6e-4), ("gru", 3e-4)])
def test_a_run_has_numbers_for_all(core, highest):
    flags = {"env": "toy_memory", "core": core, "device": "cpu"}
    names = ("lr_schedule", "lr_adaptive_max", "lr_adaptive_max_final", "lr_schedule_kl_threshold")
    flags |= dict.fromkeys(names, "auto")
    learner = make_plan(Config().replace(**flags, learning_rate=3e-4)).config.learner
    assert learner.lr_schedule == "constant"
    assert learner.lr_adaptive_max == pytest.approx(highest)
    assert learner.lr_schedule_kl_threshold == 0.008
    assert learner.lr_adaptive_max_final == 0.0
