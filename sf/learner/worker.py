"""The learner: trains on whole trajectories and publishes weights. The only process that changes them.

Consumes   filled slots.
Produces   free slots, published weights, training metrics, checkpoints, and its state for a successor.
Waits for  a batch of filled slots.
Unblocked  by rollout workers, or by STOP among the filled slots.
"""

from __future__ import annotations

import time

import torch

from sf.learner.batch import AsyncLoader, BatchBuffer, SlotCopier, SyncLoader
from sf.learner.state import LearnerArgs, LearnerState
from sf.policy_memory import PolicyMemory, Readers
from sf.processes import Reports
from sf.torch_runtime import configure

_REPORT_EVERY_S = 1.0


def learner(reports: Reports, args: LearnerArgs) -> None:
    """Body of the process. Ends by itself when the run has as many env steps as it shall have."""
    args.counters.working()
    configure(args.memory.device, args.num_threads, not args.config.sampler.async_rl, has_fixed_shapes=True)
    torch.manual_seed(args.config.run.seed + args.policy_id)
    memory = PolicyMemory.create(args.memory)
    state = LearnerState(args, reports, memory.latest_version)
    state.publish(memory)
    readers = Readers(memory, args.readers, reports)
    loader = make_loader(args, memory)
    reports.send(
        "ready",
        env_steps=state.env_steps,
        seconds_before=state.seconds_before,
        lost_steps=state.lost_steps,
        weights_event=state.weights_event,
    )
    if state.lost_steps:
        state.remember_if_due()  # a successor that comes before the first iteration shall not count them once more

    counters = args.counters
    reported_at = time.perf_counter()

    def after_step() -> None:
        state.publish(memory)
        counters.working()

    while not (state.is_finished or args.stop.is_set()):
        waiting_since = time.perf_counter()
        counters.waiting()
        batch = loader.next()
        counters.working()
        busy_since = time.perf_counter()
        if batch is None:
            break
        if state.obey():
            state.publish(memory)
        steps = state.updater.train_iteration(batch, state.env_steps, after_step)
        loader.release()
        memory.flush()
        state.count(batch.num_samples)
        now = time.perf_counter()
        counters.add(steps=batch.num_samples, calls=steps, wait_s=busy_since - waiting_since, busy_s=now - busy_since)
        if now - reported_at > _REPORT_EVERY_S or state.is_finished:
            reported_at = now
            reports.send("train", env_steps=state.env_steps, **state.updater.pop_metrics())
        if state.has_diverged:
            state.roll_back()
            state.publish(memory)
            memory.flush()
        if state.is_save_due:
            state.save()
        state.keep_milestone_if_due()
        state.remember_if_due()
    reports.send("saving")
    if not state.save():
        raise OSError(f"the last checkpoint could not be written to {args.checkpoints}: see the message above")
    reports.send("finished", env_steps=state.env_steps)
    readers.wait_until_gone()


def make_loader(args: LearnerArgs, memory: PolicyMemory) -> AsyncLoader | SyncLoader:
    """As the run is asynchronous or synchronous."""
    device = args.memory.device
    copier = SlotCopier(args.slots.arrays, memory)

    def buffer() -> BatchBuffer:
        state_size = memory.slot_state.shape[1]
        return BatchBuffer(args.slots.arrays, args.config.slots_per_iteration, state_size, device)

    if args.config.sampler.async_rl:
        return AsyncLoader(args.slots, copier, (buffer(), buffer()), device)
    return SyncLoader(args.slots, copier, buffer(), args.num_actors)
