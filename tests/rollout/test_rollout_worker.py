"""What a rollout worker counts and reports, to the last step before it is stopped."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from recorded_reports import RecordedReports
from scripted_group import Scripted, Stage
from waiting import has_message

from sf import envs
from sf.envs import Episode
from sf.metrics.latest_episodes import EndedEpisode
from sf.rollout.worker import rollout_worker
from sf.system.processes.reports import EnvFault, Episodes

PATIENCE_S = 60.0  # after which something is taken to hang


class Worker:
    """One with two groups of four actors, in a thread; the test answers its requests."""

    def __init__(self, stage, monkeypatch):
        self.stage = stage
        self.reports = RecordedReports()
        self.envs = []
        make_group = envs.make_group

        def noted(*args, **kwargs):
            self.envs.append(make_group(*args, **kwargs))
            return self.envs[-1]

        monkeypatch.setattr(envs, "make_group", noted)
        self._thread = threading.Thread(target=rollout_worker, args=(self.reports, self.stage.args), daemon=True)
        self._asked = []

    def run(self, groups, before_stop=lambda: None):
        """Answer these groups in this order, the last of which asks again, and stop it then."""
        self._thread.start()
        policy = self.stage.memory.channels.of_policy_worker(0)
        for group in groups:
            self._wait_until_it_asks(policy, group)
            self._asked.remove(group)
            policy.answer(np.array([group]), policy.numbers(np.array([group])))
        self._wait_until_it_asks(policy, groups[-1])
        before_stop()
        self.stage.memory.channels.inboxes[0].stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _wait_until_it_asks(self, policy, group):
        while group not in self._asked:
            assert has_message(policy.requests, PATIENCE_S)
            self._asked += policy.look()

    def reported(self, kind):
        return [report for report in self.reports.sent if isinstance(report, kind)]

    def counted(self, name):
        return self.stage.args.counters.get(name)


@pytest.fixture
def worker(tmp_path, monkeypatch):
    return Worker(Stage(tmp_path, monkeypatch, set_workers_cpu_affinity=False), monkeypatch)


def test_all_steps_are_counted_and_all_episodes_reported_before_it_ends(worker):
    worker.run([0, 1, 0, 1, 0, 1])
    assert [worker.counted(name) for name in ("calls", "steps", "rows", "episodes")] == [6, 24, 24, 8]
    episodes = [episode for report in worker.reported(Episodes) for episode in report.episodes]
    assert len(episodes) == 8
    assert sorted(EndedEpisode(*episode).actor for episode in episodes) == list(range(8))
    assert all(env.is_closed for env in worker.envs)
    assert worker.counted("heartbeat") % 2 == 0  # it waited


@pytest.mark.parametrize("num_taken", [0, 1, 4])
def test_a_synchronous_worker_reports_the_episodes_of_rollouts_that_the_learner_has_taken(
    tmp_path, monkeypatch, num_taken
):
    worker = Worker(Stage(tmp_path, monkeypatch, set_workers_cpu_affinity=False, async_rl=False), monkeypatch)
    learner = worker.stage.memory.pool.of_learner()
    worker.run([0, 0, 0, 0, 1, 1, 1], lambda: num_taken and learner.take(num_taken))  # a rollout, and a part of one
    episodes = [episode for report in worker.reported(Episodes) for episode in report.episodes]
    assert len(episodes) == worker.counted("episodes") == (4 if num_taken == 4 else 0)


def test_an_episode_begins_when_the_one_before_has_ended_and_who_has_had_no_step_is_absent(worker, monkeypatch):
    step = Scripted.step

    def three_end_and_one_is_not_there(self, *args):
        step(self, *args)
        args[-1].valid[3] = False
        return [Episode(n, 1.0, 1, 1) for n in range(3)]

    now = iter(range(100))
    clock = SimpleNamespace(monotonic=lambda: float(next(now)), perf_counter=time.perf_counter)
    monkeypatch.setattr(Scripted, "step", three_end_and_one_is_not_there)
    monkeypatch.setattr("sf.rollout.worker.time", clock)
    worker.run([0] * 3)
    reports = worker.reported(Episodes)
    episodes = [EndedEpisode(*episode) for report in reports for episode in report.episodes]
    assert [(episode.actor, episode.began) for episode in episodes] == [(n, t) for t in range(3) for n in range(3)]
    assert [report.absent for report in reports] == [[3]] * len(reports)


def test_episodes_that_a_fault_has_ended_are_counted_and_reported_as_lost(worker, monkeypatch):
    fails, step = iter([True]), Scripted.step

    def fail_once(self, *args):
        if next(fails, False):
            raise RuntimeError("once")
        return step(self, *args)

    monkeypatch.setattr(Scripted, "step", fail_once)
    worker.run([0, 0])
    assert worker.counted("episodes") == 4
    assert [(report.episodes, report.lost_episodes) for report in worker.reported(Episodes)] == [([], 4)]
    (fault,) = worker.reported(EnvFault)
    assert fault.message == "RuntimeError: once"
    assert len(worker.envs) == 3
    assert all(env.is_closed for env in worker.envs)


@pytest.mark.parametrize(("num_steps", "away", "num_lost"), [(1, 1, 0), (2, 0, 3)])
def test_an_agent_that_has_left_its_match_loses_no_episode_by_a_fault(worker, monkeypatch, num_steps, away, num_lost):
    step = Scripted.step

    def one_leaves_and_a_fault_follows(self, discrete, continuous, obs, result):
        if self._num_steps == 1:
            raise RuntimeError("once")
        episodes = step(self, discrete, continuous, obs, result)
        result.terminated[3] = True
        return [*episodes, Episode(3, 1.0, 1, 1)]

    monkeypatch.setattr(Scripted, "step", one_leaves_and_a_fault_follows)
    worker.stage.args.counters.add(away=7)  # by a worker before
    worker.run([0] * num_steps)
    assert worker.counted("away") == away
    assert sum(report.lost_episodes for report in worker.reported(Episodes)) == num_lost
