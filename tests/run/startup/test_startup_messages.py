"""What a run says when it begins."""

import pytest

from sf.run.planning import make_plan
from sf.run.startup import startup_messages
from sf.run.startup.starting_flags import make_config
from sf.storage.run_dir import RunDir

SMALL = {"num_workers": 1, "num_envs_per_worker": 2, "rollout": 8, "batch_size": 16, "device": "cpu"}


@pytest.fixture
def begin(tmp_path):
    """A function: begins a run with these flags, or resumes it. Returns what it says."""

    def begin(resumed_steps=0, **flags):
        config = make_config(**{"env": "toy_identity", "train_dir": str(tmp_path), **SMALL, **flags})
        run_dir = RunDir.at(str(tmp_path), config.run.experiment_name)
        said = list(startup_messages.startup_messages(make_plan(config), run_dir.path, resumed_steps))
        run_dir.prepare(config)
        return "\n".join(said)

    return begin


def test_a_run_that_is_resumed_says_so_and_one_whose_checkpoints_are_gone_that_it_begins_at_0(begin, tmp_path):
    run = tmp_path / "toy_identity"
    new = begin()
    assert f"resumes {run} at 64 env steps (--restart_behavior restart starts over" in begin(resumed_steps=64)
    (run / "metrics.jsonl").write_text("{}\n")
    again = begin()
    assert ["has records of an earlier start and no checkpoint" in said for said in (new, again)] == [False, True]
    assert "resumes" not in new + again
