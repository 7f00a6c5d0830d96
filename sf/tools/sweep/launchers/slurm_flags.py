"""The demands of a job of `--launcher slurm` on the cluster, as flags and as sbatch has them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sf.config import Config
from sf.envs.errors import UsageError
from sf.envs.field_types import require

_WITH_FLAGS_HERE = {
    "partition": "partition",
    "account": "account",
    "cpus-per-task": "cpus",
    "gpus-per-node": "gpus",
    "mem": "memory_gb",
    "time": "hours",
}
_SET_BY_THE_LAUNCHER = ("array", "error", "job-name", "nodes", "ntasks", "open-mode", "output", "requeue", "signal")
_HOURS = 4.0


@dataclass(frozen=True)
class SlurmFlags:
    """Of --launcher slurm: what each job asks for."""

    partition: str | None = None
    """Where the jobs wait. Default: the cluster's."""

    account: str | None = None
    """Who pays for the jobs, where the cluster asks."""

    cpus: int | None = None
    """Cores of a job. Default: num_workers of its run. A run whose num_workers is not set has this many."""

    gpus: int | None = None
    """GPUs of a job. Default: what the cluster gives a job that asks for none."""

    memory_gb: float | None = None
    """Memory of a job in GB. Default: the cluster's."""

    hours: float | None = None
    """Time limit of a job in hours. Default: 4. A run that comes to it saves, and its job is queued again."""

    retries: int = 5
    """How often the job of a run is queued again after its time limit, and how often a new one takes the place of a job
    that the cluster lost."""

    sbatch: tuple[str, ...] = ()
    """More parameters of sbatch, as key=value, or key alone. Example: --sbatch qos=high constraint=a100 exclusive"""

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name} is {value}: at least 1, or leave it out")
        for name in ("memory_gb", "hours"):
            value = getattr(self, name)
            require(value is None or 0.0 < value < math.inf, f"{name} is {value}: a number above 0, or leave it out")
        require(self.retries >= 0, f"retries is {self.retries}: 0 or more")
        for word in self.sbatch:
            _require_parameter(word)

    def require_none(self) -> None:
        """Raises UsageError where any of them is given: for launchers that they are not for."""
        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given:
            raise UsageError(f"{given[0]} is for jobs of a cluster: add --launcher slurm, or leave it out")

    def cores(self, config: Config) -> int:
        """Returns the cores of a job. Raises UsageError if nothing says how many."""
        cores = self.cpus or config.sampler.num_workers
        if cores == "auto":
            raise UsageError("with --launcher slurm a run does not take all cores: say --cpus, or set num_workers")
        return cores

    def workers(self, config: Config) -> int:
        """Returns the workers of a run; as many as cores if the number is not set."""
        num = config.sampler.num_workers
        return self.cores(config) if num == "auto" else num

    def parameters(self, name: str, num_workers: int) -> dict[str, Any]:
        """Returns the parameters for submitit. name: of the run."""
        cpus = self.cpus or num_workers
        asked = {
            "partition": self.partition,
            "account": self.account,
            "gpus_per_node": self.gpus,
            "mem": None if self.memory_gb is None else f"{math.ceil(self.memory_gb * 1024)}M",
        }
        return {
            **{key: value for key, value in asked.items() if value is not None},
            "job_name": name,
            "cpus_per_task": cpus,
            "srun_args": [f"--cpus-per-task={cpus}"],  # SLURM 22.05 to 23.02 leave it at 1 where srun is not told
            "time": max(1, math.ceil((self.hours or _HOURS) * 60)),  # minutes
            "additional_parameters": {"requeue": True, **_parameters(self.sbatch)},
        }


def _require_parameter(word: str) -> None:
    key = word.partition("=")[0]
    is_parameter = re.fullmatch(r"[a-z][a-z-]*(=[^\n\r]+)?", word) is not None
    require(is_parameter, f"sbatch has {word!r}: it must be key=value, as in qos=high, or a key alone")
    require(key not in _WITH_FLAGS_HERE, f"sbatch has {word!r}: say --{_WITH_FLAGS_HERE.get(key)} instead")
    require(key not in _SET_BY_THE_LAUNCHER, f"sbatch has {word!r}: the launcher sets {key} itself, so leave it out")


def _parameters(words: Sequence[str]) -> dict[str, str | bool]:
    pairs = [word.partition("=") for word in words]
    return {key: value if equals else True for key, equals, value in pairs}
