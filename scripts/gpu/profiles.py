"""Where one learner iteration and one policy step spend their time: torch.profiler, on synthetic data."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from gpu.step import Context, Findings, Lines
from torch.profiler import ProfilerActivity, profile

from sf import envs, make_config
from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.learner.batches.batch import Batch
from sf.learner.compiled.recorded_step import RecordedStep
from sf.learner.update import Updater
from sf.model.acting import Acting, ActingHere
from sf.model.inference import inference_model
from sf.policy.inference_batch import InferenceBatch
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.rows import slot_fields
from sf.system.arrays import SharedArrays
from sf.system.processes.torch_runtime import configure

_ENVS = ("doom_health_gathering", "atari_breakout")
_ROWS = 12  # of a table


def run(context: Context) -> Findings:
    lines, data = Lines(), {}
    configure("cpu" if context.device == "cpu" else "cuda:0", 1, deterministic=False)
    for env in _ENVS[:1] if context.is_rehearsal else _ENVS:
        config = make_config(env=env, config="doom_battle" if env.startswith("doom") else None, rollout=32)
        batch_size, sizes, repeats = (64, [4], 1) if context.is_rehearsal else (2048, [16, 64, 256], 20)
        config = config.replace(batch_size=batch_size, num_batches_per_epoch=1, num_epochs=1)
        spec = envs.describe(env, config.environment)
        for precision in ("bfloat16", "float32"):
            calls: list[tuple[str, Callable[[], Any], int]] = []
            for how, is_recorded in ("kernel by kernel", False), ("recorded", not context.is_rehearsal):
                iteration = _iteration(config, spec, precision, context, is_recorded)
                calls.append((f"learner iteration, {how},", iteration, batch_size))
                for size in sizes:
                    step = _policy_step(config, spec, precision, size, context, is_recorded)
                    calls.append((f"policy step, {how},", step, size))
            for what, call, samples in calls:
                name = f"{env}, {what} of {samples} in {precision}"
                took, of_a_core, table = _profiled(call, repeats, context)
                data[name] = {"microseconds": took, "core_microseconds": of_a_core, "table": table}
                lines.add(f"{name}: {took / samples:.2f} us a sample, {took:,.0f} in all, {of_a_core:,.0f} of a core")
                (context.folder / f"{name.replace(', ', '-').replace(' ', '_')}.txt").write_text(table)
    return Findings(True, lines.lines, data)


def _iteration(config: Config, spec: EnvSpec, precision: str, context: Context, is_recorded: bool) -> Callable[[], Any]:
    device, bfloat16 = torch.device(context.device), precision == "bfloat16"
    recorded = RecordedStep(bfloat16) if is_recorded else None
    action = ActionSpec.of(spec.action_space)
    updater = Updater(config, spec.obs_space, action, bfloat16, device, faster_step=recorded)
    batch = synthetic_batch(config, spec, updater.model.state_size, context.device)
    return partial(updater.train_iteration, batch, 0)


def _policy_step(
    config: Config, spec: EnvSpec, precision: Any, num_actors: int, context: Context, is_recorded: bool
) -> Callable[[], dict[str, np.ndarray]]:
    """As a policy worker takes it: from observations in shared memory to the answers on the host."""
    device = "cpu" if context.device == "cpu" else "cuda:0"
    action = ActionSpec.of(spec.action_space)
    model = inference_model(config.model, spec.obs_space, action, precision, device)
    rows = SharedArrays(slot_fields(spec, num_actors, config.rollout))
    states = RecurrentStates(model.state_size, num_actors, num_actors)
    batch = InferenceBatch(ActingHere(Acting(model, action)), spec, rows, states, num_actors, device)
    if is_recorded:
        batch.record(getattr(torch, precision))
    actors = np.arange(num_actors)
    first, second = np.zeros(num_actors, np.bool_), np.ones(num_actors, np.int64)
    return lambda: batch.decide(actors, second, actors, second, first)


def synthetic_batch(config: Config, spec: EnvSpec, state_size: int, device: str) -> Batch:
    """Of one iteration: random images, actions that exist, rewards of 0 or 1, no end of an episode."""
    rows = SharedArrays(slot_fields(spec, 1, config.rollout))
    batch = Batch.empty(rows, config.slots_per_iteration, state_size, device)
    for tensor in batch.tensors():
        tensor.zero_()
    for tensor in batch.obs.values():
        if tensor.dtype == torch.uint8:
            tensor.random_(0, 256)
    batch.reward.random_(0, 2)
    batch.policy_version.fill_(1)
    batch.valid.fill_(True)
    return batch


def _profiled(call: Callable[[], Any], repeats: int, context: Context) -> tuple[float, float, str]:
    """Microseconds of a call and of a core in it, without the profiler, and the table of another one."""
    is_cuda = context.device != "cpu"
    wait = torch.cuda.synchronize if is_cuda else (lambda: None)
    for _ in range(1 if context.is_rehearsal else 5):
        call()
    wait()
    began, core_began = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        call()
    core_s = time.process_time() - core_began
    wait()
    took_s = time.perf_counter() - began
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_cuda else [])]
    with profile(activities=activities) as profiler:
        call()
        wait()
    order = "self_device_time_total" if is_cuda else "self_cpu_time_total"
    table = profiler.key_averages().table(sort_by=order, row_limit=_ROWS)
    return 1e6 * took_s / repeats, 1e6 * core_s / repeats, table
