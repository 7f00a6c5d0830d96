"""Environments that raise, or answer in a way that the API does not know: what is said of them."""

from __future__ import annotations

import re
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from group_driver import play as driven

from sf import envs
from sf.envs import EnvError, EnvOptions, UsageError
from sf.envs.groups import calls
from sf.envs.groups.gym import GymGroup
from sf.envs.remarks import handed_to
from sf.envs.spaces.observations import ObsWriter, obs_arrays

ZEROS = np.zeros(2, np.float32)


class Walk(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, **overrides: Any) -> None:
        for name, value in overrides.items():
            setattr(self, name, value)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return ZEROS, {}

    def step(self, action: int):
        return ZEROS, 0.0, True, False, {}


class Nothing(gym.Env):
    action_space = gym.spaces.Discrete(2)


class Unsure(Walk):
    @property
    def observation_space(self) -> gym.Space:
        return self.map.space  # type: ignore[attr-defined]


class PanicException(BaseException):
    """As that of pyo3, where an environment in Rust panics."""


def unpacks(*args: Any, **kwargs: Any) -> Any:
    _, _ = (1, 2, 3)


def leaves(*args: Any, **kwargs: Any) -> Any:
    sys.exit("no licence")


def panics(*args: Any, **kwargs: Any) -> Any:
    raise PanicException("index out of bounds")


def made(factory, num_envs: int = 1, **options: Any) -> envs.EnvGroup:
    envs.register_env("walk", factory)
    return envs.make_group("walk", num_envs, EnvOptions(**options), seed=0, first_env_idx=0)


@pytest.mark.parametrize("call", ["__init__()", "reset()", "step()"])
@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (unpacks, "ValueError: too many values to unpack (expected 2)"),
        (leaves, "SystemExit: no licence"),
        (panics, "PanicException: index out of bounds"),
    ],
)
def test_what_an_environment_raises_has_its_name_the_call_and_a_traceback_of_its_own_lines(fails, said, call) -> None:
    with pytest.raises(EnvError) as failure:
        driven(made(fails if call == "__init__()" else lambda: Walk(**{call[:-2]: fails})), 1)
    assert str(failure.value) == f"walk failed in {call}: {said}"
    assert not isinstance(failure.value, ValueError)  # which would be a setting
    first, place, *_, last = failure.value.traceback.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.endswith(said)
    assert f'test_env_errors.py", line {fails.__code__.co_firstlineno + 1}, in {fails.__name__}' in place


def test_a_space_that_raises_is_a_failure_of_the_environment_and_not_a_missing_one() -> None:
    with pytest.raises(EnvError, match=r"walk failed in observation_space: AttributeError: .*'map'"):
        made(Unsure)


def _resets(answer: Any) -> Walk:
    return Walk(reset=lambda **kwargs: answer)


def _steps(*answer: Any) -> Walk:
    return Walk(step=lambda action: answer)


@pytest.mark.parametrize(
    ("env", "named"),
    [
        (Nothing(), "observation_space"),
        (Walk(action_space=None), "action_space is None"),
        (Walk(observation_space=gym.spaces.Dict({})), "is empty"),
        (_resets(ZEROS), r"reset\(\) returned one object of type ndarray of shape \(2,\)"),
        (Walk(reset=lambda: (ZEROS, {})), r"reset\(\) refuses an argument .*'seed'"),
        (_steps(ZEROS, 0.0, False, {}), r"step\(\) returned a tuple of 4"),
        (_steps(ZEROS, None, False, False, {}), "the reward None"),
        (_steps(ZEROS, np.ones(2), False, False, {}), "the reward array.*LinearReward"),
        (_steps(ZEROS, 0.0, np.zeros(2, bool), False, {}), "as terminated"),
        (_steps(ZEROS, 0.0, True, False, None), "the info None"),
        (_steps(ZEROS, 0.0, True, False, {"episode_stats": {"a": "b"}}), "episode_stats"),
    ],
)
def test_what_the_api_does_not_know_is_one_sentence_with_the_environment_and_the_value(env, named) -> None:
    with pytest.raises(UsageError, match=f"^walk: .*{named}") as refusal:
        driven(made(lambda: env), 1)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("last", [True, np.True_, np.array([[True]]), np.array(1), 1, torch.tensor(True)])
def test_a_flag_may_be_one_number_of_any_kind(last) -> None:
    _, steps = driven(GymGroup("walk", [_steps(ZEROS, np.array([[2]]), last, np.array([False]), {})], 0, 0), 1)
    assert steps[0].result.terminated.tolist() == [True]
    assert steps[0].result.reward.tolist() == [2.0]


class NoSuchDisplayError(Exception):
    """As that of pyglet."""


def test_an_environment_of_gymnasiums_registry_fails_as_one_of_ones_own() -> None:
    def wrong_type(size: int = 1) -> gym.Env:
        return len(size)  # type: ignore[arg-type, return-value]

    def without_display() -> gym.Env:
        raise NoSuchDisplayError('Cannot connect to "None"')

    for env_id, make in (("Typed-v0", wrong_type), ("Drawn-v0", without_display)):
        gym.register(env_id, make)
    try:
        with pytest.raises(EnvError, match=r"Typed-v0 failed in __init__\(\): TypeError"):
            envs.describe("Typed-v0", EnvOptions())
        with pytest.raises(UsageError, match=r"Typed-v0.*'sise'"):
            envs.describe("Typed-v0", EnvOptions(env_kwargs='{"sise": 2}'))
        envs.register_env("walk", without_display)
        for env_id in ("Drawn-v0", "walk"):
            with pytest.raises(UsageError, match=f"^{env_id} .*`xvfb-run -a`"):
                envs.describe(env_id, EnvOptions())
    finally:
        for env_id in ("Typed-v0", "Drawn-v0"):
            del gym.registry[env_id]


def test_a_module_that_fails_while_it_is_imported_is_said_with_its_line(tmp_path, monkeypatch) -> None:
    (tmp_path / "broken_walk.py").write_text("a = 1\nb = int('one')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvError, match="broken_walk:Walk failed in its set-up: ValueError") as failure:
        envs.describe("broken_walk:Walk", EnvOptions())
    assert 'broken_walk.py", line 2' in failure.value.traceback


def test_an_environment_that_cannot_be_closed_is_remarked_upon_once_and_the_others_are_closed() -> None:
    closed = []

    def close() -> None:
        closed.append(1)
        raise OSError("the door is stuck")

    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        made(lambda: Walk(close=close), 3).close()
    assert len(closed) == 3
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        calls.close("walk", Walk(close=leaves))
    assert [text.rpartition(":")[0] for text in remarks] == [
        "walk failed in close(): OSError: the door is stuck",
        "walk failed in close(): SystemExit: no licence",
    ]


def written(space: gym.spaces.Box, value: Any, strict: bool = False) -> tuple[np.ndarray, list[str]]:
    writer = ObsWriter("walk", space, strict)
    arrays = obs_arrays(writer.space, 2)
    rows = {key: list(array) for key, array in arrays.items()}
    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        for n in range(2):
            writer.write(value, rows, n)
            writer.check_bounds(rows, n)
    return arrays["obs"], remarks


def test_an_observation_outside_of_its_box_is_used_and_said_once_with_the_element_its_value_and_its_bound() -> None:
    low = np.array([[-1.0, -1.0], [-2.0, -2.0]], np.float32)
    value = np.array([[0.0, 1.0], [-2.0001, 5.0]], np.float32)
    obs, [sentence] = written(gym.spaces.Box(low, -low), value)
    assert (obs == value).all()
    assert sentence.startswith("walk: observation 'obs'[1, 0] is -2.0001, but the low of its space is -2.0, and 1 more")
    for inside in (ZEROS, np.full(2, np.nan, np.float32)):  # NaN is a fault, of which others speak
        assert written(gym.spaces.Box(-1.0, 1.0, (2,)), inside)[1] == []


def test_with_strict_spaces_an_observation_outside_of_its_box_is_an_error_at_any_step() -> None:
    space, outside = gym.spaces.Box(-1.0, 1.0, (2,)), np.full(2, 1.5, np.float32)
    with pytest.raises(UsageError, match=r"'obs'\[0\] is 1.5, but the high .* is 1.0"):
        written(space, outside, strict=True)
    driven(made(lambda: _steps(outside, 0.0, False, False, {})), 1)
    with pytest.raises(UsageError, match=r"is 1\.5, but the high"):
        driven(made(lambda: _steps(outside, 0.0, False, False, {}), strict_spaces=True), 1)


@pytest.mark.parametrize(("dtype", "value"), [(np.int8, np.array([1, 300])), (np.uint8, np.array([1, 300], np.uint16))])
def test_an_integer_that_its_space_cannot_hold_is_an_error(dtype, value) -> None:
    with pytest.raises(UsageError, match=re.escape("observation 'obs' has the value 300")):
        written(gym.spaces.Box(0, 100, (2,), dtype), value)
