"""Snapshots and replays as files."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest
from rts_games import begun

from sf.envs import EnvOptions, StepResult, UsageError, make_group, make_rendered_group
from sf.envs.rts import UNITS, Replay, RtsEnv
from sf.envs.rts.games import VERSION, Games
from sf.envs.rts.settings import Settings
from sf.envs.spaces.observations import obs_arrays


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A replay file, and the last observation of its game."""
    folder = tmp_path_factory.mktemp("replays")
    env, rng = RtsEnv(replays=str(folder), opponent="hit_and_run"), np.random.default_rng(0)
    env.reset(seed=4)
    is_over = False
    while not is_over:
        obs, _, is_over, _, _ = env.step(rng.integers(9))
    [path] = folder.iterdir()
    return path, obs


def test_an_environment_plays_a_replay_to_the_bit_whatever_is_chosen(recorded):
    path, last = recorded
    assert path.stat().st_size < 4000
    assert str(path.parent).encode() not in np.load(path)["head"].tobytes()  # nor does it say where files are
    env = RtsEnv(replay=str(path))
    env.reset()
    is_over = False
    while not is_over:
        obs, _, is_over, _, _ = env.step(0)
    np.testing.assert_array_equal(obs, last)
    with pytest.raises(UsageError, match="replay"):
        env.restore(env.snapshot())


def test_a_replay_is_filmed(recorded):
    options = EnvOptions(env_kwargs=f'{{"replay": "{recorded[0]}"}}')
    group = make_rendered_group("rts_mini", 1, options, seed=0, first_env_idx=0)
    obs = {key: list(rows) for key, rows in obs_arrays(group.spec.obs_space, 1).items()}
    group.reset(obs)
    group.step(np.zeros((1, 1), np.int32), np.zeros((1, 0), np.float32), obs, StepResult.empty(1))
    [pictures] = group.pictures()
    assert len(pictures) == 11  # the first one, and one for every five of 50 ticks
    assert pictures[0].shape == (500, 480, 3)


def test_a_replay_of_a_match_against_a_bot_reproduces_it(tmp_path):
    options = EnvOptions(env_kwargs={"replays": str(tmp_path), "max_ticks": 4000})
    group = make_group("rts_mini_match", 1, options, seed=5, first_env_idx=0)
    obs, result, rng = obs_arrays(group.spec.obs_space, 2), StepResult.empty(2), np.random.default_rng(0)
    rows = {key: list(array) for key, array in obs.items()}
    group.reset(rows)
    episodes = []
    while not episodes:
        choices = np.array([[rng.integers(9)], [group.spec.bots["simple"]]], np.int32)
        episodes = group.step(choices, np.zeros((2, 0), np.float32), rows, result)
    [path] = tmp_path.iterdir()
    *_, games = Replay.load(path).games()
    assert games.winner[0] == 1
    assert (Replay.load(path).choices[:, 1] < 0).all()


@pytest.mark.parametrize(
    "change",
    [
        {"choices": lambda choices: choices[:5]},
        {"choices": lambda choices: choices + 9},
        {"choices": lambda choices: choices.repeat(2, 2)},
        {"end": lambda end: "0" * 64},
        {"settings": lambda settings: dataclasses.replace(settings, size=30)},
    ],
)
def test_a_replay_that_was_changed_is_refused_before_it_is_shown(recorded, tmp_path, change):
    replay, path = Replay.load(recorded[0]), tmp_path / "changed.rts"
    for name, of in change.items():
        object.__setattr__(replay, name, of(getattr(replay, name)))  # what a file may hold, and no `Replay`
    replay.save(path)
    with pytest.raises(UsageError, match="changed"):
        RtsEnv(replay=str(path))


def _finish(env: RtsEnv) -> dict[str, float]:
    while True:
        _, _, is_over, _, info = env.step(6)
        if is_over:
            return info["episode_stats"]


def test_a_replay_begins_anew_where_its_game_was_restored(tmp_path):
    env = RtsEnv(replays=str(tmp_path))
    env.reset(seed=1)
    for action in (1, 1, 1):
        env.step(action)
    snapshot = env.snapshot()
    for action in (2, 2, 2):
        env.step(action)
    env.restore(snapshot)
    _finish(env)
    fresh = RtsEnv(replays=str(tmp_path))  # in which no game has begun
    fresh.restore(snapshot)
    fresh.step(1)
    _finish(fresh)
    assert [Replay.load(path).start for path in tmp_path.iterdir()] == [snapshot] * 2
    for path in tmp_path.iterdir():
        *_, games = Replay.load(path).games()
        assert games.winner[0] >= 0


def test_a_replay_holds_no_units_and_commands_of_ones_own_and_is_not_written_again(recorded, tmp_path):
    units = (*UNITS[:-1], UNITS[-1]._replace(hp=70))
    for name, where in (("replays", tmp_path), ("replay", recorded[0])):
        for own in ({"units": units}, {"commands": {"nothing": lambda world, player: None}}):
            with pytest.raises(UsageError, match="replays and replay"):
                RtsEnv(**{name: str(where)}, **own)
    for wrong in ({"replays": str(tmp_path)}, {"game": "flag"}):
        with pytest.raises(UsageError, match="replay"):
            RtsEnv(replay=str(recorded[0]), **wrong)


def test_a_game_that_is_over_is_written_once(tmp_path):
    env = RtsEnv(replays=str(tmp_path), max_ticks=100)
    with pytest.raises(UsageError, match="call reset before step"):
        env.step(0)
    env.reset(seed=1)
    _finish(env)
    for _ in range(3):
        with pytest.raises(UsageError, match="call reset before step"):
            env.step(0)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_damaged_file_is_a_usage_error_or_a_replay(recorded, tmp_path):
    whole, rng, path = recorded[0].read_bytes(), np.random.default_rng(1), tmp_path / "damaged.rts"
    for at in range(0, len(whole), 6):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with contextlib.suppress(UsageError):
            Replay.load(path)
    for content in (b"", b"PK nonsense", b"\x80\x04K\x01."):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="not a replay"):
            Replay.load(path)


def test_a_replay_of_another_version_or_with_objects_is_refused(recorded, tmp_path):
    with np.load(recorded[0]) as arrays:
        held = dict(arrays)
    ours, theirs = f'"version": {VERSION}'.encode(), b'"version": 0'
    held["head"] = np.frombuffer(held["head"].tobytes().replace(ours, theirs), np.uint8)
    for name, change in (("version", {}), ("objects", {"head": np.array([{}], object)})):
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{**held, **change}, allow_pickle=True)
        with pytest.raises(UsageError, match="of version 0" if name == "version" else "not a replay"):
            Replay.load(path)


def test_what_is_no_snapshot_is_refused():
    games = begun(1)
    for data in (b"", b"sf-rts[1, 20, 64]\nxx", games.snapshot(0)[:-20], games.snapshot(0)[10:]):
        with pytest.raises(UsageError, match="snapshot"):
            games.restore(0, data)
    stronger = tuple(unit._replace(hp=60) if unit.name == "worker" else unit for unit in UNITS)
    for other in (
        Games(Settings(room=32), [1]),
        Games(Settings(game="flag"), [1]),
        Games(Settings(), [1], 1, stronger),
    ):
        with pytest.raises(UsageError, match="snapshot"):
            other.restore(0, games.snapshot(0))
