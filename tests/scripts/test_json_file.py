"""The file of --json: it is tried before the work, and a campaign does not replace what an earlier one has found."""

import sys

import pytest
import warm
from pages import ROOT

CAMPAIGNS = ["fault_campaign.py", "rank_campaign.py"]
OTHERS = (
    "bench_peers.py",
    "bench_ranks.py",
    "bench_openspiel.py",
    "bench_rts.py",
    "documentation/compare_searches.py",
)
SCRIPTS = ["bench_queues.py", *(pytest.param(script, marks=pytest.mark.long) for script in (*CAMPAIGNS, *OTHERS))]


def refusal(script, path):
    command = [sys.executable, str(ROOT / "scripts" / script), "--json", str(path)]
    done = warm.run(command, cwd=path.parent, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    (sentence,) = done.stderr.strip().splitlines()
    return sentence


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_file_that_cannot_be_written_is_one_sentence_before_the_work(script, tmp_path):
    assert refusal(script, tmp_path) == f"error: {tmp_path} cannot be written (Is a directory): name another --json"


@pytest.mark.parametrize("script", CAMPAIGNS)
def test_a_campaign_leaves_the_file_of_an_earlier_one(script, tmp_path):
    path = tmp_path / "outcomes.json"
    path.write_text("{}")
    assert refusal(script, path) == f"error: {path} has an earlier result: name another --json, or remove it"
    assert path.read_text() == "{}"
