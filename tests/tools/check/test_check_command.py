"""`sf-train --check`: every probe in a process of its own, a line each, and a status."""

import json
import sys
from functools import partial

import gymnasium
import pytest
import warm

from sf.run.startup.starting_flags import make_config
from sf.system.messages import say
from sf.system.processes.fork_servers import ForkServer
from sf.tools.check import command, isolated, programs
from sf.tools.check.command import check, main, needs_of
from sf.tools.check.probe import PROBES, Outcome, Probe, ProbeError


def test_every_row_names_functions_that_exist_and_says_what_to_do():
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    for probe in PROBES:
        for function in (probe.function, *probe.partners):
            assert callable(isolated.resolve(function))
        assert probe.advice


def outcome_of(function, **changes):
    probe = Probe("it", f"faulty_probes:{function}", "do this", **changes)
    return isolated.call("it", probe, "needs").outcome()


@pytest.fixture
def _tests_are_importable(monkeypatch):
    monkeypatch.setattr(isolated, "SIMULATORS", ForkServer([]))  # started with today's sys.path


@pytest.mark.usefixtures("_tests_are_importable")
def test_a_probe_that_raises_crashes_or_hangs_is_reported_and_ended():
    assert outcome_of("passes").status == "ok"
    assert outcome_of("raises").text == "KeyError: 'the cause\\nand more'"
    crashed = outcome_of("crashes")
    assert (crashed.status, crashed.text, crashed.advice) == ("FAILS", "its process died of SIGSEGV", "do this")
    hung = outcome_of("hangs", limit_s=0.5, matters=False)
    assert (hung.status, hung.text) == ("note", "no answer within 0.5 s")
    with_partner = outcome_of("asks_a_partner_that_dies", partners=("faulty_probes:dies",))
    assert (with_partner.status, with_partner.text) == ("ok", "its partner has died")


def test_what_needs_a_gpu_is_skipped_without_one_and_tried_on_each_of_several(monkeypatch):
    probe = Probe("it", "faulty_probes:passes", "do this", on_gpu=True)
    monkeypatch.setattr(command, "_gpus", lambda needs: [])
    assert list(check([probe], None)) == [Outcome("it", "skipped", "no GPU")]
    called = []
    monkeypatch.setattr(command, "_gpus", lambda needs: ["cuda:0", "cuda:1"])
    monkeypatch.setattr(command, "_outcomes", lambda probe, arguments: called.append(arguments) or [])
    assert list(check([probe], None)) == []
    assert called == [{"it (cuda:0)": "cuda:0", "it (cuda:1)": "cuda:1"}]


def test_the_command_tries_all_and_ends_with_1_where_something_that_matters_fails(tmp_path):
    (tmp_path / "file").touch()
    words = ["--check", "--device", "cpu", "--num_workers", "2", "--json", str(tmp_path / "check.json")]
    command = [sys.executable, "-m", "sf", *words, "--train_dir", "/proc/none"]
    done = warm.run(command, capture_output=True, text=True, timeout=300, check=False)
    found = {probe["name"]: probe for probe in json.loads((tmp_path / "check.json").read_text())["probes"]}
    assert list(found) == [probe.name for probe in PROBES]
    assert [name for name, probe in found.items() if probe["status"] == "FAILS"] == ["train_dir"], done.stdout
    assert done.returncode == 1
    assert f"1 of {len(PROBES)} fail: train_dir" in done.stdout
    skipped = {probe.name for probe in PROBES if probe.on_gpu or probe.of_run}
    assert {name for name, probe in found.items() if probe["status"] == "skipped"} == skipped
    assert "skipped  GPU itself: no GPU" in done.stdout
    assert "skipped  run: no --env" in done.stdout
    assert f"\n         -> {found['train_dir']['advice']}" in done.stdout
    assert "name another --train_dir" in found["train_dir"]["advice"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--check", "false"], "leave it out"), (["--check", "--num_workers", "0"], "num_workers is 0")],
)
def test_a_wrong_flag_ends_with_2(words, sentence, status_of, capsys):
    assert status_of(main, *words) == 2
    assert sentence in capsys.readouterr().err


def checked(monkeypatch, capsys, *words, defaults=None):
    """The status and the output of the command, which tries the run alone."""
    monkeypatch.setattr(command, "PROBES", [probe for probe in PROBES if probe.name == "run"])
    monkeypatch.setattr(command.os, "_exit", sys.exit)
    monkeypatch.setattr(sys, "argv", ["sf-train", "--check", "--device", "cpu", *words])
    with pytest.raises(SystemExit) as end:
        main(defaults)
    return end.value.code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "defaults", "status", "sentence"),
    [
        (["--env", "nosuchenv"], None, 1, "FAILS    run: env 'nosuchenv'"),
        (["--env", "toy_bandit", "--async_rl", "false", "--batch_size", "96"], None, 1, "async_rl is false"),
        (["--env", "toy_bandit"], None, 0, "2 workers, "),
        (["--config", "fast"], None, 0, "2 workers, "),
        ([], {"env": partial(gymnasium.make, "CartPole-v1")}, 0, "2 workers, "),
    ],
)
def test_a_run_that_is_named_is_planned_and_one_that_cannot_begin_is_no_success(
    words, defaults, status, sentence, monkeypatch, capsys
):
    found, said = checked(monkeypatch, capsys, "--num_workers", "2", *words, defaults=defaults)
    assert found == status, said
    assert sentence in said
    assert ("1 of 1 fail: run" in said) == (status == 1)


def test_the_programs_of_a_run_are_made_and_one_that_cannot_be_is_a_note(monkeypatch):
    def make_programs(plan):
        say("no room")
        return plan.config.run.env != "toy_bandit"

    monkeypatch.setattr(programs, "make_programs", make_programs)
    with pytest.raises(ProbeError, match="no room"):
        programs.compiled(needs_of(make_config(env="toy_bandit", device="cpu"), True))
    assert "begin with them" in programs.compiled(needs_of(make_config(env="CartPole-v1", device="cpu"), True))
    assert "none" in programs.compiled(needs_of(make_config(env="CartPole-v1", device="cpu", async_rl=False), True))
