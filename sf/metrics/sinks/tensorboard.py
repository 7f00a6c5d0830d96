"""Records for TensorBoard, and the names that metrics have there and in W&B, which group charts by their first part.

The file is written record by record. torch's SummaryWriter has a thread that holds the file open, and a full disk kills
that thread. The functions that SummaryWriter uses make everything but the curves.
"""

from __future__ import annotations

import io
import os
import re
import socket
import time
from collections.abc import Mapping
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import summary as summaries

from sf.metrics.sinks.writer import VideoRecord
from sf.storage.run_dir import RunDir
from sf.storage.text_files import append_whole, open_to_append, printable

_OF_POLICY = re.compile(r"(policy_\d+)/(.+)")
_OF_FEATURES = (
    "annealed/",
    "levels/",
    "intrinsic/",
    "teacher/",
    "search/",
    "demonstrations/",
)  # groups of metrics of the learner that some runs have
# Environments' own, evaluations, players, videos.
_KEPT_GROUPS = ("stats/", "eval/", "league/", "video", *_OF_FEATURES)

TAGS = {
    "mean_return": "return/mean",
    "std_return": "return/std",
    "min_return": "return/min",
    "max_return": "return/max",
    "true_objective": "return/objective",  # of one policy, by which a population is ranked
    "stats/true_objective": "return/true_objective",
    "start": "run/start",
    "stats_avg": "run/stats_avg",
    "episodes": "episodes/count",
    "episodes_in_mean": "episodes/in_mean",
    "mean_episode_steps": "episodes/steps",
    "mean_episode_frames": "episodes/frames",
    "env_frames_per_second": "throughput/frames_per_second_trained",
    "sampled_env_frames_per_second": "throughput/frames_per_second_sampled",
    "policy/actions_per_batch": "throughput/actions_per_inference_batch",
    "train/num_samples": "throughput/samples_per_minibatch",
    "train/sample_reuse": "throughput/sample_reuse",
    "train/num_choices": "throughput/choices_per_minibatch",
    "train/lag_mean": "lag/mean",
    "train/lag_max": "lag/max",
    "train/masked_share": "lag/masked_share",
    "train/clipped_reward_share": "losses/clipped_reward_share",
    "train/policy_version": "lag/policy_version",
    "train/loss": "losses/total",
    "train/policy_loss": "losses/policy",
    "train/value_loss": "losses/value",
    "train/entropy": "policy/entropy",
    "train/approx_kl": "policy/approx_kl",
    "train/ratio_mean": "policy/ratio_mean",
    "train/clip_fraction": "policy/clip_fraction",
    "train/effective_sample_size": "policy/effective_sample_size",
    "train/advantage_mean": "policy/advantage_mean",
    "train/advantage_stddev": "policy/advantage_stddev",
    "train/explained_variance": "value/explained_variance",
    "train/value_clip_fraction": "value/clip_fraction",
    "train/learning_rate": "optimiser/learning_rate",
    "train/exploration_loss_coeff": "losses/exploration_loss_coeff",
    "train/grad_norm": "optimiser/grad_norm",
    "train/skipped_updates": "optimiser/skipped_updates",
    "train/gradient_share": "throughput/gradient_share",
    "train/num_threads": "throughput/learner_threads",
    "rollout/busy_share": "busy/rollout",
    "policy/busy_share": "busy/policy",
    "player/busy_share": "busy/player",
    "learner/busy_share": "busy/learner",
    "rollout/wait_share": "wait/rollout_for_actions",
    "rollout/slot_wait_share": "wait/rollout_for_slots",
    "policy/wait_share": "wait/policy_for_requests",
    "player/wait_share": "wait/player_for_requests",
    "learner/wait_share": "wait/learner_for_data",
    "cores/in_use_share": "cores/in_use_share",
    "cores/rollout": "cores/rollout",
    "cores/policy": "cores/policy",
    "cores/player": "cores/player",
    "cores/learner": "cores/learner",
    "env_steps": "run/env_steps",
    "env_frames": "run/env_frames",
    "seconds": "run/seconds",
    "restarts": "faults/restarts",
    "lost_episodes": "faults/lost_episodes",
    "lost_frames": "faults/lost_frames",
    "env_faults": "faults/env_faults",
}


def tag(name: str) -> str:
    """The tag of a metric with this name in metrics.jsonl. Those of one policy stay behind `policy_00/` and so on."""
    of_policy = _OF_POLICY.fullmatch(name)
    if of_policy:
        return f"{of_policy[1]}/{tag(of_policy[2])}"
    if name in TAGS:
        return TAGS[name]
    of_learner = name.removeprefix("train/")
    if of_learner.startswith(_OF_FEATURES):
        return of_learner
    return name if name.startswith(_KEPT_GROUPS) else f"other/{name}"


_LAYOUT: dict[str, dict[str, list[Any]]] = {  # by category and title, in this order: kind of chart, and its curves
    "Return": {  # alone, since TensorBoard draws margin charts last in their category
        "mean, min and max of the latest episodes": ["Margin", ["return/mean", "return/min", "return/max"]],
    },
    "Learning": {
        "episode length (steps)": ["Multiline", ["episodes/steps"]],
        "entropy": ["Multiline", ["policy/entropy"]],
        "true objective, where the environment has one": ["Multiline", ["return/true_objective"]],
    },
    "Speed": {
        "frames per second": ["Multiline", ["throughput/frames_per_second_.*"]],
        "busy share of the parts": ["Multiline", ["busy/.*"]],
        "wait share of the parts": ["Multiline", ["wait/.*"]],
        "cores in use, by part": ["Multiline", ["cores/(rollout|policy|player|learner)"]],
        "lag (versions)": ["Multiline", ["lag/(mean|max)"]],
    },
    "Optimisation": {
        "losses": ["Multiline", ["losses/.*"]],
        "KL divergence of an update": ["Multiline", ["policy/approx_kl"]],
        "clipped share": ["Multiline", ["policy/clip_fraction", "value/clip_fraction"]],
        "explained variance of the value": ["Multiline", ["value/explained_variance"]],
        "gradient norm": ["Multiline", ["optimiser/grad_norm"]],
        "learning rate": ["Multiline", ["optimiser/learning_rate"]],
    },
}
_EVALUATION: dict[str, list[Any]] = {
    "mean return and its 95 % interval": [
        "Margin",
        ["eval/mean_return", "eval/mean_return_low", "eval/mean_return_high"],
    ],
}
_OF_POLICIES: dict[str, list[Any]] = {
    "return": ["Multiline", [r"policy_\d+/return/mean"]],
    "objective": ["Multiline", [r"policy_\d+/return/objective"]],
    "learning rate": ["Multiline", [r"policy_\d+/optimiser/learning_rate"]],
    "entropy": ["Multiline", [r"policy_\d+/policy/entropy"]],
}
_COMPARED = ("return/mean", "return/true_objective", "throughput/frames_per_second_trained")  # beside hyperparameters


class TensorBoard:
    """A new event file in the run directory for each start."""

    name = "TensorBoard"

    def __init__(self, run_dir: RunDir, flags: Mapping[str, Any]) -> None:
        """flags: the configuration, by flag name."""
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self._path = run_dir.tensorboard / name
        self._flags = flags

    def write(self, record: dict[str, Any]) -> None:
        """Raises OSError where it cannot be written. Then nothing is written."""
        values = [
            Summary.Value(tag=printable(tag(name)), simple_value=value)
            for name, value in record.items()
            if isinstance(value, int | float)
        ]
        self._append(record["env_frames"], values)

    def write_video(self, video: VideoRecord) -> None:
        """Writes the video as an animated image. Raises OSError as `write`."""
        width, height = video.size
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=video.gif)
        self._append(video.env_frames, [Summary.Value(tag=tag(video.name), image=image)])

    def finish(self, summary: dict[str, Any]) -> None:
        """Nothing to do: no file is open."""

    def _append(self, env_frames: int, values: list[Summary.Value]) -> None:
        """Append all values or nothing, to a new file after its header. Raises OSError."""
        event = _framed(step=env_frames, summary=Summary(value=values))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open_to_append(self._path) as file:
            append_whole(file, event if file.tell() else self._header() + event)

    def _header(self) -> bytes:
        """The beginning of a file. A file that was removed needs it again."""
        layout = _LAYOUT
        if self._flags["num_policies"] > 1:
            layout = {"Policies": _OF_POLICIES, **layout}
        elif self._flags["eval_every_env_steps"]:
            layout = {"Evaluation": _EVALUATION, **layout}
        words = {name: _word(value) for name, value in self._flags.items()}
        experiment, session, _ = summaries.hparams(words, dict.fromkeys(_COMPARED))
        config = "\n".join(f"    {name}: {value}" for name, value in words.items())  # indented: as it is, in Markdown
        parts = [summaries.custom_scalars(layout), experiment, session, summaries.text("config", config)]
        return _framed(file_version="brain.Event:2") + b"".join(_framed(summary=part) for part in parts)


def _word(value: Any) -> Any:
    """A value as a hyperparameter of TensorBoard: a number or a text."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else printable(str(value))


def _framed(**fields: Any) -> bytes:
    """One record of an event file, with its length and checksums."""
    buffer = io.BytesIO()
    RecordWriter(buffer).write(Event(wall_time=time.time(), **fields).SerializeToString())
    return buffer.getvalue()
