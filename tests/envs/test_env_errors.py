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


class Walk(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, **overrides: Any) -> None:
        for name, value in overrides.items():
            setattr(self, name, value)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return np.zeros(2, np.float32), {}

    def step(self, action: int):
        return np.zeros(2, np.float32), 0.0, True, False, {}


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


def unpacks(*args: Any, **kwargs: Any) -> Any:
    _, _ = (1, 2, 3)


def play(factory, num_steps: int = 1) -> None:
    envs.register_env("walk", factory)
    group = envs.make_group("walk", 1, EnvOptions(), seed=0, first_env_idx=0)
    rows = {key: list(array) for key, array in obs_arrays(group.spec.obs_space, 1).items()}
    group.reset(rows)
    for _ in range(num_steps):
        group.step(np.zeros((1, 1), np.int32), np.zeros((1, 0), np.float32), rows, StepResult.empty(1))


@pytest.mark.parametrize(
    ("factory", "call"),
    [
        (unpacks, "__init__()"),
        (lambda: Walk(reset=unpacks), "reset()"),
        (lambda: Walk(step=unpacks), "step()"),
    ],
)
def test_what_an_environment_raises_has_its_name_the_call_and_a_traceback_of_its_own_lines(factory, call) -> None:
    with pytest.raises(EnvError) as failure:
        play(factory)
    said = f"walk failed in {call}: ValueError: too many values to unpack (expected 2)"
    assert str(failure.value) == said
    assert not isinstance(failure.value, ValueError)  # which would be a setting
    first, place, line, *_, last = failure.value.traceback.splitlines()
    assert (first, last) == ("Traceback (most recent call last):", said.partition("(): ")[2])
    assert place.endswith(f'test_env_errors.py", line {unpacks.__code__.co_firstlineno + 1}, in unpacks')
    assert line.strip() == "_, _ = (1, 2, 3)"


def leaves(*args: Any, **kwargs: Any) -> Any:
    sys.exit("no licence")


@pytest.mark.parametrize(
    ("factory", "call"),
    [
        (leaves, "__init__()"),
        (lambda: Walk(reset=leaves), "reset()"),
        (lambda: Walk(step=leaves), "step()"),
    ],
)
def test_an_environment_that_calls_sys_exit_fails_by_its_name(factory, call) -> None:
    with pytest.raises(EnvError) as failure:
        play(factory)
    assert str(failure.value) == f"walk failed in {call}: SystemExit: no licence"
    assert f'test_env_errors.py", line {leaves.__code__.co_firstlineno + 1}, in leaves' in failure.value.traceback


def test_an_interrupt_is_the_environments_own_where_ctrl_c_is_ignored() -> None:
    def interrupts(action: Any) -> Any:
        raise KeyboardInterrupt("the window was closed")

    with pytest.raises(KeyboardInterrupt):
        play(lambda: Walk(step=interrupts))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(EnvError, match=r"walk failed in step\(\): KeyboardInterrupt: the window was closed"):
            play(lambda: Walk(step=interrupts))
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("call", ["__init__()", "reset()", "step()"])
def test_what_derives_from_base_exception_alone_fails_by_its_name(call: str) -> None:
    class PanicException(BaseException):  # as that of pyo3, where an environment in Rust panics
        pass

    def panics(*args: Any, **kwargs: Any) -> Any:
        raise PanicException("index out of bounds")

    with pytest.raises(EnvError, match=rf"^walk failed in {re.escape(call)}: PanicException: index out of bounds$"):
        play(panics if call == "__init__()" else lambda: Walk(**{call[:-2]: panics}))
    with pytest.raises(GeneratorExit), call_of("walk", "render()"):
        raise GeneratorExit


def test_an_environment_of_gymnasiums_registry_that_calls_sys_exit_fails_by_its_name() -> None:
    gym.register("Leaves-v0", leaves)
    try:
        with pytest.raises(EnvError, match=r"Leaves-v0 failed in __init__\(\): SystemExit: no licence"):
            envs.describe("Leaves-v0", EnvOptions())
    finally:
        del gym.registry["Leaves-v0"]


def test_a_close_that_calls_sys_exit_is_remarked_upon() -> None:
    said: list[str] = []
    with handed_to(lambda about, sentence: said.append(sentence)):
        calls.close("walk", Walk(close=leaves))
    assert said == ["walk failed in close(): SystemExit: no licence: it is left as it is"]


def test_a_space_that_raises_is_a_failure_of_the_environment_and_not_a_missing_one() -> None:
    with pytest.raises(EnvError, match=r"walk failed in observation_space: AttributeError: .*'map'"):
        play(Unsure)
    envs.register_parallel_env("match", Match)
    with pytest.raises(EnvError, match="match failed in observation_space: KeyError: 'a'"):
        envs.describe("match", EnvOptions())


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (Nothing, "walk: it has no observation_space: set self.observation_space in __init__"),
        (
            lambda: Walk(action_space=None),
            "walk: its action_space is None, no space: set it to one of gymnasium.spaces",
        ),
        (
            lambda: Walk(action_space=gym.spaces.Text(2)),
            r"walk: action space Text\(.*\) is not supported: use Discrete",
        ),
        (
            lambda: Walk(observation_space=gym.spaces.Dict({})),
            r"walk: its observation space, Dict\(\), is empty: give the policy at least one number",
        ),
        (
            lambda: Walk(reset=lambda **kwargs: np.zeros(2, np.float32)),
            r"walk: reset\(\) returned one object of type ndarray of shape \(2,\): return .* `return obs, \{\}`",
        ),
        (
            lambda: Walk(reset=lambda: (np.zeros(2, np.float32), {})),
            r"walk: reset\(\) refuses an argument \(.*'seed'\): write `def reset\(self, \*, seed=None, options=None\)`",
        ),
        (lambda: Walk(reset=lambda **kwargs: None), r"walk: reset\(\) returned None: return"),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), 0.0, False, {})),
            r"walk: step\(\) returned a tuple of 4: return five values, `return obs, reward, terminated, trunc",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), None, False, False, {})),
            r"walk: step\(\) returned the reward None: return a real number",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), "1.0", False, False, {})),
            r"walk: step\(\) returned the reward '1.0': return a real number",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), np.array([1 + 1j]), False, False, {})),
            r"walk: step\(\) returned the reward array\(\[1.\+1.j\]\): return a real number",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), np.array([None]), False, False, {})),
            r"walk: step\(\) returned the reward array\(\[None\], dtype=object\): return a real number",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), 0.0, np.zeros(2, bool), False, {})),
            r"walk: step\(\) returned array\(\[False, False\]\) as terminated: return True or False",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), 0.0, False, {"TimeLimit": 1}, {})),
            r"walk: step\(\) returned \{'TimeLimit': 1\} as truncated: return True or False",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), np.ones(2), False, False, {})),
            r"walk: step\(\) returned the reward array\(\[1., 1.\]\): return one number, .*LinearReward",
        ),
        (
            lambda: Walk(step=lambda action: (np.zeros(2, np.float32), 0.0, True, False, None)),
            r"walk: step\(\) returned the info None: return a dict",
        ),
        (
            lambda: Walk(
                step=lambda action: (np.zeros(2, np.float32), 0.0, True, False, {"episode_stats": {"a": "b"}})
            ),
            r"walk: info\['episode_stats'\] is \{'a': 'b'\}: make it a dict of names and numbers",
        ),
    ],
)
def test_what_the_api_does_not_know_is_one_sentence_with_the_environment_and_what_to_change(factory, sentence) -> None:
    with pytest.raises(UsageError, match=sentence) as refusal:
        play(factory)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("last", [True, np.True_, np.array([[True]]), np.array(1), 1, torch.tensor(True)])
def test_a_flag_may_be_one_number_of_any_kind(last) -> None:
    answer = (np.zeros(2, np.float32), np.array([[2]]), last, np.array([False]), {})
    group = GymGroup("walk", [Walk(step=lambda action: answer)], 0, 0)
    _, steps = driven(group, 1)
    assert steps[0].result.terminated.tolist() == [True]
    assert steps[0].result.reward.tolist() == [2.0]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"rewards": {"a": None}}, r"pair: step\(\) returned the reward None: return a real number"),
        ({"rewards": 1.0}, "pair: the environment returned 1.0 where the rewards of agents should be: return a dict"),
        (
            {"terminations": {"a": np.zeros(2, bool)}},
            r"pair: step\(\) returned array\(\[False, False\]\) as termination of agent 'a': return True or False",
        ),
        ({"truncations": False}, "pair: the environment returned False where the truncations of agents should be"),
        ({"infos": None, "terminations": {"a": True}}, "pair: the environment returned None where the infos of agents"),
    ],
)
@pytest.mark.parametrize("share_reward", [False, True])
def test_what_the_api_of_several_agents_does_not_know_is_one_sentence(answer, sentence, share_reward) -> None:
    match = as_parallel("pair", Pair(answer), 1, share_reward)
    with pytest.raises(UsageError, match=sentence):
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
        return {"a": np.zeros(2, np.float32)}, {}

    def step(self, actions: dict[str, int]):
        self.agents = [] if self._ends else ["a"]
        return {"a": np.zeros(2, np.float32)}, *self._answer.values()

    def close(self) -> None: ...


def test_a_type_error_in_the_init_of_a_gymnasium_environment_is_not_taken_for_a_wrong_argument() -> None:
    def make(size: int = 1) -> gym.Env:
        return len(size)  # type: ignore[arg-type, return-value]

    gym.register("Typed-v0", entry_point=make)
    with pytest.raises(
        EnvError, match=r"Typed-v0 failed in __init__\(\): TypeError: object of type 'int' has no len\(\)"
    ):
        envs.describe("Typed-v0", EnvOptions())
    with pytest.raises(UsageError, match=r"env 'Typed-v0' with env_kwargs .*'sise'"):
        envs.describe("Typed-v0", EnvOptions(env_kwargs='{"sise": 2}'))


class NoSuchDisplayError(Exception):
    """As that of pyglet."""


def test_an_environment_without_its_display_is_told_how_to_get_one() -> None:
    def make() -> gym.Env:
        raise NoSuchDisplayError('Cannot connect to "None"')

    gym.register("Drawn-v0", entry_point=make)
    envs.register_env("walk", make)
    for env_id in ("Drawn-v0", "walk"):
        with pytest.raises(UsageError, match=rf"^{env_id} draws on a display, and there is none .*`xvfb-run -a`.*egl"):
            envs.describe(env_id, EnvOptions())


def test_a_module_that_fails_while_it_is_imported_is_said_with_its_line(tmp_path, monkeypatch) -> None:
    (tmp_path / "broken_walk.py").write_text("a = 1\nb = int('one')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvError, match="broken_walk:Walk failed in its set-up: ValueError: invalid literal") as failure:
        envs.describe("broken_walk:Walk", EnvOptions())
    assert 'broken_walk.py", line 2' in failure.value.traceback


def closes(env: gym.Env, **kwargs: Any) -> list[str]:
    envs.register_env("walk", lambda: env)
    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        envs.make_group("walk", 3, EnvOptions(), seed=0, first_env_idx=0).close()
    return remarks


def test_an_environment_that_cannot_be_closed_is_remarked_upon_and_the_others_are_closed() -> None:
    closed = []

    def close() -> None:
        closed.append(1)
        raise OSError("the door is stuck")

    assert closes(Walk(close=close)) == ["walk failed in close(): OSError: the door is stuck: it is left as it is"]
    assert len(closed) == 3


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
    assert sentence == (
        "walk: observation 'obs'[1, 0] is -2.0001, but the low of its space is -2.0, and 1 more are outside; training "
        "goes on with it (--strict_spaces true makes it an error)"
    )


@pytest.mark.parametrize("value", [np.zeros(2, np.float32), np.full(2, np.nan, np.float32)])
def test_nothing_is_said_of_what_is_inside_nor_of_nan_which_is_a_fault(value) -> None:
    assert written(gym.spaces.Box(-1.0, 1.0, (2,)), value)[1] == []


def test_what_lies_outside_only_later_is_said_once_for_each_key_wherever_the_environment_is_in_its_group() -> None:
    space = gym.spaces.Dict(a=gym.spaces.Box(-1.0, 1.0, (2,)), b=gym.spaces.Box(0, 9, (1,), np.int64))
    inside = {"a": np.zeros(2, np.float32), "b": np.zeros(1, np.int64)}
    outside = {"a": np.float32([0.0, 1.5]), "b": np.full(1, -1)}
    made = []

    def make() -> gym.Env:
        obs = outside if len(made) == 1 else inside
        env = Walk(
            observation_space=space,
            reset=lambda **kwargs: (inside, {}),
            step=lambda action: (obs, 0.0, False, False, {}),
        )
        made.append(env)
        return env

    envs.register_env("walk", make)
    group = envs.make_group("walk", 3, EnvOptions(), seed=0, first_env_idx=0)
    rows = {key: list(array) for key, array in obs_arrays(group.spec.obs_space, 3).items()}
    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        group.reset(rows)
        assert remarks == []
        for _ in range(2 * LOOK_EVERY):
            group.step(np.zeros((3, 1), np.int32), np.zeros((3, 0), np.float32), rows, StepResult.empty(3))
    assert remarks == [
        "walk: observation 'a'[1] is 1.5, but the high of its space is 1.0; training goes on with it (--strict_spaces "
        "true makes it an error)",
        "walk: observation 'b'[0] is -1, but the low of its space is 0; training goes on with it (--strict_spaces true "
        "makes it an error)",
    ]


def test_with_strict_spaces_an_observation_outside_of_its_box_is_an_error_at_any_step() -> None:
    space, outside = gym.spaces.Box(-1.0, 1.0, (2,)), np.full(2, 1.5, np.float32)
    with pytest.raises(
        UsageError, match=r"walk: observation 'obs'\[0\] is 1.5, but the high .* is 1.0.*: widen the bounds"
    ):
        written(space, outside, strict=True)
    envs.register_env("walk", lambda: Walk(step=lambda action: (outside, 0.0, False, False, {})))
    for options in (EnvOptions(), EnvOptions(strict_spaces=True)):
        group = envs.make_group("walk", 1, options, seed=0, first_env_idx=0)
        rows = {key: list(array) for key, array in obs_arrays(group.spec.obs_space, 1).items()}
        group.reset(rows)
        arguments = np.zeros((1, 1), np.int32), np.zeros((1, 0), np.float32), rows, StepResult.empty(1)
        if options.strict_spaces:
            with pytest.raises(UsageError, match=r"is 1\.5, but the high"):
                group.step(*arguments)
        else:
            group.step(*arguments)


@pytest.mark.parametrize(("dtype", "value"), [(np.int8, np.array([1, 300])), (np.uint8, np.array([1, 300], np.uint16))])
def test_an_integer_that_its_space_cannot_hold_is_an_error(dtype, value) -> None:
    with pytest.raises(
        UsageError, match=f"observation 'obs' has the value 300, which {np.dtype(dtype)}, .* cannot hold"
    ):
        written(gym.spaces.Box(0, 100, (2,), dtype), value)


def test_remarks_about_the_same_are_handed_over_once() -> None:
    heard = []
    with handed_to(lambda about, sentence: heard.append((about, sentence))):
        for value in (1, 2):
            remark("speed", f"speed is {value}")
        remark("colour", "no colour")
    assert heard == [("speed", "speed is 1"), ("colour", "no colour")]
