"""Small runs, as a user starts them."""

import os
import subprocess
import sys

import warm

from sf.run import trainer
from sf.tools.commands import cli

DEVICE = os.environ.get("SF_TEST_DEVICE", "cpu")
QUEUES = os.environ.get("SF_TEST_QUEUES", "pipes")

FAST = ["--num_workers", "2", "--num_envs_per_worker", "2", "--batch_size", "64", "--rollout", "8"]
FAST += ["--device", DEVICE, "--queues", QUEUES]
FAST += ["--encoder_mlp_layers", "16", "--summaries_every_sec", "0.3", "--learner_threads", "1"]
FAST += ["--num_batches_per_epoch", "1", "--num_epochs", "1"]  # the preset of vectors takes 80 steps an iteration


def flags_of_run(tmp_path, *flags, env="toy_identity"):
    return ["--env", env, "--train_dir", str(tmp_path), *FAST, *flags]


def command(tmp_path, *flags, env="toy_identity"):
    return [sys.executable, "-m", "sf", *flags_of_run(tmp_path, *flags, env=env)]


def start(tmp_path, *flags, env="toy_identity"):
    """A run in its own process group, once it has begun to train. It ends, also where its test did not end it."""
    process = warm.Popen(
        command(tmp_path, "--train_for_seconds", "600", *flags, env=env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    for line in process.stdout:
        if "frames" in line and "frames 0 " not in line:
            return process
    raise AssertionError(f"the run ended with {process.wait()} before it trained")


def train(tmp_path, *flags, env="toy_identity"):
    done = warm.run(command(tmp_path, *flags, env=env), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def train_here(tmp_path, *flags, env="toy_identity"):
    """The same without a process of its own for the parent, which takes longer to start than to train; its summary."""
    return trainer.train(cli.parse(flags_of_run(tmp_path, *flags, env=env)))
