from __future__ import annotations

import sys

import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions


def _make(name: str, num_envs: int = 3, seed: int = 0, **options: object) -> envs.EnvGroup:
    return envs.make_group(f"envpool:{name}", num_envs, EnvOptions(**options), seed=seed, first_env_idx=0)


def test_where_it_is_missing_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(ValueError, match=r"env 'envpool:Pong-v5': .*envpool.*: pip install 'envpool>=1\.2,<2'"):
        envs.describe("envpool:Pong-v5", EnvOptions())


class TestInstalled:
    """What EnvPool itself does."""

    @pytest.fixture(autouse=True)
    def _envpool(self) -> None:
        pytest.importorskip("envpool")

    def test_a_truncated_episode_shows_its_final_observation_before_the_next_one_begins(self) -> None:
        _, steps = play(_make("CartPole-v1", env_kwargs='{"max_episode_steps": 5}'), 14)
        for t in (4, 10):
            assert steps[t].result.truncated.all()
            assert not steps[t].result.terminated.any()
            assert (np.abs(steps[t].obs["obs"]).max(axis=1) > 0.05).all()  # no state that an episode begins with
            assert not steps[t + 1].result.valid.any()
            assert steps[t + 1].result.first.all()
            assert (steps[t + 1].result.reward == 0).all()
            assert (np.abs(steps[t + 1].obs["obs"]) <= 0.05).all()
            assert [episode.num_steps for episode in steps[t].episodes] == [5, 5, 5]

    def test_a_terminated_episode_is_not_bootstrapped(self) -> None:
        _, steps = play(_make("CartPole-v1"), 80)
        ended = [(t, n) for t, step in enumerate(steps) for n in np.flatnonzero(step.result.terminated)]
        assert ended
        assert not any(step.result.truncated.any() for step in steps)
        for t, n in ended:
            assert abs(steps[t].obs["obs"][n, 2]) > 0.2 or abs(steps[t].obs["obs"][n, 0]) > 2.4  # the pole has fallen

    def test_the_seed_decides_what_happens(self) -> None:
        (first, _), (again, _), (other, _) = (play(_make("CartPole-v1", seed=seed), 3) for seed in (1, 1, 2))
        assert (first["obs"] == again["obs"]).all()
        assert not (first["obs"] == other["obs"]).all()

    def test_frames_of_a_game_are_counted_with_its_frameskip(self) -> None:
        _, steps = play(_make("Pong-v5", env_frameskip=2, env_kwargs='{"max_episode_steps": 7}'), 8)
        assert [episode.num_frames for episode in steps[6].episodes] == [14, 14, 14]
        assert envs.describe("envpool:Pong-v5", EnvOptions()).frameskip == 4

    def test_bounds_that_mean_infinity_are_infinite(self) -> None:
        group = _make("BipedalWalker-v3")
        assert (group.spec.obs_space["obs"].low == -np.inf).all()
        play(group, 3)

    @pytest.mark.parametrize(
        ("name", "kwargs", "sentence"),
        [
            ("Pongg-v5", "{}", "EnvPool has no 'Pongg-v5'"),
            ("CartPole-v1", '{"gravitas": 1}', "env 'envpool:CartPole-v1' with .*'gravitas'"),
            ("IntersectionMultiAgent-v1", "{}", "it has several players"),
        ],
    )
    def test_what_is_not_supported_is_said(self, name: str, kwargs: str, sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            _make(name, env_kwargs=kwargs)
