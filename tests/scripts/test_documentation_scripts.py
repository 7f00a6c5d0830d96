"""The scripts whose figures the documentation has."""

import json
import sys

import memory_of_a_run
import pytest
import warm
from memory_of_a_run import MB
from pages import ROOT, commands


@pytest.mark.long
@pytest.mark.timeout(600)  # on a machine with other work
def test_the_command_of_the_page_compares_two_searches(tmp_path):
    page = ROOT / "benchmarks" / "README.md"
    (command,) = (words for words in commands(page) if "scripts/documentation/compare_searches.py" in words)
    results = tmp_path / "searches.json"
    small = ["--dir", str(tmp_path), "--json", str(results), "--trials", "2", "--env_steps", "2000"]
    warm.run(
        [sys.executable, *command[1:], *small, "--tasks", "CartPole-v1"], cwd=ROOT, check=True, starts_commands=True
    )
    (found,) = json.loads(results.read_text()).values()
    assert (tmp_path / "cartpole_tpe_0" / "was_killed").exists()
    assert found["tpe"]["trials"] == 2
    assert found["random"]["trials"] == max(1, found["env_steps"] // 2000)
    assert found["random"]["pruned"] == 0
    for kind in ("tpe", "random"):
        assert all(9 <= score <= 500 for score in found[kind]["mean_return_with_new_seeds"])
        assert len(found[kind]["mean_return_with_new_seeds"]) == 3


@pytest.mark.long
def test_a_run_is_measured_by_role_and_ended():
    flags = ["--env", "CartPole-v1", "--num_workers", "1", "--device", "cpu", "--learner_threads", "1"]
    roles = memory_of_a_run.measured(flags, seconds=0.0)
    counts = {name: role.count for name, role in roles.items()}
    assert {name: counts.get(name) for name in ("parent", "learner", "policy", "rollout")} == {
        "parent": 1, "learner": 1, "policy": 1, "rollout": 1,
    }  # fmt: skip
    assert all(role.private > 0 for role in roles.values())
    assert 50 * MB < sum(role.private + role.shared for role in roles.values()) < 5000 * MB
