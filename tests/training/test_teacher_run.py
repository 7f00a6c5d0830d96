"""Students learn from teachers what they would not find by themselves, and go on when these are gone."""

import json
import shutil

import numpy as np
from corridor_env import SETTINGS
from runs import train_here

from sf import load_policy

FLAGS = [*SETTINGS, "--batch_size", "128", "--num_epochs", "2", "--learning_rate", "0.003"]


def last_with(run, name):
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [record[name] for record in records if name in record][-1]


def test_a_policy_learns_from_a_function_and_a_smaller_one_from_that_policy(tmp_path):
    end = ["--train_for_env_steps", "13000"]
    teacher, student = tmp_path / "taught", tmp_path / "student"
    flags = [*FLAGS, "--experiment", "taught", "--teacher", "corridor_env:go_right", *end]
    assert train_here(tmp_path, *flags, env="corridor_env:Corridor")["mean_return"] > 0.5
    flags = [*FLAGS, "--experiment", "student", "--teacher", str(teacher), "--teacher_on", "mix:0.5"]
    flags += ["--anneal", "teacher_coeff=1:0@9000"]
    train_here(
        tmp_path, *flags, "--encoder_mlp_layers", "8", "--train_for_env_steps", "5000", env="corridor_env:Corridor"
    )
    assert last_with(student, "train/teacher/kl") < 0.5
    assert last_with(student, "train/annealed/teacher_coeff") < 0.9
    shutil.rmtree(teacher)
    summary = train_here(tmp_path, *flags, "--encoder_mlp_layers", "8", *end, env="corridor_env:Corridor")
    assert summary["mean_return"] > 0.5  # without a teacher 0
    assert last_with(student, "train/annealed/teacher_coeff") == 0.0


def test_a_teacher_may_see_what_the_policy_does_not_see_which_is_evaluated_without_it(tmp_path):
    flags = [*FLAGS, "--teacher", "told_env:as_told", "--teacher_obs", "told", "--train_for_env_steps", "12000"]
    assert train_here(tmp_path, *flags, env="told_env:Told")["stats/right"] > 0.5  # by chance 0.25
    policy = load_policy(tmp_path / "told_env_Told")
    assert list(policy.flat_obs_space) == ["hint"]
    hint = np.eye(4, dtype=np.float32)
    assert [policy.act({"hint": row}, deterministic=True) for row in hint] == [3, 0, 1, 2]
