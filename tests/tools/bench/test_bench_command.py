"""sf-bench: what it is told, and what becomes of it."""

import json

import pytest

from sf.run.children.verdict import ChildError
from sf.system.machine import cores
from sf.tools.bench import command, layers, programs


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """The environments of the plans whose programs would have been made."""
    found = []
    monkeypatch.setattr(programs, "make_programs", lambda plan: found.append(plan.config.run.env))
    return found


@pytest.fixture
def measured(monkeypatch):
    """What would have been measured, each 1000 frames/s: plan and seconds."""
    found = []

    def measure(plan, seconds):
        found.append((plan, seconds))
        return {"fps": 1000.0}

    monkeypatch.setattr(layers, "LAYERS", {"simulation": measure, "training": measure})
    return found


def test_layers_are_measured_with_the_flags_of_a_run(measured, compiled, monkeypatch, tmp_path, capsys, status_of):
    monkeypatch.setattr(cores, "cpu_quota", lambda: 1.0)  # of a container
    out = tmp_path / "new" / "result.json"
    flags = ["--env", "toy_bandit", "--rollout=16", "--async-rl", "False"]
    assert status_of(command.main, *flags, "--layers", "simulation", "training", "--rounds", 2, "--json", out) == 0
    assert [seconds for _, seconds in measured] == [20.0] * 4
    config = measured[0][0].config
    assert (config.run.env, config.sampler.rollout, config.sampler.async_rl) == ("toy_bandit", 16, False)
    assert not (tmp_path / "train_dir").exists()
    result = json.loads(out.read_text())
    assert result["flags"] == ["--env", "toy_bandit", "--rollout", "16", "--async_rl", "false"]
    assert [len(rounds) for rounds in result["results"].values()] == [2, 2]
    assert "100%" in capsys.readouterr().out
    assert result["cores"] == 1
    assert compiled == ["toy_bandit"]  # once, and before what runs the network
    assert status_of(command.main, *flags, "--layers", "simulation") == 0
    assert compiled == ["toy_bandit"]


@pytest.mark.parametrize("switch", [["--autotune"], ["--autotune", "true"]])
def test_what_is_named_is_not_tuned(switch, measured, compiled, status_of, capsys):
    default = 512
    assert status_of(command.main, "--env", "toy_bandit", *switch, "--batch_size", default, "--num_workers", 2) == 0
    plans = [plan.config for plan, _ in measured]
    assert {config.learner.batch_size for config in plans} == {default}
    assert {config.sampler.num_envs_per_worker for config in plans} == {4, 8, 16}
    best = f"sf-train --env toy_bandit --num_workers 2 --batch_size {default} --num_envs_per_worker 8"
    assert f"{best} --policy_workers_per_policy 1\n" in capsys.readouterr().out
    assert compiled == ["toy_bandit"]


def test_settings_that_fail_when_they_are_measured_again_are_not_recommended(monkeypatch, capsys, status_of):
    measured = []

    def measure(plan, seconds):
        num_envs = plan.config.sampler.num_envs_per_worker
        if num_envs in measured and num_envs != measured[0]:
            raise ChildError("rollout-1: too little memory")
        measured.append(num_envs)
        return {"fps": 1000.0 * min(num_envs, 16)}

    monkeypatch.setattr(layers, "LAYERS", {"training": measure})
    given = ["--num_workers", 2, "--batch_size", 512, "--policy_workers_per_policy", 1]
    assert status_of(command.main, "--env", "toy_bandit", "--autotune", *given) == 2
    assert "too little memory" in capsys.readouterr().err


def test_a_start_that_fails_is_said_in_one_sentence(monkeypatch, capsys, status_of):
    def fail(plan, seconds):
        raise ChildError("learner-0: too little memory\n\nTraceback")

    monkeypatch.setattr(layers, "LAYERS", {"training": fail})
    assert status_of(command.main, "--env", "toy_bandit", "--autotune") == 2
    said = capsys.readouterr().err
    assert "error: learner-0: too little memory" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--autotun", "1"], "--autotun"),
        (["--rounds", "0"], "rounds is 0"),
        (["--budget_s", "nan"], "budget_s is 'nan'"),
        (["--layers"], "layers is empty"),
        (["--json", "{here}"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_measured(arguments, sentence, measured, tmp_path, status_of, capsys):
    assert (
        status_of(command.main, "--env", "toy_bandit", *(argument.format(here=tmp_path) for argument in arguments)) == 2
    )
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert measured == []
