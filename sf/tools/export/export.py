"""A trained policy as a file that needs no trainer: ONNX, or a program of torch.export. Called by `sf-export`.

The file includes the normalisation of observations and of returns. It gives the distribution, and the most probable
action in the numbers of the environment. docs/export.md lists inputs and outputs.
"""

from __future__ import annotations

import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sf.envs.spaces import space_json
from sf.evaluation.play.onnx_policy import FORMAT, OnnxNetwork
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.storage import output_file
from sf.system.machine import extras
from sf.tools.export.check import TOLERANCE, Run, largest_difference
from sf.tools.export.graph import Graph, action_layout, first_line, trace

OPSET = 18  # the exporter's own, so nothing is converted
METADATA_FILE = "metadata.json"  # inside a .pt2 file


class Export(NamedTuple):
    """The file that was written.

    inputs, outputs: kind and shape by name. difference: the largest from PyTorch, see `sf.tools.export.check`.
    """

    num_bytes: int
    inputs: dict[str, str]
    outputs: dict[str, str]
    difference: float


def export_policy(policy: TorchPolicy, out: Path) -> Export:
    """Write `policy`, which is on the CPU, to `out`, whose name ends with .onnx or .pt2.

    Raises ValueError, and writes nothing, where `out` cannot be written, a package is missing, the network cannot be
    traced, or the export computes something else than the network.
    """
    if out.suffix not in _WRITERS:
        raise ValueError(
            f"out is {out}: its name must end with {' or '.join(_WRITERS)}, which says the format, or have no dot, "
            "for a folder"
        )
    if out.suffix == ".onnx":
        extras.require("export", "onnx", "onnxscript", "onnxruntime", purpose="an export to ONNX")
    output_file.require_writable("out", out)
    with _quiet():
        graph = trace(policy)
        data, run = _WRITERS[out.suffix](graph, _metadata(policy))
        difference = largest_difference(policy, run)
    if not difference <= TOLERANCE:  # NaN is not
        raise ValueError(
            f"{out} would differ from PyTorch by {difference:.1e}, where {TOLERANCE:g} is allowed, so it is not "
            "written: try the other format (.onnx, .pt2), or other versions of torch and onnxscript"
        )
    output_file.write("out", out, data)
    return Export(len(data), _described(graph.inputs), _described(graph.outputs), difference)


def _onnx(graph: Graph, metadata: dict[str, Any]) -> tuple[bytes, Run]:
    import onnx  # noqa: PLC0415  an extra

    try:
        exported = torch.onnx.export(
            graph.program,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    except Exception as error:  # an operator that ONNX does not have, among others
        raise ValueError(f"the network cannot be written as ONNX, so try .pt2 ({first_line(error)})") from error
    assert exported is not None  # it is the program where no file is named
    model = exported.model_proto
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]  # inner shapes call N by another name, and every runtime infers them itself
    onnx.helper.set_model_props(model, {key: _json(value) for key, value in metadata.items()})
    data = model.SerializeToString()
    return data, OnnxNetwork(data, "the exported network")


def _pt2(graph: Graph, metadata: dict[str, Any]) -> tuple[bytes, Run]:
    buffer = io.BytesIO()
    torch.export.save(graph.program, buffer, extra_files={METADATA_FILE: _json(metadata)})
    module = torch.export.load(io.BytesIO(buffer.getvalue())).module()

    def run(obs: Mapping[str, np.ndarray], state: np.ndarray, first: np.ndarray) -> dict[str, np.ndarray]:
        memory = {"state": torch.from_numpy(state), "first": torch.from_numpy(first)} if "state" in graph.inputs else {}
        out = module(obs={key: torch.from_numpy(rows) for key, rows in obs.items()}, **memory)
        return {name: out[name].numpy() for name in graph.outputs}

    return buffer.getvalue(), run


_WRITERS: dict[str, Callable[[Graph, dict[str, Any]], tuple[bytes, Run]]] = {".onnx": _onnx, ".pt2": _pt2}


def _metadata(policy: TorchPolicy) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "env": policy.env_id,
        "env_steps": policy.env_steps,
        "obs_space": space_json.to_json(policy.obs_space),
        "action_space": space_json.to_json(policy.action_space),
        "action_layout": action_layout(policy.action_space),
        "model": asdict(policy.config.model),
    }


def _json(value: Any) -> str:
    """Infinity becomes the text "inf", which numpy reads as the number: JSON has no infinity."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [finite(item) for item in value]
        return str(value) if isinstance(value, float) and math.isinf(value) else value

    return json.dumps(finite(value), allow_nan=False)


def _described(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Kind and shape by name: float32 [N, 4]."""
    return {
        name: f"{str(tensor.dtype).removeprefix('torch.')} [{', '.join(map(str, ('N', *tensor.shape[1:])))}]"
        for name, tensor in tensors.items()
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides the logs and warnings of torch and onnxscript, which are for their developers.

    torch has a long traceback for a way to trace that fails, also where the next one succeeds.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
