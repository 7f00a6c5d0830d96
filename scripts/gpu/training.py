"""One run of sf-train, and the numbers that it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu.monitor import GpuMonitor, as_text
from gpu.step import Context

from sf.commands import cli

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
        returns = f"return {self.returns[0]:.3g} to {self.returns[-1]:.3g}, " if self.returns else ""
        return (
            f"{self.frames_per_second:,.0f} frames/s, {self.summary['env_frames']:,} frames in "
            f"{self.summary['seconds']:.0f} s, {returns}"
            f"busy: {', '.join(f'{role} {share:.0f} %' for role, share in shares.items())}; "
            f"{self.microseconds('policy'):.1f} us inference, {self.microseconds('learner'):.1f} us training a sample; "
            f"lag {self.summary.get('train/lag_mean', 0.0):.1f}; {as_text(self.gpu)}"
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
    summary = json.loads((path / "summary.json").read_text()) if (path / "summary.json").exists() else {}
    return Trained(status, summary, _records(path / "metrics.jsonl"), monitor.result(), said)


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
