"""What trackers get, and that they never end or hold up a run. Stand-ins take the place of their libraries."""

import importlib.machinery
import sys
import threading
import types

import pytest

from sf.config import Config
from sf.metrics.sinks.trackers import TRACKERS, TrackerSink, require_trackers, tracker_sinks
from sf.metrics.sinks.trackio_sink import TrackioRun
from sf.metrics.sinks.wandb_sink import WandbRun
from sf.metrics.sinks.writer import VideoRecord
from sf.storage.run_dir import RunDir

SUMMARY = {"env_frames": 8, "mean_return": 3.0, "stopped_by": None}


class Run:
    """A run of the tracker itself, of W&B and of Trackio."""

    offline = False
    url = "https://wandb.example/run"
    may_log = threading.Event()
    may_log.set()

    def __init__(self, **arguments):
        self.name = arguments["name"]
        self.arguments = arguments
        self.settings = types.SimpleNamespace(sync_dir="wandb/offline-run")
        self.offline = arguments.get("mode") == "offline"
        self.records, self.steps, self.summary, self.is_finished = [], [], {}, False

    def define_metric(self, *_, **__):
        pass

    def log(self, record, step=None):
        self.may_log.wait()
        self.records.append(record)
        self.steps.append(step)

    def finish(self):
        self.is_finished = True


class Wandb(types.ModuleType):
    """has_key: whether there is an API key. refuses: modes of which no run can be had."""

    class Error(Exception):
        pass

    def __init__(self):
        super().__init__("wandb")
        self.Settings = types.SimpleNamespace
        self.Video = lambda path, format: (path, format)
        self.has_key, self.refuses, self.runs, self.in_use = True, (), [], False

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
        self.runs.append(Run(**arguments))
        return self.runs[-1]


class Trackio(types.ModuleType):
    """was_offline: whether the Hub could be reached by each `init`."""

    def __init__(self, hub):
        super().__init__("trackio")
        self.Video = lambda path: (str(path), "mp4")
        self.hub, self.runs, self.was_offline = hub, [], []

    def init(self, project, **arguments):
        self.was_offline.append(self.hub.HF_HUB_OFFLINE)
        self.runs.append(Run(**arguments))
        return self.runs[-1]


@pytest.fixture
def wandb(monkeypatch):
    wandb = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return wandb


@pytest.fixture
def trackio(monkeypatch):
    hub = types.ModuleType("huggingface_hub.constants")
    hub.HF_HUB_OFFLINE = False
    trackio = Trackio(hub)
    package = types.SimpleNamespace(constants=hub)
    for name, module in {"trackio": trackio, "huggingface_hub": package, "huggingface_hub.constants": hub}.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    return trackio


@pytest.fixture
def config(tmp_path):
    return Config().replace(env="toy_bandit", train_dir=str(tmp_path), wandb_group="seeds", wandb_tags=("a", "b"))


@pytest.fixture
def run_dir(config):
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config, "0123456789abcdef")
    return run_dir


@pytest.mark.parametrize("name", TRACKERS)
def test_records_have_the_names_of_tensorboard_and_the_summary_comes_last(name, wandb, trackio, run_dir, config, said):
    (sink,) = tracker_sinks(run_dir, config.replace(**{f"with_{name}": True}))
    sink.write_video(VideoRecord("policy_01/video", 2, run_dir.path / "video.mp4", b"GIF", (6, 4)))
    for record in ({"env_frames": 4, "train/loss": 0.5, "mean_return": None}, {"env_frames": 8}):
        sink.write(record)
    sink.finish(SUMMARY)
    (run,) = (*wandb.runs, *trackio.runs)
    video, *records = run.records
    assert video == {"policy_01/video": (str(run_dir.path / "video.mp4"), "mp4"), "run/env_frames": 2}
    assert records == [{"run/env_frames": 4, "losses/total": 0.5}, {"run/env_frames": 8}]
    assert run.is_finished
    assert run.arguments["config"]["batch_size"] == config.learner.batch_size
    assert len(said) == 1
    assert {"wandb": run.url, "trackio": "trackio show"}[name] in said[0]
    if name == "wandb":
        assert run.summary == {"run/env_frames": 8, "return/mean": 3.0}
        assert (run.name, run.arguments["group"], run.arguments["tags"]) == ("toy_bandit", "seeds", ("a", "b"))
        assert run.arguments["mode"] == "online"
    else:
        assert run.steps == [2, 4, 8]


def test_a_resumed_run_continues_the_same_run_there(wandb, trackio, run_dir, config):
    for _ in range(2):
        for start in TRACKERS.values():
            start(run_dir, config)
        wandb.teardown()
    for runs in ([run.arguments["id"] for run in wandb.runs], [run.name for run in trackio.runs]):
        assert runs[0] == runs[1]
        assert "012345" in runs[0]
    older = run_dir.path / "wandb" / "id"  # where versions before kept it
    older.parent.mkdir(exist_ok=True)
    older.write_text("theirs")
    TRACKERS["wandb"](run_dir, config)
    assert wandb.runs[-1].arguments["id"] == "theirs"
    assert {run.arguments["resume"] for run in (*wandb.runs, *trackio.runs)} == {"allow"}


@pytest.mark.parametrize("reason", ["no key", "no server", "the environment says so"])
def test_what_wandb_cannot_send_is_kept_in_the_run_directory(wandb, run_dir, config, monkeypatch, reason, said):
    wandb.has_key = reason != "no key"
    if reason == "no server":
        wandb.refuses = ("online",)
    elif reason == "the environment says so":
        monkeypatch.setenv("WANDB_MODE", "offline")
    WandbRun(run_dir, config)
    assert (wandb.runs[0].arguments["mode"], wandb.runs[0].arguments["dir"]) == ("offline", run_dir.path)
    assert "wandb sync wandb/offline-run" in said[-1]
    assert ("no server" in said[0]) == (reason == "no server")


def test_trackio_reaches_no_server_unless_the_user_names_one(trackio, run_dir, config, monkeypatch):
    TrackioRun(run_dir, config)
    monkeypatch.setenv("TRACKIO_SPACE_ID", "me/runs")
    TrackioRun(run_dir, config)
    assert trackio.was_offline == [True, False]
    assert not trackio.hub.HF_HUB_OFFLINE


@pytest.mark.parametrize("fails_at", ["start", "log"])
def test_a_tracker_that_fails_is_said_once_and_ends_nothing(fails_at, said):
    class Broken:
        def __init__(self):
            if fails_at == "start":
                raise RuntimeError("no\nserver")

        def log(self, values, env_frames):
            raise RuntimeError("no\nserver")

    sink = TrackerSink("broken", Broken)
    for _ in range(2000):
        sink.write({"env_frames": 4})
    sink.finish(SUMMARY)
    assert said == ["broken: no more records are sent (RuntimeError: no server); training goes on"]


def test_a_server_that_hangs_blocks_nobody(wandb, run_dir, config, monkeypatch):
    monkeypatch.setattr(Run, "may_log", threading.Event())
    sink = TrackerSink("wandb", lambda: WandbRun(run_dir, config))
    for frames in range(5000):  # the writer would stand still here
        sink.write({"env_frames": frames})
    Run.may_log.set()
    sink.finish({"env_frames": 5000})
    assert 1000 <= len(wandb.runs[0].records) < 5000


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_an_error_that_names_the_extra(name, config, monkeypatch):
    left_behind = importlib.machinery.ModuleSpec(name, None)  # what Python makes of a folder with this name
    for spec in (None, left_behind):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, spec=spec: spec)
        with pytest.raises(ValueError, match=rf"with_{name}.*\[{name}\]"):
            require_trackers(config.replace(**{f"with_{name}": True}))
