"""How much of a run its learners take to be done, and the linear learning rate that follows from it."""

import pytest
from allocated import allocate, learner_args

from sf.config import Config
from sf.learner.state import LearnerState


class Learners:
    """All learners of a run with these flags. policies_before: env steps of earlier parts of the run, by policy."""

    def __init__(self, path, policies_before=(0,), **flags):
        config = Config().replace(num_workers=1, encoder_mlp_layers=(8,), device="cpu", **flags)
        self._memory = allocate(config, path)
        self.states = [
            LearnerState(
                learner_args(self._memory, policy_id, resumed_steps=policies_before),
                published_version=0,
            )
            for policy_id in range(config.population.num_policies)
        ]
        for state, env_steps in zip(self.states, policies_before, strict=True):
            state.env_steps = env_steps

    def train(self, policy_id, env_steps):
        self.states[policy_id].count(env_steps)
        self._memory.counter_row("learner", policy_id).add(steps=env_steps)


@pytest.mark.parametrize(
    "flags",
    [
        {"train_for_env_steps": 1000},
        {"env": "doom_basic", "train_for_env_frames": 4000},
        {"env": "doom_basic", "train_for_env_frames": 4000, "train_for_env_steps": 2000},
        {"train_for_env_steps": 1000, "train_for_seconds": 1e-9},  # it may end sooner, and is the same each time
    ],
)
def test_a_run_that_ends_by_steps_or_frames_has_a_linear_rate_of_0_at_its_end(tmp_path, flags):
    learners = Learners(tmp_path, lr_schedule="linear", **{"env": "toy_identity", **flags})
    (state,) = learners.states
    rates = []
    for _ in range(4):
        rates.append(1.0 - state.share_done)
        learners.train(0, 250)
    assert rates == pytest.approx([1.0, 0.75, 0.5, 0.25])
    assert state.is_finished
    assert state.share_done == 1.0
    learners.train(0, 250)
    assert state.share_done == 1.0


def test_with_several_policies_the_rates_fall_together_and_reach_0_with_the_end_of_the_run(tmp_path):
    before = (100, 300)
    learners = Learners(
        tmp_path, before, env="toy_identity", lr_schedule="linear", num_policies=2, train_for_env_steps=1000
    )
    for policy_id, env_steps in ((0, 100), (1, 50), (0, 400)):  # one is much faster
        learners.train(policy_id, env_steps)
        done = sum(state.env_steps for state in learners.states) / 1000
        assert [state.share_done for state in learners.states] == pytest.approx([done, done])
    assert [state.env_steps for state in learners.states] == [600, 350]
    learners.train(1, 50)
    assert [state.share_done for state in learners.states] == [1.0, 1.0]


def test_a_run_that_ends_by_the_clock_alone_has_a_rate_that_falls_with_time(tmp_path, monkeypatch):
    learners = Learners(tmp_path, env="toy_identity", lr_schedule="linear", train_for_seconds=100.0)
    (state,) = learners.states
    for seconds, expected in ((0.0, 0.0), (25.0, 0.25), (100.0, 1.0), (101.0, 1.0)):
        monkeypatch.setattr(LearnerState, "seconds", seconds)
        assert state.share_done == expected


def test_a_run_without_an_end_has_none_of_it_done(tmp_path):
    (state,) = Learners(tmp_path, env="toy_identity").states
    state.count(10**9)
    assert state.share_done == 0.0
