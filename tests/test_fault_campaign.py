"""The fault campaign itself, a short one."""

import json
import subprocess
import sys
from pathlib import Path

CAMPAIGN = Path(__file__).parent.parent / "scripts" / "fault_campaign.py"


def test_a_short_campaign_finds_every_promise_kept(tmp_path):
    faults = ["policy worker killed", "learner killed", "environment raises", "SIGTERM"]
    done = subprocess.run(
        [
            *(sys.executable, CAMPAIGN, "--tasks", "toy", "--seed", "0", "--faults", "5", "--only", *faults),
            *("--json", tmp_path / "outcomes.json"),
        ],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 faults, 5 recovered" in done.stdout
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert {"SIGTERM", "learner killed"} < {outcome["fault"] for outcome in outcomes}
    assert [outcome["broken"] for outcome in outcomes] == [None] * 5
