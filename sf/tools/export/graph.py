"""The exported graph, traced by torch.export: the network, and the actions of the environment that its output means."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from sf.envs import ActionSpec
from sf.envs.spaces.actions import heads, leaves, middle_range
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.onnx_policy import input_name
from sf.evaluation.play.torch_policy import TorchPolicy

_TRACED_BATCH = 2  # any number but 0 and 1, for which torch.export would specialise
_LARGEST_BATCH = 1 << 30  # torch 2.7 wants a bound below that of its own integers


class Graph(NamedTuple):
    """program: a traced `ActingNetwork`. inputs, outputs: those of one batch, by name and in order."""

    program: ExportedProgram
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


class ActingNetwork(nn.Module):
    """The network and the actions that its output means: what is traced."""

    start: Tensor
    centre: Tensor
    scale: Tensor
    low: Tensor
    high: Tensor
    is_integer: Tensor

    def __init__(self, policy: TorchPolicy) -> None:
        super().__init__()
        self.network = policy.network
        self.config = policy.config.model
        self._has_value = policy.has_value
        self._spec = policy.action_spec
        layout = action_layout(policy.action_space)
        self.register_buffer("start", torch.tensor(layout["discrete_start"], dtype=torch.int64))  # [D]
        self.register_buffer("is_integer", torch.tensor(layout["continuous_is_integer"], dtype=torch.bool))  # [C]
        self._has_integers = any(layout["continuous_is_integer"])
        for name in ("centre", "scale", "low", "high"):
            numbers = torch.tensor(layout[f"continuous_{name}"], dtype=torch.float64)
            self.register_buffer(name, numbers.float())  # [C]

    def forward(
        self, obs: Mapping[str, Tensor], state: Tensor | None = None, first: Tensor | None = None
    ) -> dict[str, Tensor]:
        """obs: {key: [N, ...]}; for a recurrent network also state: [N, S] float32 and first: [N] bool."""
        n = next(iter(obs.values())).shape[0]
        if state is None or first is None:
            state, first = torch.zeros(n, 0), torch.zeros(n, dtype=torch.bool)
        step = self.network.step(obs, state, first)
        sizes, num_continuous = list(self._spec.discrete_sizes), self._spec.num_continuous
        logits, mean, log_stddev = step.params.split([sum(sizes), num_continuous, num_continuous], dim=-1)
        out: dict[str, Tensor] = {}
        if sizes:
            choices = [head.argmax(dim=-1) for head in logits.split(sizes, dim=-1)]
            out |= {"action_discrete": torch.stack(choices, dim=-1) + self.start, "logits": logits}
        if num_continuous:
            action = self.centre + self.scale * mean
            if self._has_integers:
                action = torch.where(self.is_integer, action.round(), action)
            action = action.clamp(self.low, self.high)
            out |= {"action_continuous": action, "mean": mean, "log_stddev": log_stddev}
        if self._has_value:
            out["value"] = step.value
        if self.network.state_size:
            out["next_state"] = step.state
        return out


def trace(policy: TorchPolicy) -> Graph:
    """The graph of a policy on the CPU. Raises ValueError where the model's `step` cannot be traced."""
    network = ActingNetwork(policy).eval()
    rows = obs_arrays(policy.flat_obs_space, _TRACED_BATCH)
    obs = {key: torch.from_numpy(array) for key, array in rows.items()}
    memory: dict[str, Tensor] = {}
    if policy.network.state_size:
        memory["state"] = torch.zeros(_TRACED_BATCH, policy.network.state_size)
        memory["first"] = torch.zeros(_TRACED_BATCH, dtype=torch.bool)
    program = _traced(network, {"obs": obs, **memory})
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)  # it would publish paths of this machine
    inputs = {**{input_name(key): tensor for key, tensor in obs.items()}, **memory}
    return Graph(program, inputs, network(obs, **memory))


def first_line(error: Exception) -> str:
    """The first line of its message: those of torch are long."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _traced(network: ActingNetwork, inputs: dict[str, Any]) -> ExportedProgram:
    batch = {0: Dim("N", min=1, max=_LARGEST_BATCH)}
    dynamic = {name: dict.fromkeys(value, batch) if name == "obs" else batch for name, value in inputs.items()}
    trace_with = functools.partial(torch.export.export, network, (), inputs, dynamic_shapes=dynamic)
    # Each way follows Python that the other does not; which one depends on the version of torch. They raise exceptions
    # of many kinds, some of them from the model's own code.
    try:
        return trace_with(strict=True)
    except Exception as strict_error:
        try:
            return trace_with(strict=False)
        except Exception as error:
            raise ValueError(
                f"torch.export cannot trace the step of the model {network.config.model} with the encoder "
                f"{network.config.encoder}: write it without Python that depends on the values or the number of its "
                f"inputs (it said: {first_line(strict_error)}; {first_line(error)})"
            ) from error


def action_layout(space: gym.Space) -> dict[str, list[Any]]:
    """Says how the flat action of the network becomes the environment's, as `sf.envs.spaces.actions.decoder` does it.

    The choice of head i counts from start; a continuous number x is clip(centre + scale * x, low, high), rounded before
    it is clipped where `continuous_is_integer`.
    """
    leaf_heads = [(leaf, heads(leaf)) for leaf in leaves(space)]
    boxes = [leaf for leaf, its_heads in leaf_heads if its_heads is None and isinstance(leaf, gym.spaces.Box)]
    low, high = _in_a_row([(box.low, box.high) for box in boxes])
    bottom, top = _in_a_row([middle_range(box) for box in boxes])
    starts = [its_heads.starts for _, its_heads in leaf_heads if its_heads is not None]
    is_integer = [not np.issubdtype(box.dtype, np.floating) for box in boxes for _ in range(box.low.size)]
    return {
        "discrete_sizes": list(ActionSpec.of(space).discrete_sizes),
        "discrete_start": np.concatenate([np.zeros(0, np.int64), *starts]).tolist(),
        "continuous_centre": ((top + bottom) / 2).tolist(),
        "continuous_scale": ((top - bottom) / 2).tolist(),
        "continuous_low": low.tolist(),
        "continuous_high": high.tolist(),
        "continuous_is_integer": is_integer,
    }


def _in_a_row(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all first arrays, and those of all second ones, as float64."""
    first, second = (np.concatenate([np.zeros(0), *(pair[n].ravel() for pair in pairs)]) for n in (0, 1))
    return first, second
