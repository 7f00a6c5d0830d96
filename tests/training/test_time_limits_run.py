"""The walk of docs/getting_started.md, which is cut after ten steps that it does not see."""

import pytest
from pages import ROOT, blocks

from sf.run.startup.starting_flags import make_config
from sf.run.trainer import train

BEST = 5.5


@pytest.fixture
def walk(tmp_path, monkeypatch):
    """The page's environment, from a folder of somebody who follows it."""
    (page,) = [block for block in blocks(ROOT / "docs/getting_started.md", "python") if "class Walk" in block]
    (tmp_path / "walk.py").write_text(page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "walk:Walk"


def test_rows_whose_action_is_ignored_are_no_env_steps(walk, tmp_path):
    rows = {"rollout": 11, "batch_size": 22, "num_batches_per_epoch": 1, "num_epochs": 2}  # an episode of each actor
    config = make_config(
        env=walk,
        num_workers=1,
        num_envs_per_worker=2,
        decorrelate_episodes=False,
        async_rl=False,
        train_for_env_steps=100,
        train_dir=str(tmp_path / "runs"),
        device="cpu",
        **rows,
    )
    summary = train(config)
    assert (summary["env_steps"], summary["env_frames"], summary["episodes"]) == (100, 100, 10)
    assert summary["train/policy_version"] == 1 + 2 * 5


@pytest.mark.long
def test_the_example_of_getting_started_reaches_the_best_return(walk, tmp_path, capsys):
    ends = {"train_for_env_steps": 60_000, "stop_at_return": BEST - 0.3}
    config = make_config(env=walk, num_workers=1, **ends, seed=0, train_dir=str(tmp_path / "runs"), device="cpu")
    assert train(config)["stopped_by"] == "stop_at_return"
    assert "walk:Walk returns truncated=True by itself" in capsys.readouterr().out
