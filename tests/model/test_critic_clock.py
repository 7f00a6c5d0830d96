"""A critic that sees the time, and an actor that does not."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import Config
from sf.envs import ActionSpec
from sf.envs.added.clock import CLOCK
from sf.model.building import build_model
from sf.run.planning import make_plan

OBS = gym.spaces.Box(-1, 1, (3,), np.float32)
SPACE = gym.spaces.Dict({"obs": OBS, CLOCK: gym.spaces.Box(0, np.inf, (1,), np.float32)})
ACTIONS = ActionSpec.of(gym.spaces.Discrete(4))


@pytest.fixture(params=[{}, {"share_critic": False}, {"core": "gru"}, {"core": "lstm", "share_critic": False}], ids=str)
def model(request):
    torch.manual_seed(0)
    flags = {"critic_clock": True, "encoder_mlp_layers": (8,), "rnn_size": 8, **request.param}
    return build_model(Config().replace(**flags).model, SPACE, ACTIONS)


def step(model, obs):
    num = len(obs["obs"])
    return model.step(obs, torch.zeros(num, model.state_size), torch.zeros(num, dtype=torch.bool))


def test_the_value_depends_on_the_time_and_the_policy_and_the_state_do_not(model):
    seen = torch.randn(1, 3).expand(5, 3)
    out = step(model, {"obs": seen, CLOCK: torch.arange(5.0)[:, None]})
    assert len(out.value.unique()) == 5
    assert (out.params == out.params[0]).all()
    assert (out.state == out.state[0]).all()


def test_where_nobody_counts_the_policy_is_the_same_and_the_time_is_0(model):
    seen = torch.randn(5, 3)
    without, at_0 = step(model, {"obs": seen}), step(model, {"obs": seen, CLOCK: torch.zeros(5, 1)})
    assert torch.equal(without.params, step(model, {"obs": seen, CLOCK: torch.full((5, 1), 7.0)}).params)
    assert torch.equal(without.value, at_0.value)


def test_trajectories_are_valued_as_single_steps_are(model):
    obs = {"obs": torch.randn(4, 2, 3), CLOCK: torch.arange(4.0)[:, None, None].expand(4, 2, 1).contiguous()}
    first = torch.ones(4, 2, dtype=torch.bool)
    out = model.unroll(obs, torch.zeros(2, model.state_size), first)
    each = [
        model.step({key: value[t] for key, value in obs.items()}, torch.zeros(2, model.state_size), first[t]).value
        for t in range(4)
    ]
    torch.testing.assert_close(out.value, torch.stack(each))


def test_the_time_is_normalised_by_what_was_trained_on(model):
    clock = torch.tensor([[0.0, 2.0], [4.0, 100.0]])[:, :, None]  # [T, B, 1]
    mask = torch.tensor([[True, True], [True, False]])
    model.update_normalizers({"obs": torch.randn(2, 2, 3), CLOCK: clock}, mask)
    moments = model.critic_clock.norm.moments
    assert (moments.mean.item(), moments.count.item()) == (2.0, 3.0)


OWN_LIMIT, AROUND = "pettingzoo:classic/rps_v2", "Pendulum-v1"


@pytest.mark.parametrize(
    ("env", "flags", "has_clock"),
    [
        (OWN_LIMIT, {}, True),
        (AROUND, {}, False),
        (OWN_LIMIT, {"bootstrap_truncated": True}, False),
        (AROUND, {"bootstrap_truncated": False}, True),
        (OWN_LIMIT, {"critic_clock": False}, False),
        (AROUND, {"critic_clock": True}, True),
    ],
)
def test_the_critic_has_a_clock_where_truncated_episodes_count_as_ended(env, flags, has_clock):
    if env == OWN_LIMIT:
        pytest.importorskip("pettingzoo")
    plan = make_plan(Config().replace(env=env, num_workers=1, device="cpu", **flags))
    assert plan.config.model.critic_clock is has_clock
    assert (CLOCK in plan.spec.obs_space.spaces) == has_clock
    assert any(name.startswith("critic_clock") for name in plan.networks[0].weight_shapes) == has_clock


def test_a_clock_for_a_network_that_has_none_is_refused():
    config = Config().replace(env="toy_bandit", model="mine:Net", critic_clock=True, num_workers=1, device="cpu")
    with pytest.raises(ValueError, match=r"critic_clock is true, .* mine:Net"):
        make_plan(config)
