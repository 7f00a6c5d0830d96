"""The faults of `toy_faulty`, each as it reaches the group or ends the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sf.envs.toys.faulty import Faulty


def _first_fault(*faults: str, seed: int = 0) -> tuple[int, Any]:
    """How many steps went well, and what the next one raised or returned: the observation and the reward."""
    env = Faulty(faults, probability=0.05)
    env.reset(seed=seed)
    for num_steps in range(1000):
        try:
            obs, reward, terminated, *_ = env.step(0)
        except RuntimeError as error:
            return num_steps, error
        if obs.shape != (4,) or not np.isfinite([*obs, reward]).all():
            return num_steps, (obs, reward)
        if terminated:
            env.reset()
    return 1000, None


def test_faults_come_at_random_as_often_as_asked_for() -> None:
    assert _first_fault() == (1000, None)
    nums_steps = [_first_fault("raise", seed=seed)[0] for seed in range(100)]
    assert len(set(nums_steps)) > 20
    assert np.mean(nums_steps) == pytest.approx(20, abs=7)  # a standard error is 2


def test_each_fault_is_what_it_says() -> None:
    assert isinstance(_first_fault("raise")[1], RuntimeError)
    obs, reward = _first_fault("nan_obs")[1]
    assert np.isnan(obs).all()
    assert np.isfinite(reward)
    obs, reward = _first_fault("nan_reward")[1]
    assert np.isfinite(obs).all()
    assert np.isnan(reward)
    obs, _ = _first_fault("wrong_shape")[1]
    assert obs.shape == (1,)
    with pytest.raises(ValueError, match="explode"):
        Faulty(["explode"])


def test_a_trigger_makes_one_step_of_one_environment_fail(tmp_path: Path) -> None:
    trigger = tmp_path / "trigger"
    first, second = Faulty(trigger=str(trigger)), Faulty(trigger=str(trigger))
    for env in (first, second):
        env.reset(seed=0)
        env.step(0)
    trigger.write_text("huge_obs")
    assert second.step(0)[0].min() > 1e38
    assert first.step(0)[0].max() == second.step(0)[0].max() == 1.0
    assert list(tmp_path.iterdir()) == []
