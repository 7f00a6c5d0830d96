from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ActionSpec, decoder, leaf_actions
from sf.envs.spaces.reading_back import action_encoder

_DISCRETE = st.builds(gym.spaces.Discrete, st.integers(1, 9), start=st.integers(-5, 5))
_MULTI_DISCRETE = st.lists(st.integers(1, 5), min_size=1, max_size=4).flatmap(
    lambda nvec: st.builds(
        gym.spaces.MultiDiscrete,
        st.just(nvec),
        start=st.lists(st.integers(-3, 3), min_size=len(nvec), max_size=len(nvec)),
    )
)


@st.composite
def _boxes(draw: st.DrawFn) -> gym.spaces.Box:
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    finite = st.floats(-100, 100, width=16)
    low = draw(hnp.arrays(dtype, shape, elements=finite | st.just(-np.inf)))
    width = draw(hnp.arrays(dtype, shape, elements=st.floats(0, 100, width=16) | st.just(np.inf)))
    top = draw(st.sampled_from([0.0, np.inf]))  # of an axis without a bottom
    high = np.where(np.isfinite(low), np.where(np.isfinite(low), low, 0) + width, top).astype(dtype)
    return gym.spaces.Box(np.array(low), high, shape, dtype)


@st.composite
def _integer_boxes(draw: st.DrawFn, most: int = 10_000) -> gym.spaces.Box:
    """Of as many values an axis, which may be more than there are heads for."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    low = draw(hnp.arrays(np.int32, shape, elements=st.integers(-100, 100)))
    width = draw(hnp.arrays(np.int32, shape, elements=st.integers(0, most - 1)))
    return gym.spaces.Box(np.array(low), np.array(low + width), shape, np.int32)


_LEAVES = _DISCRETE | _MULTI_DISCRETE | _boxes() | _integer_boxes()
_NAMES = st.sampled_from(["turn", "aim", "fire"])
_SPACES = st.recursive(
    _LEAVES,
    lambda child: (
        st.lists(child, min_size=1, max_size=3).map(gym.spaces.Tuple)
        | st.dictionaries(_NAMES, child, min_size=1).map(gym.spaces.Dict)
    ),
    max_leaves=5,
)


@given(_SPACES, st.data())
def test_every_decoded_action_is_in_the_space(space: gym.Space, data: st.DataObject) -> None:
    spec = ActionSpec.of(space)
    discrete = np.array([data.draw(st.integers(0, n - 1)) for n in spec.discrete_sizes], np.int32)
    numbers = st.floats(-1e4, 1e4, width=32)
    continuous = data.draw(hnp.arrays(np.float32, spec.num_continuous, elements=numbers))
    action = decoder(space)(discrete, continuous)
    assert space.contains(action)
    again = action_encoder(space)(action)
    assert (again[0].dtype, again[1].dtype) == (np.int32, np.float32)
    assert (again[0] == discrete).all()
    assert _flat(space, decoder(space)(*again)) == pytest.approx(_flat(space, action), rel=1e-5, abs=1e-5)
    of_two = decoder(space, num_envs=2)(np.stack([discrete, discrete]), np.stack([continuous, continuous]))
    assert batch_space(space, 2).contains(of_two)
    assert _flat(batch_space(space, 2), of_two) == pytest.approx(np.repeat(_flat(space, action), 2))


def _flat(space: gym.Space, action: object) -> np.ndarray:
    """All numbers of an action, those of each leaf sorted."""
    return np.concatenate([np.sort(np.ravel(part)) for part in leaf_actions(space, action)])


@given(_DISCRETE | _MULTI_DISCRETE | _integer_boxes(most=5))
def test_every_discrete_action_can_be_reached(space: gym.Space) -> None:
    spec = ActionSpec.of(space)
    decode = decoder(space)
    actions = {
        np.asarray(decode(np.array(choice, np.int32), np.zeros(0, np.float32))).tobytes()
        for choice in np.ndindex(*spec.discrete_sizes)
    }
    assert len(actions) == np.prod(spec.discrete_sizes)


def test_a_bounded_box_is_reached_from_end_to_end_by_numbers_from_minus_one_to_one() -> None:
    decode = decoder(gym.spaces.Box(np.array([0, -2], np.float32), np.array([10, 2], np.float32)))
    none = np.zeros(0, np.int32)
    for number, action in [(-1, [0, -2]), (0, [5, 0]), (1, [10, 2]), (3, [10, 2])]:
        assert decode(none, np.full(2, number, np.float32)).tolist() == action


def test_a_box_of_float64_far_from_0_has_its_own_numbers() -> None:
    space = gym.spaces.Box(1e9, 1e9 + 10, (1,), np.float64)
    decode, encode = decoder(space), action_encoder(space)
    for number, action in [(-1, 1e9), (-0.5, 1e9 + 2.5), (0, 1e9 + 5), (1, 1e9 + 10)]:
        decoded = decode(np.zeros(0, np.int32), np.array([number], np.float32))
        assert decoded.dtype == np.float64
        assert decoded.tolist() == [action]
        assert encode(decoded)[1].tolist() == [number]


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (100, np.inf, [100, 102]),
        (0.5, np.inf, [0.5, 2.5]),
        (5, np.finfo(np.float32).max, [5, 7]),
        (-np.inf, -100, [-102, -100]),
        (-np.inf, -0.5, [-2.5, -0.5]),
        (0, np.inf, [0, 1]),
        (-np.inf, 0.5, [-1, 0.5]),
        (-3, np.inf, [-1, 1]),
        (-np.inf, 3, [-1, 1]),
    ],
)
def test_an_axis_with_one_bound_is_explored_where_a_new_policy_is_centred(low: float, high: float, ends: list) -> None:
    decode = decoder(gym.spaces.Box(low, high, (1,), np.float32))
    none = np.zeros(0, np.int32)
    assert [decode(none, np.array([number], np.float32)).item() for number in (-1, 1)] == ends
    around_0 = [decode(none, np.array([number], np.float32)).item() for number in (-0.01, 0.01)]
    assert len(set(around_0)) == 2


def test_a_box_of_integers_has_a_head_for_each_number_or_is_rounded_where_it_has_many_values() -> None:
    few = gym.spaces.Box(np.array([0, -1], np.int8), np.array([5, 1], np.int8), dtype=np.int8)
    assert ActionSpec.of(few) == ActionSpec((6, 3), 0)
    action = decoder(few)(np.array([5, 0], np.int32), np.zeros(0, np.float32))
    assert (action.tolist(), action.dtype) == ([5, -1], np.int8)
    many = gym.spaces.Box(0, 1000, (2,), np.int64)
    assert ActionSpec.of(many) == ActionSpec((), 2)
    action = decoder(many)(np.zeros(0, np.int32), np.array([-0.9989, 2.0], np.float32))
    assert (action.tolist(), action.dtype) == ([1, 1000], np.int64)


def test_the_parts_of_a_tuple_take_their_heads_and_numbers_in_order() -> None:
    space = gym.spaces.Tuple(
        (
            gym.spaces.Box(-1, 1, (2,), np.float32),
            gym.spaces.MultiDiscrete([3, 4]),
            gym.spaces.Discrete(2),
            gym.spaces.Box(-1, 1, (1,), np.float32),
        )
    )
    assert ActionSpec.of(space) == ActionSpec((3, 4, 2), 3)
    first, multi, choice, last = decoder(space)(np.array([2, 3, 1], np.int32), np.array([0.25, 0.5, -0.5], np.float32))
    assert (first.tolist(), multi.tolist(), choice, last.tolist()) == ([0.25, 0.5], [2, 3], 1, [-0.5])


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (gym.spaces.MultiBinary(3), "is not supported"),
        (gym.spaces.Dict(a=gym.spaces.Text(2)), "is not supported"),
        (gym.spaces.Box(-1, 1, (0,)), "nothing to choose"),
        (gym.spaces.Tuple(()), "nothing to choose"),
        (gym.spaces.MultiDiscrete([500_000, 500_001]), "1,000,001 choices"),
        (gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Discrete(1_000_000)]), "1,000,002 choices"),
    ],
)
def test_a_space_that_no_network_can_choose_in_is_refused(space: gym.Space, named: str) -> None:
    with pytest.raises(UsageError, match=f"^action space .* {named}"):
        ActionSpec.of(space)
    assert ActionSpec.of(gym.spaces.Discrete(1_000_000)).discrete_sizes == (1_000_000,)


def test_an_unbounded_axis_is_left_alone_also_where_its_bounds_are_the_largest_numbers() -> None:
    for limit in (np.inf, np.finfo(np.float32).max):
        decode = decoder(gym.spaces.Box(-limit, limit, (1,), np.float32))
        assert decode(np.zeros(0, np.int32), np.array([0.5], np.float32)).tolist() == [0.5]
