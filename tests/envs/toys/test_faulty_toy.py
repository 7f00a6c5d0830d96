"""The faults of `toy_faulty` that a file asks for. `test_guard` has those that come by chance."""

from __future__ import annotations

from pathlib import Path

from sf.envs.toys.faulty import Faulty


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
