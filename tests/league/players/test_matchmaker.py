"""The league of a run, between the reports of its children: snapshots, seats, the record."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import gymnasium as gym
import pytest
import torch

from sf.config.flags.players import PlayersConfig
from sf.envs import EnvSpec
from sf.league import record
from sf.league.players import league_record
from sf.league.players import snapshots as snapshots_module
from sf.league.players.pool_roles import PoolRoles, names_in_pool
from sf.run.controllers import make_matchmaker
from sf.shared.seats import Seats
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir

SPEC = EnvSpec(gym.spaces.Dict(), gym.spaces.Discrete(2), num_agents=3, agents=("fox", "owl", "hare"))


class Learner:
    """What a learner has put into shared memory, and the parent knows of its progress."""

    def __init__(self):
        self.remembered = None
        self.env_steps = 0
        self.num_waited_for = 0  # actors

    def begin_anew(self):
        self.num_waited_for = 5

    def train_to(self, env_steps):
        self.env_steps = env_steps
        tensors = {"model/weight": torch.full((2,), float(env_steps)), "optimizer/moment": torch.zeros(2)}
        self.remembered = Checkpoint(tensors, {"env_steps": env_steps})

    def read(self):
        return self.remembered


class Leagues:
    """Makes leagues of one run directory, and does what the other processes would."""

    def __init__(self, run_dir, num_policies=1, roles=()):
        self.run_dir = run_dir
        self.num_policies = num_policies
        self.roles = roles
        self.learners = [Learner() for _ in range(num_policies)]
        self.ordered = []
        self.loading_s = 0.0
        self.reference = {}

    def start(self, players=None, **flags):
        common = {"past_share": 0.5, "snapshot_every_env_steps": 1000, "players": tuple(players or ())}
        flags = {"players" if name == "named" else name: value for name, value in flags.items()}
        self.config = PlayersConfig(**{**common, **flags})
        num_mains = self.num_policies - self.config.exploiters
        names, policies = [*(players or ())], self.num_policies
        pool_roles = PoolRoles.of(self.config, SPEC, self.roles, policies, names_in_pool(self.config, names))
        num_each = (pool_roles.most_of_one_role() or self.config.seats) * pool_roles.num_opposed
        self.seats = Seats.allocate(num_each * num_mains, 1, num_mains, pool_roles.num_opposed)
        self.woken = []
        plan = SimpleNamespace(
            config=SimpleNamespace(players=self.config, run=SimpleNamespace(seed=0)),
            num_policies=self.num_policies,
            targets={1: 0} if self.config.exploiters else {},
            entrants=players or {},
            pool_roles=pool_roles,
            reference=self.reference,
        )
        memory = SimpleNamespace(
            plan=plan,
            run_dir=RunDir(self.run_dir),
            seats=self.seats,
            channels=SimpleNamespace(requests=[SimpleNamespace(put=self.woken.append)], player_worker_idx=0),
            recoveries=self.learners,
        )
        progress = SimpleNamespace(has_begun=True, policies=self.learners)
        self.league = make_matchmaker(
            memory, progress, lambda policy_id, **order: self.ordered.append((policy_id, order))
        )
        return self.league

    def load_all(self):
        """As the player worker does."""
        for seat in range(self.seats.num_seats):
            turn = self.seats.turn(seat)
            if turn and not self.seats.has_failed(seat):
                self.seats.has_loaded(seat, turn, self.loading_s)

    def settle(self):
        for _ in range(3):
            self.league.act_if_due()
            self.load_all()
        self.league.act_if_due()

    @property
    def seated(self):
        return {self.seats.name(seat) for seat in range(self.seats.num_seats) if self.seats.tables["is_open"][seat]}

    def end(self, *matches):
        """Rollout workers report these matches, and the league looks. A match: who has played it, and the scores."""
        self.note(*matches)
        self.league.write()

    def note(self, *matches):
        self.league.results.note(matches)

    def rows(self):
        return [json.loads(line) for line in (self.run_dir / "league.jsonl").read_text().splitlines()]


@pytest.fixture
def full_disk(monkeypatch):
    """A context in which the record takes nothing."""

    def full(path, rows):
        raise OSError("No space left on device")

    @contextmanager
    def context():
        with monkeypatch.context() as patch:
            patch.setattr(record, "append", full)
            yield

    return context


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch):
    monkeypatch.setattr(snapshots_module, "_LOOK_FOR_STATE_EVERY_S", 0.0)


@pytest.fixture
def leagues(tmp_path):
    return Leagues(tmp_path)


def idx_of(leagues, name):
    return leagues.num_policies + leagues.league.pool.idx[name]


def test_a_snapshot_is_taken_at_the_start_and_then_every_so_many_steps(leagues):
    league = leagues.start()
    league.act_if_due()
    assert not (leagues.run_dir / "league").exists()  # the learner has nothing yet
    for env_steps in (64, 500, 1063, 1064, 2000, 2500):
        leagues.learners[0].train_to(env_steps)
        league.act_if_due()
    names = sorted(path.name for path in (leagues.run_dir / "league").iterdir())
    assert names == [f"policy_00_{steps:012d}.safetensors" for steps in (64, 1064, 2500)]
    saved = checkpoint.load(leagues.run_dir / "league" / names[1])
    assert saved.tensors.keys() == {"model/weight"}  # it plays, and trains no more
    assert saved.tensors["model/weight"].tolist() == [1064.0, 1064.0]


def test_a_snapshot_is_taken_when_the_pool_is_beaten_by_matches_since_each_actor_has_ended_an_episode(leagues):
    leagues.learners[0].num_waited_for = 3
    for _ in range(2):  # a resumed run begins with matches that are short, too
        league = leagues.start(snapshot_every_env_steps=10**9, snapshot_at_win_rate=0.6)
        leagues.learners[0].train_to(64)
        league.act_if_due()
        past = idx_of(leagues, "policy_00_000000000064")
        won, lost = ((0, past), (1.0, 0.0)), ((past, 0), (1.0, 0.0))
        leagues.end(*[won] * 200)
        league.act_if_due()
        assert len(league.pool.players) == 1
    leagues.learners[0].num_waited_for = 0
    leagues.end(*[won] * 200)  # they may have ended before that
    leagues.end(*[lost] * 81 + [won] * 119)
    leagues.learners[0].train_to(128)
    league.act_if_due()
    assert len(league.pool.players) == 1  # 119 of 200
    leagues.end(*[won] * 2)
    league.act_if_due()
    assert [player.env_steps for player in league.pool.players] == [64, 128]


def test_matches_are_on_the_disk_within_a_second(leagues, monkeypatch):
    monkeypatch.setattr(league_record, "_WRITES_EVERY_S", 60.0)
    league = leagues.start(players={"random": None})
    league.act_if_due()
    assert [row["kind"] for row in leagues.rows()] == ["player"]
    leagues.note(((0, idx_of(leagues, "random")), (1.0, 0.0)))
    league.act_if_due()
    assert len(leagues.rows()) == 1  # the disk has a rest
    monkeypatch.setattr(league_record, "_WRITES_EVERY_S", 0.0)
    league.act_if_due()
    assert [row["kind"] for row in leagues.rows()] == ["player", "match"]


def test_players_get_seats_that_open_when_they_are_loaded(leagues):
    league = leagues.start(players={"random": None})
    league.act_if_due()
    assert leagues.seated == set()
    assert leagues.woken == [0]  # once: the other seat stays empty
    leagues.load_all()
    league.act_if_due()
    assert leagues.seated == {"random"}
    leagues.learners[0].train_to(64)
    leagues.settle()
    assert leagues.seated == {"random", "policy_00_000000000064"}


def test_a_seat_changes_hands_after_its_matches_and_never_during_one(leagues):
    leagues.start(players=dict.fromkeys(("a", "b", "c", "d")), seats=2)
    leagues.settle()
    first, second = leagues.seats.name(0), leagues.seats.name(1)
    assert leagues.seated == {first, second}
    leagues.seats.sit_down(0, 0)
    leagues.end(*[((0, idx_of(leagues, first)), (1.0, 0.0))] * 15)
    leagues.settle()
    assert leagues.seated == {first, second}  # one more
    leagues.end(((0, idx_of(leagues, first)), (1.0, 0.0)))
    leagues.settle()
    assert leagues.seated == {second}  # a match still goes on in the seat
    assert leagues.seats.name(0) == first
    leagues.end(*[((0, idx_of(leagues, second)), (1.0, 0.0))] * 16)
    leagues.settle()
    assert leagues.seated == {second}  # somebody has to play
    leagues.seats.get_up(0, 0)
    leagues.settle()
    assert leagues.seats.turn(0) == 2
    assert leagues.seats.name(0) != second  # who has a seat gets no other one
    assert leagues.seats.turn(1) == 2  # now that the first one is open again


def test_a_player_that_takes_long_to_load_keeps_its_seat_so_long_that_loading_stays_a_small_share(leagues, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    for module in ("league_record", "seat_keeper"):
        monkeypatch.setattr(f"sf.league.players.{module}.time", clock)
    leagues.loading_s = 0.5
    leagues.start(players=dict.fromkeys(("a", "b", "c", "d")), seats=2)
    leagues.settle()
    leagues.end(*[((0, idx_of(leagues, name)), (1.0, 0.0)) for name in leagues.seated] * 16)
    clock.now += 19.9  # in 20 s two seats load for 1 s: one twentieth
    leagues.settle()
    assert leagues.seats.tables["turn"].tolist() == [1, 1]
    clock.now += 0.2
    leagues.settle()
    assert leagues.seats.tables["turn"].tolist() == [2, 2]


def test_a_seat_whose_player_cannot_be_loaded_or_no_more_is_never_open(leagues, said):
    league = leagues.start(players={"gone": None, "lost": None, "here": None}, seats=1)
    seats = leagues.seats
    had_seat = set()
    for _ in range(60):
        league.act_if_due()
        assert not (seats.tables["is_open"][0] and seats.has_failed(0))
        name, turn, is_loaded = seats.name(0), seats.turn(0), seats.is_loaded(0)
        had_seat.add(name)
        # One cannot be loaded, the other one can be, but not by the next player worker.
        if turn and not seats.has_failed(0) and (name == "gone" or (name == "lost" and is_loaded)):
            seats.could_not_load(0, turn)
            for _ in range(2):
                league.player_failed(name, "no such file")
        else:
            leagues.load_all()
    assert leagues.seated == {"here"}
    assert had_seat > {"gone", "here"}
    assert sorted("gone" in sentence for sentence in said) == [False, True]  # each is said once
    leagues.end(((0, idx_of(leagues, "gone")), (1.0, 0.0)))
    assert [row["kind"] for row in leagues.rows()] == ["player"] * 3


@pytest.mark.parametrize("past_share", [0.9, 1.0])
def test_where_no_player_can_be_loaded_a_run_against_players_alone_is_over_and_another_takes_a_snapshot(
    leagues, past_share
):
    league = leagues.start(players={"a": None, "b": None}, past_share=past_share, snapshot_every_env_steps=10**9)
    leagues.learners[0].train_to(64)
    leagues.settle()
    leagues.learners[0].train_to(128)
    leagues.settle()
    assert len(league.pool.idx) == 3
    for name in ("a", "policy_00_000000000064"):
        league.player_failed(name, "no such file")
    assert league.why_over is None
    league.player_failed("b", "no such file")
    assert (league.why_over is not None) == (past_share == 1.0)
    leagues.settle()
    assert [*league.pool.idx][2:] == ["policy_00_000000000064", "policy_00_000000000128"]


def test_the_record_has_every_match_once_also_where_the_disk_was_full(leagues, full_disk, said):
    league = leagues.start(players={"random": None})
    leagues.settle()
    leagues.learners[0].env_steps = 77
    player = idx_of(leagues, "random")
    leagues.note(((0, player), (1.0, -1.0)))
    with full_disk():
        league.write()
        league.write()
    assert len(said) == 1
    leagues.note(((player, 0), (0.5, 0.5)))
    league.write()
    league.write()
    player_row, *matches = leagues.rows()
    assert player_row == {"kind": "player", "name": "random"}
    common = {"kind": "match", "env_steps": 77, "probability": 1.0}
    assert matches == [
        {**common, "players": list(names), "scores": list(scores)}
        for names, scores in ((("policy_00", "random"), (1.0, -1.0)), (("random", "policy_00"), (0.5, 0.5)))
    ]


def test_a_resumed_league_has_the_matches_of_its_record_each_once(leagues):
    leagues.start(players={"random": None})
    leagues.settle()
    player = idx_of(leagues, "random")
    leagues.end(((0, player), (1.0, 0.0)), ((0, player), (2.0, 0.0)))
    league_path = leagues.run_dir / "league.jsonl"
    league_path.write_bytes(league_path.read_bytes()[:-20])  # of the second match, as a kill leaves it
    resumed = leagues.start(players={"random": None})
    leagues.end(((0, player), (5.0, 0.0)))
    resumed.write()
    assert [row["scores"][0] for row in leagues.rows() if row["kind"] == "match"] == [1.0, 5.0]
    assert leagues.start(players={"random": None}).pool.win_rates(0) == {"random": (1.0, 2)}


def test_the_matches_of_a_seat_are_counted_before_it_is_given_away(leagues):
    """However seldom the record is written."""
    league = leagues.start(players=dict.fromkeys("abcdefgh"), seats=2)
    leagues.settle()
    first = leagues.seats.name(0)
    leagues.end(*[((0, idx_of(leagues, first)), (1.0, 0.0))] * 16)
    leagues.note(((0, idx_of(leagues, first)), (0.0, 7.0)))
    leagues.settle()
    assert leagues.seats.name(0) != first
    league.write()
    matches = [row for row in leagues.rows() if row["kind"] == "match"]
    assert len(matches) == 17
    assert all("probability" in row for row in matches)


def test_a_resumed_league_is_as_it_was(leagues):
    league = leagues.start(players={"random": None})
    leagues.learners[0].train_to(64)
    leagues.settle()
    leagues.end(*[((0, idx_of(leagues, "random")), (1.0, 0.0))] * 30)
    league.write()
    before = league.metrics()
    assert before["league/win_rate"] == 1.0
    again = leagues.start(players={"random": None})
    assert again.metrics() == before
    assert again.pool.probabilities(0, "quality").tolist() == league.pool.probabilities(0, "quality").tolist()
    leagues.learners[0].train_to(1000)
    again.act_if_due()
    assert len(again.pool.players) == 2  # the next snapshot is due at 1,064
    leagues.learners[0].train_to(1064)
    again.act_if_due()
    again.write()
    assert [row["name"] for row in leagues.rows() if row["kind"] == "player"] == [
        "random",
        "policy_00_000000000064",
        "policy_00_000000001064",
    ]


def test_ratings_of_a_reference_pool_are_in_the_record_once_and_hold_when_the_run_is_resumed(leagues):
    leagues.reference = {"random": 250.0}
    for _ in range(2):
        leagues.start({"random": None})
        leagues.learners[0].train_to(100)
        leagues.settle()
        assert "random" in leagues.seated
        leagues.end(*[((0, idx_of(leagues, "random")), (1.0, -1.0))] * 20)
    assert [row["ratings"] for row in leagues.rows() if row["kind"] == "reference"] == [{"random": 250.0}]
    before = leagues.league.pool.rating(0)
    assert before.mean > 300
    leagues.reference = {}  # without the flag it stays
    assert leagues.start({"random": None}).pool.rating(0) == before
    leagues.reference = {"random": -250.0}
    leagues.start({"random": None}).write()
    assert leagues.league.pool.rating(0).mean == pytest.approx(before.mean - 500)
    assert [row["ratings"] for row in leagues.rows() if row["kind"] == "reference"][1:] == [{"random": -250.0}]


def test_a_checkpoint_that_joins_is_kept_as_it_was(leagues):
    saved = Checkpoint({"model/weight": torch.ones(2)}, {"env_steps": 5})
    (leagues.run_dir / "league").write_text("a file where the folder should be")
    with pytest.raises(ValueError, match="--train_dir"):
        leagues.start(players={"rival": saved})
    (leagues.run_dir / "league").unlink()
    leagues.start(players={"rival": saved}).write()
    weights = checkpoint.weights_of(saved)
    joined = {"kind": "player", "name": "rival", "path": "league/rival.safetensors", "weights": weights}
    assert leagues.rows() == [joined]
    later = Checkpoint({"model/weight": torch.zeros(2)}, {"env_steps": 6})
    leagues.start(players={"rival": later})
    kept = checkpoint.load(leagues.run_dir / "league" / "rival.safetensors")
    assert kept.tensors["model/weight"].tolist() == [1.0, 1.0]


def test_metrics_name_the_past_self_that_the_policy_does_worst_against_else_the_strongest_player(leagues):
    league = leagues.start(players={"weak": None, "strong": None})
    leagues.settle()
    leagues.end(*[((0, idx_of(leagues, "weak")), (1.0, 0.0))] * 10)
    leagues.end(*[((0, idx_of(leagues, "strong")), (0.0, 1.0))] * 10)
    metrics = league.metrics()
    assert metrics.pop("league/rating") > 100  # weak is the first of the pool, at 0
    assert metrics == {"league/players": 2, "league/win_rate": 0.5, "league/worst_win_rate": 0.0}
    leagues.learners[0].train_to(64)
    leagues.settle()
    past = idx_of(leagues, "policy_00_000000000064")
    leagues.end(*[((0, past), (1.0, 0.0)), ((0, past), (0.0, 1.0))] * 10)
    metrics = league.metrics()
    assert (metrics["league/worst_win_rate"], metrics["league/worst_env_steps"]) == (0.5, 64)


def test_a_fixed_mixture_has_a_seat_for_each_player_and_begins_when_all_are_there(leagues):
    players = dict.fromkeys(("a", "b", "c"))
    league = leagues.start(players=players, opponent_weights=(1.0, 2.0, 5.0))
    league.act_if_due()
    leagues.seats.has_loaded(0, 1, 0.0)
    league.act_if_due()
    assert leagues.seated == set()
    leagues.learners[0].train_to(5000)
    leagues.settle()
    assert leagues.seated == set(players)
    weights = {leagues.seats.name(seat): leagues.seats.tables["weight"][seat] for seat in range(3)}
    assert weights == {"a": 1 / 8, "b": 2 / 8, "c": 5 / 8}
    turns = leagues.seats.tables["turn"].tolist()
    leagues.end(*[((0, idx_of(leagues, name)), (1.0, 0.0)) for name in players] * 100)
    leagues.settle()
    assert leagues.seats.tables["turn"].tolist() == turns  # nobody else waits
    assert len(league.pool.players) == 3  # and nobody joins


def test_a_player_of_the_pool_takes_seats_of_its_role_alone(tmp_path):
    leagues = Leagues(tmp_path, num_policies=3, roles=((0,), (1,), (2,)))
    named = {"named": ("random", "bot", "bot"), "player_roles": ("*", "owl", "hare")}
    leagues.start({"random": None, "bot": None}, **named, opponent_weights=(1.0, 1.0, 3.0), past_share=1.0)
    for _ in range(3):
        leagues.league.act_if_due()
        leagues.load_all()
    seats = leagues.seats
    met = {
        (policy_id, opposed): {
            seats.name(seat): float(seats.tables["weight"][seat])
            for seat in seats.of_policy(policy_id, opposed)
            if seats.tables["is_open"][seat]
        }
        for policy_id in range(3)
        for opposed in range(2)
    }
    of_fox, of_owl, of_hare = {"random": 1.0}, {"random": 0.5, "bot": 0.5}, {"random": 0.25, "bot": 0.75}
    assert met == {(0, 0): of_owl, (0, 1): of_hare, (1, 0): of_fox, (1, 1): of_hare, (2, 0): of_fox, (2, 1): of_owl}
    random, bot = (idx_of(leagues, name) for name in ("random", "bot"))
    leagues.end(((0, bot, random), (1.0, 0.0, 0.0)))  # two players at once
    assert leagues.rows()[-1]["probability"] == pytest.approx(0.5 * 0.25)
    assert leagues.league.why_over is None
    leagues.league.player_failed("random", "gone")
    assert leagues.league.why_over is not None  # nobody else is a fox


def test_a_snapshot_has_the_role_of_its_policy(tmp_path):
    leagues = Leagues(tmp_path, num_policies=3, roles=((0,), (1,), (2,)))
    leagues.start()
    for learner in leagues.learners:
        learner.train_to(64)
    for _ in range(3):
        leagues.league.act_if_due()
        leagues.load_all()
    for policy_id, others in enumerate([(1, 2), (0, 2), (0, 1)]):
        for opposed, other in enumerate(others):
            (name,) = {leagues.seats.name(seat) for seat in leagues.seats.of_policy(policy_id, opposed)} - {""}
            assert name == f"policy_{other:02d}_000000000064"


def test_a_player_is_needed_for_each_role_that_nobody_learns_against_otherwise():
    config = PlayersConfig(past_share=1.0, players=("random",), player_roles=("owl",))
    with pytest.raises(ValueError, match="no player may play"):
        PoolRoles.of(config, SPEC, ((0,), (1,), (2,)), 3, ["random"])


def test_every_policy_has_seats_snapshots_metrics_and_a_clock_of_its_own(tmp_path):
    leagues = Leagues(tmp_path, num_policies=2)
    league = leagues.start()
    for learner, env_steps in zip(leagues.learners, (64, 128), strict=True):
        learner.train_to(env_steps)
    leagues.settle()
    assert sorted(leagues.seated) == ["policy_00_000000000064", "policy_01_000000000128"]
    leagues.end(((1, idx_of(leagues, "policy_00_000000000064")), (1.0, 0.0)), ((0, 1), (1.0, 0.0)))
    league.write()
    alone, both = (row for row in leagues.rows() if row["kind"] == "match")
    assert (alone["players"], both["players"]) == (["policy_01", "policy_00_000000000064"], ["policy_00", "policy_01"])
    assert (both["env_steps"], both["clocks"]) == (64, {"policy_00": 64, "policy_01": 128})
    assert (alone["env_steps"], "clocks" in alone) == (128, False)
    metrics = league.metrics()
    assert metrics.pop("policy_01/league/rating") > metrics.pop("policy_00/league/rating", -1e9)
    assert metrics == {"league/players": 2, "policy_01/league/win_rate": 1.0}


# Exploiters

MAIN, EXPLOITER = 0, 1


@pytest.fixture
def exploited(tmp_path):
    leagues = Leagues(tmp_path, num_policies=2)
    leagues.start(exploiters=1)
    for learner in leagues.learners:
        learner.train_to(500)
    leagues.settle()
    return leagues


def all_actors_end_an_episode(leagues):
    leagues.learners[EXPLOITER].num_waited_for = 0
    leagues.league.write()


def play(leagues, num_won, num_lost=0):
    won, lost = ((EXPLOITER, MAIN), (1.0, 0.0)), ((MAIN, EXPLOITER), (1.0, 0.0))
    leagues.end(*[won] * num_won + [lost] * num_lost)
    leagues.league.act_if_due()


def test_an_exploiter_that_wins_joins_the_pool_and_begins_anew_once_the_record_says_so(exploited, full_disk, said):
    leagues = exploited
    assert [player.policy for player in leagues.league.pool.players] == [0]  # no snapshots of exploiters by time
    assert leagues.league.metrics()["policy_01/league/beginnings"] == 0
    assert "policy_01/league/win_rate" not in leagues.league.metrics()
    play(leagues, 0, 61)
    play(leagues, 139)
    assert leagues.ordered == []
    assert leagues.league.metrics()["policy_01/league/win_rate"] == 0.695  # of 200, against its target
    with full_disk():
        play(leagues, 1)
        leagues.league.act_if_due()
        assert leagues.ordered == []
    leagues.league.act_if_due()
    assert [player.name for player in leagues.league.pool.players][1:] == ["policy_01_000000000500"]
    ((policy_id, order),) = leagues.ordered
    assert policy_id == EXPLOITER
    assert order == {
        "hyperparameters": {},
        "copies": None,
        "begins_from": str(leagues.run_dir / "league" / "beginning_01.safetensors"),
        "weights_event": 1,
    }
    assert leagues.learners[EXPLOITER].num_waited_for  # it has begun anew
    kinds = [row["kind"] for row in leagues.rows()]
    assert (kinds.count("anew"), kinds.count("player")) == (1, 2)
    assert any("exploiter 1 has won" in sentence for sentence in said)


def test_what_its_earlier_self_has_played_does_not_count(exploited):
    play(exploited, 200)
    play(exploited, 1000)  # the order is on its way
    assert "policy_01/league/win_rate" not in exploited.league.metrics()
    all_actors_end_an_episode(exploited)
    exploited.learners[EXPLOITER].env_steps = 900
    exploited.league.learner_has(EXPLOITER, 1)
    assert exploited.learners[EXPLOITER].num_waited_for
    play(exploited, 1000)  # of its earlier self, or short
    assert "policy_01/league/win_rate" not in exploited.league.metrics()
    all_actors_end_an_episode(exploited)
    exploited.league.learner_has(EXPLOITER, 1)  # as after a death: it has begun already
    play(exploited, 200)  # its learner has kept nothing new to leave behind
    assert len(exploited.ordered) == 1
    exploited.learners[EXPLOITER].train_to(950)
    exploited.league.act_if_due()
    assert [order["weights_event"] for _, order in exploited.ordered] == [1, 2]
    beginnings = [row for row in exploited.rows() if row["kind"] in ("anew", "begun")]
    assert [(row["kind"], row["env_steps"]) for row in beginnings] == [("anew", 500), ("begun", 900), ("anew", 950)]


def test_a_resumed_run_knows_that_an_exploiter_has_begun(exploited):
    play(exploited, 200)
    league = exploited.start(exploiters=1)
    play(exploited, 10)
    assert "policy_01/league/win_rate" not in league.metrics()
    league.learner_has(EXPLOITER, 1)
    league.write()
    league = exploited.start(exploiters=1)
    play(exploited, 10)
    assert "policy_01/league/win_rate" not in league.metrics()
    all_actors_end_an_episode(exploited)
    play(exploited, 10)
    assert league.metrics()["policy_01/league/win_rate"] == 1.0


def test_an_exploiter_that_does_not_win_begins_anew_after_its_env_steps_also_after_a_resume(tmp_path, said):
    leagues = Leagues(tmp_path, num_policies=2)
    leagues.start(exploiters=1, exploiter_env_steps=300)
    play(leagues, 0, 61)
    leagues.learners[EXPLOITER].train_to(299)
    leagues.league.act_if_due()
    assert leagues.ordered == []
    leagues.learners[EXPLOITER].train_to(310)
    leagues.league.act_if_due()
    assert [order["weights_event"] for _, order in leagues.ordered] == [1]
    assert any("exploiter 1 has not won in exploiter_env_steps" in sentence for sentence in said)
    leagues.league.learner_has(EXPLOITER, 1)
    leagues.league.write()
    leagues.start(exploiters=1, exploiter_env_steps=300)  # counts from its beginning, not from the resume
    leagues.learners[EXPLOITER].train_to(609)
    leagues.league.act_if_due()
    assert len(leagues.ordered) == 1
    leagues.learners[EXPLOITER].train_to(610)
    leagues.league.act_if_due()
    assert len(leagues.ordered) == 2


def test_a_learner_that_has_missed_the_order_gets_it_again_also_after_a_resume(exploited):
    play(exploited, 200)
    for league in (exploited.league, exploited.start(exploiters=1)):
        exploited.ordered.clear()
        league.learner_has(MAIN, 0)
        league.learner_has(EXPLOITER, 1)
        assert exploited.ordered == []
        league.learner_has(EXPLOITER, 0)
        assert [(policy_id, order["weights_event"]) for policy_id, order in exploited.ordered] == [(EXPLOITER, 1)]
