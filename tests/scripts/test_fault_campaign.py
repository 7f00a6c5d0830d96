"""The fault campaign itself, short ones."""

import json
import signal
import subprocess
import sys

import fault_campaign
import pytest
import warm
from faults import tasks
from faults.outcomes import Outcome, Results
from faults.processes import alive_below, wait_until_gone
from pages import ROOT, commands

from sf.tools.commands import cli

CAMPAIGN = ROOT / "scripts" / "fault_campaign.py"


@pytest.mark.long
@pytest.mark.timeout(250)
def test_the_command_of_the_page_made_short_finds_every_promise_kept(tmp_path):
    faults = ["learner killed", "environment raises", "SIGTERM"]
    (command,) = (words for words in commands(ROOT / "docs" / "reliability.md") if "scripts/fault_campaign.py" in words)
    short = ["--tasks", "toy", "--faults", "3", "--only", *faults]
    done = warm.run(
        [sys.executable, CAMPAIGN, *command[2:], *short, "--json", tmp_path / "outcomes.json"],
        starts_commands=True,
        capture_output=True,
        text=True,
        timeout=230,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 faults, 3 recovered" in done.stdout
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())["outcomes"]
    assert {outcome["fault"] for outcome in outcomes} == set(faults)
    assert [outcome["broken"] for outcome in outcomes] == [None] * 3


@pytest.mark.long
def test_a_campaign_that_is_interrupted_prints_what_it_has_and_leaves_nothing():
    command = [sys.executable, CAMPAIGN, "--tasks", "toy", "--jobs", "2", "--only", "learner killed"]
    process = warm.Popen(command, starts_commands=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if "learner killed: " in line:
            break
    below = alive_below(process.pid)
    process.send_signal(signal.SIGTERM)
    said = process.stdout.read()
    assert process.wait() == 0, said
    assert "interrupted" in said
    assert "| learner killed" in said
    assert len(below) > 2
    assert wait_until_gone(below, timeout_s=30.0) == set()


@pytest.mark.parametrize("flag", ["--faults", "--jobs", "--minutes"])
def test_a_campaign_of_nothing_is_refused(flag):
    done = warm.run([sys.executable, CAMPAIGN, flag, "0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"{flag} is 0: above 0" in done.stderr


def test_a_campaign_in_which_nothing_was_tried_has_status_1(monkeypatch):
    monkeypatch.setattr(fault_campaign.machine, "obey_permissions", lambda: None)
    monkeypatch.setattr(fault_campaign.signal, "signal", lambda *_: None)
    monkeypatch.setattr(fault_campaign.Campaign, "run", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["fault_campaign.py"])
    with pytest.raises(SystemExit) as end:
        fault_campaign.main()
    assert end.value.code == 1


@pytest.mark.parametrize("task", [task for task in tasks.TASKS if task != "sweep"])
def test_no_run_ends_by_itself(task, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which the folder of a task is added
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


def test_the_table_of_a_campaign_comes_back_from_its_file(tmp_path, results):
    results.write(tmp_path / "outcomes.json")
    assert Results.read(tmp_path / "outcomes.json") == results
    command = [sys.executable, CAMPAIGN, "--markdown", tmp_path / "outcomes.json"]
    said = warm.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in said.splitlines() if "|" in line]
    assert rows[0][:4] == ["fault", "times", "recovered", "s"]
    assert ["SIGINT", "3", "2", "4.0", "5.0", "2.0", "50", "3"] in rows
    assert ["rollout worker killed", "1", "0", "0.5", "0.5"] in rows  # what it has lost nobody knows
    assert "4 faults, 2 recovered" in said
    assert "2 kinds, 2 minutes, commit abc1234, 2 cores, load 2 to 4" in said
    assert "by task: toy 3, doom 1" in said
    assert "BROKEN toy, rollout worker killed: a counter fell" in said
