"""The campaign against the ranks of two machines, a short one; and what averaging costs, measured briefly."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rank_campaign
from faults import processes
from faults.two_machines.hosts import why_impossible
from pages import ROOT, commands

CAMPAIGN = ROOT / "scripts" / "rank_campaign.py"


@pytest.fixture
def campaign(monkeypatch, capsys):
    """Runs the command in this process; its status and what it says."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", [CAMPAIGN.name, *map(str, words)])
        with pytest.raises(SystemExit) as end:
            rank_campaign.main()
        said = capsys.readouterr()
        return end.value.code or 0, said.out + said.err

    handler = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def two_machines():
    """Skips where this machine cannot be two."""
    reason = why_impossible()
    name = f"sft{os.getpid()}"
    if reason is None and subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        reason = "this machine has no network namespaces"
    if reason is not None:
        pytest.skip(reason)
    subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.long
@pytest.mark.timeout(450)
@pytest.mark.parametrize("disks", [[], ["--shared-disk"]])
def test_the_command_of_the_page_made_short_finds_every_promise_kept(
    disks, tmp_path, two_machines, campaign, monkeypatch
):
    monkeypatch.setattr(rank_campaign, "_TRAINS_BEFORE_A_FAULT_S", (1.0, 2.0))
    (command,) = (words for words in commands(ROOT / "docs" / "reliability.md") if "scripts/rank_campaign.py" in words)
    short = ["--faults", "2", "--only", "learner killed", "agent of torchrun killed", *disks]
    status, said = campaign(*command[2:], *short, "--json", tmp_path / "outcomes.json")
    assert status == 0, said
    assert "2 faults, 2 recovered" in said
    assert "Ctrl-C on one machine: both ended within" in said
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())["outcomes"]
    assert [outcome["broken"] for outcome in outcomes] == [None] * 2
    assert {outcome["fault"] for outcome in outcomes} == {"learner killed", "agent of torchrun killed"}


@pytest.mark.long
def test_sigterm_ends_both_machines_and_the_campaign(tmp_path, two_machines):
    command = [sys.executable, CAMPAIGN, "--keep", tmp_path / "runs"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as campaign:
        logs = [tmp_path / "runs" / f"host_{idx}.log" for idx in range(2)]
        while not all(log.exists() for log in logs):
            assert campaign.poll() is None
            time.sleep(0.1)  # it is another program, which cannot say it
        below = processes.alive_below(campaign.pid)
        campaign.send_signal(signal.SIGTERM)
        said, _ = campaign.communicate(timeout=60)
    assert "interrupted: this is what there was by then" in said
    assert campaign.returncode == 1  # nothing was tried
    assert processes.wait_until_gone(below, timeout_s=30.0) == set()
    assert not list(Path("/run/netns").glob(f"sf{campaign.pid}h*"))


def test_a_campaign_of_nothing_is_refused(campaign):
    for flag in ("--faults", "--minutes"):
        status, said = campaign(flag, "0")
        assert status == 2
        assert flag in said.splitlines()[-1]


def test_its_table_is_printed_from_its_file(campaign):
    file = ROOT / "benchmarks" / "rank_campaign.json"
    outcomes = json.loads(file.read_text())["outcomes"]
    status, said = campaign("--markdown", file)
    assert status == 0
    assert f"{len(outcomes)} faults, {len(outcomes)} recovered" in said


@pytest.mark.long
def test_averaging_is_measured_with_and_without_compression(tmp_path):
    file = tmp_path / "ranks.json"
    short = ["--envs", "CartPole-v1", "--rounds", "2", "--seconds", "0.1", "--json", file]
    command = [sys.executable, ROOT / "scripts" / "bench_ranks.py", *short]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert "is averaging" in done.stdout
    found = json.loads(file.read_text())
    plain, compressed = found["CartPole-v1"], found["CartPole-v1, bfloat16"]
    assert compressed["megabytes_per_step"] == plain["megabytes_per_step"] / 2
    assert plain["ms_per_step_alone"] > 0  # which of the two is less is no question for a busy machine
    assert plain["ms_per_step_together"] > 0
