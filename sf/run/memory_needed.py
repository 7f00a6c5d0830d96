"""Computes the memory that a run needs beside simulators and libraries, and names the flags that reduce each part."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.errors import UsageError
from sf.run.plan import Plan
from sf.shared.rows import bytes_per_slot, slot_fields
from sf.shared.weights import NUM_COPIES

_FLOAT = 4  # bytes
_KEPT = 2 * 3  # copies of the weights in RAM, by policy, for a successor of the learner: twice with Adam's two moments
_TRAINED = NUM_COPIES + 4  # those that are published; in the learner with gradient and moments
_OF_GRADIENT_WORKER = 3  # network, gradient, and the gradient that it shares; beside a copy for all of a learner
_ACTED_WITH = 2  # in a policy worker: the network, and the vector that it is loaded from


@dataclass(frozen=True)
class Part:
    """One part of what is needed. smaller_with: flags."""

    name: str
    num_bytes: int
    smaller_with: str


def parts_needed(plan: Plan) -> list[Part]:
    """Lists what needs RAM. With a GPU the networks are in its memory, but batches are still filled in RAM."""
    slot = bytes_per_slot(plan.spec, plan.config.rollout)
    copies = _KEPT * plan.num_policies + plan.num_evaluators * plan.num_policies
    if plan.device == "cpu":
        copies += _TRAINED * plan.num_policies + _ACTED_WITH * plan.num_policy_workers
    slots = plan.config.trajectories_per_iteration
    batches = (2 + bool(plan.symmetries)) * slots * plan.num_policies
    rounded_up = _page_locked(plan, slots) / (slot * slots) if plan.device != "cpu" else 1.0
    if plan.num_gradient_workers:
        copies += (1 + _OF_GRADIENT_WORKER * plan.num_gradient_workers) * plan.num_policies
        batches += -(-slots // plan.config.learner.num_batches_per_epoch) * plan.num_policies
    of_policies = (plan.num_slots + 2 * plan.num_actors) * plan.num_policies
    states = (of_policies + batches) * plan.state_size * _FLOAT
    return [
        Part("trajectories", slot * plan.num_slots, "--num_workers, --num_envs_per_worker or --rollout"),
        Part("batches of the learner", int(rounded_up * slot * batches), "--batch_size or --num_batches_per_epoch"),
        Part(
            f"copies of the network, of {plan.num_weights:,} weights",
            copies * plan.num_weights * _FLOAT,
            "the widths of its layers (--encoder_mlp_layers, --encoder_conv_mlp_layers, --rnn_size), --num_policies or "
            "--policy_workers_per_policy",
        ),
        Part("the buffer of games", plan.bytes_of_games, "--buffer_mib"),
        Part(
            "recurrent states",
            states,
            "--rnn_size, --attention_window, --core_layers, --num_workers or --num_envs_per_worker",
        ),
    ]


def _page_locked(plan: Plan, slots: int) -> int:
    """Bytes of a batch in page-locked memory, of which PyTorch takes a power of two for each tensor."""
    sizes = (field.num_bytes for field in slot_fields(plan.spec, slots, plan.config.rollout))
    return sum(1 << (size - 1).bit_length() for size in sizes if size)


def require_memory(available: int, plan: Plan) -> None:
    """Raises ValueError where fewer than the needed bytes are available."""
    needed = parts_needed(plan)
    total = sum(part.num_bytes for part in needed)
    if total > available:
        largest = max(needed, key=lambda part: part.num_bytes)
        raise UsageError(
            f"the run needs {_gib(total)} GiB of memory and {_gib(available)} GiB are free; "
            f"{_gib(largest.num_bytes)} GiB of it are for {largest.name}: lower {largest.smaller_with}"
        )


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f}"
