"""A policy in an ONNX file, as `sf-export` writes it: acts with numpy and onnxruntime alone, without torch."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sf.envs.spaces import space_json
from sf.evaluation.play.policy import Policy

FORMAT = 1  # of the metadata; a higher one is refused


class OnnxPolicy(Policy):
    """The policy of an exported file, on the CPU. metadata: what `sf-export` wrote beside the network."""

    def __init__(self, path: str | Path, seed: int = 0) -> None:
        """seed: of the actions it draws. Raises ValueError where the file cannot be used, or onnxruntime is missing."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror})") from None
        self._network = OnnxNetwork(data, str(path))
        self.metadata = metadata = self._network.metadata
        super().__init__(
            str(path),
            str(metadata.get("env")),
            metadata["env_steps"] if isinstance(metadata.get("env_steps"), int) else 0,
            space_json.read(metadata.get("obs_space"), f"{path} does not say what its policy sees"),
            space_json.read(metadata.get("action_space"), f"{path} does not say what its policy does"),
        )
        self._state = np.zeros((1, self._network.state_size), np.float32)
        self._rng = np.random.default_rng(seed)

    def _choose(
        self, obs: Mapping[str, np.ndarray], first: np.ndarray, deterministic: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        out = self._network(obs, self._state, first)
        self._state = out.get("next_state", self._state)
        nothing = np.zeros((1, 0), np.float32)
        logits, mean, log_stddev = (out.get(name, nothing)[0] for name in ("logits", "mean", "log_stddev"))
        if not deterministic:
            logits = logits + self._rng.gumbel(size=logits.shape)  # its argmax is distributed as the softmax
            mean = mean + np.exp(log_stddev) * self._rng.standard_normal(mean.shape)
        bounds = itertools.accumulate(self.action_spec.discrete_sizes, initial=0)
        discrete = [logits[start:end].argmax() for start, end in itertools.pairwise(bounds)]
        return np.array(discrete, np.int32), mean.astype(np.float32)


class OnnxNetwork:
    """The network in an ONNX file. state_size: numbers of an actor's recurrent state, 0 where there is none."""

    def __init__(self, data: bytes, name: str) -> None:
        """name: for messages. Raises ValueError where `data` is no exported policy, or onnxruntime is missing."""
        try:
            import onnxruntime  # noqa: PLC0415  an extra: only who has an exported policy needs it
        except ImportError:
            raise ValueError(f"{name} needs onnxruntime to act: pip install onnxruntime") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a batch of one gains nothing from more
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions have no common base of their own
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"{name} is not an ONNX file that this onnxruntime can run: {reason}") from None
        properties = self._session.get_modelmeta().custom_metadata_map
        self.metadata: dict[str, Any] = {}
        for key, value in properties.items():
            with suppress(ValueError, RecursionError):  # somebody else's
                self.metadata[key] = json.loads(value)
        if not isinstance(self.metadata.get("format"), int):
            raise ValueError(f"{name} lacks the metadata of an exported policy: export it with sf-export")
        if self.metadata["format"] > FORMAT:
            raise ValueError(f"{name} was exported by a newer version of this package: install that, or export again")
        inputs = {node.name: node for node in self._session.get_inputs()}
        self.state_size: int = inputs["state"].shape[1] if "state" in inputs else 0
        # Files of before float64 observations kept their digits take them as float32.
        self._float32_inputs = {name for name, node in inputs.items() if node.type == "tensor(float)"}
        self._outputs = [node.name for node in self._session.get_outputs()]

    def __call__(self, obs: Mapping[str, np.ndarray], state: np.ndarray, first: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs by name, see docs/export.md, of N actors.

        obs: {key: [N, ...]}; state: [N, S] float32; first: [N] bool, where the state is zeroed before use.
        """
        feed = {input_name(key): rows for key, rows in obs.items()}
        feed |= {name: feed[name].astype(np.float32, copy=False) for name in self._float32_inputs & feed.keys()}
        if self.state_size:
            feed |= {"state": state, "first": first}
        return dict(zip(self._outputs, self._session.run(None, feed), strict=True))


def input_name(key: str) -> str:
    """The name of the input for observation `key`: it may be `state`, which is the name of another input."""
    return key if key == "obs" else f"obs/{key}"
