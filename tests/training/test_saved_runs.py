"""Runs that version 0.1.0 saved (tests/data/saved_runs) are evaluated and resumed by this one."""

import json
import shutil
from pathlib import Path

import pytest

from sf.run.trainer import train
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli, evaluate

SAVED = Path(__file__).parent.parent / "data" / "saved_runs"
MORE = 256  # env steps


@pytest.fixture(scope="module", params=["league", "memory"])
def resumed(request, tmp_path_factory):
    """Where a run was resumed, and its directory before that."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(SAVED / request.param, folder / request.param)
    trained = env_steps_of(SAVED / request.param)
    asked = [str(folder / request.param), "--episodes", "4", "--json", str(folder / "score.json")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["sf-eval", *asked])
        evaluate.main()
    words = ["--train_dir", str(folder), "--experiment", request.param, "--train_for_env_steps", str(trained + MORE)]
    train(cli.parse(words))
    return folder / request.param, SAVED / request.param


def env_steps_of(run):
    return max(int(path.stem.rpartition("_")[2]) for path in (run / "checkpoints").glob("checkpoint_*"))


def test_it_is_evaluated(resumed):
    run, _ = resumed
    assert len(json.loads((run.parent / "score.json").read_text())["episodes"]) >= 4


def test_it_goes_on_from_its_checkpoint(resumed):
    run, before = resumed
    assert env_steps_of(run) >= env_steps_of(before) + MORE
    summary = json.loads(RunDir(run).summary.read_text())
    assert summary["env_steps"] < env_steps_of(before) + 3 * MORE  # it has not begun anew


def test_its_league_keeps_its_players_and_results(resumed):
    run, before = resumed
    if not (before / "league.jsonl").exists():
        pytest.skip("it has no league")
    earlier, now = ((folder / "league.jsonl").read_text() for folder in (before, run))
    assert now.startswith(earlier)
    players = {row["name"] for row in map(json.loads, earlier.splitlines()) if row["kind"] == "player"}
    new = [json.loads(line) for line in now[len(earlier) :].splitlines()]
    assert players & {name for row in new if row["kind"] == "match" for name in row["players"]}
