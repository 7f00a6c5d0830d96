"""A best response: a policy that is trained against players with fixed weights, by an ordinary run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from sf.config import Config
from sf.play.named_checkpoint import find_trusted
from sf.run.beginning.initial_weights import CompleteRunError
from sf.run.trainer import train
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir


class StoppedError(Exception):
    """A signal has ended the training of a best response. by: its name."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.by = by

    @property
    def exit_status(self) -> int:
        return 128 + signal.Signals[self.by].value


def train_best_response(config: Config, against: Mapping[str, float], say: Callable[[str], None]) -> Checkpoint:
    """Train it, or go on with its run, and return its latest weights.

    against: how often to meet each player, as `--players` names them. say: is told what a user should know. Raises
    StoppedError, and what `train` raises.
    """
    config = config.replace(
        restart_behavior="resume",
        past_share=1.0,
        players=tuple(against),
        opponent_weights=tuple(against.values()),
        snapshot_every_env_steps=0,
    )
    with suppress(CompleteRunError):  # it was trained to its end before
        stopped_by = train(config)["stopped_by"]
        if stopped_by in signal.Signals.__members__:
            raise StoppedError(stopped_by)
    run = RunDir.at(config.run.train_dir, config.run.experiment_name).path
    _, saved = find_trusted(run, say=say, is_trusted=config.run.trust)
    return saved
