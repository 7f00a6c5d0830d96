"""Where one learner iteration and one policy step spend their time: torch.profiler, on synthetic data."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from gpu.step import Context, Findings, Lines
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from sf import envs, make_config
from sf.arrays import SharedArrays
from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.learner.batches.batch import Batch
from sf.learner.update import Updater
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model
from sf.processes.torch_runtime import configure
from sf.rows import slot_fields

_ENVS = ("doom_health_gathering", "atari_breakout")
_ROWS = 12  # of a table


def run(context: Context) -> Findings:
    lines, data = Lines(), {}
    configure("cpu" if context.device == "cpu" else "cuda:0", 1, deterministic=False)
    for env in _ENVS[:1] if context.is_rehearsal else _ENVS:
        config = make_config(env=env, config="doom_battle" if env.startswith("doom") else None, rollout=32)
        batch_size, num_actors, repeats = (64, 4, 1) if context.is_rehearsal else (2048, 256, 10)
        config = config.replace(batch_size=batch_size, num_batches_per_epoch=1, num_epochs=1)
        spec = envs.describe(env, config.environment)
        for precision in ("bfloat16", "float32"):
            iteration = _iteration(config, spec, precision, context)
            step = _policy_step(config, spec, precision, num_actors, context)
            for what, call, samples in (
                ("learner iteration", iteration, batch_size),
                ("policy step", step, num_actors),
            ):
                name = f"{env}, {what} of {samples} in {precision}"
                microseconds, table = _profiled(call, repeats, context)
                data[name] = {"microseconds_a_sample": microseconds / samples, "table": table}
                lines.add(f"{name}: {microseconds / samples:.2f} us a sample")
                (context.folder / f"{name.replace(', ', '-').replace(' ', '_')}.txt").write_text(table)
    return Findings(True, lines.lines, data)


def _iteration(config: Config, spec: EnvSpec, precision: str, context: Context) -> Callable[[], Any]:
    device = torch.device(context.device)
    updater = Updater(config, spec.obs_space, ActionSpec.of(spec.action_space), precision == "bfloat16", device)
    batch = synthetic_batch(config, spec, updater.model.state_size, context.device)
    return partial(updater.train_iteration, batch, 0, lambda: None)


def _policy_step(
    config: Config, spec: EnvSpec, precision: Any, num_actors: int, context: Context
) -> Callable[[], list[Tensor]]:
    """As a policy worker calls its network: observations [N, ...] from page-locked memory, the answers back."""
    device = torch.device(context.device)
    action = ActionSpec.of(spec.action_space)
    model = inference_model(config.model, spec.obs_space, action, precision, device)
    generator = torch.Generator(device)
    is_cuda = device.type == "cuda"
    obs = {
        key: torch.zeros((num_actors, *box.shape), dtype=_dtype(box), pin_memory=is_cuda)
        for key, box in spec.obs_space.items()
    }
    state = torch.zeros(num_actors, model.state_size, device=device)
    first = torch.zeros(num_actors, dtype=torch.bool, device=device)

    def step() -> list[Tensor]:
        with torch.inference_mode():
            out = model.step({key: rows.to(device, non_blocking=True) for key, rows in obs.items()}, state, first)
            distribution = ActionDistribution(action, out.params)
            discrete, continuous = distribution.sample(generator)
            log_prob = distribution.log_prob(discrete, continuous)
            return [answer.cpu() for answer in (discrete, continuous, log_prob, out.value)]

    return step


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


def _profiled(call: Callable[[], Any], repeats: int, context: Context) -> tuple[float, str]:
    """Microseconds of a call by the clock, without the profiler, and the table of another one."""
    is_cuda = context.device != "cpu"
    wait = torch.cuda.synchronize if is_cuda else (lambda: None)
    for _ in range(1 if context.is_rehearsal else 5):
        call()
    wait()
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    wait()
    seconds = (time.perf_counter() - began) / repeats
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_cuda else [])]
    with profile(activities=activities) as profiler:
        call()
        wait()
    order = "self_device_time_total" if is_cuda else "self_cpu_time_total"
    return 1e6 * seconds, profiler.key_averages().table(sort_by=order, row_limit=_ROWS)


def _dtype(box: Any) -> torch.dtype:
    return getattr(torch, str(box.dtype))
