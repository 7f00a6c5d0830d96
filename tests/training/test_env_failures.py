"""What a user sees of environments that fail: one traceback of theirs, and one sentence what was done."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import warm

from sf.run.reports import ReportHandler
from sf.system.processes.reports import EnvFault, Failed, Remark, Replaced, Trained

WALK = """
import multiprocessing

import gymnasium as gym
import numpy as np

from sf.envs.toys.matches import Pennies


class Walk(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps = 0
        return np.array([0.0, 1.5], np.float32), {}

    def step(self, action):
        self.num_steps += 1
        ends = self.num_steps == 10
        stats = {"episode_stats": {"good": 1.0, "bad": float("nan")}} if ends else {}
        return np.zeros(2, np.float32), float(action), ends, False, stats

    def close(self):
        raise OSError("the door is stuck")


class FailsInStep(Walk):
    def step(self, action):
        return {}["nothing"]


class OnlyObs(Walk):
    def reset(self, **kwargs):
        return super().reset(**kwargs)[0]


class Changes(Walk):
    def __init__(self):
        if multiprocessing.current_process().name.startswith("rollout"):
            self.observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)


class OneMoreAgent(Pennies):
    def __init__(self):
        super().__init__()
        if multiprocessing.current_process().name.startswith("rollout"):
            self.possible_agents.append("late")
"""

FLAGS = ["--num_workers", "2", "--num_envs_per_worker", "2", "--batch_size", "64", "--rollout", "8", "--device", "cpu"]
FLAGS += ["--encoder_mlp_layers", "16", "--learner_threads", "1", "--train_for_env_steps", "640"]
FLAGS += ["--num_batches_per_epoch", "1", "--num_epochs", "1"]


@pytest.fixture
def run_of(tmp_path):
    """A function that trains on a class of the module above; returns status, output and log."""
    (tmp_path / "walk.py").write_text(WALK)

    def run(name):
        command = [sys.executable, "-m", "sf", "--env", f"walk:{name}", "--train_dir", "runs", *FLAGS]
        done = warm.run(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=150,
            check=False,
        )
        return done.returncode, done.stdout, (tmp_path / f"runs/walk_{name}/run.log").read_text()

    return run


def line_of():
    return WALK.splitlines().index('        return {}["nothing"]') + 1


def test_an_environment_that_always_raises_ends_the_run_with_its_own_line_once_and_may_change_then(run_of, tmp_path):
    status, output, log = run_of("FailsInStep")
    assert status == 1
    for text in (output, log):
        assert "walk:FailsInStep failed in step(): KeyError: 'nothing'" in text
        assert text.count(f'walk.py", line {line_of()}, in ') == 1
    assert output.count("Traceback") == 1
    assert len(output.splitlines()) < 15
    run = tmp_path / "runs" / "walk_FailsInStep"
    assert json.loads((run / "summary.json").read_text())["stopped_by"] == "failure"
    assert not list(run.glob("**/*.safetensors")), "nothing was trained"
    mended = WALK.replace("class FailsInStep(Walk):", "class FailsInStep(Changed):", 1)
    mended = mended.replace('return {}["nothing"]', "return super().step(action)", 1)
    changed = WALK[WALK.index("class Walk") : WALK.index("class FailsInStep")].replace("Walk", "Changed")
    changed = changed.replace("(2,)", "(3,)").replace("zeros(2", "zeros(3").replace("[0.0, 1.5]", "[0.0, 1.0, 0.5]")
    (tmp_path / "walk.py").write_text(mended.replace("class FailsInStep", f"{changed}class FailsInStep", 1))
    status, output, _ = run_of("FailsInStep")
    assert status == 0, output


def test_what_does_no_harm_is_said_once_and_the_run_goes_on(run_of):
    status, output, log = run_of("Walk")
    assert status == 0
    for sentence in (
        "walk:Walk: observation 'obs'[1] is 1.5, but the high of its space is 1.0; training goes on with it",
        "walk:Walk: the statistic 'bad' of an episode is nan: it is left out there",
        "walk:Walk failed in close(): OSError: the door is stuck",
    ):
        assert output.count(sentence) == log.count(sentence) == 1
    assert "Traceback" not in output


def test_an_environment_of_an_older_api_ends_the_run_with_one_sentence_and_status_2(run_of):
    status, output, log = run_of("OnlyObs")
    assert status == 2
    assert output.count("walk:OnlyObs: reset() returned one object") == log.count("returned") == 1
    assert "Traceback" not in output


@pytest.mark.long
@pytest.mark.parametrize("name", ["Changes", "OneMoreAgent"])
def test_spaces_and_agents_that_differ_in_the_worker_are_one_sentence_with_status_2(run_of, name):
    status, output, _ = run_of(name)
    assert status == 2
    assert {
        "Changes": "its spaces are Dict('obs': Box(-1.0, 1.0, (3,), float32))",
        "OneMoreAgent": "has 3 agents in a rollout worker, and had 2 when the run was planned",
    }[name] in output
    assert "Traceback" not in output


@pytest.fixture
def told(said):
    """An event handler, what it says, and what it counts."""
    progress = SimpleNamespace(num_env_faults=0, num_restarts=0, num_lost_episodes=0)
    handler = ReportHandler(progress, 1, orders=None, evaluations=None, videos=None)
    return handler, said, progress


def child(idx, error=None):
    return SimpleNamespace(name=f"rollout-{idx}", role="rollout", idx=idx, error=error)


def fault(place, message, traceback="Traceback"):
    return EnvFault(place, message, 3, traceback)


def test_a_fault_of_one_place_is_said_once_by_whichever_worker_and_counted(told):
    handler, said, progress = told
    for idx in range(8):
        handler.handle(child(idx), fault("KeyError in walk.py, line 3", f"KeyError: {idx}"))
    assert said == ["rollout-0: an environment failed and was rebuilt: KeyError: 0\nTraceback"]
    assert progress.num_env_faults == 24


def test_of_faults_at_ever_new_places_only_the_first_are_said(told):
    handler, said, progress = told
    for line in range(100):
        handler.handle(child(0), fault(f"KeyError in walk.py, line {line}", "KeyError"))
    assert len(said) == 21
    assert said[-1] == "rollout-0: environments fail at more than 20 places: env_faults counts the rest"
    assert progress.num_env_faults == 300


def test_workers_that_are_replaced_over_their_environments_are_said_once_and_others_each_time(told):
    handler, said, progress = told
    given_up = Failed("the environments have failed", False, False, None)
    for idx, error in ((0, given_up), (1, given_up), (2, None), (3, None)):
        text = "the environments have failed. Replaced" if error else "died of SIGKILL. Replaced"
        handler.handle(child(idx, error), Replaced(text, lost_episodes=2))
    assert [sentence.split(" ")[0] for sentence in said] == ["rollout-0", "rollout-2", "rollout-3"]
    assert progress.num_restarts == 4


def test_remarks_of_all_workers_about_the_same_are_said_once(told):
    handler, said, _ = told
    for idx in range(3):
        handler.handle(child(idx), Remark("walk bounds of obs", f"obs is {idx}"))
    assert said == ["obs is 0"]


def test_a_traceback_is_shown_once_of_processes_that_die_of_the_same_again(told):
    handler, said, progress = told
    error = Failed("KeyError: 3", False, False, "Traceback\nKeyError: 3")
    text = "failed: KeyError: 3\n\nTraceback\nKeyError: 3. Replaced"
    for with_it in ("", ", and with it policy-0"):
        handler.handle(child(0, error), Replaced(text + with_it, lost_episodes=0))
    assert said == [f"rollout-0 {text}", "rollout-0 failed: KeyError: 3, as before. Replaced, and with it policy-0"]
    assert progress.num_restarts == 2


def test_the_share_of_rewards_that_a_bound_clips_is_said_once_a_learner(told):
    handler, said, progress = told
    progress.add_training = lambda *_: None
    for idx, share in ((0, 0.0), (0, 0.2), (0, 0.3), (1, 0.125)):
        handler.handle(child(idx), Trained(1, {"clipped_reward_share": share}))
    assert [("20.0%" in sentence, "12.5%" in sentence) for sentence in said] == [(True, False), (False, True)]
    assert all("--reward_clip" in sentence for sentence in said)
