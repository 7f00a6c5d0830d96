"""A run of one process (`--serial true`), as a debugger wants it."""

import os
import signal
import subprocess
import sys
import time
import traceback
from typing import ClassVar

import hidden_linux
import numpy as np
import pytest
from faults.processes import children_of_run
from runs import command, flags_of_run, start, train_here
from safetensors.numpy import load_file

from sf.__main__ import main
from sf.envs import register_env
from sf.envs.errors import EnvError
from sf.envs.toys.single import Identity
from sf.model.encoders.vectors import MlpEncoder
from sf.model.registry import register_encoder

ONE = ["--num_workers", "1", "--train_for_env_steps", "1280", "--summaries_every_sec", "0.05"]
ONE += ["--num_batches_per_epoch", "2"]


def weights(run):
    (path,) = (run / "checkpoints").glob("checkpoint_*.safetensors")
    return load_file(path)


def test_its_weights_are_those_of_a_synchronous_run_with_one_worker_to_the_bit(tmp_path):
    """Also where it pauses for a record again and again while it collects."""
    flags = [*ONE, "--core", "gru", "--normalize_input", "true"]
    for name, mode in (("serial", "--serial true"), ("synchronous", "--async_rl false")):
        train_here(tmp_path, *flags, *mode.split(), "--experiment", name, env="toy_memory")
    found, expected = weights(tmp_path / "serial"), weights(tmp_path / "synchronous")
    assert [name for name in expected if not np.array_equal(found[name], expected[name])] == []
    assert len((tmp_path / "serial" / "metrics.jsonl").read_text().splitlines()) > 3


class Failing(Identity):
    """Fails in its 700th step, after the first iteration."""

    num_steps = 0
    pids: ClassVar = set()

    def step(self, action):
        self.pids.add(os.getpid())
        type(self).num_steps += 1
        if self.num_steps == 700:
            raise ZeroDivisionError("in the environment")
        return super().step(action)


class Encoder(MlpEncoder):
    pids: ClassVar = set()

    def forward(self, obs):
        self.pids.add(os.getpid())
        return super().forward(obs)


class Hanging(Identity):
    num_steps = 0

    def step(self, action):
        Hanging.num_steps += 1
        if Hanging.num_steps == 700:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.2)  # launchers repeat a signal at once: that is no second one
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        return super().step(action)


def test_what_fails_in_an_environment_is_raised_with_all_that_led_to_it_and_the_run_is_saved(tmp_path):
    register_env("failing", Failing)
    register_encoder("serial_encoder")(Encoder)
    with pytest.raises(EnvError, match="in the environment") as raised:
        train_here(tmp_path, *ONE, "--serial", "true", "--encoder", "serial_encoder", env="failing")
    names = [frame.name for frame in traceback.extract_tb(raised.tb)]
    assert names.index("iterate") < names.index("_sample") < names.index("advance")  # learner, sampler, environments
    assert Failing.pids == Encoder.pids == {os.getpid()}
    assert weights(tmp_path / "failing")


def test_ctrl_c_ends_it_in_the_middle_of_a_batch_and_it_is_saved(tmp_path):
    run = start(tmp_path, "--serial", "true", "--num_workers", "1", "--batch_size", "4096", "--rollout", "2048")
    assert children_of_run(run.pid) == []
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=30) == 130
    assert weights(tmp_path / "toy_identity")


def test_a_second_ctrl_c_ends_an_environment_that_hangs_and_the_run_is_saved(tmp_path):
    register_env("hanging", Hanging)
    with pytest.raises(KeyboardInterrupt):
        train_here(tmp_path, *ONE, "--serial", "true", env="hanging")
    assert weights(tmp_path / "hanging")


@pytest.mark.long
def test_nothing_that_linux_alone_has_is_needed(tmp_path):
    flags = flags_of_run(tmp_path, *ONE, "--serial", "true", "--core", "gru", env="CartPole-v1")
    done = subprocess.run(
        [sys.executable, hidden_linux.__file__, "sf", *flags], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert weights(tmp_path / "CartPole-v1")


@pytest.mark.parametrize(
    "flags",
    [
        ("--num_policies", "2"),
        ("--past_share", "0.5", "--env", "toy_match_counting"),
        ("--gradient_workers", "1"),
        ("--eval_every_env_steps", "1000"),
    ],
    ids=lambda flags: flags[0],
)
def test_what_needs_more_processes_is_refused_with_the_flag_to_change(flags, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["sf-train", *command(tmp_path)[3:], "--serial", "true", *flags])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert f"set {flags[0]} " in " ".join(capsys.readouterr().err.split())
