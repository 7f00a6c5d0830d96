"""Prioritised level replay in whole runs: it finds the levels that have something to learn, and remembers them."""

import pytest
from runs import train_here

from sf.envs.errors import UsageError
from sf.storage.checkpoint import load_latest

PLR = ["--level_choice", "plr", "--num_envs_per_worker", "4", "--stats_avg", "200"]


def test_levels_with_more_to_learn_are_played_more_often_also_by_a_run_that_is_resumed(tmp_path):
    """The policy is told nothing of what it is paid, so its advantages stay."""
    run = tmp_path / "sized_env_Leveled" / "checkpoints"
    flags = [*PLR, "--save_every_sec", "1000"]
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "12000", env="sized_env:Leveled")
    assert summary["stats/hard"] > 0.4  # a quarter of the levels
    assert summary["train/levels/seen_share"] == 1.0
    assert 1.0 < summary["train/levels/effective"] < 8.0
    before = load_latest(run)[1].state["levels"]
    assert len(before["scores"]) == 8
    assert min(before["scores"][6:]) > 2 * max(before["scores"][:6])
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "14000", env="sized_env:Leveled")
    assert summary["stats/hard"] > 0.4
    after = load_latest(run)[1].state["levels"]
    assert after["num_episodes"] - before["num_episodes"] == pytest.approx(2000 / 3, rel=0.2)
    assert min(after["scores"][6:]) > 2 * max(after["scores"][:6])


@pytest.mark.parametrize(
    ("env", "flags", "said"),
    [
        ("sized_env:Sized", [], "levels"),
        ("sized_env:Leveled", ["--anneal", "env.level=0..3"], "anneal"),
        ("sized_env:Leveled", ["--rollout", "1"], "rollout"),
    ],
)
def test_what_cannot_be_chosen_is_said_before_anything_starts(tmp_path, env, flags, said):
    with pytest.raises(UsageError, match=said):
        train_here(tmp_path, *PLR, *flags, env=env)
