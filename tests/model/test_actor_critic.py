import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model.building import build_model
from sf.model.encoders import blocks

SPACE = gym.spaces.Dict(
    {
        "image": gym.spaces.Box(0, 255, (36, 44, 3), np.uint8),
        "numbers": gym.spaces.Box(-np.inf, np.inf, (5,), np.float32),
    }
)
SPEC = ActionSpec(discrete_sizes=(3, 2), num_continuous=2)
T, B = 6, 4


def small(**changes) -> ModelConfig:
    return ModelConfig(**({"encoder_conv_mlp_layers": (16,), "encoder_mlp_layers": (8,), "rnn_size": 12} | changes))


def rollout(model: torch.nn.Module) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Observations, an initial state that is not 0, and episodes that begin inside and at row 0."""
    generator = torch.Generator().manual_seed(1)
    obs = {
        "image": torch.randint(0, 256, (T + 1, B, 36, 44, 3), dtype=torch.uint8, generator=generator),
        "numbers": torch.randn(T + 1, B, 5, generator=generator),
    }
    first = torch.rand(T + 1, B, generator=generator) < 0.3
    first[0] = torch.tensor([True, False, False, True])
    first[3] = torch.tensor([False, True, False, True])
    return obs, 1 + torch.rand(B, model.state_size, generator=generator), first


def randomized(model: torch.nn.Module) -> torch.nn.Module:
    """Heads and biases that tell wrong features from right ones."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(
    "flags",
    [{}, {"layer_norm": True}, {"value_scale": "symlog", "normalize_returns": False}],
    ids=["plain", "layer_norm", "symlog"],
)
@pytest.mark.parametrize("share_critic", [True, False])
@pytest.mark.parametrize("core", ["none", "gru", "lstm", "mingru", "transformer"])
def test_steps_one_by_one_give_what_an_unroll_gives(core, share_critic, flags):
    torch.manual_seed(0)
    config = small(
        **{"core": core, "share_critic": share_critic, "normalize_input": True, "normalize_returns": True, **flags}
    )
    model = randomized(build_model(config, SPACE, SPEC))
    obs, state, first = rollout(model)
    model.update_normalizers(obs, torch.ones(T + 1, B, dtype=torch.bool))
    model.update_value_norm(10 * torch.randn(T, B) + 3, torch.ones(T, B, dtype=torch.bool))
    with torch.no_grad():
        out = model.unroll(obs, state, first)
        assert out.params.shape == (T, B, 5 + 2 * 2)
        assert out.value.shape == (T + 1, B)
        for t in range(T + 1):
            step = model.step({key: value[t] for key, value in obs.items()}, state, first[t])
            assert step.params.shape == (B, 9)
            assert step.value.shape == (B,)
            assert step.state.shape == (B, model.state_size)
            assert {x.dtype for x in step} == {torch.float32}
            # With symlog, values of 500,000 come of ones of 13: what is rounded in these grows. A step of attention
            # adds its products in another order than a trajectory, and values are in a scale of 10.
            tolerance = 1e-4 if core == "transformer" else 1e-5
            value = model.value_norm.denormalize(out.value[t])
            torch.testing.assert_close(step.value, value, rtol=tolerance, atol=tolerance)
            if t < T:
                torch.testing.assert_close(step.params, out.params[t])
            state = step.state


@pytest.mark.parametrize("core", ["gru", "lstm", "mingru", "transformer"])
def test_what_came_before_a_first_row_is_forgotten_and_what_came_after_is_not(core):
    torch.manual_seed(0)
    model = randomized(build_model(small(core=core), SPACE, SPEC))
    obs, state, first = rollout(model)
    first[1:3] = False
    with torch.no_grad():
        before = model.unroll(obs, state, first)
        after = model.unroll(obs, state + 1, first)
    changed = (before.value != after.value).any(dim=0)
    torch.testing.assert_close(changed, ~first[0])  # actors 1 and 2 go on with their state
    assert (before.value[3:, 1] == after.value[3:, 1]).all()  # actor 1 begins an episode at row 3
    assert (before.value[2, 1] != after.value[2, 1]).all()


def test_with_a_skip_the_heads_read_what_goes_into_the_core_and_what_comes_out():
    torch.manual_seed(0)
    model = randomized(build_model(small(core="gru", core_skip=True), SPACE, SPEC))
    tower, (obs, state, first) = model.trunk.actor, rollout(model)
    with torch.no_grad():
        features = tower.encode(model.obs_norm({key: rows[0] for key, rows in obs.items()}, torch.float32))
        read, next_state = tower.step(features, state, first[0])
        of_all = tower.unroll(features, state, first[:1])
    assert read.shape == (B, features.shape[1] + next_state.shape[1])
    torch.testing.assert_close(read, torch.cat((features, next_state), dim=1))
    torch.testing.assert_close(of_all, read)


def test_a_separate_critic_shares_nothing_with_the_actor():
    torch.manual_seed(0)
    model = build_model(small(core="gru", share_critic=False), SPACE, SPEC)
    model.unroll(*rollout(model)).value.sum().backward()
    assert all(parameter.grad is None for parameter in model.trunk.actor.parameters())
    assert all(parameter.grad is not None for parameter in model.trunk.critic.parameters())


@pytest.mark.parametrize("core", ["none", "gru", "lstm", "mingru", "transformer"])
def test_mixed_precision_gives_float32_heads_and_gradients_close_to_those_of_float32(core):
    torch.manual_seed(0)
    model = randomized(build_model(small(core=core), SPACE, SPEC))
    inputs = rollout(model)
    grads = []
    for enabled in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            out = model.unroll(*inputs)
        assert out.params.dtype == out.value.dtype == torch.float32
        (out.params.square().mean() + out.value.square().mean()).backward()
        grads.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    assert torch.nn.functional.cosine_similarity(*grads, dim=0) > 0.995


def test_every_parameter_takes_part():
    model = build_model(small(core="gru"), SPACE, SPEC)
    out = model.unroll(*rollout(model))
    (out.params.sum() + out.value.sum()).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("flags", [{}, {"normalize_returns": True}, {"value_scale": "symlog"}])
def test_the_value_teaches_the_trunk_from_the_first_step(flags):
    """A value head that starts at zero passes no gradient on, and doom_basic never learned to hit its monster."""
    torch.manual_seed(0)
    model = build_model(small(core="gru", **flags), SPACE, SPEC)
    model.unroll(*rollout(model)).value.sum().backward()
    assert [name for name, p in model.trunk.named_parameters() if not p.grad.any()] == []


@pytest.mark.parametrize(("initial_stddev", "expected"), [(0.4, 0.4), ("auto", 0.5**0.5)])
def test_the_first_policy_is_close_to_uniform_with_the_configured_stddev(initial_stddev, expected):
    torch.manual_seed(0)
    model = build_model(small(initial_stddev=initial_stddev), SPACE, SPEC)
    params = model.unroll(*rollout(model)).params
    assert params[..., :7].abs().max() < 0.1
    torch.testing.assert_close(params[..., 7:].exp(), torch.full((T, B, 2), expected))


def test_statistics_of_observations_change_only_when_the_learner_updates_them():
    model = build_model(small(normalize_input=True), SPACE, SPEC)
    inputs = rollout(model)
    before = [buffer.clone() for buffer in model.buffers()]
    model.unroll(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))
    model.update_normalizers(inputs[0], torch.ones(T + 1, B, dtype=torch.bool))
    normal = model.obs_norm(inputs[0], torch.float32)["numbers"]
    torch.testing.assert_close(normal.mean((0, 1)), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(normal.std((0, 1), correction=0), torch.ones(5), atol=1e-4, rtol=0)


@pytest.mark.parametrize("share_critic", [True, False])
@pytest.mark.parametrize("core", ["none", "gru"])
@pytest.mark.parametrize("bfloat16", [False, True])
def test_images_in_parts_give_the_outputs_and_gradients_of_the_whole(core, share_critic, bfloat16, monkeypatch):
    """Under autocast, too, whose rounding of the sum of all parts would be larger than that of each."""
    torch.manual_seed(0)
    model = randomized(build_model(small(core=core, share_critic=share_critic), SPACE, SPEC))
    obs, state, first = rollout(model)
    found = {}
    for size in (2**40, max(rows.numel() for rows in obs.values()) // 5):
        monkeypatch.setattr(blocks, "_PART", size)
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            out = model.unroll(obs, state, first)
        (out.params.square().sum() + out.value.square().sum()).backward()
        found[size] = out, [parameter.grad.clone() for parameter in model.parameters() if parameter.numel()]
    (whole, gradients), (in_parts, gradients_of_parts) = found.values()
    tolerance = 0.02 if bfloat16 else 1e-5
    for of_whole, of_parts in zip([*whole, *gradients], [*in_parts, *gradients_of_parts], strict=True):
        assert (of_whole - of_parts).norm() <= tolerance * of_whole.norm()
