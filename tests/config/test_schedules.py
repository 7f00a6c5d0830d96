"""Schedules of `--anneal`: what they are read as, what they make of a stage of training, and what is refused."""

import math

import pytest

from sf.config import Config
from sf.config.schedules import ByMetric, BySteps, Drawn, Stage, final_options, parse
from sf.envs import UsageError


def test_each_form_is_read():
    lines = (
        "gamma=0.9:.99@1e6",
        "env.size=5:16@stats/success:0.9",
        "env.wind=0.5:0@mean_return:-1",
        "env.light=1..2.5",
    )
    assert parse(lines) == (
        BySteps("gamma", 0.9, 0.99, 1_000_000),
        ByMetric("env.size", 5.0, 16.0, "success", 0.9, 11),
        ByMetric("env.wind", 0.5, 0.0, "mean_return", -1.0, 10),
        Drawn("env.light", 1.0, 2.5),
    )
    assert final_options(parse(lines)) == {"size": (16.0, 16.0), "wind": (0.0, 0.0), "light": (1.0, 2.5)}


def test_values_follow_the_stage():
    by_steps, by_metric, drawn = parse(("gamma=0.9:0.5@1_000", "env.size=16:5@win:0.5", "env.light=1..2"))
    assert [by_steps.value(Stage(steps)) for steps in (0, 250, 1_000, 10**9)] == pytest.approx([0.9, 0.8, 0.5, 0.5])
    moved = [by_metric.value(Stage(moves={"env.size": moves})) for moves in range(13)]
    assert moved == pytest.approx([*range(16, 5, -1), 5, 5])
    assert math.isnan(drawn.value(Stage(5)))
    assert by_steps.value(Stage(1_000)) == 0.5  # to the bit, as what is decided at the last value needs


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["gamma"], "gamma"),
        (["gamma=0.9:0.99"], "gamma"),
        (["gamma=0.9:0.99@0"], "env steps"),
        (["gamma=0.9:0.99@1.5"], "env steps"),
        (["gamma=0.9..0.99"], "drawn"),
        (["env.size=5..3"], "swap"),
        (["gamma=0.9:0.99@10", "gamma=0.9:0.99@20"], "twice"),
        (["batch_size=1:2@10"], "batch_size"),
        (["gamma=0.9:1.1@10"], "gamma is 1.1"),
        (["ppo_clip_ratio=0:0.1@10"], "ppo_clip_ratio is 0"),
        (["past_share=0.1:0.2@10"], "past_share"),
    ],
)
def test_what_cannot_be_is_refused(lines, said):
    with pytest.raises(UsageError, match=said):
        Config().replace(anneal=lines)


@pytest.mark.parametrize(
    "flags",
    [
        {"anneal": ["learning_rate=1e-3:1e-4@10"], "lr_schedule": "linear", "train_for_env_steps": 10},
        {"anneal": ["exploration_loss_coeff=0.1:0@10"], "exploration_loss_coeff_final": 0.0},
        {"anneal": ["exploration_loss_coeff=0.1:0@10"], "exploration_loss_coeff_extra": 0.1},
        {"anneal": ["learning_rate=0.1:0.01@9"], "with_pbt": True, "num_policies": 2, "pbt_initial_lr_decades": 1.0},
        {"anneal": ["team_spirit=0:1@10"], "share_reward": "team"},
    ],
)
def test_one_value_has_one_schedule(flags):
    with pytest.raises(UsageError):
        Config().replace(**flags)
    Config().replace(**{**flags, "anneal": ()})


def test_evaluations_take_the_last_values_of_options():
    flags = {"anneal": ["env.size=5:16@100", "env.light=1..2"], "env_options": '{"wind": 0.5}'}
    options = Config().replace(**flags).evaluated_environment
    assert options.option_ranges == {"wind": (0.5, 0.5), "size": (16.0, 16.0), "light": (1.0, 2.0)}
