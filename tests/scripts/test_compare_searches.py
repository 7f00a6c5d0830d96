"""The comparison of searches, made short."""

import json
import sys

import compare_searches
import pytest
import warm
from pages import ROOT, commands


@pytest.mark.long
@pytest.mark.timeout(600)  # on a machine with other work
def test_the_command_of_the_page_compares_two_searches(tmp_path):
    page = ROOT / "benchmarks" / "README.md"
    (command,) = (words for words in commands(page) if "scripts/documentation/compare_searches.py" in words)
    results = tmp_path / "searches.json"
    small = ["--dir", str(tmp_path), "--json", str(results), "--trials", "4", "--env_steps", "2000"]
    warm.run(
        [sys.executable, *command[1:], *small, "--tasks", "CartPole-v1"], cwd=ROOT, check=True, starts_commands=True
    )
    (found,) = json.loads(results.read_text()).values()
    assert (tmp_path / "cartpole_tpe_0" / "was_killed").exists()
    assert found["tpe"]["trials"] == 4
    assert 1 <= found["random"]["trials"] <= 4
    assert found["random"]["pruned"] == 0
    for kind in ("tpe", "random"):
        assert all(9 <= score <= 500 for score in found[kind]["mean_return_with_new_seeds"])
        assert len(found[kind]["mean_return_with_new_seeds"]) == 3


def trial(state, value=""):
    return {"state": state, "mean_return": value}


def test_the_median_of_an_even_number_of_trials_is_between_the_middle_two():
    trials = [trial("done", str(value)) for value in (100, 1, 3, 2)]
    found = compare_searches.summary([*trials, trial("pruned"), trial("failed")])
    assert found == {"trials": 6, "pruned": 1, "failed": 1, "best": 100.0, "median_of_finished": 2.5}


def test_a_trial_that_failed_before_its_first_record_has_taken_no_env_steps(tmp_path):
    assert compare_searches.env_steps_of(tmp_path) == 0
    (tmp_path / "metrics.jsonl").touch()
    assert compare_searches.env_steps_of(tmp_path) == 0
    (tmp_path / "metrics.jsonl").write_text('{"env_steps": 64}\n{"env_steps": 128}\n')
    assert compare_searches.env_steps_of(tmp_path) == 128
