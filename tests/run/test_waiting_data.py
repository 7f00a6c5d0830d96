"""Data that waits for the learner must not be too old when its turn comes."""

import pytest

from sf import make_config
from sf.run.planning import make_plan

# 64 trajectories an iteration, of 960 and more that may wait, and 80 versions for each.
MANY = {
    "env": "toy_identity",
    "device": "cpu",
    "num_workers": 16,
    "num_envs_per_worker": 60,
    "rollout": 32,
    "batch_size": 256,
    "num_batches_per_epoch": 8,
    "num_epochs": 10,
}


def lag_needed():
    plan = make_plan(make_config(**MANY, max_policy_lag=1_000_000))
    return -(-plan.num_slots // plan.config.slots_per_iteration) * plan.config.learner.steps_per_iteration


def test_a_run_whose_waiting_data_can_all_become_too_old_is_refused_with_what_to_change():
    needed = lag_needed()
    assert needed > 1000
    remedy = f"take larger iterations (--rollout auto --batch_size auto), or --max_policy_lag {needed}"
    with pytest.raises(ValueError, match="max_policy_lag is 1000: ") as refusal:
        make_plan(make_config(**MANY))
    assert str(refusal.value).endswith(remedy)
    with pytest.raises(ValueError, match=f"max_policy_lag is {needed - 1}: "):
        make_plan(make_config(**MANY, max_policy_lag=needed - 1))
    make_plan(make_config(**MANY, max_policy_lag=needed))
    make_plan(make_config(**MANY | {"rollout": "auto", "batch_size": "auto"}))


def test_data_of_a_synchronous_run_never_waits():
    make_plan(make_config(**MANY | {"batch_size": 120 * 32}, async_rl=False))
