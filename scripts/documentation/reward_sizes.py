"""Train three kinds of task with rewards of seven sizes, and draw the share of the best return over env steps.

    python scripts/documentation/reward_sizes.py --out docs/images/reward_sizes.png

Each run is synchronous, so that nothing but the size of the rewards differs between the lines of a panel. It takes
about ten minutes on two cores. Needs the extra plot: pip install '.[plot]'.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
from matplotlib import colormaps
from matplotlib.figure import Figure

from sf import train
from sf.commands import cli
from sf.report.style import require_format, save

SIZES = (1e-5, 1e-3, 1e-1, 1.0, 1e1, 1e3, 1e5)
NUM_STEPS = {"one step, one reward": 1, "a reward each step": 8, "all of it at the end": 8}
CRITICS: dict[str, dict[str, Any]] = {
    "normalize_returns, V-trace": {},
    "normalize_returns, GAE": {"with_vtrace": False},
    "symlog": {"normalize_returns": False, "value_scale": "symlog"},
}


@dataclass(frozen=True)
class Flags:
    """What to draw."""

    out: Path = Path("reward_sizes.png")
    """The picture: .png, .svg or .pdf."""

    train_for_env_steps: int = 20_000
    """Length of each run."""


class Guess(gym.Env[int, int]):
    """An episode shows one of four symbols at each step. Choosing the same one is right; the best return is `size`."""

    observation_space = gym.spaces.Discrete(4)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, kind: str, size: float) -> None:
        self._num_steps, self._is_late = NUM_STEPS[kind], "end" in kind
        self._reward = size / self._num_steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._step, self._owed = 0, 0.0
        return self._symbol(), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._step += 1
        self._owed += self._reward * (action == self._shown)
        is_over = self._step == self._num_steps
        paid = 0.0 if self._is_late and not is_over else self._owed
        self._owed -= paid
        return self._symbol(), paid, is_over, False, {}

    def _symbol(self) -> int:
        self._shown = int(self.np_random.integers(4))
        return self._shown


def curve(kind: str, size: float, num_steps: int, critic: dict[str, Any]) -> list[tuple[int, float]]:
    """Env steps, and the mean return as a share of the best."""
    points: list[tuple[int, float]] = []

    def note(record: dict[str, Any]) -> None:
        if record["mean_return"] is not None:
            points.append((record["env_steps"], record["mean_return"] / size))

    make: Callable[[], gym.Env[int, int]] = lambda: Guess(kind, size)  # noqa: E731  it is sent by value
    with tempfile.TemporaryDirectory() as train_dir:
        train(
            env=make,
            train_dir=train_dir,
            experiment="run",
            num_workers=1,
            async_rl=False,
            seed=1,
            train_for_env_steps=num_steps,
            summaries_every_sec=0.5,
            num_epochs=2,
            learning_rate=0.001,
            on_record=note,
            **critic,
        )
    return points


def main() -> None:
    flags = cli.parse_flags(Flags, "reward_sizes.py", "Train with rewards of seven sizes, and draw what is learned.")
    try:
        require_format(flags.out)
    except ValueError as error:
        cli.fail(str(error))
    figure = Figure(figsize=(9, 7), layout="constrained")
    panels = figure.subplots(len(CRITICS), len(NUM_STEPS), sharex=True, sharey=True, squeeze=False)
    for row, (name, critic) in zip(panels, CRITICS.items(), strict=True):
        for panel, kind in zip(row, NUM_STEPS, strict=True):
            for idx, size in enumerate(SIZES):
                points = curve(kind, size, flags.train_for_env_steps, critic)
                color = colormaps["viridis"](idx / len(SIZES))
                panel.plot(*zip(*points, strict=True), color=color, linestyle="-", label=f"{size:g}")
                print(f"{name}, {kind}, {size:g}: {points[-1][1]:.2f}", flush=True)
            panel.set_title(f"{kind}\n{name}")
    panels[-1][1].set_xlabel("env steps")
    panels[1][0].set_ylabel("mean return, as a share of the best")
    panels[0][-1].legend(title="best return")
    save(figure, flags.out)
    print(flags.out)


if __name__ == "__main__":
    main()
