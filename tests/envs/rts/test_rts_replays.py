"""Snapshots and replays as files."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from rts_games import begun, wander

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


def test_a_replay_reproduces_its_game_to_the_bit(recorded):
    path, _ = recorded
    assert path.stat().st_size < 4000
    *_, games = Replay.load(path).games()
    assert games.winner[0] in (0, 1, 2)


def test_an_environment_plays_a_replay_whatever_is_chosen(recorded):
    path, last = recorded
    env = RtsEnv(replay=str(path))
    env.reset()
    is_over = False
    while not is_over:
        obs, _, is_over, _, _ = env.step(0)
    np.testing.assert_array_equal(obs, last)


def test_a_replay_is_filmed(recorded):
    options = EnvOptions(env_kwargs=f'{{"replay": "{recorded[0]}"}}')
    group = make_rendered_group("rts_mini", 1, options, seed=0, first_env_idx=0)
    obs = {key: list(rows) for key, rows in obs_arrays(group.spec.obs_space, 1).items()}
    from sf.envs import StepResult  # noqa: PLC0415

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
    ("change", "sentence"),
    [
        (lambda choices: choices[:5], "no commands after 5 decisions, but its game goes on"),
        (lambda choices: np.concatenate([choices, choices]), "56 decisions, but its game ends after 28"),
        (lambda choices: choices + 9, "a command of the replay is none of its game"),
        (lambda choices: choices.repeat(2, 2), "not int8 of decisions, players and 1"),
        (lambda choices: choices.astype(np.int64), "are int64"),
        (lambda choices: choices[:0], r"of shape \(0, 1, 1\)"),
    ],
)
def test_a_replay_whose_commands_were_changed_is_refused_before_it_is_shown(recorded, tmp_path, change, sentence):
    replay, path = Replay.load(recorded[0]), tmp_path / "changed.rts"
    object.__setattr__(replay, "choices", change(replay.choices))  # what a file may hold, and no `Replay`
    replay.save(path)
    with pytest.raises(UsageError, match=sentence):
        RtsEnv(replay=str(path))


def test_a_replay_that_ends_in_another_state_is_refused(recorded, tmp_path):
    path = tmp_path / "other.rts"
    dataclasses.replace(Replay.load(recorded[0]), end="0" * 64).save(path)
    with pytest.raises(UsageError, match="ends in another state than its game did: name a file"):
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


def test_an_environment_that_plays_a_replay_restores_nothing_and_names_no_opponent(recorded):
    env = RtsEnv(replay=str(recorded[0]), opponent="mixed")
    env.reset(seed=1)
    with pytest.raises(UsageError, match="plays a replay"):
        env.restore(env.snapshot())
    assert not [name for name in _finish(env) if name.startswith("won_against")]


def test_a_replay_holds_no_units_and_commands_of_ones_own_and_is_not_written_again(recorded, tmp_path):
    units = (*UNITS[:-1], UNITS[-1]._replace(hp=70))
    for name, where in (("replays", tmp_path), ("replay", recorded[0])):
        for own in ({"units": units}, {"commands": {"nothing": lambda world, player: None}}):
            with pytest.raises(UsageError, match="leave replays and replay out, or commands and units"):
                RtsEnv(**{name: str(where)}, **own)
    with pytest.raises(UsageError, match="leave one out"):
        RtsEnv(replay=str(recorded[0]), replays=str(tmp_path))


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


def test_a_replay_does_not_say_where_files_lie(recorded):
    assert Replay.load(recorded[0]).settings.replays is None
    assert str(recorded[0].parent).encode() not in np.load(recorded[0])["head"].tobytes()


def test_each_damage_to_a_file_is_one_sentence(recorded, tmp_path):
    whole, rng, path = recorded[0].read_bytes(), np.random.default_rng(1), tmp_path / "damaged.rts"
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with contextlib.suppress(UsageError):
            Replay.load(path)


@pytest.mark.parametrize("content", [b"", b"PK nonsense", b"\x80\x04K\x01."])
def test_a_file_that_is_no_replay_gets_a_sentence(content, tmp_path):
    path = tmp_path / "no.rts"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is no replay"):
        Replay.load(path)


def test_a_replay_of_another_version_or_with_objects_is_refused(recorded, tmp_path):
    with np.load(recorded[0]) as arrays:
        held = dict(arrays)
    ours, theirs = f'"version": {VERSION}'.encode(), b'"version": 0'
    held["head"] = np.frombuffer(held["head"].tobytes().replace(ours, theirs), np.uint8)
    for name, change in (("version", {}), ("objects", {"head": np.array([{}], object)})):
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{**held, **change}, allow_pickle=True)
        with pytest.raises(UsageError, match="of version 0" if name == "version" else "is no replay"):
            Replay.load(path)


def test_a_replay_of_another_game_is_refused(recorded):
    with pytest.raises(UsageError, match="give the same settings"):
        RtsEnv("flag", replay=str(recorded[0]))


def test_a_missing_replay_gets_a_sentence(tmp_path):
    with pytest.raises(UsageError, match="is no replay"):
        RtsEnv(replay=str(Path(tmp_path) / "nowhere.rts"))


def test_what_is_no_snapshot_is_refused():
    games = begun(1)
    for data in (b"", b"sf-rts[1, 20, 64]\nxx", games.snapshot(0)[:-20], games.snapshot(0)[10:]):
        with pytest.raises(UsageError, match="no snapshot"):
            games.restore(0, data)
    with pytest.raises(UsageError, match="no snapshot"):
        Games(Settings(room=32), [1]).restore(0, games.snapshot(0))


def test_an_environment_goes_on_from_a_snapshot():
    env, other = RtsEnv(), RtsEnv()
    env.reset(seed=1)
    other.reset(seed=2)
    for action in (1, 2, 1, 3, 1):
        obs, *_ = env.step(action)
    np.testing.assert_array_equal(other.restore(env.snapshot()), obs)
    for action in (3, 4, 6):
        np.testing.assert_array_equal(env.step(action)[0], other.step(action)[0])


def test_wandering_on_from_a_file_is_possible(tmp_path):
    games = begun(7)
    wander(games, 5, 0)
    (tmp_path / "state").write_bytes(games.snapshot(0))
    other = begun(8)
    other.restore(0, (tmp_path / "state").read_bytes())
    assert other.ticks[0] == games.ticks[0] == 250
