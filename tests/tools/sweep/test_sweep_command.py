"""Real sweeps of tiny runs, as a user starts them."""

import csv
import os
import signal
import subprocess
import sys

import pytest
import warm
from faults import processes

from sf.config import Config
from sf.storage import run_lock
from sf.storage.run_dir import RunDir
from sf.tools.sweep import command as sweep_command
from sf.tools.sweep.launchers import local, training_job
from sf.tools.sweep.results import Result

SMALL = "num_workers: 1, num_envs_per_worker: 2, batch_size: 64, rollout: 8, device: cpu, encoder_mlp_layers: [8]"


def command(path, *flags):
    program = "from sf.tools.commands.entry_points import sf_sweep; sf_sweep()"
    return [sys.executable, "-c", program, str(path / "small.yaml"), "--train_dir", str(path), *flags]


def write(path, text):
    (path / "small.yaml").write_text(text)


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A sweep of two runs, one of which cannot work."""
    path = tmp_path_factory.mktemp("sweep")
    write(path, f"flags: {{{SMALL}, train_for_env_steps: 256}}\ngrid: {{env: [toy_bandid, toy_bandit]}}\n")
    done = warm.run(command(path), starts_commands=True, capture_output=True, text=True, timeout=300, check=False)
    return path, done


def test_a_run_that_fails_keeps_no_other_from_running(failed):
    path, done = failed
    assert done.returncode == 1, done.stdout + done.stderr
    rows = list(csv.DictReader((path / "small" / "results.csv").open()))
    assert [(row["env"], row["state"]) for row in rows] == [("toy_bandid", "failed"), ("toy_bandit", "done")]
    assert float(rows[1]["env_steps"]) >= 256
    assert "did you mean" in done.stdout


@pytest.mark.long
def test_what_is_done_is_not_done_again(failed):
    path, _ = failed
    again = warm.run(command(path), starts_commands=True, capture_output=True, text=True, timeout=300, check=False)
    assert "1 of 2 runs are done already" in again.stdout
    assert "started env=toy_bandit_seed=0" not in again.stdout


def test_a_sweep_whose_settings_have_changed_stops_before_anything_starts(failed, status_of, capsys):
    path, _ = failed
    text = (path / "small.yaml").read_text()
    try:
        write(path, text.replace("batch_size: 64", "batch_size: 128"))
        assert status_of(sweep_command.main, *command(path)[3:]) == 2
    finally:
        write(path, text)
    assert "env=toy_bandit_seed=0 was trained with batch_size 64" in " ".join(capsys.readouterr().err.split())


def test_runs_are_dealt_the_gpus_that_the_sweep_was_given():
    for visible, names in (
        (None, ["0", "1"]),
        (" GPU-8f1c, MIG-77aa", ["GPU-8f1c", "MIG-77aa"]),
        ("5,6,-1", ["5", "6"]),
    ):
        assert local.gpu_names(2, visible) == names
        assert local.gpu_names(0, visible) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flags: {env: toy_bandit}\ngrid: {gama: [0.9]}", "gama"),
        (f"flags: {{{SMALL}, env: toy_bandit, batch_size: 65}}", "batch_size is 65"),
        (
            f"flags: {{{SMALL}, env: toy_bandit}}\ngrid: {{lr_schedule: [constant, linear]}}",
            "lr_schedule=linear_seed=0",
        ),
        (f"flags: {{{SMALL}, env: toy_bandit}}\ngrid: {{env_kwargs: [{{a: 1}}, 'x']}}", "env_kwargs=x_seed=0"),
        (f"flags: {{{SMALL}, env: toy_bandit}}\nseeds: 3", "seed=0 has no end"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_starts(tmp_path, status_of, capsys, text, message):
    write(tmp_path, text.replace("batch_size: 64, ", "", "batch_size: 65" in text))
    assert status_of(sweep_command.main, *command(tmp_path, "--parallel", "2")[3:]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: {tmp_path / 'small.yaml'}")
    assert message in said
    assert not (tmp_path / "small").exists()


def test_a_run_that_ends_by_its_return_has_an_end(tmp_path, status_of):
    write(tmp_path, f"flags: {{{SMALL}, env: toy_bandit, stop_at_return: 1}}\nseeds: 3\n")
    assert status_of(sweep_command.main, *command(tmp_path, "--parallel", "2", "--dry_run", "true")[3:]) == 0


@pytest.mark.parametrize(("state", "status"), [("done", 0), ("failed", 1), ("waiting", 1)])
def test_a_sweep_of_which_a_run_is_not_done_ends_with_1(tmp_path, monkeypatch, state, status, status_of):
    write(tmp_path, f"flags: {{{SMALL}, env: toy_bandit, train_for_env_steps: 256}}\nseeds: 2\n")

    class Runner:
        def __init__(self, runs, *_):
            self.results = [Result(runs[0], "done", {}), Result(runs[1], state, {})]

        def run(self, signals):
            pass

    monkeypatch.setattr(sweep_command, "SweepRunner", Runner)
    assert status_of(sweep_command.main, *command(tmp_path)[3:]) == status


def test_a_directory_that_another_start_or_a_run_has_is_refused_and_left_alone(tmp_path, status_of, capsys):
    write(tmp_path, f"flags: {{{SMALL}, env: toy_bandit, train_for_env_steps: 256}}\n")
    with run_lock.held(tmp_path / "small"):
        assert status_of(sweep_command.main, *command(tmp_path)[3:]) == 2
    assert "name another --train_dir" in capsys.readouterr().err
    RunDir(tmp_path / "small").prepare(Config().replace(env="toy_bandit"))
    before = sorted(tmp_path.rglob("*"))
    assert status_of(sweep_command.main, *command(tmp_path)[3:]) == 2
    assert f"{tmp_path / 'small'} is a run" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_runs_at_once_have_cores_of_their_own_and_stop_with_the_sweep(tmp_path):
    write(tmp_path, f"flags: {{{SMALL}, env: toy_bandit, train_for_seconds: 600}}\nseeds: 2\n")
    process = warm.Popen(command(tmp_path, "--parallel", "2"), stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if sum(line.startswith("started") for line in lines) == 2:
            break
    pids = processes.alive_below(process.pid)
    children = [each.pid for each in processes.below(process.pid) if each.parent == process.pid]
    cores_of_runs = [cores for pid in children if (cores := os.sched_getaffinity(pid)) != os.sched_getaffinity(0)]
    process.send_signal(signal.SIGINT)
    output = "".join(lines) + process.stdout.read()
    assert process.wait(60) == 128 + signal.SIGINT
    assert output.count("stopped seed=") == 2
    assert len(cores_of_runs) == 2
    if len(os.sched_getaffinity(0)) > 1:
        assert not cores_of_runs[0] & cores_of_runs[1]
    assert "the same command goes on" in output
    assert len(pids) >= 2
    assert processes.wait_until_gone(pids, timeout_s=30.0) == set()


def test_a_run_heeds_sigint_where_the_sweep_itself_was_started_to_ignore_it():
    """As in the background of a script: what it starts would ignore the sweep's own SIGINT, too."""

    def before_the_program():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        training_job.begin(sorted(os.sched_getaffinity(0)))

    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=before_the_program,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "True\n"
