"""One run of sf-train, the numbers that it leaves, and how busy the GPU is meanwhile, by nvidia-smi if it is there."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu.step import Context

from sf.tools.commands import cli

_EVERY_S = 2.0
_START_UP_AND_END_S = 180.0
_TINY = {
    "num_workers": 1,
    "num_envs_per_worker": 2,
    "rollout": 8,
    "batch_size": 32,
    "num_batches_per_epoch": 1,
    "num_epochs": 1,
    "lr_schedule": "constant",  # in synchronous mode a single step sees no KL divergence
    "encoder_mlp_layers": [16],
    "encoder_conv_mlp_layers": [16],
    "rnn_size": 16,
    "learner_threads": 1,
    "summaries_every_sec": 0.5,
    "train_for_env_steps": 256,
    "train_for_seconds": 120,
}


class GpuMonitor:
    """Looks from time to time while it is open."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, float]] = []  # share of time with a kernel, mean of the GPUs; MiB of all
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> GpuMonitor:
        if shutil.which("nvidia-smi"):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def result(self) -> dict[str, float | None]:
        """gpu_busy: share of the time with a kernel on it, over the second half, when start-up is over."""
        if not self._looks:
            return {"gpu_busy": None, "gpu_mib": None}
        busy = statistics.mean(busy for busy, _ in self._looks[len(self._looks) // 2 :])
        return {"gpu_busy": busy, "gpu_mib": max(used for _, used in self._looks)}

    def _watch(self) -> None:
        while not self._end.wait(_EVERY_S):
            self.look()

    def look(self) -> None:
        if rows := _ask("utilization.gpu,memory.used"):
            self._looks.append((statistics.mean(busy for busy, _ in rows) / 100, sum(used for _, used in rows)))


def used_mib() -> float | None:
    """MiB of all GPUs in use, by whomever; None where nobody can tell."""
    rows = _ask("memory.used") if shutil.which("nvidia-smi") else []
    return sum(used for (used,) in rows) if rows else None


def _ask(columns: str) -> list[list[float]]:
    """A row for each GPU; none where nvidia-smi does not answer with numbers."""
    command = ["nvidia-smi", f"--query-gpu={columns}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        return [[float(value) for value in line.split(",")] for line in said.splitlines()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


@dataclass(frozen=True)
class Trained:
    """status: the exit status, None where the run had to be killed. records: of metrics.jsonl."""

    status: int | None
    summary: dict[str, Any]
    records: list[dict[str, Any]]
    gpu: dict[str, Any]
    said: str

    @property
    def is_ok(self) -> bool:
        return self.status == 0 and bool(self.summary)

    @property
    def frames_per_second(self) -> float:
        return self.summary.get("steady_env_frames_per_second", 0.0)

    @property
    def returns(self) -> list[float]:
        """Mean returns over the run."""
        return [record["mean_return"] for record in self.records if record.get("mean_return") is not None]

    def microseconds(self, role: str) -> float:
        """Busy time of a role (learner, policy) for each sample trained on, of one process of it."""
        busy_s = self.summary.get(f"{role}/busy_share", 0.0) * self.summary.get("seconds", 0.0)
        return 1e6 * busy_s / max(1, self.summary.get("env_steps", 0))

    def as_text(self) -> str:
        if not self.is_ok:
            return f"ended with status {self.status}: {' '.join(self.said.strip().splitlines()[-3:])}"
        shares = {role: 100 * self.summary[f"{role}/busy_share"] for role in ("rollout", "policy", "learner")}
        gpu = "GPU not watched (no nvidia-smi)"
        if self.gpu["gpu_busy"] is not None:
            gpu = f"GPU busy {100 * self.gpu['gpu_busy']:.0f} %, {self.gpu['gpu_mib']:,.0f} MiB at most"
        returns = f"return {self.returns[0]:.3g} to {self.returns[-1]:.3g}, " if self.returns else ""
        return (
            f"{self.frames_per_second:,.0f} frames/s, {self.summary['env_frames']:,} frames in "
            f"{self.summary['seconds']:.0f} s, {returns}"
            f"busy: {', '.join(f'{role} {share:.0f} %' for role, share in shares.items())}; "
            f"{self.microseconds('policy'):.1f} us inference, {self.microseconds('learner'):.1f} us training a sample; "
            f"lag {self.summary.get('train/lag_mean', 0.0):.1f}; {gpu}"
        )

    def as_data(self) -> dict[str, Any]:
        return {"status": self.status, "summary": self.summary, "gpu": self.gpu, "returns": self.returns}


def train(context: Context, name: str, seconds: float, flags: Mapping[str, Any]) -> Trained:
    """Train in the folder of the step, for this many seconds of the run, earlier parts of it included."""
    where = {"train_dir": str(context.folder), "experiment": name, "device": context.device}
    told = {**flags, "train_for_seconds": seconds, **(_TINY if context.is_rehearsal else {}), **where}
    command = [sys.executable, "-m", "sf", *cli.arguments(told)]
    path = context.folder / name
    status, said = None, ""
    with GpuMonitor() as monitor:
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds + _START_UP_AND_END_S,
                check=False,
            )
            status, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            said = f"killed after {error.timeout:.0f} s"
    summary, metrics = path / "summary.json", path / "metrics.jsonl"
    return Trained(
        status,
        json.loads(summary.read_text()) if summary.exists() else {},
        [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else [],
        monitor.result(),
        said,
    )
