"""Makes the core that `--core` names."""

from __future__ import annotations

from sf.config import ModelConfig
from sf.model.recurrent.gru import GRU
from sf.model.recurrent.lstm import LSTM
from sf.model.recurrent.mingru import MinGRU

Core = GRU | LSTM | MinGRU
"""Steps N actors with `step`, goes through trajectories with `unroll`, and says its `state_size` and `out_size`."""

_CORES: dict[str, type[Core]] = {"gru": GRU, "lstm": LSTM, "mingru": MinGRU}


def make_core(config: ModelConfig, in_size: int) -> Core | None:
    """Returns the core for features [N, in_size], or None if the network has none."""
    return None if config.core == "none" else _CORES[config.core](in_size, config.rnn_size)
