"""In a run environments with a time limit are spread over their episodes, unless a user wants them in step."""

import pytest
from runs import train_here


@pytest.mark.parametrize("is_wanted", [True, False])
def test_environments_with_a_time_limit_leave_the_step_that_they_share(tmp_path, monkeypatch, is_wanted):
    noted = tmp_path / "noted"
    monkeypatch.setenv("SF_TEST_STEPPER", str(noted))
    flags = ["--decorrelate_episodes", str(is_wanted).lower(), "--num_workers", "1", "--num_envs_per_worker", "16"]
    flags += ["--rollout", "4", "--train_for_env_steps", "640"]
    summary = train_here(tmp_path, *flags, env="stepper:limited")
    assert summary["env_faults"] == summary["lost_episodes"] == 0
    at_resets = {*map(int, noted.read_text().split())}
    assert at_resets == {0} if not is_wanted else len(at_resets) > 4
