"""Makes the content of a checkpoint, and finds the checkpoint that a learner goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.spaces import space_json
from sf.learner.args import LearnerArgs
from sf.learner.update import Updater
from sf.ranks.ranks import Ranks
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint


def make_checkpoint(
    updater: Updater,
    config: Config,
    spec: EnvSpec,
    env_steps: int = 0,
    trained_steps: int = 0,
    seconds: float = 0.0,
    weights_event: int = 0,
    annealing: Mapping[str, Any] = MappingProxyType({}),
    levels: Mapping[str, Any] = MappingProxyType({}),
    cloning: Mapping[str, Any] = MappingProxyType({}),
) -> Checkpoint:
    """Returns a checkpoint of tensors that are trained on, not of copies.

    Raises FloatingPointError where it would hold NaN or Inf, which nobody can go on with.
    """
    if not updater.is_finite():
        raise FloatingPointError("the weights are not finite")
    state: dict[str, Any] = {
        "env_steps": env_steps,
        "trained_steps": trained_steps,
        "seconds": seconds,
        "weights_event": weights_event,
        "annealing": dict(annealing),
        "levels": dict(levels),
        "cloning": dict(cloning),
        "updater": updater.state(),
        "config": config.flat(),
        "obs_space": space_json.to_json(spec.native_obs_space),
        "action_space": space_json.to_json(spec.action_space),
    }
    return Checkpoint(updater.tensors(), state)


@dataclass(frozen=True)
class Origin:
    """Holds the numbers that a learner begins with. saved: where they come from; None: it begins anew.

    trained_steps: of the env steps, what the weights have learned from. seconds: of the run until then. weights_event:
    number of the decision that gave the policy its weights, as the parent counts them. annealing, levels, cloning: the
    states of `sf.learner.schedules.Annealing`, `sf.learner.levels.LevelScores` and
    `sf.learner.demonstrations.cloning.Cloning`.
    """

    saved: Checkpoint | None = None
    env_steps: int = 0
    trained_steps: int = 0
    seconds: float = 0.0
    weights_event: int = 0
    annealing: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Any] = field(default_factory=dict)
    cloning: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, saved: Checkpoint | None) -> Origin:
        if saved is None:
            return cls()
        state = saved.state
        weights_event = state.get("weights_event", 0)  # older checkpoints know of no population
        numbers = state["env_steps"], state["trained_steps"], state["seconds"], weights_event
        return cls(saved, *numbers, *(state.get(name, {}) for name in ("annealing", "levels", "cloning")))

    @property
    def description(self) -> str:
        return "a new network" if self.saved is None else f"the checkpoint of {self.env_steps:,} env steps"

    def load_into(self, updater: Updater) -> None:
        if self.saved is not None:
            updater.load(self.saved.tensors, self.saved.state["updater"])


def origin(args: LearnerArgs, ranks: Ranks) -> Origin:
    """Returns what a new learner begins with: the state that its predecessor left, else the latest checkpoint."""
    saved = args.recoveries[args.policy_id].read() if args.place.saves else None
    if saved is None and args.place.saves:
        return last_checkpoint(args, ranks)
    return Origin.of(_newest_of_all(saved, ranks))


def last_checkpoint(args: LearnerArgs, ranks: Ranks) -> Origin:
    """Returns the latest checkpoint of the run."""
    path = checkpoint.latest(args.checkpoints)
    return Origin.of(_newest_of_all(None if path is None else checkpoint.load(path), ranks))


def _newest_of_all(saved: Checkpoint | None, ranks: Ranks) -> Checkpoint | None:
    """Returns what all ranks go on from. saved: what this one has; several have some if they share no disk."""
    if ranks.size == 1:
        return saved
    own = torch.zeros(ranks.size, dtype=torch.float64)
    own[ranks.rank] = 0 if saved is None else 1 + saved.state["env_steps"]
    (of_all,) = ranks.totals(own)
    source = int(of_all.argmax())  # the first of equals
    is_source = saved is not None and source == ranks.rank
    data = ranks.share(checkpoint.encode(saved) if saved is not None and is_source else b"", source)
    return checkpoint.decode(data) if data else None
