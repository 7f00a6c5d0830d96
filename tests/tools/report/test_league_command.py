"""`sf-league`, as a user starts it."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import warm
from untrained import untrained

from sf.evaluation.play.episodes import Played
from sf.evaluation.results import Evaluation
from sf.league import record, tournament
from sf.league.record import Match, Player
from sf.league.standings import standings
from sf.storage import checkpoint
from sf.tools.commands import entry_points

PLAYERS = "def paper(obs):\n    return 1\n\n\ndef rock(obs):\n    return 0\n\n\nnumber = 3\n"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """A folder with a run that has a policy for matches, one that has none, and players of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_players.py").write_text(PLAYERS)
    yield
    sys.modules.pop("own_players", None)


STRENGTHS = ("random", "own_players:rock", "toy_match_rps", "own_players:paper")


@pytest.fixture
def _told(monkeypatch):
    """Nothing is played: the stronger one is said to win all matches."""

    def evaluate(task, on_progress):
        first, second = (STRENGTHS.index(name.split("/")[0]) for name in task.players)
        won = 1.0 if first > second else -1.0
        seats = [(n, policy) for n in range(task.num_episodes) for policy in range(2)]
        return Evaluation("return", [Played(n, (n + p) % 2, p, won * (1 - 2 * p), 1, 1, {}) for n, p in seats])

    monkeypatch.setattr(tournament, "evaluate", evaluate)


def save_run(env):
    path = Path(env)
    checkpoint.save(path / "checkpoints", untrained(env), 10, keep=2)
    (path / "config.yaml").write_text(f"env: {env}\n")


@pytest.fixture
def league(status_of, capsys):
    """A function: the status, and what it says."""
    return lambda *words: (status_of(entry_points.sf_league, *words), *capsys.readouterr())


def named(player):
    """The name that was typed, of a run without the name of its checkpoint."""
    return player["name"].split("/")[0]


def chance(difference):
    return 1 / (1 + 10 ** (-difference / 400))


def write_run(path, num_snapshots=5, num_policies=1):
    """The record of a run in which a policy gains 100 with each snapshot."""
    rng = np.random.default_rng(0)
    rows = [Player("random")]
    for k in range(num_snapshots):
        t = k * 100_000
        rows += [Player(f"policy_{p:02d}_{t:012d}", p, t, "x") for p in range(num_policies)]
        for n in range(60):
            p, now = n % num_policies, t + 1_000 * n
            o = int(rng.integers(k + 1))
            won = float(rng.random() < chance(now / 1_000 - 100 * o))
            rows.append(Match((f"policy_{p:02d}", f"policy_{p:02d}_{o * 100_000:012d}"), (won, 1 - won), now))
            won = float(rng.random() < chance(now / 1_000))
            rows.append(Match((f"policy_{p:02d}", "random"), (won, 1 - won), now))
    path.mkdir()
    record.append(path / record.NAME, rows)
    return rows


def test_a_run_shows_its_players_with_ratings_and_win_rates(tmp_path, league):
    rows = write_run(tmp_path / "run")
    status, out, err = league("run", "--json", "run.json")
    assert (status, err) == (0, "")
    assert "run: 7 players" in out
    assert "random is held at 0" in out
    for player in standings(rows).players:
        assert f"{player.name} " in out
        assert f"{player.rating.low:,.0f} to {player.rating.high:,.0f}" in out or player.name == "random"
    assert max(map(len, out.splitlines())) <= 120
    result = json.loads((tmp_path / "run.json").read_text())
    means = [player["rating"]["mean"] for player in result["players"]]
    assert means == sorted(means, reverse=True)
    names = [player["name"] for player in result["players"]]
    assert (result["anchor"], result["held"]) == ("random", {"random": 0.0})
    assert {"policy_00", "policy_00_000000400000", "random"} < {*names}
    own, other = names.index("policy_00"), names.index("random")
    assert result["num_matches"][own][other] == 300
    assert result["win_rates"][own][other] == pytest.approx(1 - result["win_rates"][other][own])
    assert result["win_rates"][own][own] is None
    curve = result["curves"]["policy_00"]
    assert [point["env_steps"] for point in curve] == [0, 100_000, 200_000, 300_000, 400_000, 459_000]
    assert curve[-1]["rating"]["mean"] == result["players"][own]["rating"]["mean"]
    assert result["progress"]["opponents"][0] == "random"
    assert len(result["progress"]["win_rate"][0]) == 20
    assert all(player["nash_share"] is None for player in result["players"])


def test_the_pictures_are_written(tmp_path, league):
    pytest.importorskip("matplotlib")
    write_run(tmp_path / "run", num_snapshots=3, num_policies=2)
    (tmp_path / "pairs").mkdir()
    rows = [Player("a", env_steps=10), Player("b", env_steps=20), Match(("a", "b"), (1.0, 0.0))]
    record.append(tmp_path / "pairs" / record.NAME, rows)
    for name, picture in (("run", "run.png"), ("pairs", "pairs.svg")):
        assert league(name, "--png", picture)[0] == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert "Elo above a" in (tmp_path / "pairs.svg").read_text()


def test_a_tournament_plays_prints_and_goes_on(league):
    save_run("toy_match_rps")
    names = ["random", "toy_match_rps", "own_players:paper"]
    words = [*names, "--matches", "4", "--results", "results", "--num_workers", "1", "--json", "r.json"]
    status, out, err = league(*words)
    assert status == 0, err
    assert [re.match(r"\d of 3", line)[0] for line in out.splitlines()[:3]] == ["1 of 3", "2 of 3", "3 of 3"]
    result = json.loads(Path("r.json").read_text())
    players = {player["name"].split("/")[0]: player for player in result["players"]}
    assert players.keys() == {*names}
    assert players["random"]["rating"] == {"mean": 0, "std": 0, "low": 0, "high": 0}
    assert players["toy_match_rps"]["env_steps"] == 1234
    assert all(player["num_matches"] == 8 for player in players.values())
    if all(player["nash_share"] is not None for player in players.values()):
        assert sum(player["nash_share"] for player in players.values()) == pytest.approx(1)
    status, again, _ = league(*words)
    assert again.splitlines()[0] == "3 of 3 pairs were played before"
    assert again.splitlines()[1:] == out.splitlines()[3:]
    _, shown, _ = league("results")
    assert shown.splitlines()[1:] == again.splitlines()[2:]


@pytest.mark.usefixtures("_told")
def test_the_player_that_is_named_first_is_held_at_0_also_ahead_of_a_policy(league):
    words = ["own_players:rock", "own_players:paper", "--env", "toy_match_rps", "--matches", "4", "--num_workers", "1"]
    status, out, err = league(*words)  # none of them is a trained policy
    assert status == 0, err
    assert "own_players:rock has won 0.0% of 4 matches against own_players:paper" in out
    save_run("toy_match_rps")
    names = ["own_players:paper", "toy_match_rps", "--results", "results", "--matches", "2", "--num_workers", "1"]
    assert "own_players:paper is held at 0" in league(*names)[1]
    assert "own_players:paper is held at 0" in league("results")[1]
    _, out, _ = league("toy_match_rps", "own_players:paper", *names[2:])
    assert "1 of 1 pairs were played before" in out
    assert re.search(r"toy_match_rps/\S+ is held at 0", out)


@pytest.mark.usefixtures("_told")
def test_players_of_another_tournament_are_held_at_the_ratings_that_they_had_there(league):
    save_run("toy_match_rps")
    common = ["--matches", "8", "--num_workers", "1"]
    first = ["own_players:rock", "toy_match_rps", "own_players:paper"]
    assert league(*first, *common, "--json", "pool.json")[0] == 0
    pool = {named(player): player for player in json.loads(Path("pool.json").read_text())["players"]}
    second = ["own_players:paper", "random", "toy_match_rps", *common, "--reference", "pool.json"]
    status, out, err = league(*second, "--json", "r.json", "--results", "results")
    assert status == 0, err
    result = json.loads(Path("r.json").read_text())
    held = {name: pool[name]["rating"]["mean"] for name in ("own_players:paper", "toy_match_rps")}
    assert (result["anchor"], result["env"]) == (None, "toy_match_rps")
    assert sorted(result["held"].values()) == sorted(held.values())
    of = {named(player): player for player in result["players"]}
    assert {name: of[name]["rating"]["mean"] for name in held} == held
    assert of["toy_match_rps"]["weights"] == pool["toy_match_rps"]["weights"] is not None
    assert re.search(r"\S+ is held at -?[\d,]+, and \S+ at -?[\d,]+", " ".join(out.split()))
    status, shown, err = league("results", "--reference", "pool.json")
    assert (status, shown.splitlines()[1:]) == (0, out.splitlines()[-len(shown.splitlines()) + 1 :]), err

    other = untrained("toy_match_rps", seed=1)
    checkpoint.save(Path("toy_match_rps/checkpoints"), other, 20, keep=2)
    _, out, _ = league(*second)  # it is another player now
    assert out.count("held") == 2  # in its row, and in the sentence


def test_snapshots_of_two_runs_are_not_taken_for_each_other(tmp_path, league):
    """All runs call them alike. Those with the same weights are the same."""
    write_run(tmp_path / "a", num_snapshots=2)
    write_run(tmp_path / "b", num_snapshots=2)
    assert league("a", "--json", "a.json")[0] == 0
    status, _, err = league("b", "--reference", "a.json", "--json", "b.json")
    assert (status, json.loads(Path("b.json").read_text())["held"]) == (0, {"random": 0.0}), err
    snapshot = next(row for row in record.read(tmp_path / "b" / record.NAME) if getattr(row, "path", None))
    saved = untrained("toy_match_rps")
    (tmp_path / "b" / snapshot.path).parent.mkdir(exist_ok=True)
    checkpoint.write(tmp_path / "b" / snapshot.path, saved)
    rated = {"name": "x", "rating": {"mean": 77}, "env_steps": 1, "weights": checkpoint.weights_of(saved)}
    Path("pool.json").write_text(json.dumps({"players": [rated]}))
    status, _, err = league("b", "--reference", "pool.json", "--json", "b.json")
    held = json.loads(Path("b.json").read_text())["held"]
    assert (status, held[snapshot.name], {*held.values()}) == (0, 77.0, {77.0}), err
    assert not {"random", "policy_00"} & {*held}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no player is named"),
        ("toy_match_rps", "toy_match_rps has no league.jsonl"),
        ("random own_players:rock", "none of them is a trained policy"),
        ("random own_players:rock --env toy_identity", "toy_identity has one agent"),
        ("toy_match_rps random --env toy_match_rps", "env is toy_match_rps"),
        ("toy_match_rps nobody", "nobody is neither"),
        ("toy_match_rps ./run/../toy_match_rps/", "toy_match_rps and ./run/../toy_match_rps/ are the same"),
        ("toy_match_rps own_players:number", "own_players has no function number"),
        ("toy_match_rps toy_match_pennies", "has another obs_space than"),
        ("toy_match_rps random --matches 5", "matches is 5"),
        ("toy_match_rps random --png a.txt", "png is a.txt"),
        ("toy_match_rps random --results run", "record of a tournament"),
        ("run --anchor me", "anchor is me"),
        ("run --reference own_players.py", "own_players.py has no ratings"),
        ("run --reference others.json", "others.json rates a,"),
        ("toy_match_rps random --reference pennies.json", "has ratings of toy_match_pennies"),
        ("run --reference others.json --anchor random", "anchor is random"),
        ("broken", "line 1,"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_starts(tmp_path, monkeypatch, words, message, league):
    if "--png" in words:
        pytest.importorskip("matplotlib")
    for env in ("toy_match_rps", "toy_match_pennies", "toy_identity"):
        if env in words:
            save_run(env)
    for name, env, player in (("others", None, "a"), ("pennies", "toy_match_pennies", "random")):
        players = [{"name": player, "rating": {"mean": 1.5}}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"env": env, "players": players}))
    write_run(tmp_path / "run", num_snapshots=1)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / record.NAME).write_text("x\n")
    monkeypatch.setattr("sf.evaluation.task.start_child", None)
    status, out, err = league(*words.split())
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_ctrl_c_ends_it_with_130_and_says_how_to_go_on():
    save_run("toy_match_rps")
    words = "toy_match_rps random own_players:rock --matches 20000 --num_workers 1 --results results"
    # The signal comes once the first pair has its processes.
    code = (
        "import os, signal, sys, sf.evaluation.task as task\n"
        "collect = task._collect\n"
        "def interrupted(*args):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    collect(*args)\n"
        "task._collect = interrupted\n"
        "from sf.tools.commands.entry_points import sf_league\n"
        "if __name__ == '__main__':\n"
        "    sf_league()\n"
    )
    Path("league.py").write_text(code)
    command = [sys.executable, "league.py", *words.split()]
    done = warm.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 130, done.stderr
    assert "stopped; the same command goes on: sf-league toy_match_rps random own_players:rock" in done.stderr
    assert len(record.read(Path("results") / record.NAME)) == 4
    assert "Traceback" not in done.stderr
