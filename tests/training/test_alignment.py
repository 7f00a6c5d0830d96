"""A counting environment and a counting recurrent model through the real processes and queues.

Every observation says which environment, episode and step it is from, and which action led to it; the model's state
counts the steps since the episode began, and its value is that count. So whatever goes to a wrong row shows.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal

import numpy as np
import pytest
import torch
from counting import counting_policy_worker
from not_training import memory_and_loader
from runs import DEVICE, QUEUES

from sf.config import Config
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished

NUM_BATCHES = 12
FIELDS = (
    "state",
    "first",
    "discrete",
    "log_prob",
    "value",
    "policy_version",
    "reward",
    "terminated",
    "valid",
)
ENV_IDX, EPISODE, STEP, ACTION = range(4)  # of an observation


class MortalChannel:
    """Kills its process over its fifth answer: before it has told anybody, or when it has told one group."""

    def __init__(self, channel, num_told):
        self._channel = channel
        self._num_told = num_told
        self._num_answers = 0

    def __getattr__(self, name):
        return getattr(self._channel, name)

    def answer(self, groups, numbers):
        self._num_answers += 1
        if self._num_answers == 5:
            self._channel.answer(groups[: self._num_told], numbers[: self._num_told])
            os.kill(os.getpid(), signal.SIGKILL)
        self._channel.answer(groups, numbers)


def dying_policy_worker(reports, args):
    """The real one, the first two times only for a while."""
    starts_before = int(args.counters.get("calls")) // 4  # each died over its fifth
    if starts_before < 2:
        args = dataclasses.replace(args, channel=MortalChannel(args.channel, num_told=starts_before))
    counting_policy_worker(reports, args)


def recording_learner(reports, args):
    """Takes batches as the learner does, and writes them to a file instead of training on them."""
    memory, loader = memory_and_loader(reports, args)
    seen = set()
    while len(seen) < args.num_actors:  # one rollout worker may start long before the other
        batch = loader.next()
        seen |= set(batch.obs["obs"][0, :, ENV_IDX].tolist())
        loader.release()
    records = {name: [] for name in (*FIELDS, "obs")}
    seen.clear()
    for version in itertools.count(2):
        if version >= NUM_BATCHES + 2 and len(seen) == args.num_actors:
            break  # on a busy machine one rollout worker may rest for a few batches
        batch = loader.next()
        seen |= set(batch.obs["obs"][0, :, ENV_IDX].tolist())
        for name in FIELDS:
            records[name].append(getattr(batch, name).numpy().copy())
        records["obs"].append(batch.obs["obs"].numpy().copy())
        memory.publish(torch.ones(1), version)
        memory.flush()
        loader.release()
    axis = {name: 0 if name == "state" else 1 for name in records}
    np.savez(args.checkpoints / "batches.npz", **{k: np.concatenate(v, axis[k]) for k, v in records.items()})
    reports.send(LearnerFinished(0))


def dying_learner(reports, args):
    """The first one dies with a batch in its hands, and on a GPU with the memory of the weights."""
    if args.predecessor_env_steps is not None:
        recording_learner(reports, args)
        return
    _, loader = memory_and_loader(reports, args)
    for _ in range(3):
        loader.next()
        loader.release()
    loader.next()
    os.kill(os.getpid(), signal.SIGKILL)


BODIES = {  # of policy workers and learner, and how many of these die
    "policy workers die": (dying_policy_worker, recording_learner, 2),
    "learner dies": (counting_policy_worker, dying_learner, 1),
}


@pytest.fixture(scope="module", params=["async", "sync", *BODIES])
def trajectories(request, tmp_path_factory):
    """Trajectories [T or T+1, B, ...] of all batches side by side, in the order of their arrival."""
    if request.param == "learner dies" and QUEUES == "faster_fifo":
        pytest.skip("its loader waits inside of a queue: that ends the run, see test_faster_fifo_run")
    config = Config().replace(
        env="toy_counting",
        train_dir=str(tmp_path_factory.mktemp("train")),
        model="counting",
        num_workers=2,
        num_envs_per_worker=4,
        rollout=5,
        batch_size=20,
        async_rl=request.param != "sync",
        policy_workers_per_policy=2 if request.param == "async" else 1,
        device=DEVICE,
        queues=QUEUES,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    policy_body, learner_body, deaths = BODIES.get(request.param, (counting_policy_worker, recording_learner, 0))
    summary = Run(make_plan(config), run_dir, bodies={"policy": policy_body, "learner": learner_body}).run()
    assert summary["restarts"] == deaths
    with np.load(run_dir.checkpoints / "batches.npz") as arrays:
        return dict(arrays)


def test_all_environments_and_both_ends_of_episodes_occur(trajectories):
    assert trajectories["obs"].shape[1] >= NUM_BATCHES * 4
    assert set(trajectories["obs"][:, :, ENV_IDX].flat) == set(range(8))
    assert trajectories["terminated"].any()
    assert not trajectories["valid"].all()
    assert trajectories["valid"].mean() > 0.5


def test_every_action_reached_the_environment_that_asked(trajectories):
    obs, goes_on = trajectories["obs"], trajectories["valid"] & ~trajectories["terminated"]
    assert (obs[1:, :, ACTION][goes_on] == trajectories["discrete"][..., 0][goes_on]).all()
    assert len(np.unique(trajectories["discrete"])) == 8


def test_rows_follow_each_other_in_an_episode(trajectories):
    obs, goes_on = trajectories["obs"], trajectories["valid"] & ~trajectories["terminated"]
    before, after = obs[:-1][goes_on], obs[1:][goes_on]
    assert (after[:, STEP] == before[:, STEP] + 1).all()
    assert (after[:, [ENV_IDX, EPISODE]] == before[:, [ENV_IDX, EPISODE]]).all()


def test_a_new_episode_begins_after_termination_and_after_the_ignored_row(trajectories):
    obs, begins = trajectories["obs"], trajectories["terminated"] | ~trajectories["valid"]
    before, after = obs[:-1][begins], obs[1:][begins]
    assert (after[:, STEP] == 0).all()
    assert (after[:, EPISODE] == before[:, EPISODE] + 1).all()
    assert (trajectories["first"] == (obs[:, :, STEP] == 0)).all()


def test_rewards_belong_to_the_row_whose_action_caused_them(trajectories):
    valid = trajectories["valid"]
    assert (trajectories["reward"][valid] == trajectories["obs"][:-1, :, STEP][valid] + 1).all()
    assert (trajectories["reward"][~valid] == 0).all()


def test_the_recurrent_state_of_every_row_is_that_of_its_episode(trajectories):
    assert (trajectories["value"] == trajectories["obs"][:-1, :, STEP] + 1).all()
    assert (trajectories["state"][:, 0] == trajectories["obs"][0, :, STEP]).all()


def test_row_t_of_one_rollout_is_row_0_of_the_next(trajectories):
    obs = trajectories["obs"]
    pairs = 0
    for env_idx in range(8):
        columns = np.flatnonzero(obs[0, :, ENV_IDX] == env_idx)
        for one, following in itertools.pairwise(columns):
            assert (obs[-1, one] == obs[0, following]).all()
            assert trajectories["first"][-1, one] == trajectories["first"][0, following]
            pairs += 1
    assert pairs == trajectories["state"].shape[0] - 8


def test_versions_grow_with_the_rows_of_an_environment(trajectories):
    version = trajectories["policy_version"]
    assert version.min() >= 1
    assert (np.diff(version, axis=0) >= 0).all()
    assert version.max() > 1
