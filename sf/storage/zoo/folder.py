"""The folder of a trained policy: three files, in the box, on the Hub, or wherever `sf-export --out FOLDER` wrote them.

The weights are a checkpoint without what only training needs. Whoever reads it trusts it as little as any checkpoint of
somebody else: it is never unpickled, and code that it names needs --trust. The other two files are for people.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from sf.storage import checkpoint
from sf.storage.checkpoint import MODEL, Checkpoint
from sf.storage.run_dir import NOT_SAVED, flags_text
from sf.storage.zoo import CARD, CONFIG, WEIGHTS

Precision = Literal["float32", "bfloat16"]

_KEPT = ("env_steps", "seconds", "config", "obs_space", "action_space")


def without_training_state(saved: Checkpoint, precision: Precision = "float32") -> Checkpoint:
    """The weights and normalisers, and what is needed to act with them.

    precision: of the weights. Statistics of normalisers, which are float64, keep theirs. Paths of the machine that
    trained are left out.
    """
    tensors = {name: _cast(tensor, precision) for name, tensor in saved.tensors.items() if name.startswith(MODEL)}
    state = {key: saved.state[key] for key in _KEPT if key in saved.state}
    state["config"] = {name: value for name, value in state["config"].items() if name not in NOT_SAVED}
    return Checkpoint(tensors, state)


def contents(policy: Checkpoint, card: str) -> dict[str, bytes]:
    """The files of the folder by name, the card last. policy: as `without_training_state` makes it."""
    config = flags_text(policy.state["config"]).encode()
    return {WEIGHTS: checkpoint.encode(policy), CONFIG: config, CARD: card.encode()}


def _cast(tensor: Tensor, precision: Precision) -> Tensor:
    return tensor.to(torch.bfloat16) if precision == "bfloat16" and tensor.dtype == torch.float32 else tensor
