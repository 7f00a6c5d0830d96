"""Runs of `toy_match_counting` whose learners write down what they are given, for tests of whose rows these are.

The counting model of a policy adds 1, or 2, to its state in each step, as its number says: so the value of a row
says which policy computed it, and how long that has played the episode.
"""

import numpy as np
import torch
from counting import counting_policy_worker
from runs import DEVICE, QUEUES

from sf.config import Config
from sf.learner.batches.choice import make_loader
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.shared.weights import PolicyWorkers, SharedWeights
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished, LearnerReady
from sf.system.processes.torch_runtime import configure

NUM_BATCHES = 120
FIELDS = ("state", "first", "discrete", "value", "reward", "terminated", "valid")
ENV_IDX, AGENT, EPISODE, STEP, ACTION = range(5)  # of an observation


def recorded(train_dir, num_policies, **flags):
    """By policy: trajectories [T or T+1, B, ...] of all batches side by side. Then the directory of the run."""
    config = Config().replace(
        env="toy_match_counting",
        train_dir=str(train_dir),
        model="counting",
        num_policies=num_policies,
        num_workers=2,
        num_envs_per_worker=4,
        rollout=5,
        batch_size=20,
        device=DEVICE,
        queues=QUEUES,
        **flags,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    run = Run(make_plan(config), run_dir, bodies={"policy": counting_policy_worker, "learner": recording_learner})
    assert run.run()["restarts"] == 0
    found = {}
    for policy_id in range(num_policies):
        with np.load(run_dir.checkpoints_of(policy_id, num_policies) / "batches.npz") as arrays:
            found[policy_id] = dict(arrays)
    return found, run_dir.path


def recording_learner(reports, args):
    """Takes batches as the learner does, and writes them to a file instead of training on them."""
    configure(args.weights.device, num_threads=1, deterministic=True)
    memory = SharedWeights.create(args.weights)
    memory.publish(torch.full((1,), 1.0 + args.policy_id), version=1)
    PolicyWorkers(memory, args.policy_workers, reports)
    loader = make_loader(args, memory)
    reports.send(LearnerReady(env_steps=0, seconds_before=0.0, lost_steps=0))
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
    reports.send(LearnerFinished(0))
    while loader.next() is not None:  # the others shall get theirs
        loader.release()
