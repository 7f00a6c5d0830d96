"""A learner that is asked to stop, or dies, in the middle of an iteration."""

import dataclasses
import os
import signal

import pytest

from sf.config import Config
from sf.learner.worker import learner
from sf.policy.worker import policy_worker
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.system.processes.stopping import StopFlag

TAKEN = "taken"
BATCH = 64
NUM_BATCHES = 4
ASKED_BEFORE = (
    1 + NUM_BATCHES
)  # the first step: before the iteration, and before each part of the pass that it begins with
SYNC = {"async_rl": False}


class StopAfter(StopFlag):
    """A stop flag that is set when it has been looked at so often."""

    def __init__(self, num_looks):
        super().__init__()
        self._num_left = num_looks

    def is_set(self):
        self._num_left -= 1
        return self._num_left < 0


class DeathAfter(StopAfter):
    """Kills its process instead, and leaves in a file how many samples that had taken, or more since."""

    def __init__(self, num_looks, args):
        super().__init__(num_looks)
        self._args = args

    def is_set(self):
        if super().is_set():
            num_taken = int(self._args.slots.taken["count"][0])
            (self._args.checkpoints / TAKEN).write_text(str(num_taken))
            os.kill(os.getpid(), signal.SIGKILL)
        return False


def learner_body(reports, args):
    """The real one, that is stopped by `seed` steps; the first time only."""
    if args.config.learner.num_epochs > 1:
        args = dataclasses.replace(args, stop=StopAfter(ASKED_BEFORE + args.config.run.seed))
    learner(reports, args)


def mortal_learner_body(reports, args):
    """The real one, whose first life ends within its second iteration."""
    if args.predecessor_env_steps is None:
        args = dataclasses.replace(args, stop=DeathAfter(2 * ASKED_BEFORE + NUM_BATCHES + 2, args))
    learner(reports, args)


def policy_body(reports, args):
    policy_worker(reports, args)


def run(tmp_path, resumed_steps=(), learner_body=learner_body, **flags):
    """Its summary, and what its last checkpoint holds."""
    config = Config().replace(
        env="toy_identity",
        train_dir=str(tmp_path),
        num_workers=1,
        num_envs_per_worker=8,
        rollout=8,
        batch_size=BATCH,
        num_batches_per_epoch=NUM_BATCHES,
        encoder_mlp_layers=(16,),
        device="cpu",
        learner_threads=1,
        max_policy_lag=10**8,
        **flags,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    bodies = {"policy": policy_body, "learner": learner_body}
    summary = Run(make_plan(config), run_dir, resumed_steps, bodies=bodies).run()
    return summary, checkpoint.load(checkpoint.latest(run_dir.checkpoints)).state


@pytest.mark.parametrize(
    ("flags", "num_steps", "num_samples"),
    [
        ({}, 3, 3 * BATCH),  # of the last minibatch, no step has seen anything
        pytest.param(SYNC, 6, 4 * BATCH, marks=pytest.mark.long),
    ],
)
def test_a_stop_in_the_middle_of_an_iteration_keeps_what_is_trained_by_then(
    tmp_path, capsys, flags, num_steps, num_samples
):
    summary, saved = run(tmp_path, num_epochs=10**7, seed=num_steps, **flags)
    output = " ".join(capsys.readouterr().out.split())
    assert "killed" not in output
    assert ("resumed, this run is not equal to the bit" in output) == bool(flags)
    assert summary["restarts"] == summary["lost_frames"] == 0
    assert summary["train/policy_version"] == saved["updater"]["version"] == 1 + num_steps
    assert summary["env_steps"] == saved["env_steps"] == saved["trained_steps"] == num_samples
    assert "train/lag_mean" in summary
    target = num_samples + 2 * NUM_BATCHES * BATCH
    summary, saved = run(tmp_path, [num_samples], train_for_env_steps=target, seed=num_steps, **flags)
    assert summary["env_steps"] == saved["env_steps"] == target
    assert saved["updater"]["version"] == 1 + num_steps + 2 * NUM_BATCHES


def test_what_a_learner_that_dies_had_in_its_hands_is_among_the_env_steps_and_among_the_lost(tmp_path):
    iteration = NUM_BATCHES * BATCH
    summary, saved = run(tmp_path, learner_body=mortal_learner_body, train_for_env_steps=8 * iteration)
    (taken,) = tmp_path.glob("*/checkpoints/taken")
    assert int(taken.read_text()) >= 2 * iteration
    # The first iteration is in the state that it left behind.
    assert summary["lost_frames"] >= int(taken.read_text()) - iteration
    assert summary["restarts"] == 1
    assert summary["env_steps"] == saved["env_steps"] >= 8 * iteration
    assert saved["trained_steps"] + summary["lost_frames"] == saved["env_steps"]
