"""Real sweeps of tiny runs, as a user starts them."""

import csv
import signal
import subprocess
import sys

import pytest
from faults import processes

SMALL = "num_workers: 1, num_envs_per_worker: 2, batch_size: 64, rollout: 8, device: cpu, encoder_mlp_layers: [8]"


def command(path, *flags):
    return [sys.executable, "-m", "sf.sweep.command", str(path / "small.yaml"), "--train_dir", str(path), *flags]


def write(path, text):
    (path / "small.yaml").write_text(text)


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A sweep of two runs, one of which cannot work."""
    path = tmp_path_factory.mktemp("sweep")
    write(path, f"flags: {{{SMALL}, train_for_env_steps: 256}}\ngrid: {{env: [toy_bandid, toy_bandit]}}\n")
    done = subprocess.run(command(path), capture_output=True, text=True, timeout=100, check=False)
    return path, done


def test_a_run_that_fails_keeps_no_other_from_running(failed):
    path, done = failed
    assert done.returncode == 1, done.stdout + done.stderr
    rows = list(csv.DictReader((path / "small" / "results.csv").open()))
    assert [(row["env"], row["state"]) for row in rows] == [("toy_bandid", "failed"), ("toy_bandit", "done")]
    assert float(rows[1]["env_steps"]) >= 256
    assert "did you mean" in done.stdout


def test_what_is_done_is_not_done_again(failed):
    path, _ = failed
    again = subprocess.run(command(path), capture_output=True, text=True, timeout=100, check=False)
    assert "1 of 2 runs are done already" in again.stdout
    assert "started env=toy_bandit_seed=0" not in again.stdout


def test_a_wrong_flag_is_said_before_anything_starts(tmp_path):
    write(tmp_path, "flags: {env: toy_bandit}\ngrid: {gama: [0.9]}\n")
    done = subprocess.run(command(tmp_path), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert "gama" in done.stderr
    assert not (tmp_path / "small").exists()


def test_a_sweep_that_is_interrupted_stops_its_runs(tmp_path):
    write(tmp_path, f"flags: {{{SMALL}, env: toy_bandit}}\nseeds: 2\n")
    process = subprocess.Popen(command(tmp_path, "--parallel", "2"), stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if sum(line.startswith("started") for line in lines) == 2:
            break
    pids = processes.alive_below(process.pid)
    process.send_signal(signal.SIGINT)
    output = "".join(lines) + process.stdout.read()
    assert process.wait(60) == 128 + signal.SIGINT
    assert output.count("stopped seed=") == 2
    assert "the same command goes on" in output
    assert len(pids) >= 2
    assert processes.wait_until_gone(pids, timeout_s=30.0) == set()
