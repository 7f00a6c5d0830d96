"""Several policies in the real processes: each learns from its own rows alone, and those are whole.

The counting model of a policy adds 1, or 2, to its state in each step, as its number says: so the value of a row
says which policy computed it, and how long that has played the episode.
"""

import itertools

import numpy as np
import pytest
import torch
from counting import counting_policy_worker
from runs import DEVICE, QUEUES

from sf.config import Config
from sf.learner.batches.loaders import make_loader
from sf.processes.torch_runtime import configure
from sf.run.plan import make_plan
from sf.run.trainer import Run
from sf.storage.run_dir import RunDir
from sf.weights import PolicyWorkers, SharedWeights

NUM_POLICIES, NUM_BATCHES = 2, 100
FIELDS = ("state", "first", "discrete", "value", "reward", "terminated", "valid")
ENV_IDX, AGENT, EPISODE, STEP, ACTION = range(5)  # of an observation


def recording_learner(reports, args):
    """Takes batches as the learner does, and writes them to a file instead of training on them."""
    configure(args.weights.device, num_threads=1, deterministic=True)
    memory = SharedWeights.create(args.weights)
    memory.publish(torch.full((1,), 1.0 + args.policy_id), version=1)
    PolicyWorkers(memory, args.policy_workers, reports)
    loader = make_loader(args, memory)
    reports.send("ready", env_steps=0, seconds_before=0.0, lost_steps=0, weights_event=0)
    records = {name: [] for name in (*FIELDS, "obs")}
    for _ in range(NUM_BATCHES):
        batch = loader.next()
        for name in FIELDS:
            records[name].append(getattr(batch, name).numpy().copy())
        records["obs"].append(batch.obs["obs"].numpy().copy())
        loader.release()
    axis = {name: 0 if name == "state" else 1 for name in records}
    args.checkpoints.mkdir(parents=True, exist_ok=True)
    np.savez(args.checkpoints / "batches.npz", **{k: np.concatenate(v, axis[k]) for k, v in records.items()})
    reports.send("finished", env_steps=0)
    while loader.next() is not None:  # the others shall get theirs
        loader.release()


@pytest.fixture(scope="module", params=[True, False], ids=["mixed", "one policy a match"])
def trajectories(request, tmp_path_factory):
    """By policy: trajectories [T or T+1, B, ...] of all batches side by side."""
    config = Config().replace(
        env="toy_match_counting",
        env_kwargs='{"num_agents": 2, "episodes_per_match": 2}',
        train_dir=str(tmp_path_factory.mktemp("train")),
        model="counting",
        num_policies=NUM_POLICIES,
        pbt_mix_policies_in_one_env=request.param,
        policy_workers_per_policy=2 if request.param else 1,
        num_workers=2,
        num_envs_per_worker=4,
        rollout=5,
        batch_size=20,
        device=DEVICE,
        queues=QUEUES,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    run = Run(make_plan(config), run_dir, bodies={"policy": counting_policy_worker, "learner": recording_learner})
    assert run.run()["restarts"] == 0
    found = {}
    for policy_id in range(NUM_POLICIES):
        with np.load(run_dir.checkpoints_of(policy_id, NUM_POLICIES) / "batches.npz") as arrays:
            found[policy_id] = dict(arrays)
    return found


def test_all_rows_to_train_on_were_played_by_the_policy_from_the_beginning_of_the_episode(trajectories):
    for policy_id, rows in trajectories.items():
        valid = rows["valid"]
        assert rows["obs"].shape == (6, NUM_BATCHES * 4, 5)
        assert valid.shape == rows["value"].shape == (5, NUM_BATCHES * 4)
        assert valid.mean() > 0.3
        assert (rows["value"][valid] == (1 + policy_id) * (rows["obs"][:-1, :, STEP][valid] + 1)).all()


def test_every_policy_plays_every_environment_and_agent(trajectories):
    for rows in trajectories.values():
        obs = rows["obs"][:-1][rows["valid"]]
        seen = {tuple(who) for who in obs[:, [ENV_IDX, AGENT]].astype(int).tolist()}
        assert seen == set(itertools.product(range(8), range(2)))


def test_no_row_is_given_to_two_policies(trajectories):
    seen = []
    for rows in trajectories.values():
        obs = rows["obs"][:-1][rows["valid"]]
        seen += [tuple(row) for row in obs[:, [ENV_IDX, AGENT, EPISODE, STEP]].astype(int).tolist()]
    assert len(seen) == len(set(seen))


def test_actions_rewards_and_rows_belong_together(trajectories):
    for rows in trajectories.values():
        obs, valid = rows["obs"], rows["valid"]
        goes_on = valid & ~rows["terminated"]
        assert (obs[1:, :, ACTION][goes_on] == rows["discrete"][..., 0][goes_on]).all()
        assert (obs[1:, :, STEP][goes_on] == obs[:-1, :, STEP][goes_on] + 1).all()
        assert (rows["reward"][valid] == obs[:-1, :, STEP][valid] + 1).all()


def test_the_state_before_a_slot_is_that_of_its_policy(trajectories):
    for policy_id, rows in trajectories.items():
        begins_valid = rows["valid"][0]
        expected = (1 + policy_id) * rows["obs"][0, :, STEP][begins_valid]
        assert (rows["state"][begins_valid, 0] == expected).all()
