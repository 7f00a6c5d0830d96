"""The optimiser of a learner: Adam for all weights, or Muon for the matrices of hidden layers and Adam for the rest.

A step may be skipped by a number on the device, so that the host need not wait for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sf.config import LearnerConfig
from sf.envs.errors import UsageError

_DECAY = 0.95  # of Muon's momentum, by Jordan et al. 2024
_MOMENTUM = "momentum_buffer"  # its name in the state of torch.optim.Muon


def require_available(config: LearnerConfig) -> None:
    """Raises ValueError where this PyTorch does not have the optimiser of the flags."""
    if config.optimizer == "muon" and not hasattr(torch.optim, "Muon"):
        raise UsageError(
            f"optimizer is muon, which PyTorch has since version 2.9, and this one is {torch.__version__}: install a "
            "newer one, or take adam"
        )


def hidden_matrices(model: Any) -> list[nn.Parameter]:
    """The weights that Muon trains: all parameters with two axes in the trunk, except for tables of embeddings, whose
    rows are looked up."""
    tables = [part for part in model.trunk.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
    left_out = {id(table.weight) for table in tables}
    return [weight for weight in model.trunk.parameters() if weight.ndim == 2 and id(weight) not in left_out]


class AdamState(NamedTuple):
    """What Adam keeps of a weight: how many steps, 0-dim, and the moments of its gradients, in its shape."""

    step: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor


def adam_update(state: AdamState, learning_rate: float | Tensor, betas: tuple[float, float], eps: float) -> Tensor:
    """What Adam adds to a weight in the step that leaves this state: Kingma and Ba 2015, algorithm 1.

    0 before the first step. learning_rate: a number, or 0-dim.
    """
    first, second = (1 - beta ** state.step.double().clamp(min=1) for beta in betas)
    size = state.exp_avg_sq.sqrt() / second.sqrt() + eps
    return -(learning_rate / first) * (state.exp_avg / size)


class Optimizer:
    """Adam (Kingma and Ba 2015, algorithm 1), and Muon (Jordan et al. 2024), both with decoupled weight decay
    (Loshchilov and Hutter 2019, algorithm 2) where the configuration has any.

    The root mean square of Muon's update is about 0.2 times the learning rate, like Adam's (Liu et al. 2025, "Muon is
    scalable for LLM training", equation 4). So one learning rate serves both.
    """

    def __init__(self, config: LearnerConfig, model: Any) -> None:
        matrices = hidden_matrices(model) if config.optimizer == "muon" else []
        of_muon = {id(weight) for weight in matrices}
        self._rate = config.learning_rate
        # On a GPU a number in its memory, which a recorded step reads.
        device = next(model.parameters()).device
        is_on_gpu = device.type == "cuda"
        self._rate_there = torch.tensor(config.learning_rate, device=device) if is_on_gpu else None
        kind = torch.optim.AdamW if config.weight_decay else torch.optim.Adam
        self._adam = kind(
            [weight for weight in model.parameters() if id(weight) not in of_muon],
            lr=config.learning_rate if self._rate_there is None else self._rate_there,
            capturable=is_on_gpu,
            betas=(config.adam_beta1, config.adam_beta2),
            eps=config.adam_eps,
            weight_decay=config.weight_decay,
            fused=True,
        )
        # It warns where its steps are not recorded, as those of several ranks are not.
        self._adam._warned_capturable_if_run_uncaptured = True
        self._muon: torch.optim.Optimizer | None = None
        if matrices:
            self._muon = torch.optim.Muon(
                matrices,
                lr=config.learning_rate,
                weight_decay=config.weight_decay,
                momentum=_DECAY,
                adjust_lr_fn="match_rms_adamw",
            )
        self._of_muon = of_muon

    @property
    def learning_rate(self) -> float:
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if rate == self._rate:
            return
        self._rate = rate
        if self._rate_there is None:
            self._adam.param_groups[0]["lr"] = rate
        else:
            self._rate_there.fill_(rate)
        if self._muon is not None:
            self._muon.param_groups[0]["lr"] = rate

    @property
    def adam_betas(self) -> tuple[float, float]:
        """What Adam keeps of its two moments from one step to the next, as shares."""
        beta1, beta2 = self._adam.param_groups[0]["betas"]
        return beta1, beta2

    def moments(self, weight: nn.Parameter) -> dict[str, Tensor]:
        """What is kept of the gradients of a weight, by name; nothing before its first step. It may be written to."""
        return (self._muon if self._muon and id(weight) in self._of_muon else self._adam).state[weight]

    def adam_state(self, weight: nn.Parameter) -> AdamState:
        """The tensors that Adam writes, which begin as zeros. The weight is one of those that Adam trains."""
        state = self._adam.state[weight]
        if not state:
            state["step"] = torch.zeros((), device=weight.device)
            state |= {name: torch.zeros_like(weight, requires_grad=False) for name in AdamState._fields[1:]}
        return AdamState(**state)

    def adam_update(self, state: AdamState) -> Tensor:
        """What Adam adds to a weight in the step that leaves this state, at the present learning rate."""
        group = self._adam.param_groups[0]
        return adam_update(state, self._rate, group["betas"], group["eps"])

    def zero_grad(self) -> None:
        for part in self._parts():
            part.zero_grad()

    def step(self, is_skipped: Tensor) -> None:
        """is_skipped: 0-dim. Where it is 1 and not 0, weights and moments stay as they are, whatever the gradients."""
        # The fused kernel reads it on the device, and does nothing where it is 1: torch.amp.GradScaler's protocol.
        self._adam.found_inf = is_skipped  # type: ignore[attr-defined]
        self._adam.step()
        if self._muon is not None:
            _step_unless(is_skipped, self._muon)

    def _parts(self) -> list[torch.optim.Optimizer]:
        return [self._adam] if self._muon is None else [self._adam, self._muon]


@torch.no_grad()
def _step_unless(is_skipped: Tensor, muon: torch.optim.Optimizer) -> None:
    """Muon knows no such protocol: what a skipped step has written is put back, on the device."""
    weights = [weight for weight in muon.param_groups[0]["params"] if weight.grad is not None]
    for weight in weights:
        if _MOMENTUM not in muon.state[weight]:
            muon.state[weight][_MOMENTUM] = torch.zeros_like(weight)
    written = [*weights, *(muon.state[weight][_MOMENTUM] for weight in weights)]
    before = [tensor.clone() for tensor in written]
    muon.step()
    for tensor, old in zip(written, before, strict=True):
        tensor.copy_(torch.where(is_skipped > 0, old, tensor))
