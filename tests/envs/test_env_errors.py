"""Environments that raise, or answer in a way that the API does not know: what is said of them."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from group_driver import play as driven

from sf import envs
from sf.envs import EnvError, EnvOptions, StepResult, UsageError
from sf.envs.errors import call_of
from sf.envs.groups import calls
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.turns import as_parallel
from sf.envs.remarks import handed_to, remark
from sf.envs.spaces.observations import LOOK_EVERY, ObsWriter, obs_arrays

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


class Match:
    possible_agents = ("a",)
    agents = ("a",)

    def observation_space(self, agent: str) -> gym.Space:
        raise KeyError(agent)

    def close(self) -> None: ...


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


def test_an_interrupt_is_the_environments_own_where_ctrl_c_is_ignored() -> None:
    def interrupts(action: Any) -> Any:
        raise KeyboardInterrupt("the window was closed")

    with pytest.raises(KeyboardInterrupt):
        driven(made(lambda: Walk(step=interrupts)), 1)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(EnvError, match="KeyboardInterrupt: the window was closed"):
            driven(made(lambda: Walk(step=interrupts)), 1)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(GeneratorExit), call_of("walk", "render()"):
        raise GeneratorExit


def test_a_space_that_raises_is_a_failure_of_the_environment_and_not_a_missing_one() -> None:
    with pytest.raises(EnvError, match=r"walk failed in observation_space: AttributeError: .*'map'"):
        made(Unsure)
    envs.register_parallel_env("match", Match)
    with pytest.raises(EnvError, match="match failed in observation_space: KeyError: 'a'"):
        envs.describe("match", EnvOptions())


def _resets(answer: Any) -> Walk:
    return Walk(reset=lambda **kwargs: answer)


def _steps(*answer: Any) -> Walk:
    return Walk(step=lambda action: answer)


@pytest.mark.parametrize(
    ("env", "named"),
    [
        (Nothing(), "observation_space"),
        (Walk(action_space=None), "action_space is None"),
        (Walk(action_space=gym.spaces.Text(2)), "action space"),
        (Walk(observation_space=gym.spaces.Dict({})), "is empty"),
        (_resets(ZEROS), r"reset\(\) returned one object of type ndarray of shape \(2,\)"),
        (Walk(reset=lambda: (ZEROS, {})), r"reset\(\) refuses an argument .*'seed'"),
        (_resets(None), r"reset\(\) returned None"),
        (_steps(ZEROS, 0.0, False, {}), r"step\(\) returned a tuple of 4"),
        (_steps(ZEROS, None, False, False, {}), "the reward None"),
        (_steps(ZEROS, "1.0", False, False, {}), "the reward '1.0'"),
        (_steps(ZEROS, np.array([1 + 1j]), False, False, {}), "the reward array"),
        (_steps(ZEROS, np.array([None]), False, False, {}), "the reward array"),
        (_steps(ZEROS, np.ones(2), False, False, {}), "the reward array.*LinearReward"),
        (_steps(ZEROS, 0.0, np.zeros(2, bool), False, {}), "as terminated"),
        (_steps(ZEROS, 0.0, False, {"TimeLimit": 1}, {}), "as truncated"),
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


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"rewards": {"a": None}}, "the reward None"),
        ({"rewards": 1.0}, "rewards of agents"),
        ({"terminations": {"a": np.zeros(2, bool)}}, "termination of agent 'a'"),
        ({"truncations": False}, "truncations of agents"),
        ({"infos": None, "terminations": {"a": True}}, "infos of agents"),
    ],
)
@pytest.mark.parametrize("share_reward", [False, True])
def test_what_the_api_of_several_agents_does_not_know_is_one_sentence(answer, named, share_reward) -> None:
    match = as_parallel("pair", Pair(answer), 1, share_reward)
    with pytest.raises(UsageError, match=f"^pair: .*{named}"):
        driven(ParallelGroup("pair", [match], 0, 0), 1)


class Pair:
    """One agent, whose first step ends the episode with what `answer` says."""

    possible_agents = ("a",)

    def __init__(self, answer: dict[str, Any]) -> None:
        usual = {"rewards": {"a": 0.0}, "terminations": {"a": False}, "truncations": {"a": False}, "infos": {}}
        self._answer = usual | answer
        self._ends = answer.get("infos", {}) is None

    def observation_space(self, agent: str) -> gym.Space:
        return Walk.observation_space

    def action_space(self, agent: str) -> gym.Space:
        return Walk.action_space

    def reset(self, seed: int | None = None):
        self.agents = ["a"]
        return {"a": ZEROS}, {}

    def step(self, actions: dict[str, int]):
        self.agents = [] if self._ends else ["a"]
        return {"a": ZEROS}, *self._answer.values()

    def close(self) -> None: ...


class NoSuchDisplayError(Exception):
    """As that of pyglet."""


def test_an_environment_of_gymnasiums_registry_fails_as_one_of_ones_own() -> None:
    def wrong_type(size: int = 1) -> gym.Env:
        return len(size)  # type: ignore[arg-type, return-value]

    def without_display() -> gym.Env:
        raise NoSuchDisplayError('Cannot connect to "None"')

    for env_id, make in (("Leaves-v0", leaves), ("Typed-v0", wrong_type), ("Drawn-v0", without_display)):
        gym.register(env_id, make)
    try:
        with pytest.raises(EnvError, match=r"Leaves-v0 failed in __init__\(\): SystemExit: no licence"):
            envs.describe("Leaves-v0", EnvOptions())
        with pytest.raises(EnvError, match=r"Typed-v0 failed in __init__\(\): TypeError"):
            envs.describe("Typed-v0", EnvOptions())
        with pytest.raises(UsageError, match=r"Typed-v0.*'sise'"):
            envs.describe("Typed-v0", EnvOptions(env_kwargs='{"sise": 2}'))
        envs.register_env("walk", without_display)
        for env_id in ("Drawn-v0", "walk"):
            with pytest.raises(UsageError, match=f"^{env_id} .*`xvfb-run -a`"):
                envs.describe(env_id, EnvOptions())
    finally:
        for env_id in ("Leaves-v0", "Typed-v0", "Drawn-v0"):
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


def test_what_lies_outside_only_later_is_said_once_for_each_key_wherever_the_environment_is_in_its_group() -> None:
    space = gym.spaces.Dict(a=gym.spaces.Box(-1.0, 1.0, (2,)), b=gym.spaces.Box(0, 9, (1,), np.int64))
    inside = {"a": ZEROS, "b": np.zeros(1, np.int64)}
    outside = {"a": np.float32([0.0, 1.5]), "b": np.full(1, -1)}
    shown = iter([inside, outside, inside])

    def make() -> Walk:
        answer = next(shown), 0.0, False, False, {}
        return Walk(observation_space=space, reset=lambda **kwargs: (inside, {}), step=lambda action: answer)

    group = made(make, 3)
    rows = {key: list(array) for key, array in obs_arrays(group.spec.obs_space, 3).items()}
    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        group.reset(rows)
        assert remarks == []
        for _ in range(2 * LOOK_EVERY):
            group.step(np.zeros((3, 1), np.int32), np.zeros((3, 0), np.float32), rows, StepResult.empty(3))
    assert [text.partition(",")[0] for text in remarks] == [
        "walk: observation 'a'[1] is 1.5",
        "walk: observation 'b'[0] is -1",
    ]


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


def test_remarks_about_the_same_are_handed_over_once() -> None:
    heard = []
    with handed_to(lambda about, sentence: heard.append((about, sentence))):
        for value in (1, 2):
            remark("speed", f"speed is {value}")
        remark("colour", "no colour")
    assert heard == [("speed", "speed is 1"), ("colour", "no colour")]
