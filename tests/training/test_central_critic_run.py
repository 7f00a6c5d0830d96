"""What a central critic sees, through the real processes: agents of one step of one match, side by side."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from joint_env import AGENT, MATCH, STEP, Joint

from sf.config import Config
from sf.envs.added.central_state import StateShare
from sf.envs.added.clock import CENTRAL_STATE
from sf.learner.batches.choice import make_loader
from sf.rollout.worker import rollout_worker
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.shared.weights import PolicyWorkers, SharedWeights
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished
from sf.system.processes.torch_runtime import configure

NUM_BATCHES, NUM_AGENTS = 25, 3


def recording_learner(reports, args):
    """Writes batches to a file, in place of training on them. The first one dies with a batch in its hands."""
    configure(args.weights.device, num_threads=1, deterministic=True)
    memory = SharedWeights.create(args.weights)
    memory.publish(torch.zeros(args.weights.num_weights), version=1)
    PolicyWorkers(memory, args.policy_workers, reports)
    loader = make_loader(args, memory)
    if args.predecessor_env_steps is None:
        loader.next()
        os.kill(os.getpid(), signal.SIGKILL)
    obs, state, valid, env_steps = [], [], [], []
    for _ in range(NUM_BATCHES):
        batch = loader.next()
        for to, tensor in ((obs, batch.obs["obs"]), (state, batch.obs[CENTRAL_STATE]), (valid, batch.valid)):
            to.append(tensor.numpy().copy())
        env_steps.append(loader.env_steps)
        loader.release()
    arrays = [np.concatenate(each, 1) for each in (obs, state, valid)]
    names = ("obs", "state", "valid", "env_steps")
    args.checkpoints.mkdir(parents=True, exist_ok=True)
    np.savez(args.checkpoints / "batches.npz", **dict(zip(names, [*arrays, env_steps], strict=True)))
    reports.send(LearnerFinished(0))
    while loader.next() is not None:  # the others shall get theirs
        loader.release()


def dying_rollout_worker(reports, args):
    """The real one; the first is killed in the middle of its work."""
    if args.is_first_start:
        step, left = args.channel.take, iter(range(40))

        def take(looked_at):
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(looked_at)

        object.__setattr__(args.channel, "take", take)
    rollout_worker(reports, args)


@pytest.fixture(scope="module", params=[1, 2], ids=["one policy", "two policies"])
def batches(request, tmp_path_factory):
    """The batches of each policy."""
    config = Config().replace(
        env="joint_env:Joint",
        train_dir=str(tmp_path_factory.mktemp("train")),
        critic="state",
        num_policies=request.param,
        num_workers=2,
        num_envs_per_worker=4,
        rollout=5,
        batch_size=2 * 5 * NUM_AGENTS,
        encoder_mlp_layers=(4,),
        device="cpu",
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    bodies = {"rollout": dying_rollout_worker, "learner": recording_learner}
    summary = Run(make_plan(config), run_dir, bodies=bodies).run()
    assert summary["restarts"] == 2 + request.param
    found = []
    for path in sorted(Path(run_dir.path).rglob("batches.npz")):
        with np.load(path) as arrays:
            found.append(dict(arrays))
    assert len(found) == request.param
    return found


def by_env(rows):
    """[T+1, B, K] -> [T+1, E, A, K]."""
    return rows.reshape(len(rows), -1, NUM_AGENTS, rows.shape[-1])


def test_the_agents_of_a_step_of_a_match_stand_side_by_side(batches):
    for batch in batches:
        obs = by_env(batch["obs"])
        is_present = obs[..., AGENT] > 0
        assert is_present.any(-1).all()
        assert 0.1 < 1 - is_present[..., 2].mean() < 0.9
        for number in range(NUM_AGENTS):
            assert set(obs[:, :, number, AGENT].flat) <= {0, number + 1}
        for key in (MATCH, STEP):
            most = np.broadcast_to(obs[..., key].max(-1)[..., None], is_present.shape)
            assert (obs[..., key][is_present] == most[is_present]).all()


def test_the_state_is_that_of_their_step(batches):
    share = StateShare(Joint.state_space, NUM_AGENTS)
    for batch in batches:
        obs = by_env(batch["obs"])
        state = share.joined(batch["state"].reshape(-1, batch["state"].shape[-1])).reshape(*obs.shape[:2], 5)
        match, step = obs[..., MATCH].max(-1), obs[..., STEP].max(-1)
        assert (state == np.stack([match, step, match + 1, step + 1, np.full_like(match, -1)], -1)).all()


def test_each_step_is_valid_for_the_policy_that_took_it_alone(batches):
    """The steps of others are there to be seen, and are neither trained on nor counted."""
    steps = []
    for batch in batches:
        valid = batch["valid"].reshape(len(batch["valid"]), -1, NUM_AGENTS)
        taken = by_env(batch["obs"])[:-1][valid]
        assert len(taken) == len(np.unique(taken, axis=0))
        # Of a rollout in which another policy takes over, all steps are counted, and those before are valid.
        assert 0.8 * batch["env_steps"].sum() < len(taken) <= batch["env_steps"].sum()
        assert len(batches) > 1 or len(taken) == batch["env_steps"].sum()
        steps.append({tuple(step) for step in taken.tolist()})
    if len(steps) == 1:
        is_present = by_env(batches[0]["obs"])[:-1, :, :2, AGENT] > 0
        final = ~batches[0]["valid"].reshape(is_present.shape[0], -1, NUM_AGENTS)[..., :2]
        assert (is_present | final).all()
    else:
        assert not steps[0] & steps[1]
        matches = [{step[MATCH] for step in own} for own in steps]
        assert matches[0] & matches[1]  # different policies met
