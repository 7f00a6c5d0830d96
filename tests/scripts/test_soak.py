"""The soak: what it trains, whom it kills, and how it ends."""

import json
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import soak

from sf.commands import cli
from sf.run.children.roles.table import counts
from sf.run.plan import make_plan


class FakeSession:
    """A run that ends with `status` after SIGTERM."""

    status, pid = 143, 1

    def __init__(self, flags, log):
        self.config = cli.parse(flags)

    def names(self):
        return [f"{role}-{idx}" for role, num in counts(make_plan(self.config)).items() for idx in range(num)]

    def metric(self, name):
        return 1.0

    def check(self):
        pass

    check_end = kill = wait_for_progress = check

    def send_signal(self, signum):
        pass

    def wait_for_end(self):
        return self.status


@pytest.fixture
def soaked(monkeypatch):
    """Soaks a stand-in for a run: that, and whose processes were watched."""
    found = SimpleNamespace()

    def start(flags, log):
        found.session = FakeSession(flags, log)
        return found.session

    def soak_it(*words):
        monkeypatch.setattr(sys, "argv", ["soak.py", *map(str, words)])
        soak.main()
        return found.session

    monkeypatch.setattr(soak, "Session", start)
    monkeypatch.setattr(soak, "_watch", lambda _, seconds, __: ({"parent": looks(60, seconds - 1)}, 0))
    return soak_it


def looks(*seconds):
    return [(float(at), 100.0, 10) for at in seconds]


@pytest.mark.parametrize(
    ("words", "env"),
    [((), "doom_basic"), (("--env", "CartPole-v1"), "CartPole-v1"), (("--env=CartPole-v1",), "CartPole-v1")],
)
def test_the_environment_that_is_named_is_trained(words, env, soaked):
    config = soaked(*words).config
    assert config.run.env == env
    assert not config.run.ends_by_steps


def test_the_last_workers_are_killed():
    session = FakeSession(["--env", "toy_bandit", "--num_workers", "12", "--policy_workers_per_policy", "3"], None)
    assert [soak._last(session, role) for role in ("rollout", "policy")] == ["rollout-11", "policy-2"]


def test_an_end_that_is_not_as_promised_is_a_failure(soaked, monkeypatch, tmp_path):
    monkeypatch.setattr(FakeSession, "status", 1)
    with pytest.raises(SystemExit, match="BROKEN at the end: it ended with status 1 instead of 143"):
        soaked("--json", tmp_path / "soak.json")
    assert json.loads((tmp_path / "soak.json").read_text())["broken"] is not None


@pytest.mark.parametrize("minutes", ["0", "1", "1.4", "nan"])
def test_a_soak_that_is_too_short_for_its_table_is_refused(minutes, soaked, capsys):
    with pytest.raises(SystemExit) as end:
        soaked("--minutes", minutes)
    assert end.value.code == 2
    assert f"--minutes is {minutes}: at least 1.5, with --settle_s 60" in capsys.readouterr().err


def test_the_processes_are_looked_at_while_others_are_replaced(monkeypatch):
    """A replacement may take longer than all of a short soak's last third."""
    session = FakeSession(["--env", "toy_bandit"], None)
    num_looks = []

    @contextmanager
    def replaced_after_three_more_looks(_, *names):
        yield []
        until, give_up_at = len(num_looks) + 3, time.monotonic() + 30
        while len(num_looks) < until and time.monotonic() < give_up_at:
            time.sleep(0.005)

    monkeypatch.setattr(soak, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(soak, "_look", lambda pid: num_looks.append(pid) or {"parent": (100.0, 10)})
    monkeypatch.setattr(soak, "replaced", replaced_after_three_more_looks)
    samples, num_restarts = soak._watch(session, seconds=0.5, restart_every_s=0)
    assert num_restarts >= 2
    assert len(samples["parent"]) == len(num_looks) >= 4


def test_a_look_that_fails_ends_the_soak_with_its_error(monkeypatch):
    monkeypatch.setattr(soak, "_look", lambda pid: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        soak._watch(FakeSession(["--env", "toy_bandit"], None), seconds=600, restart_every_s=600)


def test_a_soak_that_saw_nothing_says_so(soaked, monkeypatch):
    monkeypatch.setattr(soak, "_watch", lambda *_: ({"parent": looks(60)}, 2))
    with pytest.raises(SystemExit, match="no time to look at the processes in the first or the last third: name"):
        soaked()
