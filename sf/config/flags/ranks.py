"""Flags of several learners of one policy."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import check_fields, require


@dataclass(frozen=True)
class RanksConfig:
    """Several learners that train one policy, each with workers of its own: docs/ranks.md."""

    num_learners: int = 1
    """Learners of one policy on this machine, which average their gradients. Each has its own workers, its share of
    the cores and, where there are GPUs, one of them. The batch of an optimiser step is batch_size of each. On several
    machines, start them with torchrun instead."""

    compress_gradients: bool = False
    """Several learners: send gradients as bfloat16, half as many bytes. For slow networks."""

    rank_timeout_s: float = 30.0
    """Several learners: end the run once one of them has not been heard of for this many seconds, so that torchrun can
    start it again with those that are left. Shorter interruptions of the network are waited for."""

    def __post_init__(self) -> None:
        check_fields(self)
        require(self.num_learners >= 1, f"num_learners is {self.num_learners}: at least 1")
        require(self.rank_timeout_s >= 5, f"rank_timeout_s is {self.rank_timeout_s}: at least 5 s")
