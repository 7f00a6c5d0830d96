"""The comparison of searches, made short."""

import json
import subprocess
import sys

import pytest
from pages import ROOT, commands


@pytest.mark.long
@pytest.mark.timeout(600)  # on a machine with other work
def test_the_command_of_the_page_compares_two_searches(tmp_path):
    page = ROOT / "benchmarks" / "README.md"
    (command,) = (words for words in commands(page) if "scripts/documentation/compare_searches.py" in words)
    results = tmp_path / "searches.json"
    small = ["--dir", str(tmp_path), "--json", str(results), "--trials", "4", "--env_steps", "2000"]
    subprocess.run([sys.executable, *command[1:], *small, "--tasks", "CartPole-v1"], cwd=ROOT, check=True)
    (found,) = json.loads(results.read_text()).values()
    assert (tmp_path / "cartpole_tpe_0" / "was_killed").exists()
    assert found["tpe"]["trials"] == 4
    assert 1 <= found["random"]["trials"] <= 4
    assert found["random"]["pruned"] == 0
    for kind in ("tpe", "random"):
        assert all(9 <= score <= 500 for score in found[kind]["mean_return_with_new_seeds"])
        assert len(found[kind]["mean_return_with_new_seeds"]) == 3
