"""Gradient workers compute what the learner would have computed alone, whatever becomes of them."""

import os
import signal

import gymnasium as gym
import numpy as np
import pytest
import small_batches
import torch
from network_numbers import numbers_of
from victims import fork

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.learner.gradients.workers import GradientWorkers
from sf.learner.update import Updater
from sf.model.building import build_model
from sf.model.inference import num_weights

T, B = 4, 8
SPEC = EnvSpec(
    obs_space=gym.spaces.Dict(
        {"image": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8), "vector": gym.spaces.Box(-1, 1, (5,), np.float32)}
    ),
    action_space=gym.spaces.Tuple((gym.spaces.MultiDiscrete((3, 2)), gym.spaces.Box(-1, 1, (1,)))),
)
ACTION = ActionSpec.of(SPEC.action_space)
CPU = torch.device("cpu")
CONFIG = Config().replace(
    async_rl=False,  # so that the parts are as equal as can be from the first step on
    rollout=T,
    batch_size=T * B,
    num_batches_per_epoch=1,
    num_epochs=2,
    rnn_size=8,
    encoder_conv_mlp_layers=(16,),
    encoder_mlp_layers=(16,),
    normalize_input=True,
    normalize_returns=True,
    adam_eps=1e-3,  # its first steps would blow up rounding otherwise
    max_grad_norm=0.5,
)


@pytest.fixture
def closing():
    """Workers that are closed after the test."""
    opened = []
    yield opened
    for workers in opened:
        workers.close()


def sizes(config):
    model = build_model(config.model, SPEC.obs_space, ACTION)
    return num_weights(model), model.state_size


def make_workers(config, count, closing, bfloat16=False):
    workers = GradientWorkers(count, config, SPEC, *sizes(config), bfloat16)
    closing.append(workers)
    return workers


def make_updater(config, workers=None, bfloat16=False):
    torch.manual_seed(0)
    return Updater(config, SPEC.obs_space, ACTION, bfloat16, CPU, workers)


def make_batch(config, seed=0):
    state_size = sizes(config)[1]
    return small_batches.make_batch(
        SPEC.obs_space, ACTION, seed, state_size=state_size, size=(T, B), draws_choices=True
    )


def trained(config, workers=None, num_iterations=2, bfloat16=False):
    """The weights, and what was measured."""
    updater = make_updater(config, workers, bfloat16)
    for seed in range(num_iterations):
        updater.train_iteration(make_batch(config, seed), 0)
    return numbers_of(updater.model), updater.pop_metrics()


def has_work(worker):
    """Of the process: whether it was ever asked to compute, as its network is made at the first time."""
    return worker._part._tensors["value"].any()


def assert_the_same(one, other, tolerance=2e-5):
    torch.testing.assert_close(one[0], other[0], rtol=tolerance, atol=tolerance)
    assert one[1].keys() == other[1].keys()
    for key in one[1].keys() - {"gradient_share"}:
        assert one[1][key] == pytest.approx(other[1][key], rel=1e-3, abs=1e-4), key


WAYS = {
    "without memory": {"core": "none"},
    "LSTM of actor and critic apart": {"core": "lstm", "share_critic": False},
    "MinGRU": {"core": "mingru"},
    "transformer": {"core": "transformer", "rnn_size": 8, "attention_window": 6},
    "single steps": {"core": "none", "shuffle_steps": True, "num_batches_per_epoch": 2, "batch_size": T * B // 2},
    "decoupled": {"core": "gru", "decoupled_clip": True},
    "trajectories drawn by their advantages": {
        "core": "gru",
        "trajectory_priority": 0.8,
        "num_batches_per_epoch": 2,
        "batch_size": T * B // 2,
    },
    "advantages normalised over the iteration": {
        "core": "gru",
        "normalize_advantages_over": "iteration",
        "num_batches_per_epoch": 2,
        "batch_size": T * B // 2,
    },
}


@pytest.mark.parametrize(("way", "count"), [*((way, 2) for way in WAYS), ("decoupled", 1)])
def test_training_with_workers_is_the_same_within_rounding(way, count, closing):
    config = CONFIG.replace(**WAYS[way])
    workers = make_workers(config, count, closing)
    found = trained(config, workers)
    assert all(has_work(worker) for worker in workers._workers)
    assert found[1]["gradient_share"] == count / (count + 1)
    assert_the_same(found, trained(config))


def test_in_bfloat16_workers_compute_in_the_precision_of_the_learner(closing):
    config = CONFIG.replace(core="gru")
    workers = make_workers(config, 1, closing, bfloat16=True)
    weights, _ = trained(config, workers, bfloat16=True)
    alone, _ = trained(config, bfloat16=True)
    exact, _ = trained(config)
    torch.testing.assert_close(weights, alone, rtol=1e-3, atol=1e-3)
    assert (weights - alone).abs().mean() < (weights - exact).abs().mean()


def test_more_workers_than_columns_leaves_the_minibatch_whole(closing):
    config = CONFIG.replace(core="gru", num_batches_per_epoch=B, batch_size=T)
    workers = make_workers(config, 1, closing)
    assert_the_same(trained(config, workers), trained(config))
    assert not has_work(workers._workers[0])


def test_two_runs_with_the_same_parts_are_equal_to_the_bit(closing):
    config = CONFIG.replace(core="gru")
    first, second = (trained(config, make_workers(config, 2, closing))[0] for _ in range(2))
    assert torch.equal(first, second)


def test_a_loss_that_is_not_finite_changes_nothing(closing):
    config = CONFIG.replace(core="gru")
    updater = make_updater(config, make_workers(config, 1, closing))
    batch = make_batch(config)
    batch.reward.fill_(float("nan"))
    before = [parameter.detach().clone() for parameter in updater.model.parameters()]
    updater.train_iteration(batch, 0)
    assert all(torch.equal(old, new) for old, new in zip(before, updater.model.parameters(), strict=True))
    assert updater.skipped.in_row == 2


@pytest.mark.parametrize("when", ["begin", "output", "take_gradients_of_output", "add_gradients"])
def test_what_a_dead_worker_was_to_do_the_learner_does(when, closing, monkeypatch, said):
    config = CONFIG.replace(core="gru")
    workers = make_workers(config, 2, closing)
    victim = workers._workers[0]
    step, victims = getattr(victim, when), []

    def after_its_death(*args):
        if not victims:
            victims.append(victim._pid)
            os.kill(victim._pid, signal.SIGKILL)
            os.waitid(os.P_PID, victim._pid, os.WEXITED | os.WNOWAIT)
        return step(*args)

    monkeypatch.setattr(victim, when, after_its_death)
    assert_the_same(trained(config, workers), trained(config))
    assert said == ["a gradient worker died: the learner did its part, and has started a new one"]
    with pytest.raises(ChildProcessError):
        os.waitpid(victims[0], os.WNOHANG)  # it was reaped
    assert victim._pid != victims[0]
    os.kill(victim._pid, 0)


def test_a_worker_that_dies_at_every_step_is_done_without(closing, monkeypatch, said):
    config = CONFIG.replace(core="gru")
    workers = make_workers(config, 1, closing)
    (victim,) = workers._workers
    begin = victim.begin

    def after_its_death(inputs):
        if not victim.is_gone:
            os.kill(victim._pid, signal.SIGKILL)
            os.waitid(os.P_PID, victim._pid, os.WEXITED | os.WNOWAIT)
        begin(inputs)

    monkeypatch.setattr(victim, "begin", after_its_death)
    monkeypatch.setattr("sf.learner.gradients.workers._MOST_DEATHS", 3)
    assert_the_same(trained(config, workers, num_iterations=3), trained(config, num_iterations=3), tolerance=1e-4)
    assert len(said) == 4
    assert said[-1] == "a gradient worker died, the 4th: the learner does its part from here on"
    assert workers.share == 0


def test_workers_end_when_they_are_closed():
    config = CONFIG.replace(core="gru")
    workers = make_workers(config, 2, [])
    trained(config, workers, num_iterations=1)
    pids = [worker._pid for worker in workers._workers]
    workers.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert workers.share == 0


def learner_that_waits(writer):
    workers = make_workers(CONFIG.replace(core="gru"), 2, [])
    os.write(writer, b" ".join(str(worker._pid).encode() for worker in workers._workers) + b"\n")
    signal.pause()


def test_workers_die_with_their_learner():
    reader, writer = os.pipe()
    learner = fork(learner_that_waits, writer)
    pids = [int(word) for word in os.read(reader, 100).split()]
    assert len(pids) == 2
    os.close(writer)
    os.kill(learner, signal.SIGKILL)
    os.waitpid(learner, 0)
    assert os.read(reader, 1) == b""  # its last writer has gone
    os.close(reader)
