"""Atari games on ALE's own C++ vector environment, which also does the preprocessing.

Three spellings name a game; all of them get the standard preprocessing (84x84 grey, the brighter of the last
two frames, 4 decisions stacked, frameskip 4) and 30 minutes of play at most (108,000 frames):

- `atari_breakout`, and its alias `BreakoutNoFrameskip-v4`: every action is carried out;
- `ALE/Breakout-v5`: the emulator repeats the previous action with probability 0.25 ("sticky actions",
  Machado et al. 2018, https://arxiv.org/abs/1709.06009).

An episode begins with 1 to 30 frames of no action, the last of which presses FIRE where the game has that
button. Observations are [4, 84, 84] uint8, the oldest frame first.

The vector environment shows only the frames that it was asked for. So a film of a game needs a twin with the same seed
and the same actions, which is therefore the same game. The twin draws each frame as the console did.
"""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
from ale_py.vector_env import AtariVectorEnv  # registers the games with Gymnasium

from sf.envs.atari.preprocessing import FRAMES_PER_S, FRAMESKIP, require_value
from sf.envs.entries import describer
from sf.envs.group import EnvSpec, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.options import EnvOptions
from sf.envs.rendering.film import Film, FilmedGroup
from sf.envs.seeding import env_seed

_SCREEN = {"stack_num": 1, "grayscale": False, "img_height": 210, "img_width": 160, "maxpool": False, "frameskip": 1}


def _games() -> dict[str, tuple[str, float]]:
    """Environment id -> (name of the ROM, default probability of a sticky action)."""
    games = {}
    for env_id, spec in gym.registry.items():
        if spec.entry_point == "ale_py.env:AtariEnv" and re.search("(^ALE/.*-v5|NoFrameskip-v4)$", env_id):
            games[env_id] = (spec.kwargs["game"], spec.kwargs["repeat_action_probability"])
    return games | {f"atari_{game}": (game, 0.0) for game, _ in games.values()}


_GAMES = _games()
ENV_IDS = tuple(sorted(_GAMES))


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> AtariGroup:
    """`core`: the core that the emulators' thread is pinned to.

    `options.kwargs` are keyword arguments of `AtariVectorEnv`. Raises UsageError for one that a group does
    not leave to the user.
    """
    arguments = _arguments(env_id, num_envs, options, core)
    return AtariGroup(
        AtariVectorEnv(**arguments), arguments["frameskip"], options, _seeds(num_envs, seed, first_env_idx)
    )


describe = describer(make_group)  # it loads the ROM once, as the number of actions is the game's


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Raises UsageError as `make_group` does."""
    arguments = _arguments(env_id, num_envs, options, core=None)
    camera = AtariCamera(**arguments)
    group = AtariGroup(camera, arguments["frameskip"], options, _seeds(num_envs, seed, first_env_idx))
    return FilmedGroup(group, [camera], FRAMES_PER_S)


def _arguments(env_id: str, num_envs: int, options: EnvOptions, core: int | None) -> dict[str, Any]:
    game, sticky = _GAMES[env_id]
    for name, value in options.kwargs.items():
        require_value(env_id, name, value)
    return {
        "game": game,
        "num_envs": num_envs,
        "num_threads": 1,  # the processes of the trainer are its parallelism
        "thread_affinity_offset": -1 if core is None else core,
        "frameskip": options.env_frameskip or FRAMESKIP,
        "repeat_action_probability": sticky if options.atari_sticky is None else options.atari_sticky,
        # The group does both itself: ALE would hide the score, and restart the game with every lost life.
        "reward_clipping": False,
        "episodic_life": False,
        **options.kwargs,
    }


def _seeds(num_envs: int, seed: int, first_env_idx: int) -> list[int]:
    return [env_seed(seed, first_env_idx + n) for n in range(num_envs)]


class AtariGroup:
    """E copies of one game.

    With `atari_episodic_life` the loss of a life is a termination for the learner, while the game, its score
    and its Episode go on. A finished game is reset by the next step, whose action is ignored (not valid).
    """

    def __init__(
        self, env: AtariVectorEnv | AtariCamera, frameskip: int, options: EnvOptions, seeds: list[int]
    ) -> None:
        self._env = env
        self._episodic_life = options.atari_episodic_life
        self._clip_rewards = options.atari_clip_rewards
        self._seeds = np.array(seeds)
        obs_space = gym.spaces.Dict({"obs": env.single_observation_space})
        self.spec = EnvSpec(
            obs_space,
            env.single_action_space,
            frameskip=frameskip,
            env_obs_space=env.single_observation_space,
            action_names=(tuple(action.name for action in env.ale.get_action_set()),),
        )
        self.num_actors = env.num_envs
        self._ended = np.zeros(self.num_actors, bool)  # games that the next step resets
        self._lives = np.zeros(self.num_actors, np.int32)
        self._first_frame = np.zeros(self.num_actors, np.int64)  # the frame of the first decision
        self._score = np.zeros(self.num_actors)
        self._num_steps = np.zeros(self.num_actors, np.int64)

    def reset(self, obs: ObsRows) -> None:
        frames, info = self._env.reset(seed=self._seeds)
        self._ended[:] = False
        self._start_games(np.ones(self.num_actors, bool), info)
        self._write(frames, obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        frames, points, game_over, time_over, info = self._env.step(np.ascontiguousarray(discrete[:, 0]))
        restarted = self._ended
        points[restarted] = 0  # what the last step of the previous game had left there
        life_lost = (info["lives"] < self._lives) & ~restarted
        terminated = game_over | life_lost if self._episodic_life else game_over

        result.reward[:] = points.clip(-1, 1) if self._clip_rewards else points
        result.terminated[:] = terminated
        np.logical_and(time_over, ~terminated, out=result.truncated)
        np.logical_not(restarted, out=result.valid)
        self._ended = game_over | time_over
        # A life lost begins an episode with the very next observation, a new game only after its reset.
        np.logical_or(restarted, terminated & ~self._ended, out=result.first)

        self._score += points
        self._num_steps += 1
        self._lives[:] = info["lives"]
        if restarted.any():
            self._start_games(restarted, info)
        self._write(frames, obs)
        return [self._finished_game(n, info) for n in np.flatnonzero(self._ended).tolist()]

    def close(self) -> None:
        self._env.close()
        del self._env  # frees the emulators and ends their thread

    def _start_games(self, which: np.ndarray, info: dict[str, np.ndarray]) -> None:
        self._lives[which] = info["lives"][which]
        self._first_frame[which] = info["episode_frame_number"][which]
        self._score[which] = 0.0
        self._num_steps[which] = 0

    def _finished_game(self, n: int, info: dict[str, np.ndarray]) -> Episode:
        num_frames = int(info["episode_frame_number"][n] - self._first_frame[n])
        return Episode(n, float(self._score[n]), int(self._num_steps[n]), num_frames)

    def _write(self, frames: np.ndarray, obs: ObsRows) -> None:
        for frame_stack, row in zip(frames, obs["obs"], strict=True):
            row[...] = frame_stack


class AtariCamera:
    """Stands in for the `AtariVectorEnv` of a group, and films each game in full colour, at every frame."""

    def __init__(self, game: str, num_envs: int, **kwargs: Any) -> None:
        """kwargs: of the games that are played."""
        self._env = AtariVectorEnv(game, num_envs, **kwargs)
        self._twins = [AtariVectorEnv(game, 1, **{**kwargs, **_SCREEN}) for _ in range(num_envs)]
        self._frameskip = kwargs["frameskip"]
        self._ended = np.zeros(num_envs, bool)  # the next step resets them
        self._latest = [np.zeros((210, 160, 3), np.uint8)] * num_envs
        self.num_envs = num_envs
        self.single_observation_space = self._env.single_observation_space
        self.single_action_space = self._env.single_action_space
        self.ale = self._env.ale
        self.films = [Film() for _ in range(num_envs)]
        self._returns = np.zeros(num_envs)

    def reset(self, *, seed: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        self._returns[:] = 0.0
        self._ended[:] = False
        for n, twin in enumerate(self._twins):
            screens, _ = twin.reset(seed=seed[n : n + 1])
            self._begin(n, screens)
        return self._env.reset(seed=seed)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        frames, points, terminated, truncated, info = self._env.step(actions)
        for n, twin in enumerate(self._twins):
            if self._ended[n]:
                screens, *_ = twin.step(actions[n : n + 1])
                self._begin(n, screens)
            else:
                same = self._play(n, actions[n : n + 1])
                assert same == (points[n], terminated[n], truncated[n]), "the twin plays another game"
                self._returns[n] += points[n]
        self._ended = terminated | truncated
        self._returns[self._ended] = 0.0
        return frames, points, terminated, truncated, info

    def returns(self) -> list[float]:
        return self._returns.tolist()

    def close(self) -> None:
        self._env.close()
        for twin in self._twins:
            twin.close()
        del self._env, self._twins, self.ale  # frees the emulators and ends their threads

    def _begin(self, n: int, screens: np.ndarray) -> None:
        self._latest[n] = screens[0, 0].copy()
        self.films[n].begin(self._latest[n])

    def _play(self, n: int, action: np.ndarray) -> tuple[float, bool, bool]:
        """Returns points, terminated and truncated."""
        total = 0.0
        for _ in range(self._frameskip):
            screens, points, terminated, truncated, _ = self._twins[n].step(action)
            total += points[0]
            screen = screens[0, 0].copy()
            # Some things are drawn on every second frame only: on a television they do not flicker.
            self.films[n].add(np.maximum(screen, self._latest[n]))
            self._latest[n] = screen
            if terminated[0] or truncated[0]:
                break
        return total, terminated[0], truncated[0]
