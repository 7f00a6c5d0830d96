"""Groups that can be looked at: whose pictures come when, and that what is seen is what is played."""

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Memory, random_actions
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from PIL import Image

from sf import envs
from sf.envs import EnvOptions, StepResult, UsageError, make_group, make_rendered_group
from sf.envs.rendering.pictures import ObsPainter
from sf.envs.toys.matches import CountingMatch


class Drawn(gym.Env):
    """Each picture is of the colour (episode, step, 0); episodes of 2 steps, each worth 1, end in both ways in turn."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012  Gymnasium's own form
    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None, shape=(8, 6, 3)):
        self.render_mode = render_mode
        self.shape = tuple(shape)
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        self.episode, self.t = self.episode + 1, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        ended = self.t == 2
        return np.zeros(1, np.float32), 1.0, ended and self.episode % 2 == 0, ended and self.episode % 2 == 1, {}

    def render(self):
        picture = np.zeros(self.shape, np.uint8)
        picture[..., :2] = self.episode, self.t
        return picture


class DrawnMatch(CountingMatch):
    def __init__(self, render_mode=None, **kwargs):
        super().__init__(**kwargs)
        self.render_mode = render_mode

    def render(self):
        return np.full((8, 6, 3), 9, np.uint8)


class Window(Drawn):
    """Gymnasium's template of an environment, which refuses the mode."""

    metadata = {"render_modes": ["human"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode=None):
        assert render_mode is None or render_mode in self.metadata["render_modes"]
        super().__init__(render_mode)


class WithoutRender(Drawn):
    metadata = gym.Env.metadata
    render = gym.Env.render


def vector_of(kind, mode=AutoresetMode.NEXT_STEP):
    def make(num_envs, render_mode=None):
        return SyncVectorEnv([lambda: kind(render_mode)] * num_envs, autoreset_mode=mode)

    return make


envs.register_env("drawn", Drawn)
for kind in (Window, WithoutRender):
    envs.register_env(kind.__name__, kind)
envs.register_vector_env("vector_WithoutRender", vector_of(WithoutRender))
envs.register_parallel_env("DrawnMatch", DrawnMatch)
for vector_mode in AutoresetMode:
    envs.register_vector_env(f"drawn_{vector_mode.name}", vector_of(Drawn, vector_mode))


def watch(env_id, num_steps, num_envs=1, seed=0, **options):
    """The group, closed, and of each step: pictures, returns, a copy of the observations, the result and episodes."""
    group = make_rendered_group(env_id, num_envs, EnvOptions(**options), seed=3, first_env_idx=0)
    rng = np.random.default_rng(seed)
    memory, steps = Memory(group), []
    try:
        group.reset(memory.rows)
        for _ in range(num_steps):
            result = StepResult.empty(group.num_actors)
            episodes = group.step(*random_actions(group, rng), memory.rows, result)
            steps.append((group.pictures(), group.returns(), memory.taken(), result, episodes))
    finally:
        group.close()
    return group, steps


def colours(pictures):
    return [tuple(picture[0, 0, :2].tolist()) for picture in pictures]


def test_the_pictures_of_a_step_are_of_the_episode_it_belongs_to():
    _, steps = watch("drawn", 1, env_frameskip=2)
    assert colours(steps[0][0][0]) == [(0, 0), (0, 1), (0, 2)]  # one of every repetition of an action
    group, steps = watch("drawn", 6)
    # The second episode is truncated, so the fifth step resets.
    assert [colours(pictures[0]) for pictures, *_ in steps] == [
        *([(0, 0), (0, 1)], [(0, 2)]),
        *([(1, 0), (1, 1)], [(1, 2)], []),
        [(2, 0), (2, 1)],
    ]
    assert [returns for _, returns, *_ in steps] == [[1.0], [0.0], [1.0], [2.0], [0.0], [1.0]]
    assert (group.num_views, group.pictures_per_s) == (1, 25.0)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_shows_each_picture_once_and_in_order(mode):
    group, steps = watch(f"drawn_{mode.name}", 8, num_envs=2)
    shown = [colours(picture for pictures, *_ in steps for picture in pictures[n]) for n in range(2)]
    assert shown[0] == shown[1] == sorted(set(shown[0]))
    ends_are_seen = mode is not AutoresetMode.SAME_STEP
    assert ((0, 2) in shown[0]) == ends_are_seen
    assert {(0, 0), (0, 1), (1, 0), (1, 1)} <= set(shown[0])
    assert group.num_views == 1


def test_a_match_has_one_picture_or_else_what_each_agent_observes():
    whole, steps = watch("DrawnMatch", 3)
    assert (whole.num_views, len(steps[0][0])) == (1, 1)
    eyes, steps = watch("toy_match_counting", 12, num_envs=2)
    assert (eyes.num_views, len(steps[0][0])) == (2, 4)
    for pictures, *_, result, _ in steps:
        assert all(len(pictures[n]) >= 1 for n in np.flatnonzero(result.valid))


def test_the_returns_of_a_match_are_those_that_its_episodes_report():
    _, steps = watch("toy_match_counting", 40, env_kwargs='{"num_agents": 3, "episodes_per_match": 3}')
    ended = 0
    before = [0.0] * 3
    for _, returns, _, result, episodes in steps:
        for episode in episodes:
            ended += 1
            n = episode.actor_idx
            assert episode.episode_return == before[n] + result.reward[n]
        before = returns
    assert ended > 5


@pytest.mark.parametrize("env_id", ["Window", "WithoutRender", "vector_WithoutRender"])
def test_an_environment_without_pictures_of_its_own_is_drawn_from_its_observations(env_id):
    group, steps = watch(env_id, 3)
    assert group.num_views == group.num_actors
    assert all(picture.shape[0] % 24 == picture.shape[1] % 24 == 0 for picture in steps[0][0][0])


def test_numbers_are_drawn_as_cells_between_their_bounds_or_with_0_in_the_middle():
    space = gym.spaces.Dict(a=gym.spaces.Box(-2.0, 2.0, (3,)), b=gym.spaces.Box(-np.inf, np.inf, (20,)))
    numbers = np.r_[-1e6, -3, np.zeros(15), 3, 1e6, 0]
    picture = ObsPainter("test", space).draw({"a": np.array([-2.0, 0.0, 2.0]), "b": numbers})
    assert picture.shape == (3 * 24, 16 * 24, 3)
    centres = picture[12::24, 12::24, 0]
    assert centres[0, :3].tolist() == [0, 127, 255]
    bright = [*centres[1, :3].tolist(), *centres[2, 1:3].tolist()]
    assert bright == sorted(set(bright))
    assert (bright[0], bright[2]) == (0, 127)


@pytest.mark.parametrize(("shape", "last"), [((84, 84, 4), 3), ((4, 84, 84), 3), ((64, 64, 3), None), ((9, 64, 64), 6)])
def test_of_a_stack_of_frames_the_last_one_is_drawn(shape, last):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    picture = ObsPainter("test", gym.spaces.Box(0, 255, shape, np.uint8)).draw(image)
    channels_last = image if shape[2] <= shape[0] else image.transpose(1, 2, 0)
    expected = {3: channels_last[..., 3:].repeat(3, 2) if last == 3 else None, 6: channels_last[..., 6:]}
    np.testing.assert_array_equal(picture, image if last is None else expected[last])


@pytest.mark.parametrize("shape", ["8, 6", "8, 6, 4", "0, 6, 3"])
def test_what_is_no_picture_is_said_in_one_sentence(shape):
    with pytest.raises(UsageError, match=rf"render\(\) returned uint8 of shape \({shape}\)"):
        watch("drawn", 1, env_kwargs=f'{{"shape": [{shape}]}}')


def test_atari_is_filmed_in_colour_while_the_policy_sees_its_own_frames():
    options = {"atari_sticky": 0.25, "env_kwargs": '{"max_num_frames_per_episode": 202}'}
    group, steps = watch("atari_space_invaders", 110, num_envs=2, **options)
    assert (group.num_views, group.pictures_per_s) == (1, 60.0)
    num_ended, differences = 0, []
    for pictures, _, obs, result, episodes in steps:
        num_ended += len(episodes)
        for n in np.flatnonzero(result.valid):
            assert len(pictures[n]) in (1, 2, 4, 5)  # a game may end within a step
            screen = pictures[n][-1]
            assert screen.shape == (210, 160, 3)
            if len(pictures[n]) >= 4:
                grey = Image.fromarray(screen).convert("L").resize((84, 84), Image.Resampling.BOX)
                differences.append(abs(np.asarray(grey, float) - obs["obs"][n][-1]).mean())
    assert num_ended >= 2
    assert max(differences) < 3.0  # of 255: the emulator's greys are not quite those of Pillow


def test_a_doom_game_is_filmed_without_the_policy_seeing_a_difference():
    env_id = "doom_basic"
    group, steps = watch(env_id, 90)
    native = make_group(env_id, 1, EnvOptions(), seed=3, first_env_idx=0)
    rng = np.random.default_rng(0)
    memory, result = Memory(native), StepResult.empty(1)
    native.reset(memory.rows)
    num_pictures = set()
    for pictures, _, obs, filmed, episodes in steps:
        assert native.step(*random_actions(native, rng), memory.rows, result) == episodes
        np.testing.assert_array_equal(obs["obs"], memory.taken()["obs"])
        assert filmed.reward == result.reward
        assert all(picture.shape == (480, 640, 3) for picture in pictures[0])
        if not filmed.first[0]:
            num_pictures.add(len(pictures[0]))
    native.close()
    assert num_pictures == {4, 5}  # every tic, and what the episode began with
    assert (group.num_views, group.pictures_per_s) == (1, 35.0)


def test_a_doom_match_is_filmed_by_what_the_policy_sees_every_fourth_pixel_of():
    group, steps = watch("doom_duel_bots", 20, doom_match_s=1.0)
    assert (group.num_views, group.pictures_per_s) == (1, 35.0)
    for pictures, *_, obs, result, _ in steps:
        if not result.valid[0]:
            assert pictures == [[]]
            continue
        assert len(pictures[0]) in (1, 2, 3)
        small = pictures[0][-1][3::4, 0::4]
        rows, columns = np.arange(72) * 120 // 72, np.arange(128) * 160 // 128
        np.testing.assert_array_equal(obs["obs"][0], small[np.ix_(rows, columns)])
