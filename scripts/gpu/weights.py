"""Do policy workers read the weights that the learner has published, whole, and never a mixture of two versions?"""

from __future__ import annotations

import hashlib
import multiprocessing
from contextlib import suppress
from multiprocessing.connection import Connection

import torch
from gpu.step import Context, Findings
from torch import Tensor

from sf.shared.weights import SharedWeights, SharedWeightsSpec
from sf.system.processes.torch_runtime import configure


def run(context: Context) -> Findings:
    """A process reads as fast as it can while this one publishes, each version with other numbers."""
    num_weights, num_versions = (100_000, 50) if context.is_rehearsal else (3_000_000, 2_000)
    device = "cpu" if context.device == "cpu" else "cuda:0"
    configure(device, 1, deterministic=False)
    spec = SharedWeightsSpec.allocate(device, num_weights)
    memory = SharedWeights.create(spec)
    flat = torch.rand(num_weights, generator=torch.Generator().manual_seed(0)).to(device)
    digests = {1: _digest(flat)}
    memory.publish(flat, 1)
    memory.flush()
    process = multiprocessing.get_context("spawn")
    (learner, reader_end), (results, results_end) = process.Pipe(), process.Pipe(duplex=False)
    reader = process.Process(target=_read, args=(spec, num_weights, num_versions, reader_end, results_end))
    reader.start()
    reader_end.close()
    results_end.close()
    memory.share(learner)
    results.recv()  # it has mapped the memory
    for version in range(2, num_versions + 1):
        flat.add_(1.0)
        digests[version] = _digest(flat)
        memory.publish(flat, version)
    memory.flush()
    read: dict[int, str] = results.recv()
    reader.join()
    compared = sorted(set(read) & set(digests))
    wrong = [version for version in compared if read[version] != digests[version]]
    is_ok = not wrong and num_versions in compared
    said = f"{num_versions} versions of {num_weights:,} weights published, {len(read)} read, {len(compared)} compared, "
    return Findings(is_ok, [said + f"{len(wrong)} wrong"], {"wrong": wrong, "compared": compared})


def _read(spec: SharedWeightsSpec, num_weights: int, last: int, learner: Connection, results: Connection) -> None:
    configure(spec.device, 1, deterministic=False)
    memory = SharedWeights.attach(spec, learner)
    out = torch.empty(num_weights + 1, device=spec.device)  # the version travels along
    read: dict[int, str] = {}
    results.send("mapped")
    while last not in read:
        version = memory.read(out)
        if version not in read:
            read[version] = _digest(out[:-1])
    with suppress(OSError):
        results.send(read)


def _digest(flat: Tensor) -> str:
    return hashlib.sha256(flat.cpu().numpy().tobytes()).hexdigest()
