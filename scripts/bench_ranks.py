"""What averaging the gradients costs: the learners of two ranks alone, and as one.

    python scripts/bench_ranks.py --envs doom_battle atari_breakout CartPole-v1 --json out.json

Each rank trains on batches of its own, in a process and with a thread of its own. In each round all ranks first train
without each other, at the same time, then together. So the difference is what goes over the network (here: loopback),
and the waiting for each other. Beside it: how many bytes that is a step, and how fast an all-reduce of so many bytes is
where nothing else is done.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed
from recording import json_file

from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.update import Updater
from sf.ranks.ranks import ALONE, DistributedRanks, Ranks
from sf.run.plan import Plan
from sf.run.planning import make_plan
from sf.run.startup.starting_flags import make_config
from sf.shared.rows import slot_fields
from sf.system.arrays import SharedArrays
from sf.system.processes.torch_runtime import configure

_CPU = torch.device("cpu")
_WARM_UP = 2  # iterations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["doom_battle", "atari_breakout", "CartPole-v1"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement, about")
    parser.add_argument("--interface", default="lo", help="network interface of gloo")
    parser.add_argument("--json", type=Path, help="write the result here, too")
    args = parser.parse_args()
    json_file.require_writable(args.json)
    os.environ["GLOO_SOCKET_IFNAME"] = args.interface
    found = {}
    for env in args.envs:
        for compresses in (False, True):
            of_ranks = _measure(env, args.ranks, args.rounds, args.seconds, compresses)
            found[f"{env}{', bfloat16' if compresses else ''}"] = facts = _facts(of_ranks)
            print(f"{env:16} compress_gradients {str(compresses).lower():6} {_sentence(facts)}", flush=True)
            json_file.write(args.json, found)


def _measure(env: str, size: int, rounds: int, seconds: float, compresses: bool) -> list[dict[str, Any]]:
    """What each rank found."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(size) as pool:
        words = (size, f"{folder}/store", env, rounds, seconds, compresses)
        return pool.starmap(_rank, [(rank, *words) for rank in range(size)], chunksize=1)


def _rank(rank: int, size: int, path: str, env: str, rounds: int, seconds: float, compresses: bool) -> dict[str, Any]:
    configure("cpu", 1, False, has_fixed_shapes=True)
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    plan = make_plan(make_config(env=env, device="cpu"))
    store = torch.distributed.FileStore(path, size)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)
    together = DistributedRanks(_CPU, store, compresses)
    batch = _batch(plan)
    updaters = {"alone": _updater(plan, ALONE), "together": _updater(plan, together)}
    num_floats = sum(parameter.numel() for parameter in updaters["alone"].model.parameters())
    num = max(1, round(seconds / min(_seconds(updaters["alone"], batch) for _ in range(_WARM_UP))))
    num = int(together.totals(torch.tensor(float(num)))[0].item() // size)
    for _ in range(_WARM_UP):
        _seconds(updaters["together"], batch)
    times: dict[str, list[float]] = {"alone": [], "together": [], "all_reduce": []}
    for _ in range(rounds):
        for name, updater in updaters.items():
            torch.distributed.barrier()
            times[name].append(sum(_seconds(updater, batch) for _ in range(num)) / num)
        times["all_reduce"].append(_seconds_of_all_reduce(num_floats, compresses))
    together.leave()
    return {
        "times": times,
        "steps": plan.config.learner.steps_per_iteration,
        "samples_per_step": plan.config.slots_per_batch * plan.config.rollout,
        "bytes_per_step": num_floats * (2 if compresses else 4),
    }


def _updater(plan: Plan, ranks: Ranks) -> Updater:
    action = ActionSpec.of(plan.spec.action_space)
    return Updater(plan.config, plan.spec.obs_space, action, plan.bfloat16, _CPU, None, ranks)


def _batch(plan: Plan) -> Batch:
    rows = SharedArrays(slot_fields(plan.spec, 1, plan.config.rollout))
    batch = Batch.empty(rows, plan.config.slots_per_iteration, plan.state_size, "cpu")
    for tensor in batch.tensors():
        tensor.zero_()
    for obs in batch.obs.values():
        obs.copy_(torch.randint(0, 2, obs.shape))
    batch.reward.normal_()
    batch.valid.fill_(True)
    return batch


def _seconds(updater: Updater, batch: Batch) -> float:
    """Of an iteration."""
    batch.policy_version.fill_(updater.version)
    began = time.perf_counter()
    updater.train_iteration(batch, share_done=0.0)
    return time.perf_counter() - began


def _seconds_of_all_reduce(num_floats: int, compresses: bool) -> float:
    message = torch.zeros(num_floats, dtype=torch.bfloat16 if compresses else torch.float32)
    torch.distributed.barrier()
    began = time.perf_counter()
    torch.distributed.all_reduce(message)
    return time.perf_counter() - began


def _facts(of_ranks: list[dict[str, Any]]) -> dict[str, Any]:
    first = of_ranks[0]
    shares = [
        1 - alone / together
        for each in of_ranks
        for alone, together in zip(each["times"]["alone"], each["times"]["together"], strict=True)
    ]
    seconds = {name: median(time for each in of_ranks for time in each["times"][name]) for name in first["times"]}
    return {
        "ms_per_step_alone": 1000 * seconds["alone"] / first["steps"],
        "ms_per_step_together": 1000 * seconds["together"] / first["steps"],
        "share_of_averaging": median(shares),
        "share_of_averaging_least_and_most": [min(shares), max(shares)],
        "megabytes_per_step": first["bytes_per_step"] / 1e6,
        "ms_of_all_reduce": 1000 * seconds["all_reduce"],
        "megabytes_per_second_of_all_reduce": first["bytes_per_step"] / 1e6 / seconds["all_reduce"],
        "samples_per_step": first["samples_per_step"],
    }


def _sentence(facts: dict[str, Any]) -> str:
    return (
        f"{facts['ms_per_step_alone']:.1f} ms a step alone, {facts['ms_per_step_together']:.1f} together "
        f"({100 * facts['share_of_averaging']:.0f} % of it is averaging); {facts['megabytes_per_step']:.2f} MB a step, "
        f"{facts['ms_of_all_reduce']:.1f} ms by itself ({facts['megabytes_per_second_of_all_reduce']:,.0f} MB/s)"
    )


if __name__ == "__main__":
    main()
