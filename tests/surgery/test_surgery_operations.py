"""Each operation: the function stays, moments move, and what is new learns."""

import gymnasium as gym
import pytest
import torch
from patients import box, codes, inside, observe, operate, outputs, patient, picture, resumed, train

from sf.envs import ActionSpec, Planes
from sf.envs.errors import UsageError
from sf.envs.spaces.identity import Identity
from sf.envs.tasks.united import TASK

D, M, TWO = gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.Discrete(3)
VECTOR = {"obs": box(5)}
BY_TASK = {"normalize_returns": True, "normalize_returns_by": "task"}
KEYS = {"obs": box(5), "more": box(3)}
MIXED = gym.spaces.Tuple((D(3), box(2)))

TRANSFORMER = {"core": "transformer", "rnn_size": 8, "attention_window": 4}

# Before: spaces and flags. After: what is different of them.
CASES = {
    "a vector with more entries": (VECTOR, TWO, {}, {"obs": {"obs": box(7)}}),
    "a key": (VECTOR, TWO, {"core": "lstm"}, {"obs": {"a key before": box(3), **VECTOR}}),
    "a picture": (VECTOR, MIXED, {}, {"obs": {**VECTOR, "seen": picture(36, 36, 3)}}),
    "channels of a picture": ({"obs": picture(36, 40, 3)}, TWO, {}, {"obs": {"obs": picture(36, 40, 5)}}),
    "rows and columns of a picture": (
        {"obs": picture(36, 40, 3)}, TWO, {"pad_images": False}, {"obs": {"obs": picture(52, 48, 3)}},
    ),
    "planes of a board": ({"obs": Planes(3, 6, 6)}, TWO, {}, {"obs": {"obs": Planes(5, 6, 6)}}),
    "planes of a map": ({"obs": Planes(3, 20, 20)}, TWO, {"encoder": "map"}, {"obs": {"obs": Planes(4, 20, 20)}}),
    "channels and codes of a grid": ({"obs": codes(5, 5, 2)}, TWO, {}, {"obs": {"obs": codes(5, 5, 3, highest=6)}}),
    "a head": (VECTOR, D(3), {}, {"action": M([3, 4])}),
    "a number": (VECTOR, gym.spaces.Tuple((box(2),)), {}, {"action": gym.spaces.Tuple((box(2), box(3)))}),
    "wider layers": (KEYS, MIXED, {"encoder_mlp_layers": (8, 6)}, {"encoder_mlp_layers": (9, 12)}),
    "wider layers behind convolutions": ({"obs": picture(36, 36, 1)}, TWO, {}, {"encoder_conv_mlp_layers": (12,)}),
    "a wider GRU": (VECTOR, TWO, {"core": "gru", "share_critic": False}, {"rnn_size": 12}),
    "a wider LSTM": (VECTOR, MIXED, {"core": "lstm"}, {"rnn_size": 12, "encoder_mlp_layers": (9,)}),
    "a wider MinGRU": (VECTOR, TWO, {"core": "mingru"}, {"rnn_size": 12, "encoder_mlp_layers": (9,)}),
    "what a transformer reads": (VECTOR, TWO, TRANSFORMER, {"obs": KEYS, "encoder_mlp_layers": (9,)}),
    "a transformer": (VECTOR, TWO, {}, {**TRANSFORMER, "core_skip": True}),
    "a layer behind ReLU": (VECTOR, TWO, {"nonlinearity": "relu"}, {"encoder_mlp_layers": (8, 10)}),
    "a residual layer": (
        VECTOR, TWO, {"nonlinearity": "elu"}, {"encoder_mlp_layers": (8, 8), "encoder_mlp_residual": 1},
    ),
    "a residual layer with norms": (
        {"obs": picture(36, 36, 1)}, TWO, {"layer_norm": True},
        {"encoder_conv_mlp_layers": (8, 8), "encoder_conv_mlp_residual": 1},
    ),
    "a core": (KEYS, MIXED, {"share_critic": False}, {"core": "gru", "core_skip": True}),
    "what goes around a core": (VECTOR, TWO, {"core": "lstm"}, {"core_skip": True}),
    "a critic of its own": (VECTOR, TWO, {"core": "gru", "nonlinearity": "tanh"}, {"share_critic": False}),
    "a clock": (VECTOR, TWO, {"core": "gru"}, {"critic_clock": True, "critic_clock_residual": True}),
    "returns that are normalised": (VECTOR, TWO, {}, {"normalize_returns": True}),
    "returns as they are": (VECTOR, TWO, {"normalize_returns": True}, {"normalize_returns": False}),
    "a task, with a value for each": (
        {**VECTOR, TASK: Identity(2)}, TWO, BY_TASK,
        {"obs": {**VECTOR, TASK: Identity(3)}, "encoder_mlp_layers": (12,)},
    ),
    "nothing": (KEYS, MIXED, {"core": "lstm", "normalize_returns": True}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_function_stays_what_it_was_and_what_is_new_learns(name, optimizer):
    obs_space, action_space, flags, different = CASES[name]
    changed = dict(different)
    new_obs_space, new_action_space = changed.pop("obs", obs_space), changed.pop("action", action_space)
    saved = patient(obs_space, action_space, optimizer=optimizer, **flags)
    operated = operate(saved, new_obs_space, new_action_space, **changed)
    made = operated.checkpoint()
    before, config = resumed(saved, obs_space, action_space)
    after, new_config = resumed(made, new_obs_space, new_action_space, **changed)
    old_obs, first = observe(obs_space, action_space, config, seed=5)
    new_obs, _ = observe(new_obs_space, new_action_space, new_config, seed=6)
    (params, value), (new_params, new_value) = (
        outputs(before, old_obs, first),
        outputs(after, inside(old_obs, new_obs), first),
    )
    kept = columns(action_space, new_action_space)
    torch.testing.assert_close(new_params[..., kept], params, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(new_value, value, atol=1e-5, rtol=1e-5)
    assert made.state["env_steps"] == 1000
    assert after.version == before.version
    require_new_numbers_learn(operated, after, new_obs_space, new_action_space, new_config)


def columns(old, new):
    """Which of the new params are those from before: heads and numbers are added behind, in these cases."""
    old, new = (ActionSpec.of(space) for space in (old, new))
    (before, num_before), (after, num_after) = ((sum(of.discrete_sizes), of.num_continuous) for of in (old, new))
    return [
        *range(before),
        *range(after, after + num_before),
        *range(after + num_after, after + num_after + num_before),
    ]


def require_new_numbers_learn(operated, updater, obs_space, action_space, config):
    """Moments of old numbers are there, those of new ones are 0, and after a few steps gradients have come to them."""
    moments = {name: updater._optimizer.moments(weight) for name, weight in updater.model.named_parameters()}
    new = {}
    for change in operated.operation.changes:
        if change.name in moments and change.kind in ("grown", "new"):
            size = torch.zeros(change.shape)
            if change.kind == "grown":
                old = torch.ones(change.old_shape)
                size = operated.operation.moment(change.name, old)
                first_moment = first_of(moments[change.name])
                assert not first_moment[size == 0].any()
                assert first_moment[size == 1].any()
            new[change.name] = size == 0
    updater._learning_rate.steps_since_surgery = None
    updater._learning_rate.set(config.learner.learning_rate)
    train(updater, obs_space, action_space, config, num_iterations=4, seed=50)
    for name, chosen in new.items():
        assert first_of(moments[name])[chosen].any(), name


def first_of(moments):
    return moments.get("exp_avg", moments.get("momentum_buffer"))


@pytest.mark.parametrize(
    ("obs_space", "action_space", "flags"),
    [
        ({"obs": box(4)}, TWO, {}),
        ({"obs": box(5)}, D(2), {}),
        ({"obs": box(5)}, TWO, {"encoder_mlp_layers": (6,)}),
        ({"obs": box(5)}, TWO, {"nonlinearity": "tanh"}),
    ],
    ids=["an entry", "a choice", "units", "another activation"],
)
def test_what_changes_the_function_is_refused_without_inexact(obs_space, action_space, flags):
    saved = patient({"obs": box(5)}, TWO)
    with pytest.raises(UsageError, match="--inexact true"):
        operate(saved, obs_space, action_space, **flags)


CENTRAL = {"obs": box(5), "private": box(2)}


@pytest.mark.parametrize(
    ("flags", "teams"),
    [({"critic": "all", "mixer": "monotonic"}, (0, 1)), ({"critic": "team", "mixer": "sum"}, (0, 1)),
     ({"critic_obs": ("private",)}, ())],
    ids=["all agents", "a team", "private observations"],
)  # fmt: skip
def test_a_critic_that_sees_more_than_the_policy_comes_along(flags, teams):
    saved = patient(CENTRAL, TWO, teams=teams, **flags)
    for different in (
        {"obs_space": {"obs": box(6), "private": box(3)}},
        {"encoder_mlp_layers": (12,), "core": "gru", "core_skip": True},
        {"share_critic": False, "normalize_returns": True},
    ):
        changed = dict(different)
        operated = operate(saved, changed.pop("obs_space", CENTRAL), TWO, teams=teams, **changed)
        assert operated.difference.is_rounding
        assert any(change.kind != "kept" for change in operated.operation.changes)


def test_a_mask_that_is_new_is_exact_where_it_allows_all():
    saved = patient(VECTOR, TWO)
    made = operate(saved, {**VECTOR, "action_mask": gym.spaces.Box(0, 1, (3,), "int8")}, TWO)
    assert made.difference.is_rounding


def test_a_picture_that_is_padded_and_grows_is_inexact():
    saved = patient({"obs": Planes(2, 6, 6)}, TWO)
    with pytest.raises(UsageError, match="padded"):
        operate(saved, {"obs": Planes(2, 8, 8)}, TWO)


@pytest.mark.parametrize(
    ("flags", "remedy"),
    [
        ({"encoder_mlp_layers": (8, 8)}, "--encoder_mlp_residual 1"),
        ({"core": "gru"}, "--core_skip true"),
        ({"critic_clock": True}, "--critic_clock_residual true"),
        ({"optimizer": "muon"}, "keep adam"),
    ],
)
def test_flags_that_leave_no_exact_way_are_refused_with_those_that_do(flags, remedy):
    with pytest.raises(UsageError, match=remedy):
        operate(patient(VECTOR, TWO), VECTOR, TWO, **flags)


@pytest.mark.parametrize("changed", [{"rnn_size": 12}, {"core_layers": 3}, {"core_heads": 2}, {"attention_window": 5}])
def test_a_transformer_of_another_size_is_refused(changed):
    ((name, size),) = changed.items()
    with pytest.raises(UsageError, match=f"{name} is {size}, and was .* so leave {name} as it was"):
        operate(patient(VECTOR, TWO, **TRANSFORMER), VECTOR, TWO, **changed)
