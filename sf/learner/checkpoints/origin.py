"""What a learner goes on from: the state that its predecessor left, a checkpoint, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from sf.learner.args import LearnerArgs
from sf.learner.update import Updater
from sf.ranks.ranks import Ranks
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint


@dataclass(frozen=True)
class Origin:
    """The numbers of a learner beside its network. saved: where they come from; None: it begins anew.

    trained_steps: of the env steps, what the weights have learned from. seconds: of the run until then. weights_event:
    number of the decision that gave the policy its weights, as the parent counts them.
    """

    saved: Checkpoint | None = None
    env_steps: int = 0
    trained_steps: int = 0
    seconds: float = 0.0
    weights_event: int = 0

    @classmethod
    def of(cls, saved: Checkpoint | None) -> Origin:
        if saved is None:
            return cls()
        state = saved.state
        weights_event = state.get("weights_event", 0)  # older checkpoints know of no population
        return cls(saved, state["env_steps"], state["trained_steps"], state["seconds"], weights_event)

    @property
    def description(self) -> str:
        return "a new network" if self.saved is None else f"the checkpoint of {self.env_steps:,} env steps"

    def load_into(self, updater: Updater) -> None:
        if self.saved is not None:
            updater.load(self.saved.tensors, self.saved.state["updater"])


def origin(args: LearnerArgs, ranks: Ranks, say: Callable[[str], None]) -> Origin:
    """Of a learner that starts: the state that the one before it left; else the latest checkpoint of the run."""
    saved = args.recoveries[args.policy_id].read() if args.place.saves else None
    if saved is None and args.place.saves:
        return last_checkpoint(args, ranks, say)
    return Origin.of(_newest_of_all(saved, ranks))


def last_checkpoint(args: LearnerArgs, ranks: Ranks, say: Callable[[str], None]) -> Origin:
    """The latest checkpoint of the run."""
    path = checkpoint.latest(args.checkpoints, say)
    return Origin.of(_newest_of_all(None if path is None else checkpoint.load(path), ranks))


def _newest_of_all(saved: Checkpoint | None, ranks: Ranks) -> Checkpoint | None:
    """What all ranks go on from. saved: what this one has; several have some where they share no disk."""
    if ranks.size == 1:
        return saved
    own = torch.zeros(ranks.size, dtype=torch.float64)
    own[ranks.rank] = 0 if saved is None else 1 + saved.state["env_steps"]
    (of_all,) = ranks.totals(own)
    source = int(of_all.argmax())  # the first of equals
    is_source = saved is not None and source == ranks.rank
    data = ranks.share(checkpoint.encode(saved) if saved is not None and is_source else b"", source)
    return checkpoint.decode(data) if data else None
