"""The schedule of the learning rate and its limit, where they follow the run and the network."""

import pytest

from sf.config import Config
from sf.config.auto_learning_rate import with_learning_rate
from sf.run.planning import make_plan
from sf.run.startup.starting_flags import make_config


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
