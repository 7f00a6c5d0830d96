"""What W&B gets, and that it never ends or holds up a run. A stand-in takes the place of the library."""

import importlib.machinery
import sys
import threading
import types

import pytest

from sf.config import Config
from sf.metrics.sinks.wandb_sink import WandbSink, require_wandb
from sf.metrics.sinks.writer import VideoRecord
from sf.storage.run_dir import RunDir


class Run:
    offline = False
    url = "https://wandb.example/run"

    def __init__(self, wandb, **arguments):
        self.arguments = arguments
        self.settings = types.SimpleNamespace(sync_dir="wandb/offline-run")
        self.offline = arguments["mode"] == "offline"
        self.records, self.summary, self.is_finished = [], {}, False
        self._wandb = wandb

    def define_metric(self, *_, **__):
        pass

    def log(self, record):
        self._wandb.may_log.wait()
        self.records.append(record)

    def finish(self):
        self.is_finished = True


class Wandb(types.ModuleType):
    """has_key: whether there is an API key. refuses: modes of which no run can be had."""

    class Error(Exception):
        pass

    def __init__(self):
        super().__init__("wandb")
        self.Settings = types.SimpleNamespace
        self.Video = lambda path, format: types.SimpleNamespace(path=path, format=format)
        self.has_key, self.refuses, self.runs, self.in_use = True, (), [], False
        self.may_log = threading.Event()
        self.may_log.set()

    def setup(self, settings):
        assert settings.silent

    def login(self, *, prompt, verify):
        assert not prompt
        return self.has_key

    def teardown(self):
        self.in_use = False

    def init(self, **arguments):
        if self.in_use:
            raise self.Error("the id is in use")
        self.in_use = True
        if arguments["mode"] in self.refuses:
            raise self.Error("no\nserver")
        self.runs.append(Run(self, **arguments))
        return self.runs[-1]


@pytest.fixture
def wandb(monkeypatch):
    wandb = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return wandb


@pytest.fixture
def config(tmp_path):
    return Config().replace(
        env="toy_bandit", train_dir=str(tmp_path), with_wandb=True, wandb_group="seeds", wandb_tags=("a", "b")
    )


@pytest.fixture
def run_dir(config):
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    return run_dir


def use(run_dir, config, records=()):
    sink = WandbSink(run_dir, config)
    for record in records:
        sink.write(record)
    sink.finish({"env_frames": 8, "mean_return": 3.0, "stopped_by": None})


def test_records_have_the_names_of_tensorboard_and_the_summary_comes_last(wandb, run_dir, config, said):
    sink = WandbSink(run_dir, config)
    sink.write_video(VideoRecord("policy_01/video", 2, run_dir.path / "video.mp4", b"GIF", (6, 4)))
    for record in ({"env_frames": 4, "train/loss": 0.5, "mean_return": None}, {"env_frames": 8}):
        sink.write(record)
    sink.finish({"env_frames": 8, "mean_return": 3.0, "stopped_by": None})
    run = wandb.runs[0]
    video, *records = run.records
    assert (video["policy_01/video"].path, video["run/env_frames"]) == (str(run_dir.path / "video.mp4"), 2)
    assert records == [{"run/env_frames": 4, "losses/total": 0.5}, {"run/env_frames": 8}]
    assert run.summary == {"run/env_frames": 8, "return/mean": 3.0}
    assert run.is_finished
    assert said == ["wandb: https://wandb.example/run"]
    assert run.arguments["mode"] == "online"
    assert (run.arguments["name"], run.arguments["group"], run.arguments["tags"]) == ("toy_bandit", "seeds", ("a", "b"))
    assert run.arguments["config"]["batch_size"] == config.learner.batch_size


def test_a_resumed_run_goes_on_with_the_same_run_there(wandb, run_dir, config):
    for _ in range(2):
        use(run_dir, config)
        wandb.teardown()
    ids = [run.arguments["id"] for run in wandb.runs]
    assert ids[0] == ids[1] != ""
    assert wandb.runs[1].arguments["resume"] == "allow"


@pytest.mark.parametrize("reason", ["no key", "no server", "the environment says so"])
def test_what_cannot_be_sent_is_kept_in_the_run_directory(wandb, run_dir, config, monkeypatch, reason, said):
    wandb.has_key = reason != "no key"
    if reason == "no server":
        wandb.refuses = ("online",)
    elif reason == "the environment says so":
        monkeypatch.setenv("WANDB_MODE", "offline")
    use(run_dir, config, [{"env_frames": 4}])
    assert (wandb.runs[0].arguments["mode"], wandb.runs[0].arguments["dir"]) == ("offline", run_dir.path)
    assert wandb.runs[0].records == [{"run/env_frames": 4}]
    assert "wandb sync wandb/offline-run" in said[-1]
    assert ("no server" in said[0]) == (reason == "no server")


def test_a_library_that_fails_is_said_once_and_ends_nothing(wandb, run_dir, config, said):
    wandb.refuses = ("online", "offline")
    use(run_dir, config, [{"env_frames": 4}] * 2000)
    assert len(said) == 2
    assert "no more records" in said[1]


def test_a_server_that_hangs_blocks_nobody(wandb, run_dir, config):
    wandb.may_log.clear()
    sink = WandbSink(run_dir, config)
    for frames in range(5000):  # the writer would stand still here
        sink.write({"env_frames": frames})
    wandb.may_log.set()
    sink.finish({"env_frames": 5000})
    assert 1000 <= len(wandb.runs[0].records) < 5000


def test_one_sentence_says_what_to_install(monkeypatch):
    left_behind = importlib.machinery.ModuleSpec("wandb", None)  # what Python makes of a folder ./wandb
    for spec in (None, left_behind):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, spec=spec: spec)
        with pytest.raises(ValueError, match="wandb is not installed: pip install wandb"):
            require_wandb()
