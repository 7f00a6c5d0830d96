import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from sf.config import ModelConfig
from sf.envs.added.clock import CLOCK
from sf.envs.spaces.actions import ActionSpec
from sf.model.building import build_model
from sf.model.distributions import IMPOSSIBLE, ActionDistribution

SPEC = ActionSpec(discrete_sizes=(4, 3), num_continuous=1)
T, B = 5, 3


def space(mask: gym.spaces.Box) -> gym.spaces.Dict:
    return gym.spaces.Dict(numbers=gym.spaces.Box(-1.0, 1.0, (2,), np.float32), action_mask=mask)


SPACE = space(gym.spaces.Box(0, 1, (7,), np.int8))


def network(**changes) -> torch.nn.Module:
    torch.manual_seed(0)
    model = build_model(ModelConfig(encoder_mlp_layers=(8,), rnn_size=6, **changes), SPACE, SPEC)
    with torch.no_grad():
        model.policy_head.weight.mul_(200)
    return model


def masks(*shape: int) -> torch.Tensor:
    """[*shape, 7] int8, with something allowed in each head."""
    mask = torch.randint(0, 2, (*shape, 7), dtype=torch.int8)
    mask[..., (1, 6)] = 1
    return mask


def observations(mask: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"numbers": torch.randn(*mask.shape[:-1], 2), "action_mask": mask}


def test_the_policy_is_the_one_without_a_mask_given_what_is_allowed():
    model = network()
    obs = observations(masks(400))
    state, first = torch.zeros(400, 0), torch.zeros(400, dtype=torch.bool)
    masked = model.step(obs, state, first).params.detach()
    free = model.step({**obs, "action_mask": torch.ones(400, 7, dtype=torch.int8)}, state, first).params.detach()
    distribution = ActionDistribution(SPEC, masked)
    chosen, numbers = distribution.sample()
    mode, _ = distribution.mode()
    entropy = ActionDistribution(SPEC, free).entropy()
    log_prob = distribution.log_prob(chosen, numbers) - ActionDistribution(SPEC, free).log_prob(chosen, numbers)
    for head, (low, high) in enumerate([(0, 4), (4, 7)]):
        allowed = obs["action_mask"][:, low:high].bool()
        for choice in (chosen, mode):
            assert allowed.gather(1, choice[:, head : head + 1].long()).all()
        probs = free[:, low:high].softmax(-1)
        given = Categorical(probs=probs * allowed)
        entropy += given.entropy() - Categorical(probs=probs).entropy()
        log_prob += (probs * allowed).sum(-1).log()  # of what is allowed, which conditioning divides by
    torch.testing.assert_close(distribution.entropy(), entropy, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(log_prob, torch.zeros(400), rtol=0, atol=1e-4)
    assert (masked[:, 7:] == free[:, 7:]).all()  # continuous actions know no mask


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int64])
def test_a_mask_may_be_of_any_integers(dtype):
    model = network()
    obs = observations(masks(20))
    state, first = torch.zeros(20, 0), torch.zeros(20, dtype=torch.bool)
    expected = model.step(obs, state, first).params
    assert torch.equal(model.step({**obs, "action_mask": obs["action_mask"].to(dtype)}, state, first).params, expected)


def test_where_nothing_is_allowed_there_is_nothing_to_decide():
    mask = masks(20)
    mask[:, :4] = 0
    out = network().step(observations(mask), torch.zeros(20, 0), torch.zeros(20, dtype=torch.bool))
    spec = ActionSpec((4,), 0)
    distribution = ActionDistribution(spec, out.params[:, :4])
    chosen, _ = distribution.sample()
    assert (chosen == 0).all()
    assert (distribution.log_prob(chosen, torch.zeros(20, 0)) == 0).all()
    assert (distribution.entropy() == 0).all()


def test_where_one_choice_is_left_in_each_head_there_is_none():
    rows = {(1, 0, 0, 0, 0, 0, 1): False, (0,) * 7: False, (1, 1, 0, 0, 0, 0, 1): True, (1,) * 7: True}
    mask = torch.tensor([*rows], dtype=torch.int8)
    params = network().step(observations(mask), torch.zeros(4, 0), torch.zeros(4, dtype=torch.bool)).params
    assert ActionDistribution(ActionSpec((4, 3), 0), params[:, :7]).has_choice().tolist() == [*rows.values()]
    assert ActionDistribution(SPEC, params).has_choice().all()  # a number is one


def test_what_is_forbidden_gets_no_gradient():
    model = network()
    mask = torch.tensor([[1, 0, 1, 0, 0, 0, 0]], dtype=torch.int8)
    out = model.step(observations(mask), torch.zeros(1, 0), torch.zeros(1, dtype=torch.bool))
    distribution = ActionDistribution(SPEC, out.params)
    (distribution.log_prob(torch.tensor([[2, 0]]), torch.zeros(1, 1)) + distribution.entropy()).sum().backward()
    assert [bool(g) for g in model.policy_head.bias.grad[:7]] == [True, False, True, False, False, False, False]


@pytest.mark.parametrize("core", ["none", "gru"])
def test_an_unroll_masks_as_steps_do(core):
    model = network(core=core)
    obs = observations(masks(T + 1, B))
    first = torch.zeros(T + 1, B, dtype=torch.bool)
    state = torch.zeros(B, model.state_size)
    with torch.no_grad():
        params = model.unroll(obs, state, first).params
        for t in range(T):
            step = model.step({key: rows[t] for key, rows in obs.items()}, state, first[t])
            torch.testing.assert_close(step.params, params[t])
            state = step.state
    assert ((params[..., :7] == IMPOSSIBLE) == (obs["action_mask"][:-1] == 0)).all()


def test_the_mask_itself_is_neither_seen_nor_normalised():
    model = network()
    assert model.obs_norm(observations(masks(3)), torch.float32)["action_mask"].dtype == torch.int8
    plain = gym.spaces.Dict(numbers=SPACE["numbers"])
    without = build_model(ModelConfig(encoder_mlp_layers=(8,), rnn_size=6), plain, SPEC)
    assert [p.shape for p in model.parameters()] == [p.shape for p in without.parameters()]


@pytest.mark.parametrize("shape", [(6,), (8,), (4, 3)])
def test_a_mask_of_another_size_is_refused(shape):
    with pytest.raises(ValueError, match=r"'action_mask' has \d+ numbers, .* 7"):
        build_model(ModelConfig(), space(gym.spaces.Box(0, 1, shape, np.int8)), SPEC)


def test_a_mask_to_add_to_logits_is_refused():
    with pytest.raises(ValueError, match="'action_mask' is at most 0"):
        build_model(ModelConfig(), space(gym.spaces.Box(-1e9, 0.0, (7,), np.float32)), SPEC)


def test_a_mask_and_nothing_else_is_refused():
    with pytest.raises(ValueError, match="only 'action_mask'"):
        build_model(ModelConfig(), gym.spaces.Dict(action_mask=SPACE["action_mask"]), SPEC)


@pytest.mark.parametrize(
    ("key", "size", "names"),
    [(CLOCK, 1, "'action_mask'"), ("empty", 0, "'action_mask' and 'empty'")],
)
def test_a_mask_beside_what_has_nothing_for_the_network_is_refused(key, size, names):
    seen = gym.spaces.Dict(action_mask=SPACE["action_mask"], **{key: gym.spaces.Box(0, 1, (size,), np.float32)})
    with pytest.raises(ValueError, match=f"only {names}"):
        build_model(ModelConfig(critic_clock=True), seen, SPEC)
