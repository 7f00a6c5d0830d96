"""Sampled actions of Stable-Baselines3 where exploration depends on the state (gSDE: Raffin et al. 2022).

It imports nothing, for it runs in the virtual environment of the peer.
"""

from __future__ import annotations

from typing import Any


class ExploringAsTrained:
    """A model whose noise is drawn as often as in training. `predict` alone never draws it, and `load` does once: all
    episodes would be played with one and the same error."""

    def __init__(self, model: Any, num_envs: int) -> None:
        self._model = model
        self._num_envs = num_envs
        self._steps_between = model.sde_sample_freq if model.sde_sample_freq > 0 else model.n_steps
        self._steps = 0

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Of the next step of all environments."""
        if self._model.use_sde and self._steps % self._steps_between == 0:
            self._model.policy.reset_noise(self._num_envs)
        self._steps += 1
        return self._model.predict(*args, **kwargs)
