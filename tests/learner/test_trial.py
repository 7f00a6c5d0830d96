"""The trial before the first iteration: it works with any flags of the run, and leaves no trace."""

import pytest
import torch
from allocated import allocate, learner_args

from sf.config import Config
from sf.learner.trial import iteration_seconds


@pytest.mark.parametrize("async_rl", [True, False])
@pytest.mark.parametrize("lr_schedule", ["constant", "linear", "kl_adaptive"])
def test_a_trial_can_be_made_with_every_schedule_and_draws_no_random_number(tmp_path, async_rl, lr_schedule):
    config = Config().replace(
        env="toy_identity",
        num_workers=1,
        encoder_mlp_layers=(8,),
        device="cpu",
        async_rl=async_rl,
        lr_schedule=lr_schedule,
        num_epochs=2,
        train_for_env_steps=1000,
    )
    args = learner_args(allocate(config, tmp_path))
    before = torch.get_rng_state()
    assert iteration_seconds(args, state_size=0) > 0
    assert torch.equal(torch.get_rng_state(), before)
