"""Bots of a simulator in the place of agents."""

import json

import numpy as np
import pytest
from runs import train_here

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.evaluation.play.opponents import Opponent

OPTIONS = EnvOptions()


def opponent(name, env="rts_mini_match"):
    spec = envs.describe(env, OPTIONS)
    return Opponent(name, env, OPTIONS, spec.native_obs_space, spec.action_space)


@pytest.mark.parametrize(
    ("name", "env", "said"),
    [("bot:flag", "rts_mini_match", "bot:hit_and_run"), ("bot:simple", "rts_mini", "rts_mini has no bot")],
)
def test_a_bot_that_there_is_not_is_refused(name, env, said):
    with pytest.raises(UsageError, match=said):
        opponent(name, env).player()


def test_it_names_itself_to_the_environment_for_every_agent_that_it_plays():
    actors = opponent("bot:hit_and_run").player().actors(6, seed=0)
    actions = actors.act({}, np.zeros(4, bool), who=np.array([0, 2, 3, 5]))
    assert (actions.discrete == envs.describe("rts_mini_match", OPTIONS).bots["hit_and_run"]).all()
    assert actions.discrete.shape == (4, 1)
    assert actions.continuous.shape == (4, 0)


@pytest.mark.long
def test_a_policy_trains_against_bots(tmp_path):
    flags = ["--past_share", "0.8", "--players", "bot:simple", "bot:hit_and_run", "--opponent_weights", "1", "1"]
    flags += ["--num_envs_per_worker", "8", "--env_kwargs", '{"max_ticks": 400}']
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "8000", env="rts_mini_match")
    assert summary["restarts"] == summary["env_faults"] == 0
    rows = [json.loads(line) for line in (tmp_path / "rts_mini_match" / "league.jsonl").read_text().splitlines()]
    names = {row["name"] for row in rows if row["kind"] == "player"}
    assert {"bot:simple", "bot:hit_and_run"} <= names
    assert sum(row["kind"] == "match" for row in rows) > 20
