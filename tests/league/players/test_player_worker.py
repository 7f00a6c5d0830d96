"""The player worker's part of a request: whose actions it computes, and what it leaves in the rows."""

from dataclasses import replace
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from untrained import untrained

from sf.config import Config, ModelConfig
from sf.envs import EnvSpec, describe
from sf.envs.field_types import checked
from sf.evaluation.play.player import Actions
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.league.players import worker
from sf.league.players.worker import PlayerWorkerArgs, _Players, _Seated
from sf.model.compiled_acting import acting_of
from sf.shared.counters import Counters
from sf.shared.requests import Channels
from sf.shared.seats import Seats
from sf.shared.slots import SlotPool
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint

SPEC = EnvSpec(
    gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (2,)), action_mask=gym.spaces.Box(0, 1, (3,), np.int8)),
    gym.spaces.Discrete(3),
    num_agents=2,
)
NUM_ACTORS, POLICY, PLAYERS = 4, 0, 1
ROW = 1


class Recorder:
    """Actors that always take 2, and remember who was asked, and what those saw."""

    def __init__(self):
        self.asked = []

    def act(self, obs, first, who=None, deterministic=False):
        self.asked.append((who.tolist(), obs["obs"][:, 0].tolist()))
        num = len(who)
        return Actions(np.full((num, 1), 2, np.int32), np.zeros((num, 0), np.float32), np.ones(num, np.float32))


@pytest.fixture
def table(tmp_path):
    """A group of four actors has asked. A seat plays 1 and 3; of these 3 alone has a choice."""
    channels = Channels.allocate(
        num_workers=1,
        groups_per_worker=1,
        slots_per_group=NUM_ACTORS,
        actors_per_group=NUM_ACTORS,
        policy_workers_per_policy=1,
        has_seats=True,
    )
    pool = SlotPool.allocate(
        SPEC,
        4,
        inboxes=channels.inboxes,
        groups_per_worker=1,
        slots_per_group=NUM_ACTORS,
        actors_per_group=NUM_ACTORS,
        has_seats=True,
    )
    rows = pool.arrays
    rows["actor"][:] = range(NUM_ACTORS)
    for name in ("discrete", "log_prob", "value", "policy_version"):
        rows[name][:] = 7
    rows["obs/obs"][:, ROW, 0] = range(NUM_ACTORS)
    rows["obs/action_mask"][[0, 3], ROW] = 1
    channels.tables["slots"][0] = range(NUM_ACTORS)
    channels.tables["policy"][0] = POLICY, PLAYERS, POLICY, PLAYERS
    args = PlayerWorkerArgs(
        directory=tmp_path,
        trusts=False,
        opponents={},
        spec=SPEC,
        model=ModelConfig(),
        bfloat16=False,
        device="cpu",
        num_threads=1,
        seed=0,
        seed_key=(0, 0),
        num_actors=NUM_ACTORS,
        seats=Seats.allocate(1, 1, 1),
        rows=rows,
        channel=channels.of_policy_worker(channels.player_worker_idx),
        counters=Counters.allocate(1).row(0),
    )
    channels.of_worker(0).ask(0, ROW, [POLICY, PLAYERS])
    return _Players(args, reports=None), channels, rows


@pytest.mark.parametrize(
    ("remembers", "all_wait", "asked"), [(False, False, [3]), (True, False, [1, 3]), (False, True, [])]
)
def test_who_waits_is_asked_where_the_player_remembers(table, remembers, all_wait, asked):
    players, channels, rows = table
    if all_wait:
        rows["obs/action_mask"][:] = 0
    recorder = Recorder()
    players._seated[0] = _Seated(recorder, remembers)
    assert players.act(np.array([0])) == 2
    assert recorder.asked == ([(asked, asked)] if asked else [])
    assert channels.tables["answered"][PLAYERS, 0] == 1
    assert channels.groups_with_answers(0) == []  # that of the policy is not there
    assert rows["discrete"][:, ROW, 0].tolist() == [7, 2 if 1 in asked else 0, 7, 2 if 3 in asked else 0]
    for name in ("log_prob", "value", "policy_version"):
        assert rows[name][:, ROW].tolist() == [7, 0, 7, 0]
        assert (np.delete(rows[name], ROW, axis=1) == 7).all()


def test_of_a_player_that_cannot_be_loaded_no_move_is_made_and_the_matches_go_on(table):
    players, channels, rows = table
    seats, recorder, reported = players._seats, Recorder(), []
    players._reports = SimpleNamespace(send=reported.append)
    players._seated[0] = _Seated(recorder, remembers=True)
    checkpoint.write(players._args.directory / "stranger.safetensors", Checkpoint({}, {"env_steps": 0}))
    seats.give(0, 0, "stranger")
    players.take_seats()
    assert seats.has_failed(0)
    (failed,) = reported
    assert failed.name == "stranger"
    assert "env_steps" in failed.text
    assert players.act(np.array([0])) == 0
    assert recorder.asked == []
    assert (rows["discrete"] == 7).all()
    assert channels.tables["answered"][PLAYERS, 0] == 1


def test_of_all_that_a_seat_was_given_to_since_the_last_look_one_is_loaded_and_once(table, monkeypatch):
    players, _, _ = table
    loaded = []
    monkeypatch.setattr(players, "_load", lambda name, seat, turn: loaded.append((name, seat, turn)))
    players._reports = SimpleNamespace(send=lambda report: None)
    for name in ("first", "second", "third"):
        players._seats.give(0, 0, name)
    for _ in range(3):
        players.take_seats()
    assert loaded == [("third", 0, 3)]


class Interrupted(Recorder):
    """While it thinks, the rollout worker dies, and its slots are begun anew."""

    def __init__(self, channels):
        super().__init__()
        self._channels = channels

    def act(self, *args, **kwargs):
        self._channels.recover_worker(0)
        return super().act(*args, **kwargs)


@pytest.mark.parametrize("dies", ["before", "meanwhile"])
def test_nothing_is_written_for_a_rollout_worker_that_has_died(table, dies):
    players, channels, rows = table
    players._seated[0] = _Seated(Interrupted(channels), remembers=True)
    if dies == "before":
        channels.recover_worker(0)
    players.act(np.array([0]))
    assert rows["discrete"][:, ROW, 0].tolist() == ([7, 7, 7, 7] if dies == "before" else [7, 0, 7, 0])


def test_snapshots_of_one_seat_have_one_network_and_each_its_own_weights(table, monkeypatch):
    """PyTorch never frees the weights that a program was given."""
    players, _, _ = table
    saved = {name: untrained("CartPole-v1", seed) for seed, name in enumerate(("first", "second"))}
    for name, snapshot in saved.items():
        checkpoint.write(players._args.directory / f"{name}.safetensors", snapshot)
    config = Config().replace(**checked(Config, saved["first"].state["config"], "first"))
    spec = describe("CartPole-v1", config.environment)
    players._args = replace(players._args, model=config.model, spec=spec)
    made = []
    monkeypatch.setattr(worker, "acting_of", lambda *args: made.append(args) or acting_of(*args))
    loaded = [players._load(name, seat, turn) for seat, turn, name in [(0, 1, "first"), (1, 1, "first")]]
    loaded.append(players._load("second", 0, 2))
    assert len(made) == 2
    assert loaded[2].acting is loaded[0].acting is not loaded[1].acting
    obs, first = {"obs": np.ones((NUM_ACTORS, 4), np.float32)}, np.ones(NUM_ACTORS, bool)
    values = [each.actors.act(obs, first).value[0] for each in loaded]
    expected = [
        TorchPolicy(saved[name], name).actors(1, 0).act({"obs": obs["obs"][:1]}, first[:1]).value[0]
        for name in ("second", "first", "second")
    ]
    assert values == pytest.approx(expected, rel=1e-4)
    assert expected[0] != pytest.approx(expected[1], rel=1e-2)


def test_what_is_drawn_differs_between_seats_turns_and_starts_of_the_worker(table):
    players, _, _ = table
    seeds = []
    drawing = SimpleNamespace(player=lambda: SimpleNamespace(actors=lambda num_actors, seed: seeds.append(seed)))
    players._args = replace(players._args, opponents={"random": drawing})
    for seed_key in [(0, 0), (0, 1), (500, 0)]:
        players._args = replace(players._args, seed_key=seed_key)
        for seat, turn in [(0, 1), (1, 1), (0, 2)]:
            players._load("random", seat, turn)
    assert len(set(seeds)) == 9
