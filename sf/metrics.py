"""The one writer of metrics: records go to metrics.jsonl and to TensorBoard."""

from __future__ import annotations

import json
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from sf.run_dir import RunDir


class MetricsWriter:
    """Appends flat records. Names with a "/" keep their group in TensorBoard; the others go to "run"."""

    def __init__(self, run_dir: RunDir) -> None:
        self._file = run_dir.metrics.open("a")
        self._tensorboard = SummaryWriter(str(run_dir.tensorboard))

    def write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        for name, value in record.items():
            if isinstance(value, int | float):
                tag = name if "/" in name else f"run/{name}"
                self._tensorboard.add_scalar(tag, value, record["env_frames"])

    def close(self) -> None:
        self._file.close()
        self._tensorboard.close()
