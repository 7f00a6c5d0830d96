"""The scripts whose figures the documentation has."""

import json
import sys

import compare_searches
import memory_of_a_run
import pytest
import warm
from memory_of_a_run import MB
from pages import ROOT, commands

from sf.tools.psro.record import NAME, Iteration, append


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


def trial(state, value=""):
    return {"state": state, "mean_return": value}


def test_the_median_of_an_even_number_of_trials_is_between_the_middle_two():
    trials = [trial("done", str(value)) for value in (100, 1, 3, 2)]
    found = compare_searches.summary([*trials, trial("pruned"), trial("failed")])
    assert found == {"trials": 6, "pruned": 1, "failed": 1, "best": 100.0, "median_of_finished": 2.5}


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


def written_search(directory):
    directory.mkdir()
    for k, exploitability in enumerate((2.0, None, 0.5)):
        iteration = Iteration(k, f"p{k}", None, {}, [0.0] * k, {"p0": 1.0}, exploitability, 100 * k, 10.0 * k, {})
        append(directory / NAME, iteration)
    return directory


def written_run(directory):
    directory.mkdir()
    lines = [
        {"policy_id": 0, "seconds": 5.0, "env_steps": 50, "exploitability": 1.5},
        {"policy_id": 1, "seconds": 5.0, "env_steps": 50, "exploitability": 9.0},
        {"policy_id": 0, "seconds": 6.0, "env_steps": 60, "mean_return": 3.0},
        {"policy_id": 0, "seconds": 9.0, "env_steps": 90, "exploitability": 1.25},
    ]
    (directory / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


def test_the_exploitability_of_a_search_and_of_a_run_is_read_alike(tmp_path):
    load = pytest.importorskip("plot_exploitability").load
    search = load(written_search(tmp_path / "psro"), "PSRO")
    assert search.points.tolist() == [[0.0, 0.0, 2.0], [200.0, 20.0, 0.5]]
    run = load(written_run(tmp_path / "run"), "self-play")
    assert run.points.tolist() == [[50.0, 5.0, 1.5], [90.0, 9.0, 1.25]]
    assert (run.last, run.lowest) == (1.25, 1.25)
    assert load(tmp_path / "run", "the other", policy_id=1).last == 9.0
    (tmp_path / "run" / "evaluations.jsonl").write_text('{"policy_id": 0, "seconds": 1.0, "env_steps": 5}\n')
    with pytest.raises(ValueError, match="has no exploitability"):
        load(tmp_path / "run", "x")
