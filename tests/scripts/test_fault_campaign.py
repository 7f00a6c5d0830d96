"""The fault campaign: short ones, and what it holds a run to."""

import json
import signal
import subprocess
import sys
from types import SimpleNamespace

import fault_campaign
import pytest
from faults import bookkeeping, tasks
from faults.bookkeeping import NotRecoveredError
from faults.outcomes import Outcome, Results
from faults.processes import alive_below, wait_until_gone
from pages import ROOT, commands

from sf.storage.run_dir import RunDir
from sf.tools.commands import cli

CAMPAIGN = ROOT / "scripts" / "fault_campaign.py"


@pytest.mark.long
@pytest.mark.timeout(250)
def test_the_command_of_the_page_finds_every_promise_kept_and_interrupted_prints_what_it_has_and_leaves_nothing(
    tmp_path,
):
    faults, file = {"learner killed", "environment raises", "SIGTERM"}, tmp_path / "outcomes.json"
    (command,) = (words for words in commands(ROOT / "docs" / "reliability.md") if "scripts/fault_campaign.py" in words)
    words = [*command[2:], "--tasks", "toy", "--only", *faults, "--json", file]
    process = subprocess.Popen(  # cold: its runs are children of its shards
        [sys.executable, CAMPAIGN, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = []
    for line in process.stdout:
        said.append(line)
        if all(any(f"{fault}: " in line for line in said) for fault in faults):
            break
    below = alive_below(process.pid)
    process.send_signal(signal.SIGTERM)
    said = "".join([*said, process.stdout.read()])
    assert process.wait() == 0, said
    assert "interrupted" in said
    assert "| learner killed" in said
    assert len(below) > 2
    assert wait_until_gone(below, timeout_s=30.0) == set()
    outcomes = json.loads(file.read_text())["outcomes"]
    assert {outcome["fault"] for outcome in outcomes} == faults
    assert {outcome["broken"] for outcome in outcomes} == {None}


def test_no_run_ends_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which the folder of a task is added
    for task in tasks.TASKS.keys() - {"sweep"}:
        tasks.folder(task)
        run = cli.parse(tasks.flags(task, tmp_path)).run
        assert not run.ends_by_steps
        assert not run.ends_by_seconds


@pytest.fixture
def results():
    outcomes = [
        Outcome("toy", "SIGINT", 3.0, 1.0, 0, 4, None, shard=0, at_s=60.0, load=2.0),
        Outcome("doom", "SIGINT", 5.0, 2.0, 100, 2, None, shard=1, at_s=90.0, load=3.0),
        Outcome("toy", "SIGINT", 4.0, None, 0, 0, "it did not end", shard=0, at_s=100.0, load=2.0),
        Outcome("toy", "rollout worker killed", 0.5, None, 0, 0, "a counter fell", shard=0, at_s=120.0, load=4.0),
    ]
    return Results(outcomes, {"commit": "abc1234", "cores": 2})


def test_the_table_of_a_campaign_comes_back_from_its_file(tmp_path, results, monkeypatch, capsys):
    results.write(tmp_path / "outcomes.json")
    assert Results.read(tmp_path / "outcomes.json") == results
    monkeypatch.setattr(sys, "argv", [CAMPAIGN.name, "--markdown", str(tmp_path / "outcomes.json")])
    with pytest.raises(SystemExit) as end:
        fault_campaign.main()
    assert not end.value.code
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in said.splitlines() if "|" in line]
    assert rows[0][:4] == ["fault", "times", "recovered", "s"]
    assert ["SIGINT", "3", "2", "4.0", "5.0", "2.0", "50", "3"] in rows
    assert ["rollout worker killed", "1", "0", "0.5", "0.5"] in rows  # what it has lost nobody knows
    assert "4 faults, 2 recovered" in said
    assert "BROKEN toy, rollout worker killed: a counter fell" in said


# What it holds a run to

ITERATION = 64  # samples


@pytest.fixture
def plan():
    config = SimpleNamespace(rollout=8, slots_per_iteration=ITERATION // 8)
    return SimpleNamespace(config=config, num_actors=4, num_slots=4, num_policies=1)


@pytest.mark.parametrize("line", ['{"loss": -Infinity}', '{"env_steps": 1'])
def test_a_record_that_is_not_strict_json_is_found_once_it_is_whole(tmp_path, line):
    run_dir = RunDir(tmp_path)
    run_dir.metrics.write_text(f'{{"env_steps": 1}}\n{line}')
    bookkeeping.require_files_in_order(run_dir)
    run_dir.metrics.write_text(f'{{"env_steps": 1}}\n{line}\n')
    with pytest.raises(NotRecoveredError, match="JSON"):
        bookkeeping.require_files_in_order(run_dir)


def test_a_checkpoint_that_is_not_whole_is_found(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.checkpoints.mkdir()
    (run_dir.checkpoints / "checkpoint_000001_000000000064.safetensors").write_bytes(b"a part")
    with pytest.raises(NotRecoveredError, match="checksum"):
        bookkeeping.require_files_in_order(run_dir)


SNAPSHOT = '{"kind": "player", "name": "a", "policy": 1}'
ANEW = '{"kind": "anew", "policy": 1, "env_steps": 5}'


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [([SNAPSHOT, SNAPSHOT], "joined twice"), ([SNAPSHOT, ANEW, ANEW], "begun anew 2 times and left 1 snapshots")],
)
def test_a_league_that_is_counted_wrongly_is_found(rows, mistake, tmp_path):
    run_dir = RunDir(tmp_path)
    (tmp_path / "league.jsonl").write_text("".join(f"{row}\n" for row in [SNAPSHOT, ANEW]))
    bookkeeping.require_files_in_order(run_dir)
    (tmp_path / "league.jsonl").write_text("".join(f"{row}\n" for row in rows))
    with pytest.raises(NotRecoveredError, match=mistake):
        bookkeeping.require_files_in_order(run_dir)


def test_a_counter_that_falls_is_found():
    records = [{"env_steps": 64, "policy_00/env_steps": 32}, {"env_steps": 128, "policy_00/env_steps": 16}]
    bookkeeping.require_no_fall(records, num_policies=1)
    with pytest.raises(NotRecoveredError, match="policy_00/env_steps fell"):
        bookkeeping.require_no_fall(records, num_policies=2)


def test_samples_that_nobody_stepped_or_that_are_nowhere_are_found(plan):
    bookkeeping.require_balance(plan, 1000, 1000, 1000, num_replaced=0)
    bookkeeping.require_balance(plan, 1200, 1000, 1300, num_replaced=0)
    with pytest.raises(NotRecoveredError, match="only 1000 stepped"):
        bookkeeping.require_balance(plan, 1000, 1100, 1000, num_replaced=0)
    with pytest.raises(NotRecoveredError, match="more than the"):
        bookkeeping.require_balance(plan, 2000, 1000, 2000, num_replaced=0)
    bookkeeping.require_balance(plan, 2000, 1000, 2000, num_replaced=20)  # each may cost the slots that were filled


def test_episodes_are_reported_or_lost():
    summary = {"episodes": 90, "lost_episodes": 8}
    bookkeeping.require_episodes(summary, steps_of_an_episode=8, stepped=800, slack=4)
    with pytest.raises(NotRecoveredError, match="800 steps are 100 episodes"):
        bookkeeping.require_episodes(summary | {"lost_episodes": 2}, steps_of_an_episode=8, stepped=800, slack=4)
