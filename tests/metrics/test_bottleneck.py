"""One sentence on what holds a run up.

The shares are of real runs (two cores, no GPU), each made to be bound by one part.
"""

import multiprocessing
import subprocess
import sys
from dataclasses import replace

import pytest

from sf.metrics.bottleneck import Load, RanksLoad, bottleneck
from sf.metrics.meter import core_seconds
from sf.metrics.progress import Progress
from sf.shared.counters import Counters
from sf.system.machine.cores import usable_cores

IDLE_CORES = {"cores_in_use": 0.4, "cores": {"rollout": 3.0, "policy": 2.0, "learner": 1.0}, "num_cores": 16}
BALANCED = Load(
    rollout_busy=0.7,
    rollout_wait=0.15,
    slot_wait=0.15,
    policy_busy=0.6,
    policy_wait=0.4,
    learner_busy=0.85,
    learner_wait=0.15,
    actions_per_batch=24.0,
    **IDLE_CORES,
)


def with_shares(rollout_busy, rollout_wait, slot_wait, policy_busy, learner_busy, learner_wait, **others):
    shares = {"rollout_busy": rollout_busy, "rollout_wait": rollout_wait, "slot_wait": slot_wait}
    shares |= {"policy_busy": policy_busy, "learner_busy": learner_busy, "learner_wait": learner_wait}
    return replace(BALANCED, **shares, **others)


LEARNER = with_shares(0.05, 0.62, 0.33, 0.6, 0.92, 0.06, num_epochs=4)  # 2 x 1024 units, each sample four times
INFERENCE = with_shares(0.06, 0.85, 0.08, 0.88, 0.64, 0.26)  # an LSTM of 1024 units and two environments a worker
LATENCY = with_shares(0.11, 0.86, 0.02, 0.59, 0.06, 0.94, actions_per_batch=1.0)  # one environment
ENVIRONMENTS = with_shares(0.98, 0.0, 0.02, 0.08, 0.02, 0.88)  # that sleep for 5 ms
SYNCHRONOUS = with_shares(0.13, 0.62, 0.24, 0.36, 0.22, 0.77, is_synchronous=True)
UNEVEN = with_shares(0.49, 0.09, 0.42, 0.38, 0.03, 0.96, actions_per_batch=1.59)  # some eight times as slow as others


def full(load, **cores):
    return replace(load, cores_in_use=0.99, cores={"rollout": 0.3, "policy": 0.3, "learner": 0.3, **cores}, num_cores=2)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (LEARNER, ["learner busy 92 %", "wait 33 %", "--num_epochs 2 (now 4)", "--learner_threads"]),
        (INFERENCE, ["inference busy 88 %", "wait 85 %", "--policy_workers_per_policy", "--num_envs_per_worker"]),
        (LATENCY, ["wait 86 %", "batches of 1.0", "only 59 %", "--num_envs_per_worker"]),
        (ENVIRONMENTS, ["rollout workers busy 98 %", "waits 88 %", "40 % of the cores", "--num_workers"]),
        (SYNCHRONOUS, ["synchronous", "22 %", "--async_rl true"]),
        (UNEVEN, ["wait 42 %", "waits 96 %", "--extra_slots"]),
        (BALANCED, ["no part waits much"]),
        (replace(BALANCED, learner_busy=0.0, learner_wait=0.0, window_s=4.2), ["within the last 4 s"]),
    ],
)
def test_the_part_that_holds_the_others_up_is_named_with_figures_and_a_flag(load, words):
    sentence = bottleneck(load)
    assert [word for word in words if word not in sentence] == []


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("rollout", ["environments 1.3", "a faster environment"]),
        ("policy", ["inference 1.3", "a GPU", "--num_envs_per_worker"]),
        ("learner", ["learner 1.3", "a GPU", "fewer --num_workers"]),
    ],
)
def test_where_no_core_is_idle_the_part_that_uses_most_of_them_is_named(role, words):
    sentence = bottleneck(full(ENVIRONMENTS, **{role: 1.3}))
    assert [word for word in ["of 2", *words] if word not in sentence] == []
    assert "other programs" not in sentence
    of_others = bottleneck(full(ENVIRONMENTS))
    assert "--num_workers" in of_others
    assert "other programs use 1.1 of 2 cores" in of_others
    assert "other programs 0.7 of 2" in bottleneck(full(INFERENCE, policy=0.7))


def test_the_player_worker_is_named_where_it_uses_most_cores_or_is_waited_for():
    for load, share in ((full(LATENCY, player=1.3), "players 1.3"), (replace(INFERENCE, player_busy=0.95), "95 %")):
        sentence = bottleneck(load)
        assert [word for word in (share, "--past_share", "--seats") if word not in sentence] == []
    assert bottleneck(replace(INFERENCE, player_busy=0.8)) == bottleneck(INFERENCE)  # 88 %
    assert "players" not in bottleneck(full(ENVIRONMENTS, rollout=1.3))


def test_steps_of_a_policy_whose_learner_begins_late_are_of_no_time_since(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("sf.metrics.progress.time.perf_counter", lambda: now[0])
    progress = Progress(Counters.allocate(3), {"rollout": [0], "policy": [1], "learner": [2]}, 4, 100, 2, num_ranks=3)
    progress.add_episodes([[1.0, 1, 1, {}, 0, 0, 0.0]] * 100)
    assert len(progress.policies[0].episodes) == 34  # a third
    progress.resume(0, 10_000_000, 0.0)
    progress.add_training(0, 10_000_100, {})
    progress.resume(1, 10_000_000, 0.0)
    now[0] += 10.0
    progress.add_training(0, 10_001_100, {})
    summary = progress.summary()
    assert summary["steady_env_frames_per_second"] == 400.0
    assert summary["stats_avg"] == 100


def test_a_rank_that_the_others_wait_for_is_named_with_what_holds_it_up():
    other = RanksLoad(slowest=3, host="node-7", wait_share=0.4, slowest_wait_share=0.1, bottleneck="none: balanced")
    sentence = bottleneck(replace(INFERENCE, ranks=other))
    assert [word for word in ("rank 3 on node-7", "40 %", "none: balanced") if word not in sentence] == []
    itself = replace(other, bottleneck="")
    assert bottleneck(replace(INFERENCE, ranks=itself)).endswith(f"; there: {bottleneck(INFERENCE)}")
    even = replace(other, slowest_wait_share=0.3)
    assert bottleneck(replace(INFERENCE, ranks=even)) == bottleneck(INFERENCE)


def test_what_a_child_and_its_simulators_compute_counts_for_its_role():
    spins = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    child = context.Process(target=_start_a_simulator, args=(spins, ready), name="rollout-7")
    before = core_seconds(usable_cores(), ("rollout", "learner"))
    child.start()
    assert ready.wait(60)
    after = core_seconds(usable_cores(), ("rollout", "learner"))
    child.kill()
    child.join()
    assert after.of_role["rollout"] >= 0.25
    assert after.of_role["learner"] == 0.0
    assert after.of_machine - before.of_machine >= 0.25


def _start_a_simulator(code, ready):
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as simulator:
        simulator.stdout.readline()
        ready.set()
        simulator.wait()


def test_where_no_iteration_ended_but_the_environments_never_wait_they_are_what_is_slow():
    slow = replace(ENVIRONMENTS, has_iteration=False)
    assert "no iteration within the last minute" in bottleneck(slow)
    assert "more --num_workers" in bottleneck(slow)
    assert "more --num_workers" not in bottleneck(replace(slow, cores_in_use=1.0))
    assert bottleneck(replace(LEARNER, has_iteration=False)) == bottleneck(LEARNER)
