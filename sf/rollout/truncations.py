"""What a truncated episode counts as: see `LearnerConfig.bootstrap_truncated`."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sf.envs import EnvSpec, StepResult
from sf.envs.remarks import remark


class Truncations:
    """Says of each step whether nothing follows it."""

    def __init__(self, env: str, bootstrap: bool | Literal["auto"], spec: EnvSpec) -> None:
        self._env = env
        self._is_own_choice = bootstrap == "auto"
        self._are_ends = spec.has_own_time_limit if bootstrap == "auto" else not bootstrap

    def ended(self, result: StepResult) -> np.ndarray:
        """[N] bool: steps after which no value is bootstrapped from."""
        if not self._are_ends:
            return result.terminated
        if self._is_own_choice and result.truncated.any():
            remark(
                f"{self._env} truncated",
                f"{self._env} truncates episodes itself: they count as ended (--bootstrap_truncated true if they would "
                "have gone on)",
            )
        return result.terminated | result.truncated
