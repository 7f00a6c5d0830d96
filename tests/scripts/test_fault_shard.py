"""A shard of a fault campaign: what it charges to which fault, and what it does not wait for."""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from faults import machine, of_runs, of_sweeps, session, shard
from faults.bookkeeping import NotRecoveredError
from pages import ROOT

NAMES = ["SIGINT", "learner killed"]


class Running:
    """A run to which everything may be done."""

    exit_status = None

    def finish(self):
        pass

    kill = wait_for_progress = wait_for_record = finish

    def losses(self):
        return 0, 0


@pytest.fixture
def take(tmp_path, monkeypatch):
    """Takes a turn of two faults, with `start` for the start of a run. What is left, and the outcomes."""
    monkeypatch.setattr(shard, "_PAUSE_S", 0.0)
    monkeypatch.setattr(shard, "_FAULT", {name: SimpleNamespace(name=name, do=lambda *_: None) for name in NAMES})
    monkeypatch.setattr(shard._Campaign, "_require_nothing_left", lambda self: None)  # tests have some

    def take(start):
        outcomes = []
        campaign = shard._Campaign(0, tmp_path, Random(0), outcomes.append, set(), time.monotonic())
        campaign._log = tmp_path / "log"
        monkeypatch.setattr(campaign, "_start", start)
        left = campaign.take(shard.Turn("toy", NAMES, time.monotonic() + 100.0))
        return left, [(outcome.fault, outcome.broken) for outcome in outcomes]

    return take


def test_a_run_that_does_not_start_is_charged_to_no_fault(take):
    def start(task):
        raise NotRecoveredError("no run starts")

    assert take(start) == (2, [("start of a run", "no run starts")])


def test_each_fault_of_a_turn_has_an_outcome(take):
    assert take(lambda task: Running()) == (0, [(name, None) for name in NAMES])


@pytest.mark.parametrize("fault", [of_runs.start_second_run, of_sweeps.start_second_sweep])
def test_a_second_run_that_is_not_refused_is_not_waited_for_for_ever(fault, tmp_path, monkeypatch):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho $$ > pid; echo it trains >&2; exec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(session, "patience", lambda seconds: 3.0)
    monkeypatch.setattr(of_sweeps.tasks, "folder", lambda task: tmp_path)
    running = SimpleNamespace(flags=[], arguments=[], folder=tmp_path, pick=lambda rng: None, exit_status=None)
    with pytest.raises(NotRecoveredError, match="another did not end within 3 s: it trains"):
        fault(running, Random(0))
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


DIES_SLOWLY = """if True:
    import mmap, sys, time
    file = open(sys.argv[1], "w+b")
    file.truncate(4096)
    memory = mmap.mmap(file.fileno(), 4096)
    print("mapped", flush=True)
    time.sleep(1.0)
"""


def test_memory_of_a_process_that_is_just_ending_is_found(tmp_path):
    """In a process of its own: all its descendants count."""
    code = f"""if True:
        import subprocess, sys
        from pathlib import Path
        from random import Random
        from faults import machine, shard
        before = machine.shared_memory()
        leak = machine.SHARED_MEMORY / "leak_of_{os.getpid()}"
        with subprocess.Popen([sys.executable, "-c", {DIES_SLOWLY!r}, leak], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            machine.patience = lambda seconds: 3.0
            campaign = shard._Campaign(0, Path(), Random(0), None, before, 0.0)
            try:
                campaign._require_nothing_left()
            finally:
                leak.unlink()
    """
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")])}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert f"left behind: memory ['{machine.SHARED_MEMORY}/leak_of_{os.getpid()}']" in done.stderr
