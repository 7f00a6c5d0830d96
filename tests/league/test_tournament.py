"""Tournaments of small players: a network that nobody trained, random moves, and functions of a module."""

import json
import os
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import warm
from pages import ROOT
from untrained import untrained

from sf.config import Config
from sf.evaluation.play.episodes import Played, make_lineups
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.results import Evaluation
from sf.evaluation.task import EvaluationTask
from sf.league import record, tournament
from sf.league.record import Finished, Match, Player, Settings
from sf.league.tournament import Tournament, opened, play, require_matches
from sf.storage.run_lock import held

PLAYERS = "def paper(obs):\n    return 1\n\n\ndef rock(obs):\n    return 0\n"


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    (tmp_path / "own_players.py").write_text(PLAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("own_players", None)


def make(matches=4, env="toy_match_rps", names=("own_players:paper", "own_players:rock", "random"), seed=0, **flags):
    config = Config().replace(env=env, **flags)
    description = tournament.envs.describe(env, config.environment)
    players = {"net": untrained(env, **flags)} if "net" in names else {}
    spaces = description.native_obs_space, description.action_space
    players |= {name: Opponent(name, env, config.environment, *spaces) for name in names if name != "net"}
    task = EvaluationTask(env, config.environment, players, 1, seed=seed, num_workers=1, num_envs_per_worker=2)
    return Tournament(task, matches)


def played(given, directory=None):
    """The rows of a tournament that is played to its end, and the pairs that were played for it."""
    with opened(directory, given) as results:
        pairs = [r.players for r in play(given, results, require_matches(given.task), lambda *_: None)]
        return results.rows, pairs


def in_this_process(tasks):
    """Stands in for `evaluate`: the matches are dealt as there, and what they come to is drawn with the task's seed."""

    def evaluate(task, on_progress):
        tasks.append(task)
        rng, evaluation = np.random.default_rng(task.seed), Evaluation(task.objective)
        num_agents = tournament.envs.describe(task.env, task.options).num_agents
        lineups = make_lineups(len(task.players), num_agents, task.num_episodes, task.seed)
        for (match_idx, agent_idx), policy_idx in np.ndenumerate(lineups):
            evaluation.episodes.append(Played(match_idx, agent_idx, int(policy_idx), float(rng.random()), 1, 1, {}))
        return evaluation

    return evaluate


def matches_of(rows):
    return [row for row in rows if isinstance(row, Match)]


def test_every_pair_meets_as_often_and_plays_each_seat_as_often_for_scores_of_its_own():
    rows, pairs = played(make(matches=4, names=("net", "own_players:rock", "own_players:paper")))
    names = ["net", "own_players:rock", "own_players:paper"]
    assert pairs == [*combinations(names, 2)]
    seats = Counter(match.players for match in matches_of(rows))
    assert seats == {seat: 2 for pair in pairs for seat in (pair, pair[::-1])}
    assert [row.players for row in rows if isinstance(row, Finished)] == pairs
    assert isinstance(rows[0], Settings)
    net, *others = rows[1:4]
    assert (net.name, net.env_steps, len(net.weights)) == ("net", 1234, 64)
    assert others == [Player("own_players:rock"), Player("own_players:paper")]
    for match in (match for match in matches_of(rows) if "net" not in match.players):
        paper = match.scores[match.players.index("own_players:paper")]
        assert paper == -match.scores[match.players.index("own_players:rock")] > 0


def test_in_a_match_of_several_both_play_half_or_one_more_in_turn(monkeypatch):
    tasks = []
    monkeypatch.setattr(tournament, "evaluate", in_this_process(tasks))
    for num_agents, of_net in ((4, [2, 2, 2, 2]), (3, [1, 1, 2, 2])):
        flags = {"env_kwargs": json.dumps({"num_agents": num_agents})}
        rows, _ = played(make(matches=4, env="toy_match_counting", names=("random", "net"), **flags))
        found = matches_of(rows)
        assert sorted(Counter(match.players)["net"] for match in found) == of_net
        for seat in range(num_agents if num_agents == 4 else 0):
            assert Counter(match.players[seat] for match in found) == {"random": 2, "net": 2}


def test_each_pair_and_each_seed_of_a_tournament_has_seeds_of_its_own(monkeypatch):
    tasks = []
    monkeypatch.setattr(tournament, "evaluate", in_this_process(tasks))
    for seed in (0, 1):
        played(make(seed=seed))
    assert len({task.seed for task in tasks}) == len(tasks) == 6


def test_a_match_that_one_of_them_never_joined_is_none():
    def episode(match_idx, agent_idx, policy_idx):
        return Played(match_idx, agent_idx, policy_idx, 1.0 + policy_idx, 1, 1, {})

    both, alone = [episode(0, 0, 1), episode(0, 1, 0)], [episode(1, 0, 0)]
    found = tournament._matches(Evaluation("true_objective", both + alone), ("a", "b"))
    assert found == [Match(("b", "a"), (2.0, 1.0))]


@pytest.mark.parametrize("kept", [0, 2, 5, 8, None])
def test_a_tournament_goes_on_at_any_line_and_ends_as_one_that_was_not_stopped(tmp_path, monkeypatch, kept):
    """kept: whole lines of the record: in the settings, the players, a pair. A part of the next is torn. None: all."""
    monkeypatch.setattr(tournament, "evaluate", in_this_process([]))
    given, path = make(matches=2), tmp_path / "results" / record.NAME
    played(given, tmp_path / "whole")
    whole = (tmp_path / "whole" / record.NAME).read_bytes()
    lines = whole.splitlines(keepends=True)
    path.parent.mkdir()
    path.write_bytes(whole if kept is None else b"".join(lines[:kept]) + lines[kept][:7])
    done = [r.players for r in record.read(path) if isinstance(r, Finished)]
    _, pairs = played(given, path.parent)
    assert pairs == [pair for pair in given.pairs if pair not in done]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"matches": 6}, "matches"),
        ({"seed": 1}, "seed"),
        ({"names": ("random", "net", "own_players:rock")}, "players"),  # in another order
        ({"env": "toy_match_pennies"}, "env"),
        ({"weights": 1}, "net"),
    ],
)
def test_results_of_another_tournament_are_refused(tmp_path, change, name):
    names = {"names": ("net", "own_players:rock", "random")}
    with opened(tmp_path, make(**names)):
        pass
    other = make(**{**names, **{key: value for key, value in change.items() if key != "weights"}})
    if "weights" in change:
        other.task.players["net"] = untrained("toy_match_rps", seed=1)
    with pytest.raises(ValueError, match=f"where {name} was .*name another --results"), opened(tmp_path, other):
        pass


def test_a_tournament_of_before_there_were_teams_goes_on(tmp_path):
    given = make(matches=2)
    with opened(tmp_path, given):
        pass
    first, *rest = (tmp_path / record.NAME).read_text().splitlines(keepends=True)
    settings = json.loads(first)
    options = settings["options"]
    options["share_reward"] = False
    for name in ("teams", "team_spirit", "zero_sum", "doom_teams"):
        options.pop(name, None)
    (tmp_path / record.NAME).write_text(json.dumps(settings) + "\n" + "".join(rest))
    with opened(tmp_path, given) as results:
        assert len(results.rows) == 4
    shared = make(matches=2, share_reward="all")
    with pytest.raises(ValueError, match="where share_reward was"), opened(tmp_path, shared):
        pass


def test_in_a_match_of_teams_both_play_whole_ones_and_each_has_one_score():
    flags = {"env_kwargs": json.dumps({"num_agents": 4}), "teams": [["agent_[03]"], ["agent_[12]"]]}
    rows, _ = played(make(matches=4, env="toy_match_counting", names=("random", "net"), **flags))
    assert Counter(match.players for match in matches_of(rows)) == {("random", "net"): 2, ("net", "random"): 2}
    assert all(len(match.scores) == 2 for match in matches_of(rows))


def test_places_that_hold_no_tournament_or_are_in_use_are_refused(tmp_path):
    def refused(directory, match):
        with pytest.raises(ValueError, match=f"{match}.*--results"):
            played(make(matches=2), directory)

    league, run = tmp_path / "league", tmp_path / "run"
    for directory in (league, run):
        directory.mkdir()
    record.append(league / record.NAME, [Player("random")])
    refused(league, "record of a tournament")
    (run / "config.yaml").write_text("env: toy_match_rps\n")
    refused(run, "is a run of sf-train")
    assert not (run / record.NAME).exists()
    with held(tmp_path / "used"):
        refused(tmp_path / "used", "")
    with pytest.raises(ValueError, match="toy_identity has one agent"):
        require_matches(EvaluationTask("toy_identity", Config().environment, {}, 1))


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import test_tournament as t
from pathlib import Path
from sf.league.tournament import opened, play

if __name__ == "__main__":
    with opened(Path("results"), t.make(matches=8)) as results:
        def kill(number, pair, done, total):
            if number == 1 and done > 0:
                os.kill(os.getpid(), signal.SIGKILL)
        list(play(t.make(matches=8), results, 2, kill))
"""


@pytest.mark.long
def test_a_tournament_that_was_killed_among_its_matches_loses_only_the_pair_that_played(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support"), str(tmp_path)])
    done = warm.run(
        [sys.executable, str(script), str(Path(__file__).parent)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    path = tmp_path / "results" / record.NAME
    assert [row.players for row in record.read(path) if isinstance(row, Finished)] == make().pairs[:1]
    rows, pairs = played(make(matches=8), path.parent)
    assert pairs == make().pairs[1:]
    assert rows == played(make(matches=8))[0] == record.read(path)
