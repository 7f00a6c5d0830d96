"""What TensorBoard gets of a run, and that every metric has a group there and a row in docs/watching.md."""

import io
import json
import os
import re
from pathlib import Path

import pytest
import scored_match
from PIL import Image
from runs import train
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import plugin_data_pb2

from sf.config import Config
from sf.evaluation.during_training import evaluation_metrics
from sf.evaluation.statistics import Statistics
from sf.metrics.sinks.tensorboard import TAGS, TensorBoard, tag
from sf.metrics.sinks.writer import VideoRecord
from sf.storage.run_dir import RunDir

DOCS = Path(__file__).parents[2] / "docs" / "watching.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two policies, which writes every name that a run of one writes, and those of each policy."""
    tmp_path = tmp_path_factory.mktemp("run")
    flags = ["--num_policies", "2", "--train_for_env_steps", "2000", "--exploration_loss_coeff_final", "0.001"]
    flags += ["--past_share", "0.5", "--players", "random", "--exploiters", "1", "--reward_clip", "0.5"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(scored_match.__file__).parent), prepend=os.pathsep)
        train(tmp_path, *flags, "--experiment", "run", env="scored_match:Scored")
    return RunDir.at(str(tmp_path), "run")


@pytest.fixture(scope="module")
def names(run):
    records = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    return {name for record in records for name, value in record.items() if value is not None}


def written(tmp_path, flags, record):
    """The events of a record of a run."""
    run_dir = RunDir.at(str(tmp_path), "run")
    TensorBoard(run_dir, flags).write(record)
    events = EventAccumulator(str(run_dir.tensorboard))
    events.Reload()
    return events


def charts(events):
    """Tags (regular expressions but in margin charts) by title of the chart."""
    layout = layout_pb2.Layout.FromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    margins = {
        c.title: [tag for s in c.margin.series for tag in (s.value, s.lower, s.upper)] for c in charts_of(layout)
    }
    return {**margins, **{c.title: list(c.multiline.tag) for c in charts_of(layout) if c.multiline.tag}}


def charts_of(layout):
    return [chart for category in layout.category for chart in category.chart]


def documented():
    """Names in the table of docs/watching.md; `NAME` and `NN` stand for anything."""
    return re.findall(r"^\| `([^`]+)` \|", DOCS.read_text(), re.MULTILINE)


def test_every_metric_of_a_run_has_a_curve_of_its_own_in_a_group(names, run):
    events = EventAccumulator(str(run.tensorboard))
    events.Reload()
    tags = [tag(name) for name in names]
    assert len(set(tags)) == len(tags)
    assert set(tags) <= set(events.Tags()["scalars"])
    assert not [one for one in tags if "other/" in one]


def test_no_curve_is_there_that_no_run_has(names):
    assert set(TAGS) - {"true_objective"} <= names
    assert "policy_00/true_objective" in names


def test_a_policy_has_the_groups_of_a_run_behind_its_name():
    assert tag("policy_03/mean_return") == "policy_03/return/mean"
    assert tag("policy_03/stats/kills") == "policy_03/stats/kills"
    assert tag("policy/busy_share") == "busy/policy"
    assert tag("train/surprise") == "other/train/surprise"  # that nobody has heard of


def test_every_chart_of_the_layout_has_curves(tmp_path):
    record = {prefix + name: 1 for name in TAGS for prefix in ("", "policy_00/")}
    events = written(tmp_path, Config().replace(num_policies=2).flat(), record)
    tags, found = events.Tags()["scalars"], charts(events)
    for title, patterns in found.items():
        assert all(any(re.match(pattern, one) for one in tags) for pattern in patterns), title
    assert found["mean, min and max of the latest episodes"] == ["return/mean", "return/min", "return/max"]
    busy = [one for one in tags if re.match(found["busy share of the parts"][0], one)]
    assert sorted(busy) == ["busy/learner", "busy/player", "busy/policy", "busy/rollout"]


def test_hyperparameters_and_configuration_are_in_the_event_file(tmp_path):
    events = written(tmp_path, Config().replace(env="toy_bandit", batch_size=64).flat(), {"env_frames": 0})
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    flags = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert flags["batch_size"].number_value == 64
    assert flags["async_rl"].string_value == "True"
    text = events.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "env: toy_bandit" in text


def test_a_video_is_an_animated_image_that_decodes(tmp_path):
    run_dir = RunDir.at(str(tmp_path), "run")
    buffer = io.BytesIO()
    pictures = [Image.new("RGB", (6, 4), color) for color in ("red", "blue", "green")]
    pictures[0].save(buffer, "GIF", save_all=True, append_images=pictures[1:], duration=100)
    board = TensorBoard(run_dir, Config().flat())
    for name in ("video", "policy_01/video"):
        board.write_video(VideoRecord(name, 400, tmp_path / "video.mp4", buffer.getvalue(), (6, 4)))
    events = EventAccumulator(str(run_dir.tensorboard))
    events.Reload()
    assert events.Tags()["images"] == ["video", "policy_01/video"]
    (image,) = events.Images("video")
    assert (image.step, image.width, image.height) == (400, 6, 4)
    assert Image.open(io.BytesIO(image.encoded_image_string)).n_frames == 3


def test_the_documentation_has_the_curve_of_every_metric():
    rows = dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", DOCS.read_text(), re.MULTILINE))
    assert {name: rows.get(name) for name in TAGS} == {**TAGS, "true_objective": rows.get("true_objective")}


def of_evaluations():
    statistics = dict.fromkeys(Statistics._fields, 1.0)
    result = {"env_steps": 1, "statistics": dict.fromkeys(("return", "num_steps", "num_frames", "frags"), statistics)}
    names = {f"eval/{name}" for name in evaluation_metrics(result)}
    return names | {f"policy_00/{name}" for name in names if "/stats/" not in name}


# Of a single policy, and of an evaluation: test_matchmaker.py and test_evaluations.py have them.
OF_OTHERS = {f"league/{name}" for name in ("rating", "win_rate", "worst_win_rate", "worst_env_steps")}
OF_OTHERS |= {"eval/exploitability", "train/annealed/gamma", "train/teacher/kl", "train/teacher/coeff"}
OF_OTHERS |= {f"search/{name}" for name in ("simulations_per_second", "depth", "leaves_per_request", "kept_share")}
OF_OTHERS |= {f"search/{name}" for name in ("resigned_share", "wrongly_resigned_share")}
OF_OTHERS |= {"train/demonstrations/loss", "train/demonstrations/coeff", "train/search/kl"}
OF_OTHERS |= {f"train/search/{name}" for name in ("games", "positions", "samples_per_position")}
OF_OTHERS |= {f"train/intrinsic/{name}" for name in ("bonus", "loss", "left_share")}
OF_OTHERS |= {f"train/levels/{name}" for name in ("seen_share", "effective")}
OF_OTHERS |= {f"ranks/{name}" for name in ("slowest", "wait_share", "slowest_wait_share")}  # tests/ranks


def test_every_metric_is_documented_and_every_documented_metric_is_written(names, run):
    names = names | of_evaluations() | OF_OTHERS | json.loads(run.summary.read_text()).keys()
    patterns = {re.escape(row).replace("NAME", r"\w+").replace("NN", r"\d\d"): row for row in documented()}
    assert len(patterns) > 40
    assert not [name for name in names if not any(re.fullmatch(pattern, name) for pattern in patterns)]
    assert not [row for pattern, row in patterns.items() if not any(re.fullmatch(pattern, name) for name in names)]
