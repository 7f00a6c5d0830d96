"""How the runs of a sweep or a search share the machine: how many run at once, with how many workers, on which GPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sf.config import Config
from sf.machine.cores import num_usable_cores


def share_out(configs: Sequence[Config], parallel: int | None) -> tuple[int, list[int]]:
    """How many runs there are room for at once, and the number of workers of each.

    parallel: how many were asked for. None: as many as the cores allow.
    """
    cores = num_usable_cores()
    share = cores if parallel is None else -(-cores // parallel)
    chosen = [config.sampler.num_workers for config in configs]
    workers = [share if num == "auto" else num for num in chosen]
    return parallel or max(1, cores // max(workers)), workers


def gpus_of(configs: Sequence[Config]) -> Sequence[str]:
    """Names of the GPUs, where the runs use any and have one policy each: several spread over them by themselves."""
    from sf import gpu  # noqa: PLC0415

    uses_one = all(config.run.device != "cpu" and config.population.num_policies == 1 for config in configs)
    return gpu_names(gpu.count(), os.environ.get("CUDA_VISIBLE_DEVICES")) if uses_one else ()


def gpu_names(num_gpus: int, visible: str | None) -> list[str]:
    """What CUDA_VISIBLE_DEVICES may name: its own entries, numbers or UUIDs, where it is set to `visible`.

    num_gpus: that CUDA sees; it reads the entries up to the first that is no GPU.
    """
    names = map(str, range(num_gpus)) if visible is None else visible.split(",")
    return [name.strip() for name in names][:num_gpus]
