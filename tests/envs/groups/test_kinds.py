"""Agents of one environment whose observations or actions differ."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play
from kinds_env import FLY, LENGTH, MOVE, Movers, TwoKinds, box

from sf.envs import ActionSpec, Planes, UsageError
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.turns import TurnsTogether
from sf.envs.remarks import handed_to
from sf.envs.spaces import space_json
from sf.envs.spaces.unions import union_of_actions

Dict, Discrete, MultiDiscrete, Tuple = gym.spaces.Dict, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.Tuple
EYE = np.eye(2, dtype=np.float32)


def group_of(*envs: Any, **flags: Any) -> ParallelGroup:
    return ParallelGroup("two", envs, 0, 0, **flags)


def test_agents_with_equal_spaces_are_one_kind_and_stay_as_they_are() -> None:
    spec = group_of(TwoKinds(listener=(box(2), Discrete(2)))).spec
    assert spec.kinds == ()
    assert spec.obs_space == Dict(obs=box(2))
    assert spec.native_obs_space == box(2)
    assert group_of(TwoKinds()).spec.kinds == (0, 1, 1)


def test_a_kind_sees_its_own_numbers_and_zeros_behind_them_and_chooses_among_its_own_choices() -> None:
    envs = [TwoKinds(), TwoKinds()]
    group = group_of(*envs)
    assert group.spec.action_space == Discrete(5)
    first, steps = play(group, 2 * LENGTH)  # the environment asserts that each action is of the agent's own space
    expected = [111, 121, 131]
    for obs, step in zip([first, *(step.obs for step in steps)], [None, *steps], strict=True):
        if step is not None:
            expected = [number + 1 for number in expected]
            assert step.result.reward.tolist() == 2 * expected
            if step.result.terminated.all():
                expected = [number + 100 - LENGTH for number in expected]
        for n in range(6):
            number, length = expected[n % 3], 4 if n % 3 else 2
            assert obs["obs"][n].tolist() == [number] * length + [0] * (4 - length)
            assert obs["agent_kind"][n].tolist() == EYE[min(n % 3, 1)].tolist()
            assert obs["action_mask"][n].tolist() == ([1] * 5 if n % 3 else [1, 1, 0, 0, 0])
    assert {actions["listener_1"] for env in envs for actions in env.actions} > {0, 1}


def test_kinds_of_other_observations_choices_and_numbers_have_the_union_of_them() -> None:
    env = Movers()
    group = group_of(env)
    spec = ActionSpec.of(group.spec.action_space)
    assert spec == ActionSpec((3, 4), 3, is_partial=True)
    assert {key: part.shape for key, part in group.spec.obs_space.items()} == {
        "ears": (2,),
        "eyes": (4,),
        "both": (3,),
        "agent_kind": (2,),
        "action_mask": (7,),
        "continuous_mask": (3,),
    }
    first, steps = play(group, 3)
    speaker, listener, _ = ({key: rows[n].tolist() for key, rows in first.items()} for n in range(3))
    assert speaker == {
        "ears": [111, 111],
        "eyes": [0, 0, 0, 0],
        "both": [111, 111, 0],
        "agent_kind": [1, 0],
        "action_mask": [1, 1, 0, 1, 0, 0, 0],
        "continuous_mask": [1, 0, 0],
    }
    assert (listener["ears"], listener["eyes"], listener["both"]) == ([0, 0], [121] * 4, [121] * 3)
    assert (listener["action_mask"], listener["continuous_mask"]) == ([1] * 7, [1] * 3)
    for actions, step in zip(env.actions, steps, strict=True):
        for n, agent in enumerate(env.possible_agents):
            choices, numbers = actions[agent]
            own = ActionSpec.of(FLY if n else MOVE)
            assert np.ravel(choices).tolist() == step.discrete[n, : len(own.discrete_sizes)].tolist()
            scaled = np.clip(2 + 2 * step.continuous[n, : own.num_continuous], 0, 4)
            np.testing.assert_allclose(numbers, scaled, rtol=1e-6)


def test_an_agents_own_mask_is_widened_and_stays_empty_while_it_waits() -> None:
    class Waiting(TwoKinds):
        def _obs(self) -> dict[str, Any]:
            obs = super()._obs()
            obs["speaker"]["action_mask"] = np.array(masks[self._step - 1], np.int8)
            return obs

    masks = [[0, 1], [1, 0], [0, 0]]
    masked = Dict(x=box(1), action_mask=gym.spaces.MultiBinary(2))
    group = group_of(Waiting((masked, Discrete(2)), (box(1), MultiDiscrete([3, 2]))))
    first, steps = play(group, 2)
    seen = [obs["action_mask"][0].tolist() for obs in (first, *(step.obs for step in steps))]
    assert seen == [[0, 1, 0, 1, 0], [1, 0, 0, 1, 0], [0] * 5]


class Turns:
    """Two agents take turns for ever; the second has more choices. PettingZoo's AECEnv API."""

    possible_agents = ("a", "b")

    def observation_space(self, agent: str) -> gym.Space:
        return box(1)

    def action_space(self, agent: str) -> gym.Space:
        return Discrete(2 if agent == "a" else 3)

    def reset(self, seed: int | None = None) -> None:
        self.agents, self.agent_selection = ["a", "b"], "a"
        self.rewards = self.terminations = self.truncations = dict.fromkeys("ab", False)
        self.infos: dict[str, dict] = {"a": {}, "b": {}}

    def step(self, action: int) -> None:
        assert self.action_space(self.agent_selection).contains(action)
        self.agent_selection = "b" if self.agent_selection == "a" else "a"

    def observe(self, agent: str) -> np.ndarray:
        return np.zeros(1, np.float32)

    def last(self) -> None: ...

    def close(self) -> None: ...


def test_kinds_may_take_turns() -> None:
    first, steps = play(group_of(TurnsTogether(Turns())), 2)
    assert first["action_mask"].tolist() == [[1, 1, 0], [0, 0, 0]]
    assert [step.obs["action_mask"].tolist() for step in steps] == [
        [[0, 0, 0], [1, 1, 1]],
        [[1, 1, 0], [0, 0, 0]],
    ]


@pytest.mark.parametrize(
    ("spaces", "union"),
    [
        ([Discrete(3, start=1), Discrete(5, start=1)], Discrete(5, start=1)),
        ([Discrete(3, start=1), Discrete(5)], Discrete(5)),
        ([Discrete(6), MultiDiscrete([2, 3])], MultiDiscrete([6, 3])),
        ([box(2, low=0, high=1), gym.spaces.Box(0, np.array([1, 9], np.float32))], gym.spaces.Box(-1, 1, (2,))),
        ([Tuple([Discrete(2), box(2)]), Discrete(3)], Tuple([Discrete(3), box(2)])),
    ],
)
def test_actions_are_joined_by_position(spaces: list[gym.Space], union: gym.Space) -> None:
    found = union_of_actions(spaces)
    if isinstance(union, gym.spaces.Box):  # the first number has the same bounds for both
        assert (found.low.tolist(), found.high.tolist()) == ([0, -1], [1, 1])
    else:
        assert str(found) == str(union)
    assert space_json.from_json(space_json.to_json(found)) == found


def picture(side: int) -> gym.Space:
    return gym.spaces.Box(0, 255, (side, side, 3), np.uint8)


@pytest.mark.parametrize(
    ("speaker", "listener", "named"),
    [
        ((picture(8), Discrete(2)), (picture(9), Discrete(2)), "'speaker' .*'listener_0' .*wrapper"),
        ((Planes(2, 3, 3), Discrete(2)), (Planes(2, 3, 4), Discrete(2)), "'speaker' .*'listener_0' .*wrapper"),
        ((Dict(agent_kind=box(2)), Discrete(2)), (box(2), Discrete(2)), "'agent_kind'.*rename"),
        ((Dict(x=box(2), action_mask=box(3)), Discrete(2)), (box(2), Discrete(3)), "'speaker'.*'action_mask' has 3"),
        ((box(2), gym.spaces.Text(3)), (box(2), Discrete(2)), "'speaker'.*action space"),
    ],
)
def test_kinds_that_one_policy_cannot_play_are_refused_in_one_sentence(
    speaker: tuple[gym.Space, gym.Space], listener: tuple[gym.Space, gym.Space], named: str
) -> None:
    with pytest.raises(UsageError, match=f"^two.*{named}"):
        group_of(TwoKinds(speaker, listener))


def test_an_observation_outside_of_the_agents_own_space_is_named_with_the_agent() -> None:
    spaces = (box(2, high=115.0), Discrete(2)), (box(4), Discrete(2))
    remarks: list[str] = []
    with handed_to(lambda about, sentence: remarks.append(sentence)):
        play(group_of(TwoKinds((box(2, high=110.0), Discrete(2)), spaces[1])), 1)
    assert len(remarks) == 1
    assert "'speaker'" in remarks[0]
    assert "110.0" in remarks[0]
    with pytest.raises(UsageError, match=r"'speaker'.*115\.0"):
        play(group_of(TwoKinds(*spaces), strict_spaces=True), LENGTH)
