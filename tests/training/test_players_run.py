"""Players that do not learn, beside policies that do, through the real processes.

See tests/support/recorded.py.
"""

import itertools
import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import stubborn
from faults.processes import alive_below, wait_until_gone
from leftovers import in_shared_memory, left_in_shared_memory
from recorded import ACTION, AGENT, ENV_IDX, EPISODE, NUM_BATCHES, STEP, recorded
from runs import DEVICE, start, train_here
from untrained import untrained

from sf.league import record
from sf.run.children.verdict import ChildError
from sf.storage import checkpoint


@pytest.fixture(scope="module", params=[(1, 1.0), (2, 0.5)], ids=["one policy", "two policies"])
def run(request, tmp_path_factory):
    """Trajectories [T or T+1, B, ...] by policy, and the rows of the league."""
    num_policies, past_share = request.param
    found, path = recorded(
        tmp_path_factory.mktemp("train"),
        num_policies,
        env_kwargs='{"num_agents": 3, "episodes_per_match": 2}',
        past_share=past_share,
        players=("stubborn:Stubborn",),
    )
    return found, league_of(path)


def league_of(path):
    """The rows of players, and those of matches."""
    rows = [json.loads(line) for line in (path / "league.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == "player"], [row for row in rows if row["kind"] == "match"]


def test_policies_learn_from_their_own_rows_alone(run):
    trajectories, _ = run
    for policy_id, rows in trajectories.items():
        valid, obs = rows["valid"], rows["obs"]
        assert valid.shape == (5, NUM_BATCHES * 4)
        assert valid.mean() > 0.3
        assert (rows["value"][valid] == (1 + policy_id) * (obs[:-1, :, STEP][valid] + 1)).all()
        assert np.isfinite(rows["value"]).all()


def test_no_row_is_given_twice_and_every_agent_is_played(run):
    trajectories, _ = run
    seen = []
    for rows in trajectories.values():
        obs = rows["obs"][:-1][rows["valid"]]
        seen += [tuple(row) for row in obs[:, [ENV_IDX, AGENT, EPISODE, STEP]].astype(int).tolist()]
    assert len(seen) == len(set(seen))
    assert {row[:2] for row in seen} == set(itertools.product(range(8), range(3)))


def test_with_a_past_share_of_1_no_match_without_a_player_is_trained_on(run):
    """The first one of each environment begins before anybody has a seat. Its agents have their first episodes then."""
    trajectories, _ = run
    if len(trajectories) > 1:  # whose share is less
        return
    obs, valid = trajectories[0]["obs"][:-1], trajectories[0]["valid"]
    first = obs[valid & (obs[..., EPISODE] == 0)]
    pairs = {(int(row[ENV_IDX]), int(row[AGENT])) for row in first}
    envs = [env for env, _ in pairs]
    assert max(map(envs.count, envs), default=0) <= 2  # of three


def test_players_play_whole_matches_with_their_own_actions(run):
    """The player looks at its actions itself. What it does is not among what the policies have done."""
    trajectories, (players, matches) = run
    for rows in trajectories.values():
        goes_on = rows["valid"] & ~rows["terminated"]
        done = rows["obs"][1:, :, ACTION][goes_on]
        assert (done == rows["discrete"][..., 0][goes_on]).all()
        assert 0.05 < (done == stubborn.ACTION).mean() < 0.25  # of eight
    assert players == [{"kind": "player", "name": "stubborn:Stubborn"}]
    past = [match for match in matches if "stubborn:Stubborn" in match["players"]]
    assert len(past) > 20
    for match in past:
        assert len(match["players"]) == len(match["scores"]) == 3
        assert match["players"].count("stubborn:Stubborn") == 1  # of three agents
        assert len(set(match["players"])) == 2
    assert len(past) == len(matches) or len(trajectories) == 2


def test_a_run_against_players_alone_ends_with_a_sentence_where_none_can_be_loaded(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SF_TEST_PID", str(os.getpid()))
    flags = ["--past_share", "1", "--players", "stubborn:OnlyHere", "--trust", "true", "--train_for_env_steps", "10000"]
    with pytest.raises(ChildError, match="no player can be loaded, so there is nobody to train against"):
        train_here(tmp_path, *flags, "--experiment", "run", env="toy_match_counting")
    assert "league: stubborn:OnlyHere cannot be loaded (" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["env_steps"] == 0


NUM_KILLS = int(os.environ.get("SF_TEST_KILLS", "2"))

FLAGS = ["--past_share", "0.5", "--snapshot_every_env_steps", "2000", "--num_envs_per_worker", "8", "--rollout", "4"]


def test_a_run_meets_its_past_and_goes_on_with_it_when_resumed(tmp_path, capsys):
    pool = tmp_path / "pool.json"
    pool.write_text(json.dumps({"players": [{"name": "random", "rating": {"mean": 250}}]}))
    flags = [*FLAGS, "--core", "gru", "--rnn_size", "8", "--experiment", "run"]
    flags += ["--players", "random", "--reference_ratings", str(pool)]
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "4000", env="toy_match_rps")
    pool.unlink()  # its ratings are in the record
    assert summary["restarts"] == summary["env_faults"] == 0
    players, matches = league_of(tmp_path / "run")
    assert len(players) >= 2
    assert players[0]["name"] == "random"
    assert len(matches) > 200
    before = (tmp_path / "run" / "league.jsonl").read_bytes()
    train_here(tmp_path, *flags, "--train_for_env_steps", "6000", env="toy_match_rps")
    assert (tmp_path / "run" / "league.jsonl").read_bytes().startswith(before)
    resumed, more = league_of(tmp_path / "run")
    assert len(more) > len(matches) + 100
    names = [player["name"] for player in resumed]
    assert len(names) == len(set(names))
    for player in resumed[1:]:
        assert (tmp_path / "run" / player["path"]).is_file()
    rows = record.read(tmp_path / "run" / "league.jsonl")
    assert [row.ratings for row in rows if isinstance(row, record.Reference)] == [{"random": 250.0}]
    assert f"reference_ratings is {pool}, which is gone" in capsys.readouterr().err


def test_a_killed_run_keeps_its_league_and_leaves_nothing_behind(tmp_path):
    shared_memory_before = in_shared_memory()
    flags = [*FLAGS, "--experiment", "run", "--save_every_sec", "1"]
    process = start(tmp_path, *flags, env="toy_match_rps")
    league = tmp_path / "run" / "league.jsonl"
    for _ in process.stdout:
        if league.exists() and league.read_bytes().count(b"match") > 100:
            break
    pids = alive_below(process.pid)
    process.kill()
    process.wait()
    assert wait_until_gone(pids, timeout_s=30.0) == set()
    assert left_in_shared_memory(shared_memory_before) == set()
    whole = league.read_bytes().rpartition(b"\n")[0]
    league.write_bytes(whole + b'\n{"kind": "mat')  # as a kill may leave it
    saved = [int(path.stem.rpartition("_")[2]) for path in (tmp_path / "run/checkpoints").glob("checkpoint_*")]
    train_here(tmp_path, *flags, "--train_for_env_steps", str(max(saved, default=0) + 3_000), env="toy_match_rps")
    assert league.read_bytes().startswith(whole + b"\n{")
    league_of(tmp_path / "run")  # every line is whole


@pytest.mark.long
def test_exploiters_begin_anew_when_they_win(tmp_path):
    """Of chance alone, in time: an exploiter has won where it is hardly worse than its target."""
    flags = [*FLAGS, "--num_policies", "2", "--exploiters", "1", "--exploiter_win_rate", "0.51", "--experiment", "run"]
    train_here(tmp_path, *flags, "--train_for_env_steps", "20000", "--save_every_sec", "1", env="toy_match_rps")
    rows = [json.loads(line) for line in (tmp_path / "run" / "league.jsonl").read_text().splitlines()]
    anew = [row for row in rows if row["kind"] == "anew"]
    assert anew
    assert {row["policy"] for row in anew} == {1}
    left_behind = [row for row in rows if row["kind"] == "player" and row.get("policy") == 1]
    assert len(left_behind) == len(anew)
    latest = checkpoint.latest(tmp_path / "run" / "checkpoints" / "policy_01")
    saved = checkpoint.load(latest)
    # An order that is given while the run ends is repeated by a run that resumes it
    # (tests/league/players/test_matchmaker.py).
    assert len(anew) - 1 <= saved.state["weights_event"] <= len(anew)
    assert saved.state["weights_event"] >= 1
    assert (tmp_path / "run" / "league" / "beginning_01.safetensors").is_file()


def test_a_population_evolves_beside_its_league(tmp_path):
    flags = [*FLAGS, "--num_policies", "2", "--with_pbt", "true", "--pbt_start_mutation", "1000"]
    flags += ["--pbt_period_env_steps", "1000", "--pbt_mutation_rate", "1", "--experiment", "run"]
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "12000", env="toy_match_rps")
    assert summary["restarts"] == summary["env_faults"] == 0
    players, matches = league_of(tmp_path / "run")
    assert {player["policy"] for player in players} == {0, 1}
    assert {name for row in matches for name in row["players"]} > {"policy_00", "policy_01"}
    events = [json.loads(line) for line in (tmp_path / "run" / "population.jsonl").read_text().splitlines()]
    assert len(events) > 2  # more than the two beginnings


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(DEVICE != "cpu", reason="the record of a league does not depend on the device")
def test_a_league_that_is_killed_again_and_again_loses_its_last_matches_alone_and_counts_none_twice(
    tmp_path, monkeypatch
):
    """Six players and two policies. Every match has scores of its own, which its environment writes to a file as it
    ends. A kill loses those of the last seconds: what workers have not reported, and the parent not written."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent / "support"))
    matches = tmp_path / "matches"
    kwargs = {"env_kwargs": json.dumps({"file": str(matches)})}
    checkpoints = []
    for seed in (1, 2):
        path = tmp_path / f"untrained_{seed}.safetensors"
        checkpoint.write(path, untrained("numbered_match:Numbered", seed=seed, encoder_mlp_layers=(16,), **kwargs))
        checkpoints.append(str(path))
    functions = [f"numbered_match:{name}" for name in ("first", "second", "one_of_both")]
    flags = ["--env_kwargs", kwargs["env_kwargs"], "--past_share", "1", "--num_policies", "2", "--seats", "8"]
    flags += ["--players", "random", *functions, *checkpoints, "--snapshot_every_env_steps", "200"]
    flags += ["--num_batches_per_epoch", "1", "--save_every_sec", "2", "--trust", "true", "--experiment", "run"]
    league, rng = tmp_path / "run" / "league.jsonl", random.Random(0)
    before, sessions_begin, killed_at = b"", [], []
    for n in range(NUM_KILLS):
        sessions_begin.append(time.time())
        process = start(tmp_path, *flags, env="numbered_match:Numbered")
        while not league.exists() or league.read_bytes().count(b"\n") < before.count(b"\n") + 200:
            assert process.poll() is None
            time.sleep(0.1)
        time.sleep(rng.uniform(1.0, 3.0))
        pids = alive_below(process.pid)
        process.kill()
        for pid in pids if n % 2 else ():  # else the others end themselves
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        assert wait_until_gone(pids, timeout_s=30.0) == set()
        now = league.read_bytes()
        assert now.startswith(before)
        before = now[: now.rindex(b"\n") + 1]
        killed_at.append(time.time())
    sessions_begin.append(time.time())
    process = start(tmp_path, *flags, env="numbered_match:Numbered")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert league.read_bytes().startswith(before)

    players, rows = league_of(tmp_path / "run")
    names = [player["name"] for player in players]
    assert len(names) == len(set(names)) > 8
    for player in players:
        if "path" in player:
            checkpoint.load(tmp_path / "run" / player["path"])
    noted = [tuple(row["scores"]) for row in rows]
    assert len(noted) == len(set(noted)) > 300
    ended = {}
    for line in matches.read_text().splitlines():
        at, *scores = map(float, line.split())
        ended[tuple(scores)] = at
    assert set(noted) <= ended.keys()
    lost = [at for scores, at in ended.items() if scores not in set(noted)]
    for begins, killed in zip(sessions_begin, killed_at, strict=False):
        first = min(ended[scores] for scores in noted if begins < ended[scores])
        # Policies play themselves until their seats are open.
        assert [at for at in lost if first + 3.0 < at < killed - 5.0] == []
