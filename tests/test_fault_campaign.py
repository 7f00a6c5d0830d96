"""The fault campaign itself, a short one."""

import json
import subprocess
import sys
from pathlib import Path

CAMPAIGN = Path(__file__).parent.parent / "scripts" / "fault_campaign.py"


def test_a_short_campaign_finds_every_promise_kept(tmp_path):
    faults = ["learner killed", "environment raises", "SIGTERM"]
    done = subprocess.run(
        [
            *(sys.executable, CAMPAIGN, "--tasks", "toy", "--seed", "0", "--faults", "3", "--only", *faults),
            *("--json", tmp_path / "outcomes.json"),
        ],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 faults, 3 recovered" in done.stdout
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert {outcome["fault"] for outcome in outcomes} == set(faults)
    assert [outcome["broken"] for outcome in outcomes] == [None] * 3
