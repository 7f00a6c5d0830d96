"""Makes the core that `--core` names."""

from __future__ import annotations

from sf.config import ModelConfig
from sf.model.cores.gru import GRU
from sf.model.cores.lstm import LSTM
from sf.model.cores.mingru import MinGRU
from sf.model.cores.transformer import Transformer

Core = GRU | LSTM | MinGRU | Transformer
"""Steps N actors with `step`, goes through trajectories with `unroll`, and says its `state_size` and `out_size`."""

_CORES: dict[str, type[GRU | LSTM | MinGRU]] = {"gru": GRU, "lstm": LSTM, "mingru": MinGRU}


def make_core(config: ModelConfig, in_size: int) -> Core | None:
    """Returns the core for features [N, in_size], or None if the network has none."""
    if config.core == "none":
        return None
    if config.core == "transformer":
        return Transformer(
            in_size,
            config.rnn_size,
            num_layers=config.core_layers,
            num_heads=config.core_heads,
            window=config.attention_window,
        )
    return _CORES[config.core](in_size, config.rnn_size)
