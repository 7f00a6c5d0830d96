"""The campaign against the ranks of two machines, a short one; and what averaging costs, measured briefly."""

import json
import os
import subprocess
import sys

import pytest
from faults.two_machines.hosts import why_impossible
from pages import ROOT, commands

CAMPAIGN = ROOT / "scripts" / "rank_campaign.py"


def run(*words, status=0, timeout=60):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


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
@pytest.mark.parametrize("disks", [[], ["--shared-disk"]])
def test_the_command_of_the_page_made_short_finds_every_promise_kept(disks, tmp_path, two_machines):
    (command,) = (words for words in commands(ROOT / "docs" / "reliability.md") if "scripts/rank_campaign.py" in words)
    short = ["--faults", "2", "--only", "learner killed", "agent of torchrun killed", *disks]
    said = run(CAMPAIGN, *command[2:], *short, "--json", tmp_path / "outcomes.json", timeout=400)
    assert "2 faults, 2 recovered" in said
    assert "Ctrl-C on one machine: both ended within" in said
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())["outcomes"]
    assert [outcome["broken"] for outcome in outcomes] == [None] * 2
    assert {outcome["fault"] for outcome in outcomes} == {"learner killed", "agent of torchrun killed"}


def test_its_table_is_printed_from_its_file():
    file = ROOT / "benchmarks" / "rank_campaign.json"
    outcomes = json.loads(file.read_text())["outcomes"]
    assert f"{len(outcomes)} faults, {len(outcomes)} recovered" in run(CAMPAIGN, "--markdown", file)


@pytest.mark.parametrize("flags", [["--only", "a fault of nobody"]])
def test_what_cannot_be_is_one_sentence(flags, two_machines):
    assert "--only leaves no fault" in run(CAMPAIGN, *flags, status=2)


@pytest.mark.long
def test_averaging_is_measured_with_and_without_compression(tmp_path):
    file = tmp_path / "ranks.json"
    short = ["--envs", "CartPole-v1", "--rounds", "2", "--seconds", "0.1", "--json", file]
    assert "is averaging" in run(ROOT / "scripts" / "bench_ranks.py", *short, timeout=200)
    found = json.loads(file.read_text())
    plain, compressed = found["CartPole-v1"], found["CartPole-v1, bfloat16"]
    assert compressed["megabytes_per_step"] == plain["megabytes_per_step"] / 2
    assert plain["ms_per_step_alone"] > 0  # which of the two is less is no question for a busy machine
    assert plain["ms_per_step_together"] > 0
