"""What the runner of a sweep reads at each look."""

import json
from types import SimpleNamespace

import pytest

from sf.config import Config
from sf.storage import run_lock
from sf.storage.run_dir import RunDir
from sf.tools.sweep import runner
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.local import LocalLauncher
from sf.tools.sweep.runner import SweepRunner


def run_of(seed):
    return SweepRun(f"seed={seed}", {}, seed, {"env": "toy_bandit", "seed": seed, "train_for_env_steps": 100})


@pytest.fixture
def reads(monkeypatch):
    """The names of the runs that are read, as they are."""
    names = []
    read_result = runner.read_result

    def counted(run, run_dir, state):
        names.append(run.name)
        return read_result(run, run_dir, state)

    monkeypatch.setattr(runner, "read_result", counted)
    return names


def test_a_run_is_read_again_only_where_its_files_have_changed(tmp_path, reads):
    runs = [run_of(seed) for seed in (0, 1)]
    for run in runs:
        run_dir = RunDir(tmp_path / run.name)
        run_dir.prepare(Config().replace(env="toy_bandit", train_for_env_steps=100))
        run_dir.metrics.write_text('{"env_steps": 100, "mean_return": 1.0}\n')
        run_dir.write_summary({"env_steps": 100, "mean_return": 1.0, "stopped_by": None})
    launcher = SimpleNamespace(is_queued=lambda run: False)
    sweep = SweepRunner(runs, tmp_path, launcher, lambda sentence: None, lambda results: None)
    first = sweep.results
    assert [(result.state, result.record["mean_return"]) for result in first] == [("done", 1.0)] * 2
    assert reads == ["seed=0", "seed=1"]
    assert sweep.results == first
    assert reads == ["seed=0", "seed=1"]
    with RunDir(tmp_path / "seed=1").metrics.open("a") as file:
        file.write(json.dumps({"env_steps": 120, "mean_return": 2.0}) + "\n")
    assert [result.record["mean_return"] for result in sweep.results] == [1.0, 2.0]
    assert reads == ["seed=0", "seed=1", "seed=1"]


class Refusing(SimpleNamespace):
    """Refuses run 0, or all, until after so many looks; what it starts ends at the next look."""

    has_place = True

    def __init__(self, num_looks, refuses_all=False):
        super().__init__(num_looks=num_looks, refuses_all=refuses_all, started=[])

    @property
    def is_empty(self):
        return not self.started

    def is_queued(self, run):
        return False

    def start(self, run):
        if (self.refuses_all or run.seed == 0) and self.num_looks > 0:
            raise OSError("still saves")
        self.started.append(run)
        return "started"

    def wait(self, _signals):
        self.num_looks -= 1
        ended, self.started = self.started, []
        return [(run, 0) for run in ended]

    def stop(self, _signals):
        return []


def swept(tmp_path, launcher, num_runs):
    """What is said of so many runs."""
    said = []
    runs = [run_of(seed) for seed in range(num_runs)]
    SweepRunner(runs, tmp_path, launcher, said.append, lambda results: None).run(SimpleNamespace(first=None))
    return said


@pytest.mark.parametrize("num_looks", [1, 3, 60])
def test_a_run_whose_process_of_before_still_saves_waits_though_no_other_is_under_way(tmp_path, num_looks):
    end = ["started seed=0", "done seed=0"] if num_looks < 60 else ["failed seed=0: it cannot be started (still saves)"]
    assert swept(tmp_path, Refusing(num_looks), 1) == ["seed=0 waits (still saves)", *end]


def test_the_others_begin_while_a_run_waits_for_its_process_of_before(tmp_path):
    said = swept(tmp_path, Refusing(4), 3)
    assert said[:3] == ["seed=0 waits (still saves)", "started seed=1", "started seed=2"]
    assert said[-2:] == ["started seed=0", "done seed=0"]


def test_a_run_that_has_waited_in_vain_takes_no_other_with_it(tmp_path):
    said = swept(tmp_path, Refusing(70, refuses_all=True), 3)
    assert sum(sentence.startswith("failed") for sentence in said) == 1
    assert sum(sentence.startswith("done") for sentence in said) == 2


def test_a_run_is_not_started_while_a_process_of_before_still_saves_in_its_directory(tmp_path):
    launcher = LocalLauncher([Config().replace(num_workers=1, device="cpu")], 1)
    launcher.open(tmp_path, 1, print)
    with run_lock.held(tmp_path / "seed=0"), pytest.raises(OSError, match=r"is running in .*seed=0"):
        launcher.start(run_of(0))
    assert launcher.is_empty
    assert launcher.has_place
