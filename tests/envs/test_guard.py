"""A guarded group against scripts of what its environments do, real groups, and a real Doom engine that dies."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.envs import EnvGroup, EnvOptions, EnvSpec, Episode, ObsRows, StepResult, guard, make_group
from sf.envs.errors import ApiError
from sf.envs.groups.gym import GymGroup
from sf.envs.guard import EnvFaultError, GuardedGroup
from sf.envs.remarks import handed_to
from sf.learner.loss.vtrace import vtrace

NUM_ACTORS = 2
NAN, INFINITE = float("nan"), float("inf")

Event = Callable[["Scripted", ObsRows, StepResult], list[Episode]]


class Scripted:
    """A group whose n-th step is the n-th event. An observation is [which group, how many steps it has made]."""

    spec = EnvSpec(
        gym.spaces.Dict(
            x=gym.spaces.Box(-INFINITE, INFINITE, (2,), np.float64), pixel=gym.spaces.Box(0, 255, (1,), np.uint8)
        ),
        gym.spaces.Discrete(2),
    )
    num_actors = NUM_ACTORS

    def __init__(self, attempt: int, events: Iterator[Event]) -> None:
        self.attempt = attempt
        self.num_closed = 0
        self._events = events
        self._num_steps = 0

    def reset(self, obs: ObsRows) -> None:
        self.show(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        self._num_steps += 1
        result.reward[:] = 1.0
        result.terminated[:], result.truncated[:], result.valid[:], result.first[:] = False, False, True, False
        self.show(obs)
        return next(self._events)(self, obs, result)

    def close(self) -> None:
        self.num_closed += 1

    def show(self, obs: ObsRows) -> None:
        for n in range(NUM_ACTORS):
            obs["x"][n][:] = self.attempt, self._num_steps
            obs["pixel"][n][:] = 10 * self.attempt + self._num_steps


def fine(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
    return []


def ends(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
    result.terminated[0] = result.first[0] = True
    return [Episode(0, 1.0, 1, 1)]


def raises(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
    obs["pixel"][0][:] = 99  # it had come so far
    result.reward[:] = 55.0
    result.joined[1] = True
    raise ZeroDivisionError("in the env")


def raises_elsewhere(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
    raise ZeroDivisionError("in another line")


def puts(value: float, key: str) -> Event:
    def event(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
        if key == "reward":
            result.reward[1] = value
        else:
            obs[key][1][1] = value
        return ends(group, obs, result)

    return event


def hides_nan_in_a_return(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
    result.truncated[0] = True
    return [Episode(0, NAN, 1, 1)]


class Stage:
    """A guarded group with rows of its own, and all the groups that it has made."""

    def __init__(self, *events: Event, make: Callable[[int], Any] | None = None, **kwargs) -> None:
        self.made: list[Any] = []
        script = iter(events)
        make = make or (lambda attempt: Scripted(attempt, script))

        def recorded(attempt: int) -> EnvGroup:
            assert attempt >= len(self.made)
            self.made.append(make(attempt))
            return self.made[-1]

        self.group = GuardedGroup(recorded, **kwargs)
        self.result = StepResult.empty(self.group.num_actors)
        self.rows = self._new_rows()

    def reset(self) -> None:
        self.group.reset(self.rows)

    def step(self, *actions: int) -> list[Episode]:
        num_actors = self.group.num_actors
        discrete = np.array(actions or (0,) * num_actors, np.int32).reshape(num_actors, 1)
        self.rows = self._new_rows()
        return self.group.step(discrete, np.zeros((num_actors, 0), np.float32), self.rows, self.result)

    def flags(self) -> list[tuple[float, bool, bool, bool, bool]]:
        """(reward, terminated, truncated, valid, first) of each actor."""
        r = self.result
        arrays = (r.reward, r.terminated, r.truncated, r.valid, r.first)
        return list(zip(*(array.tolist() for array in arrays), strict=True))

    def _new_rows(self) -> dict[str, list[np.ndarray]]:
        space, num_actors = self.group.spec.obs_space, self.group.num_actors
        return {key: list(np.full((num_actors, *box.shape), 77, box.dtype)) for key, box in space.items()}


CUT = (0.0, False, False, False, True)
FAULTS: dict[str, Event] = {
    "raises": raises,
    "nan_obs": puts(NAN, "x"),
    "infinite_obs": puts(-INFINITE, "x"),
    "obs_beyond_float32": puts(1e39, "x"),
    "nan_reward": puts(NAN, "reward"),
    "infinite_reward": puts(INFINITE, "reward"),
    "nan_return": hides_nan_in_a_return,
}


def test_what_is_in_order_passes_untouched() -> None:
    stage = Stage(fine, ends, fine)
    stage.reset()
    assert stage.rows["x"][1].tolist() == [0, 0]
    assert stage.step() == []
    assert stage.flags() == [(1.0, False, False, True, False)] * 2
    assert stage.step() == [Episode(0, 1.0, 1, 1)]
    assert stage.flags() == [(1.0, True, False, True, True), (1.0, False, False, True, False)]
    stage.step()
    assert stage.rows["x"][1].tolist() == [0, 3]
    assert stage.group.pop_faults() == []


@pytest.mark.parametrize("event", FAULTS.values(), ids=FAULTS)
def test_a_fault_cuts_all_episodes_at_the_observation_before_and_begins_new_ones(event: Event) -> None:
    stage = Stage(fine, event, fine)
    stage.reset()
    stage.step()
    assert stage.group.num_cut == 0
    assert stage.step() == []  # the episode that ended in this step is dropped
    assert stage.group.num_cut == NUM_ACTORS
    assert stage.flags() == [CUT, CUT]
    assert not stage.result.joined.any()
    for n in range(NUM_ACTORS):  # every key, also where the broken group has written
        assert stage.rows["x"][n].tolist() == [1, 0]
        assert stage.rows["pixel"][n].tolist() == [10]
    stage.step()
    assert stage.flags() == [(1.0, False, False, True, False)] * 2
    assert stage.rows["x"][0].tolist() == [1, 1]
    assert [made.num_closed for made in stage.made] == [1, 0]
    assert sum(fault.count for fault in stage.group.pop_faults()) == 1


def test_a_fault_cuts_no_episode_of_an_agent_that_has_left_its_match() -> None:
    def one_leaves(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
        result.terminated[1] = True
        return [Episode(1, 1.0, 1, 1)]

    def one_is_away(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
        result.valid[1] = False
        return []

    for events, num_cut in (([fine], 2), ([one_leaves], 1), ([one_leaves, one_is_away], 1), ([one_leaves, raises], 3)):
        stage = Stage(*events, raises)
        stage.reset()
        for _ in range(len(events) + 1):
            stage.step()
        assert stage.group.num_cut == num_cut


def test_a_cut_episode_is_learned_from_as_one_that_was_truncated_before_the_fault() -> None:
    """The targets of a rollout with a fault in step 4 are those of two rollouts, without its row."""
    stage = Stage(*[fine] * 4, raises, *[fine] * 5)
    stage.reset()
    reward, valid = torch.zeros(10, 1), torch.zeros(10, 1, dtype=torch.bool)
    for t in range(10):
        stage.step()
        reward[t], valid[t] = float(stage.result.reward[0]), bool(stage.result.valid[0])
    generator = torch.Generator().manual_seed(0)
    log_rho, value = torch.randn(10, 1, generator=generator), torch.randn(11, 1, generator=generator)
    discount = torch.full((10, 1), 0.9)
    whole = vtrace(log_rho, reward, discount, value, valid)
    for part in (slice(0, 4), slice(5, 10)):
        values = value[part.start : part.stop + 1]
        alone = vtrace(log_rho[part], torch.ones_like(reward[part]), discount[part], values, valid[part])
        torch.testing.assert_close(whole.vs[part], alone.vs)
        torch.testing.assert_close(whole.advantage[part], alone.advantage)
    assert whole.advantage[4] == 0


def test_a_rebuild_or_a_close_that_fails_is_tried_again_in_the_same_step() -> None:
    class Moody(Scripted):
        def reset(self, obs: ObsRows) -> None:
            super().reset(obs)
            if self.attempt == 2:
                raise OSError("no luck in reset")
            if self.attempt == 3:
                obs["x"][0][:] = NAN

        def close(self) -> None:
            super().close()
            raise OSError("nor in close")

    script = iter([raises])

    def make(attempt: int) -> Scripted:
        if attempt == 1:
            raise OSError("no luck")
        return Moody(attempt, script)

    stage = Stage(make=make)
    stage.reset()
    stage.step()
    assert stage.flags() == [CUT, CUT]
    assert stage.group.num_cut == NUM_ACTORS
    assert stage.rows["x"][0].tolist() == [4, 0]
    assert [(made.attempt, made.num_closed) for made in stage.made] == [(0, 1), (2, 1), (3, 1), (4, 0)]
    assert [fault.message for fault in stage.group.pop_faults()][:3] == [
        "ZeroDivisionError: in the env",
        "OSError: no luck",
        "OSError: no luck in reset",
    ]


@pytest.mark.parametrize("num_clean_steps", [0, 10])
def test_an_env_that_fails_every_time_before_an_episode_ends_is_given_up(num_clean_steps: int) -> None:
    stage = Stage(*([fine] * num_clean_steps + [raises]) * 4, max_faults_in_a_row=3)
    stage.reset()
    for _ in range(4 * (num_clean_steps + 1) - 1):
        stage.step()
    with pytest.raises(EnvFaultError, match=r"failed 4 times.* at last: ZeroDivisionError: in the env") as caught:
        stage.step()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert not caught.value.has_worked
    assert [made.num_closed for made in stage.made] == [1] * 4
    [fault] = stage.group.pop_faults()
    assert fault.count == 4
    stage.group.close()
    assert [made.num_closed for made in stage.made] == [1] * 4


def test_an_episode_or_many_clean_steps_make_up_for_earlier_faults_and_one_less_does_not(monkeypatch) -> None:
    stage = Stage(*[raises, raises, ends] * 3, max_faults_in_a_row=2)
    stage.reset()
    for _ in range(9):
        stage.step()
    assert len(stage.made) == 7
    monkeypatch.setattr(guard, "CLEAN_STEPS", 7)
    stage = Stage(*[*[fine] * 7, raises] * 5, *[fine] * 6, raises, max_faults_in_a_row=1)
    stage.reset()
    for _ in range(46):
        stage.step()
    with pytest.raises(EnvFaultError) as given_up:
        stage.step()
    assert given_up.value.has_worked


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_no_fault(exception: type[BaseException]) -> None:
    def stops(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
        raise exception

    stage = Stage(stops)
    stage.reset()
    with pytest.raises(exception):
        stage.step()
    assert [made.num_closed for made in stage.made] == [0]
    stage.group.close()
    assert [made.num_closed for made in stage.made] == [1]


def test_every_valid_row_of_a_faulty_env_is_what_the_healthy_env_would_have_said() -> None:
    options = EnvOptions(
        env_kwargs='{"faults": ["raise", "nan_obs", "nan_reward", "wrong_shape"], "probability": 0.01}'
    )
    stage = Stage(make=lambda attempt: make_group("toy_faulty", 4, options, seed=attempt, first_env_idx=0))
    rng = np.random.default_rng(0)
    stage.reset()
    num_cuts, lengths = 0, []
    for _ in range(700):
        before = np.array(stage.rows["obs"])
        actions = rng.integers(0, 4, 4)
        episodes = stage.step(*actions)
        after = np.array(stage.rows["obs"])
        assert (after.sum(1) == 1).all()  # one-hot
        if stage.result.valid.all():
            assert stage.result.reward.tolist() == (before.argmax(1) == actions).tolist()
            assert [episode.actor_idx for episode in episodes] == np.flatnonzero(stage.result.terminated).tolist()
            lengths += [episode.num_steps for episode in episodes]
        else:
            assert stage.flags() == [CUT] * 4
            num_cuts += 1
    assert set(lengths) == {8}
    assert num_cuts > 15
    faults = stage.group.pop_faults()
    assert sum(fault.count for fault in faults) == num_cuts == len(stage.made) - 1
    assert len(faults) == 4


def _children() -> set[int]:
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # it has ended meanwhile
            found |= {int(pid) for pid in (thread / "children").read_text().split()}
    return found


def test_a_doom_engine_that_dies_is_replaced() -> None:
    before = _children()
    stage = Stage(make=lambda attempt: make_group("doom_basic", 2, EnvOptions(), seed=attempt, first_env_idx=0))
    try:
        stage.reset()
        stage.step()
        assert stage.group.pop_faults() == []
        engines = _children() - before
        assert len(engines) == 2
        os.kill(max(engines), signal.SIGKILL)
        stage.step()
        assert stage.flags() == [CUT, CUT]
        assert all(len(np.unique(frame)) > 20 for frame in stage.rows["obs"])
        new_engines = _children() - before
        assert len(new_engines) == 2
        assert not new_engines & engines
        for _ in range(3):
            stage.step()
            assert stage.result.valid.all()
        [fault] = stage.group.pop_faults()
        assert fault.message.startswith("ViZDoom")
    finally:
        stage.group.close()
    assert _children() == before


def test_environments_that_are_made_anew_with_other_agents_or_spaces_or_not_at_all_are_given_up() -> None:
    other_spec = EnvSpec(gym.spaces.Dict(x=gym.spaces.Box(0, 1, (3,), np.float32)), gym.spaces.Discrete(2))
    changes = {"3 agents": {"num_actors": 3}, "its spaces": {"spec": other_spec}, "no more": None}
    for reason, change in changes.items():

        def make(attempt: int, change: dict[str, Any] | None = change) -> Scripted:
            group = Scripted(attempt, iter([raises]))
            if attempt and change is None:
                raise OSError("no more")
            vars(group).update(change if attempt and change else {})
            return group

        stage = Stage(make=make, max_faults_in_a_row=3)
        stage.reset()
        with pytest.raises(EnvFaultError, match=f"failed 4 times.*{reason}"):
            stage.step()
        stage.group.close()


def reads_nothing(group: Scripted, obs: ObsRows, result: StepResult) -> list[Episode]:
    return json.loads("")


def test_faults_are_reported_by_place_in_the_users_code_the_traceback_once_and_the_rest_as_a_count() -> None:
    events = raises, raises_elsewhere, raises, puts(NAN, "x"), reads_nothing, raises
    stage = Stage(*events, max_faults_in_a_row=99)
    stage.reset()
    for _ in range(5):
        stage.step()
    first, other, nan, of_library = stage.group.pop_faults()
    assert (first.message, first.count) == ("ZeroDivisionError: in the env", 2)
    assert "in raises\n" in first.traceback
    assert first.traceback.endswith("ZeroDivisionError: in the env")
    assert "/guard.py" not in first.traceback  # it begins with the environment
    assert (other.message, other.count) == ("ZeroDivisionError: in another line", 1)
    assert nan.message.startswith("the environment: observation 'x' of actors [1]")
    line = reads_nothing.__code__.co_firstlineno + 1
    assert of_library.place == f"JSONDecodeError in {__file__}, line {line}"  # not in the library that raised
    assert stage.group.pop_faults() == []
    stage.step()
    [again] = stage.group.pop_faults()
    assert (again.place, again.message, again.count, again.traceback) == (first.place, first.message, 1, None)


def test_what_goes_wrong_at_the_very_start_is_raised_as_it_is() -> None:
    def make(attempt: int) -> EnvGroup:
        raise ValueError("a wrong setting")

    with pytest.raises(ValueError, match="a wrong setting"):
        GuardedGroup(make)

    class Wrong(Scripted):
        def reset(self, obs: ObsRows) -> None:
            super().reset(obs)
            obs["x"][1][:] = INFINITE
            if self.attempt_fails:
                raise ZeroDivisionError("at first")

    for fails, kind in ((True, ZeroDivisionError), (False, ValueError)):
        Wrong.attempt_fails = fails
        stage = Stage(make=lambda attempt: Wrong(attempt, iter([])))
        with pytest.raises(kind):
            stage.reset()
        assert len(stage.made) == 1
        stage.group.close()
        assert stage.made[0].num_closed == 1


class Answers(gym.Env):
    """The n-th env of a test gives a wrong answer at its third step if n is even, and is healthy if it is odd."""

    observation_space = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, number: int, wrong: tuple[Any, ...], ends_at: int = 99) -> None:
        self._wrong, self._ends_at, self._step = wrong if number % 2 == 0 else (), ends_at, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return np.full((8, 8, 3), 9, np.uint8), {}

    def step(self, action: int):
        self._step += 1
        if self._wrong and self._step == 3:
            return self._wrong
        return np.full((8, 8, 3), 5, np.uint8), 1.0, self._step == self._ends_at, False, {}


@pytest.mark.parametrize("shape", [(8, 8, 1), (3,), ()])
def test_a_wrong_shape_is_a_fault_also_where_numpy_would_broadcast_it(shape) -> None:
    numbers, wrong = count(), (np.full(shape, 5, np.uint8), 1.0, False, False, {})
    stage = Stage(make=lambda attempt: GymGroup("shapes", [Answers(next(numbers), wrong)], 0, 0))
    stage.reset()
    assert [stage.step() or stage.flags() for _ in range(3)][-1] == [CUT]
    assert (stage.rows["obs"][0] == 9).all()
    [fault] = stage.group.pop_faults()
    assert fault.message.startswith("shapes: observation 'obs' came as")


def test_an_answer_that_the_api_does_not_know_is_raised_unless_an_episode_has_been_finished() -> None:
    four = (np.full((8, 8, 3), 5, np.uint8), 1.0, False, {})
    stage = Stage(make=lambda attempt: GymGroup("talks", [Answers(0, four)], 0, 0))
    stage.reset()
    stage.step()
    stage.step()
    with pytest.raises(ApiError, match=r"talks: step\(\) returned a tuple of 4"):
        stage.step()
    assert len(stage.made) == 1
    assert stage.group.pop_faults() == []
    stage = Stage(make=lambda attempt: GymGroup("talks", [Answers(0, four, ends_at=2)], 0, 0))
    stage.reset()
    assert [stage.step() or stage.flags() for _ in range(3)][-1] == [CUT]
    [fault] = stage.group.pop_faults()
    assert fault.message.startswith("talks: step() returned a tuple of 4")


def _remarks_of(stage: Stage, num_steps: int) -> tuple[list[Episode], list[str]]:
    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        stage.reset()
        episodes = [episode for _ in range(num_steps) for episode in stage.step()]
    assert stage.group.pop_faults() == []
    return episodes, remarks


def test_a_statistic_that_is_not_finite_is_left_out_of_its_episode_and_remarked_upon_once() -> None:
    def ends_with(**stats: float) -> Event:
        return lambda group, obs, result: [Episode(0, 1.0, 1, 1, stats)]

    stage = Stage(ends_with(good=1.0, bad=NAN), ends_with(bad=INFINITE), ends_with(bad=2.0))
    episodes, [remark] = _remarks_of(stage, 3)
    assert [episode.stats for episode in episodes] == [{"good": 1.0}, {}, {"bad": 2.0}]
    assert "the statistic 'bad' of an episode is nan" in remark


@pytest.mark.parametrize(("allowed_at", "is_said"), [(None, True), (5, False)])
def test_masks_that_never_allow_anything_are_remarked_upon_once(allowed_at: int | None, is_said: bool) -> None:
    class Waiting(Answers):
        observation_space = gym.spaces.Dict(o=gym.spaces.Discrete(2), action_mask=gym.spaces.MultiBinary(2))

        def reset(self, **kwargs: Any):
            return {"o": 0, "action_mask": np.zeros(2, np.int8)}, {}

        def step(self, action: int):
            _, *rest = super().step(action)
            return {"o": 0, "action_mask": np.full(2, self._step == allowed_at, np.int8)}, *rest

    stage = Stage(make=lambda attempt: GymGroup("waiting", [Waiting(1, (), 10**6)], 0, 0), env_id="waiting")
    _, remarks = _remarks_of(stage, 2 * guard.CLEAN_STEPS + 2)
    assert ["'action_mask'" in remark for remark in remarks] == [True] * is_said
