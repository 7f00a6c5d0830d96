"""Several tasks in one run: every row reaches the learner with its own task, whatever dies and whichever task moves."""

import dataclasses
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from counting import counting_policy_worker
from not_training import memory_and_loader
from runs import DEVICE, QUEUES, start, train_here

from sf.config import Config
from sf.envs.tasks.united import TASK
from sf.rollout.worker import rollout_worker
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.storage import best_checkpoint
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished

TOYS = f"tasks:{Path(__file__).parents[1] / 'data' / 'tasks' / 'toys.yaml'}"
ENV_IDX, EPISODE, STEP, ACTION = range(4)  # of an observation of toy_counting
SHOWN = (100, 201)  # by the environments of the first two tasks
MEMORY = 2
FIELDS = ("state", "first", "discrete", "value", "reward", "terminated", "valid")
NUM_BATCHES = 30
SHORT = "--num_epochs 1 --num_batches_per_epoch 1 --lr_schedule constant"  # the preset has eighty steps


class Restless:
    """The counters of a rollout worker. After some steps it moves a group to another task, and later it dies."""

    def __init__(self, args):
        self._args, self._own, self._num_steps = args, args.counters, 0

    def __getattr__(self, name):
        return getattr(self._own, name)

    def add(self, **numbers):
        self._own.add(**numbers)
        if "calls" not in numbers:
            return
        self._num_steps += 1
        of_groups, own = self._args.tasks.arrays["of_groups"], self._args.channel.groups
        if self._num_steps in (40, 80):
            of_groups[own[0]] = (of_groups[own[0]] + 1) % 3
        if self._num_steps == 100 and self._args.is_first_start:
            os.kill(os.getpid(), signal.SIGKILL)


def restless_rollout_worker(reports, args):
    rollout_worker(reports, dataclasses.replace(args, counters=Restless(args)))


def recording_learner(reports, args):
    """Takes batches as the learner does, and writes them to a file instead of training on them."""
    memory, loader = memory_and_loader(reports, args)
    records = {name: [] for name in (*FIELDS, "obs", TASK, "action_mask")}
    for version in range(2, NUM_BATCHES + 2):
        batch = loader.next()
        for name in FIELDS:
            records[name].append(getattr(batch, name).numpy().copy())
        for name in ("obs", TASK, "action_mask"):
            records[name].append(batch.obs[name].numpy().copy())
        memory.publish(torch.ones(1), version)
        memory.flush()
        loader.release()
    axis = {name: 0 if name == "state" else 1 for name in records}
    np.savez(args.checkpoints / "batches.npz", **{k: np.concatenate(v, axis[k]) for k, v in records.items()})
    reports.send(LearnerFinished(0))


@pytest.fixture(scope="module")
def trajectories(tmp_path_factory):
    """Trajectories [T or T+1, B, ...] of all batches side by side, and the summary of the run."""
    config = Config().replace(
        env=TOYS,
        train_dir=str(tmp_path_factory.mktemp("train")),
        model="counting",
        num_workers=3,
        num_envs_per_worker=4,
        rollout=5,
        batch_size=40,
        device=DEVICE,
        queues=QUEUES,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    plan = make_plan(config)
    assert plan.tasks_of_groups.tolist() == [0, 1, 2, 0, 1, 0]  # 3, 1.5 and 1.5 by the weights
    bodies = {"policy": counting_policy_worker, "rollout": restless_rollout_worker, "learner": recording_learner}
    summary = Run(plan, run_dir, bodies=bodies).run()
    with np.load(run_dir.checkpoints / "batches.npz") as arrays:
        return dict(arrays), summary


def test_each_row_has_the_task_of_its_environment(trajectories):
    arrays, summary = trajectories
    task = arrays[TASK].argmax(-1)  # [T+1, B]
    assert (arrays[TASK].sum(-1) == 1).all()
    assert set(task.flat) == {0, 1, 2}
    assert (task == task[0]).all()  # no slot has rows of two tasks
    obs, mask = arrays["obs"], arrays["action_mask"]
    for number, env_idx in enumerate(SHOWN):
        assert (obs[..., ENV_IDX][task == number] == env_idx).all()
        assert mask[task == number].all()
    of_memory = task == MEMORY
    assert (obs[of_memory] <= 1).all()
    assert (obs[of_memory][:, 3] == 0).all()
    assert (mask[of_memory] == (np.arange(8) < 2)).all()
    assert summary["restarts"] >= 1


def test_each_row_follows_the_row_before_also_where_a_group_has_changed_its_task(trajectories):
    arrays, summary = trajectories
    is_counting = (arrays[TASK].argmax(-1) != MEMORY)[:-1]
    obs, valid = arrays["obs"], arrays["valid"]
    goes_on = valid & ~arrays["terminated"] & is_counting
    before, after = obs[:-1][goes_on], obs[1:][goes_on]
    assert (after[:, STEP] == before[:, STEP] + 1).all()
    assert (after[:, [ENV_IDX, EPISODE]] == before[:, [ENV_IDX, EPISODE]]).all()
    assert (after[:, ACTION] == arrays["discrete"][..., 0][goes_on]).all()
    played = valid & is_counting
    assert (arrays["reward"][played] == obs[:-1][played][:, STEP] + 1).all()
    assert (arrays["first"][:-1][is_counting] == (obs[:-1][is_counting][:, STEP] == 0)).all()
    # The recurrent state of a group begins anew with its task.
    assert (arrays["value"][is_counting] == obs[:-1][is_counting][:, STEP] + 1).all()
    assert summary["lost_episodes"] > 0  # those that a change and a death have ended


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that goes on until it has been evaluated."""
    run_dir = RunDir(tmp_path_factory.mktemp("runs") / "run")
    flags = f"{SHORT} --num_envs_per_worker 4 --eval_every_env_steps 1000 --eval_episodes 5 --num_workers 2"
    flags += " --normalize_returns true --normalize_returns_by task --show_task true --experiment run"
    process = start(run_dir.path.parent, *flags.split(), env=TOYS)
    for _ in process.stdout:
        if (run_dir.path / "evaluations.jsonl").exists():
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT
    return run_dir, json.loads((run_dir.path / "summary.json").read_text())


def test_a_run_reports_each_task_and_one_score(run):
    _, summary = run
    for name in ("long", "short", "toy_memory"):
        assert summary[f"stats/return/{name}"] > 0
    assert summary["stats/task_score_mean"] == summary["stats/task_score_median"] <= 1
    assert summary["stats/task_score_mean"] == min(1, summary["stats/score/toy_memory"])
    assert summary["stats/score/toy_memory"] == pytest.approx(2 * summary["stats/return/toy_memory"] - 1)


def test_evaluations_play_every_task_and_each_has_its_best_checkpoint(run):
    run_dir, _ = run
    lines = [json.loads(line) for line in (run_dir.path / "evaluations.jsonl").read_text().splitlines()]
    assert lines
    for line in lines:
        assert line["statistics"]["return"]["num"] == 15
        assert all(line["statistics"][f"return/{name}"]["num"] == 5 for name in ("long", "short", "toy_memory"))
    for name in ("long", "short", "toy_memory"):
        best = best_checkpoint.best_score(best_checkpoint.of_task(run_dir.checkpoints, name))
        assert best == max(line["statistics"][f"return/{name}"]["mean"] for line in lines)
    assert best_checkpoint.best_score(run_dir.checkpoints) == max(
        min(1, line["statistics"]["score/toy_memory"]["mean"]) for line in lines
    )


def test_a_run_of_one_process_trains_on_all_tasks(tmp_path):
    flags = f"{SHORT} --serial true --worker_num_splits 3 --num_envs_per_worker 6 --batch_size 48"
    flags += " --train_for_env_steps 1000 --experiment one"
    summary = train_here(tmp_path, *flags.split(), env=TOYS)
    assert all(summary[f"stats/return/{name}"] > 0 for name in ("long", "short", "toy_memory"))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"num_workers": 1}, "the run has 2 groups of environments, and .* 3 tasks, .*: --num_workers 2"),
        ({"serial": True}, "--worker_num_splits 3, and a multiple of it as --num_envs_per_worker"),
        ({"task_choice": "progress", "num_workers": 3, "worker_num_splits": 1}, "none is free to move: raise num_work"),
        ({"task_choice": "progress", "task": "long"}, "task_choice is progress, and task long"),
        ({"task_choice": "progress", "async_rl": False}, "task_choice is progress: it depends on when episodes end"),
        ({"normalize_returns_by": "task"}, "normalize_returns_by is task: it needs --normalize_returns true"),
        ({"show_task": True, "env": "toy_bandit"}, "show_task is True, but toy_bandit is one environment"),
        ({"task": "long", "env": "toy_bandit"}, "task is long, but toy_bandit is one environment"),
        ({"show_task": True, "model": "counting"}, "show_task is True, but the model counting does not support it"),
    ],
)
def test_what_a_run_on_tasks_cannot_do_is_one_sentence(flags, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_plan(Config().replace(**{"env": TOYS, "num_workers": 2, **flags}))


def test_workers_are_as_many_as_give_each_task_a_group():
    plan = make_plan(Config().replace(env=TOYS, worker_num_splits=1, num_envs_per_worker=2))
    assert plan.num_workers >= 3
    alone = make_plan(Config().replace(env=TOYS, num_workers=1, task="short"))
    assert alone.tasks_of_groups.tolist() == [1, 1]
    assert alone.spec.obs_space == plan.spec.obs_space
