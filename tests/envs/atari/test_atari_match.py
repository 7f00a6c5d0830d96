from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from group_driver import Step, play

from sf.config import presets
from sf.envs import EnvOptions, describe, make_group
from sf.envs.atari.match import AtariMatch, entry_of_atari_matches
from sf.envs.atari.preprocessing import Resize
from sf.envs.errors import UsageError

PONG = "pettingzoo:atari/pong_v3"


@pytest.mark.parametrize(("height", "width"), [(84, 84), (96, 50), (210, 160)])
def test_screens_are_scaled_as_ale_scales_them(height: int, width: int) -> None:
    def screens(height: int, width: int) -> Iterator[np.ndarray]:
        bare = {"stack_num": 1, "frameskip": 1, "maxpool": False, "noop_max": 0, "use_fire_reset": False}
        env = AtariVectorEnv("ms_pacman", 1, img_height=height, img_width=width, **bare)
        env.reset(seed=np.array([3]))
        for t in range(300):
            yield env.step(np.array([t % 9]))[0][0, 0].copy()
        env.close()

    resize = Resize((210, 160), height, width)
    for screen, scaled in zip(screens(210, 160), screens(height, width), strict=True):
        own = resize(screen)
        assert own.shape == scaled.shape
        assert np.abs(own.astype(int) - scaled).max() <= 1  # of a half that is rounded the other way


class ScriptedGame:
    """Stands in for PettingZoo's ParallelAtariEnv. Of each frame: each player's points, and who is out of it then.

    The screen of frame k has the brightness 10 k, or 10 k + 15 where k is odd.
    """

    render_mode, metadata = None, {}
    possible_agents = ("first_0", "second_0")

    def __init__(self, *frames: tuple[tuple[float, float], tuple[str, ...]]) -> None:
        self._script = frames
        self.carried_out: list[dict[str, int]] = []
        self.ale = SimpleNamespace(getScreenDims=lambda: (8, 6), getScreenGrayscale=self._screen)
        self.unwrapped = self

    def action_space(self, agent: str) -> gym.Space:
        return gym.spaces.Discrete(3)

    def reset(self, seed: int | None = None) -> None:
        self._frame, self._play = 0, iter(self._script)

    def step(self, actions: dict[str, int]) -> tuple[None, dict, dict, dict, dict]:
        self._frame += 1
        if not actions:
            return None, {}, {}, {}, {}
        self.carried_out.append(dict(actions))
        points, out = next(self._play)
        ends = {agent: agent in out for agent in self.possible_agents}
        truncations = dict.fromkeys(self.possible_agents, False)
        return None, dict(zip(self.possible_agents, points, strict=True)), ends, truncations, {}

    def _screen(self) -> np.ndarray:
        return np.full((6, 8, 1), min(10 * self._frame + 15 * (self._frame % 2), 255), np.uint8)

    def close(self) -> None:
        pass


NOTHING, OVER = ((0, 0), ()), ((0, 0), ("first_0", "second_0"))


def _played(game: ScriptedGame, num_steps: int, **options: object) -> tuple[dict[str, np.ndarray], list[Step]]:
    kwargs = {"img_height": 3, "img_width": 4, "stack_num": 2, "noop_max": 0}
    entry = entry_of_atari_matches(lambda obs_type: game)
    given = EnvOptions(env_kwargs=json.dumps(kwargs), **options)
    return play(entry.make_group("scripted", 1, given, seed=0, first_env_idx=0), num_steps)


def test_a_decision_is_four_frames_and_shows_the_brighter_of_the_last_two_behind_the_earlier_ones() -> None:
    game = ScriptedGame(*[NOTHING] * 9)
    first_obs, steps = _played(game, 2)
    seen = [first_obs["obs"], *(step.obs["obs"] for step in steps)]
    assert seen[0].shape == (2, 2, 3, 4)
    assert [frames[0, :, 0, 0].tolist() for frames in seen] == [[0, 0], [0, 45], [45, 85]]
    assert all((frames == frames[:1, :, :1, :1]).all() for frames in seen)  # both players see the same
    assert [step["agent_index"].tolist() for step in (first_obs, steps[-1].obs)] == [[[1, 0], [0, 1]]] * 2
    actions = [tuple(frame.values()) for frame in game.carried_out]
    assert actions == [tuple(step.discrete[:, 0].tolist()) for step in steps for _ in range(4)]
    _, (step,) = _played(ScriptedGame(*[NOTHING] * 3), 1, env_frameskip=3)
    assert step.obs["obs"][0, :, 0, 0].tolist() == [0, 45]  # of frame 3


def test_the_points_of_a_decision_are_clipped_together_and_the_reported_return_is_the_score() -> None:
    frames = [((1, -1), ()), ((1, -1), ()), ((-1, 1), ()), ((2, -2), ()), *[NOTHING] * 3, ((0.5, 0), OVER[1])]
    for clips, rewards in ((True, [[1, -1], [0.5, 0]]), (False, [[3, -3], [0.5, 0]])):
        _, steps = _played(ScriptedGame(*frames), 2, atari_clip_rewards=clips)
        assert [step.result.reward.tolist() for step in steps] == rewards
        assert steps[-1].result.terminated.all()
        ended = [(each.actor_idx, each.episode_return, each.num_steps, each.num_frames) for each in steps[-1].episodes]
        assert ended == [(0, 3.5, 2, 8), (1, -3.0, 2, 8)]


def test_the_frames_of_a_decision_end_where_a_player_is_out_and_the_other_plays_on() -> None:
    frames = [NOTHING, ((0, -1), ("second_0",)), *[((1, 0), ())] * 4]
    _, (out, alone) = _played(ScriptedGame(*frames), 2, atari_clip_rewards=False)
    assert out.result.terminated.tolist() == [False, True]
    assert [(each.actor_idx, each.num_frames) for each in out.episodes] == [(1, 2)]
    assert out.obs["obs"][:, -1, 0, 0].tolist() == [20, 0]
    assert alone.result.valid.tolist() == [True, False]
    assert alone.result.reward.tolist() == [4, 0]
    assert alone.obs["obs"][0, :, 0, 0].tolist() == [20, 65]


def test_a_match_begins_after_some_frames_of_no_action_drawn_by_its_seed() -> None:
    def begun(seed: int) -> int:
        game = ScriptedGame()
        match = AtariMatch(game, 4, 0.0, True, noop_max=6)
        match.reset(seed=seed)
        return game._frame

    numbers = [begun(seed) for seed in range(40)]
    assert numbers == [begun(seed) for seed in range(40)]
    assert set(numbers) == set(range(1, 7))


def test_each_player_s_actions_stick_by_themselves() -> None:
    game = ScriptedGame(*[NOTHING] * 400)
    _, steps = _played(game, 100, atari_sticky=0.5)
    chosen = np.repeat([step.discrete[:, 0] for step in steps], 4, axis=0)
    carried_out = np.array([list(frame.values()) for frame in game.carried_out])
    stuck = carried_out != chosen
    assert (carried_out[1:][stuck[1:]] == carried_out[:-1][stuck[1:]]).all()
    # The first frame of a decision differs where it sticks, which half do, and the choices differ, which 2 of 3 do.
    assert 0.2 < stuck[::4].mean() < 0.47
    assert (stuck[:, 0] != stuck[:, 1]).any()
    _, steps = _played(game := ScriptedGame(*[NOTHING] * 40), 10)
    assert (
        np.repeat([step.discrete[:, 0] for step in steps], 4, axis=0) == [[*f.values()] for f in game.carried_out]
    ).all()


@pytest.mark.parametrize(
    ("name", "value"), [("noop_max", -1), ("stack_num", 0), ("img_width", 2.5), ("obs_type", "ram")]
)
def test_a_wrong_argument_of_the_preprocessing_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        describe(PONG, EnvOptions(env_kwargs=json.dumps({name: value})))


def test_matches_have_the_preset_of_atari_but_for_raw_frames() -> None:
    assert presets.name_for_env(PONG) == "atari"
    assert presets.name_for_env(PONG, EnvOptions(atari_raw=True)) is None
    assert presets.name_for_env("pettingzoo:classic/rps_v2") is None


class TestPong:
    """PettingZoo's own Pong of two players, with the ROM of ale-py."""

    @pytest.fixture(autouse=True)
    def _emulator(self) -> None:
        pytest.importorskip("pettingzoo")
        pytest.importorskip("multi_agent_ale_py")
        pytest.importorskip("pygame")

    def test_players_score_against_each_other_and_see_the_stacked_screen_and_their_seat(self) -> None:
        spec = describe(PONG, EnvOptions())
        assert (spec.num_agents, spec.frameskip, spec.action_space.n) == (2, 4, 6)
        assert {key: box.shape for key, box in spec.obs_space.items()} == {"obs": (4, 84, 84), "agent_index": (2,)}
        _, steps = play(make_group(PONG, 2, EnvOptions(), seed=0, first_env_idx=0), 400)
        for before, after in pairwise(steps):
            if not after.result.first.any():
                np.testing.assert_array_equal(after.obs["obs"][:, :3], before.obs["obs"][:, 1:])
        assert (steps[-1].obs["obs"][0] == steps[-1].obs["obs"][1]).all()
        assert (steps[-1].obs["obs"][0] != steps[-1].obs["obs"][2]).any()
        assert (steps[-1].obs["agent_index"] == np.tile(np.eye(2), (2, 1))).all()
        rewards = np.array([step.result.reward for step in steps])
        assert set(np.unique(rewards)) == {-1.0, 0.0, 1.0}
        assert (rewards[:, 0] == -rewards[:, 1]).mean() > 0.9  # who does not serve in time loses a point alone

    def test_frames_and_time_are_those_of_the_game(self) -> None:
        options = EnvOptions(env_kwargs='{"max_cycles": 100, "noop_max": 0, "full_action_space": true}')
        group = make_group(PONG, 1, options, seed=0, first_env_idx=0)
        assert group.spec.action_space.n == 18
        _, steps = play(group, 26)
        assert [t for t, step in enumerate(steps) if step.result.truncated.all()] == [24]
        assert [(each.num_steps, each.num_frames) for each in steps[24].episodes] == [(25, 100)] * 2

    def test_an_argument_that_a_game_refuses_is_named(self) -> None:
        with pytest.raises(UsageError, match="game_version"):
            describe(PONG, EnvOptions(env_kwargs='{"game_version": "tennis"}'))

    def test_raw_frames_are_those_of_pettingzoo(self) -> None:
        spec = describe(PONG, EnvOptions(atari_raw=True))
        assert {key: box.shape for key, box in spec.obs_space.items()} == {"obs": (210, 160, 3)}
        assert spec.frameskip == 1
