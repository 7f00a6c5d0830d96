"""Bodies of processes that stand in for the real ones, so that a part of the system is measured without the rest."""

from __future__ import annotations

import time

import numpy as np

from sf import gpu
from sf.envs import ActionSpec
from sf.envs.spaces.actions import ACTION_MASK, random_actions
from sf.learner.args import LearnerArgs
from sf.learner.update import Updater
from sf.policy.worker import PolicyWorkerArgs
from sf.processes.reports import LearnerFinished, LearnerReady, Ready, Reports, Trained
from sf.processes.torch_runtime import configure
from sf.queues import StopRequested
from sf.rows import OBS
from sf.weights import PolicyWorkers, SharedWeights

_REPORT_EVERY_S = 0.25


def random_policy_worker(reports: Reports, args: PolicyWorkerArgs) -> None:
    """A policy worker without a network."""
    rng = np.random.default_rng(0)
    action = ActionSpec.of(args.spec.action_space)
    channel, rows, counters = args.channel, args.rows, args.counters
    masks = rows[OBS + ACTION_MASK] if ACTION_MASK in args.spec.obs_space.spaces else None
    reports.send(Ready())
    while True:
        counters.waiting()
        try:
            groups = channel.take()
        except StopRequested:
            return
        counters.working()
        numbers = channel.numbers(groups)
        slots, t, _ = channel.rows(groups, numbers)
        mask = None if masks is None else masks[slots, t]
        rows["discrete"][slots, t], rows["continuous"][slots, t] = random_actions(rng, action, len(slots), mask)
        channel.answer(groups, numbers)
        counters.add(steps=len(slots), calls=1)


def draining_learner(reports: Reports, args: LearnerArgs) -> None:
    """A learner that gives every slot back unread."""
    _drain(reports, args)


def publishing_learner(reports: Reports, args: LearnerArgs) -> None:
    """The same, after publishing weights once, so that policy workers can act."""
    device = gpu.torch_device(args.weights.device)
    configure(args.weights.device, args.num_threads, deterministic=False)
    weights = SharedWeights.create(args.weights)
    action = ActionSpec.of(args.spec.action_space)
    updater = Updater(args.config, args.spec.obs_space, action, args.bfloat16, device)
    weights.publish(updater.flat_weights(), updater.version)
    policy_workers = PolicyWorkers(weights, args.policy_workers, reports)
    _drain(reports, args)
    policy_workers.wait_until_gone()


def _drain(reports: Reports, args: LearnerArgs) -> None:
    reports.send(LearnerReady(env_steps=0, seconds_before=0.0, lost_steps=0))
    counters = args.counters
    env_steps, reported_at = 0, time.perf_counter()
    while not args.stop.is_set():
        counters.waiting()
        try:
            slots = args.slots.take(at_most=1024)
        except StopRequested:
            break
        counters.working()
        num_taken = int(args.slots.arrays["env_steps"][slots].sum())
        args.slots.give_back(slots)
        env_steps += num_taken
        counters.add(steps=num_taken, calls=1)
        now = time.perf_counter()
        if now - reported_at > _REPORT_EVERY_S:
            reported_at = now
            reports.send(Trained(env_steps, {}))
    reports.send(LearnerFinished(env_steps))
