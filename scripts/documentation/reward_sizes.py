"""Train three kinds of task with rewards of seven sizes, and draw the share of the best return over env steps.

    python scripts/documentation/reward_sizes.py --out docs/images/reward_sizes.png

The learner and the network are those of a run, with simulations in the same process, so that nothing but the size of
the rewards differs between the lines of a panel. It takes about six minutes and needs the extra plot:
pip install '.[plot]'.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.update import Updater
from sf.model.distributions import ActionDistribution
from sf.tools.commands import cli
from sf.tools.report.style import require_format, save

SIZES = (1e-5, 1e-3, 1e-1, 1.0, 1e1, 1e3, 1e5)
NUM_STEPS = {"one step, one reward": 1, "a reward each step": 8, "all of it at the end": 8}
CRITICS: dict[str, dict[str, Any]] = {
    "normalize_returns, V-trace": {"normalize_returns": True},
    "normalize_returns, GAE": {"normalize_returns": True, "with_vtrace": False},
    "symlog": {"value_scale": "symlog"},
}
NUM_SYMBOLS, ROLLOUT, NUM_ENVS = 4, 16, 32
SPACE = gym.spaces.Dict(obs=gym.spaces.Box(0.0, 1.0, (NUM_SYMBOLS,)))
ACTION = ActionSpec((NUM_SYMBOLS,), 0)


@dataclass(frozen=True)
class Flags:
    """Says where the picture goes, and how long the lines are."""

    out: Path = Path("reward_sizes.png")
    """The picture: .png, .svg or .pdf."""

    iterations: int = 30
    """Length of each line, in iterations of 512 env steps."""


class Guess:
    """Environments that show one of four symbols at each step. Choosing the same one is right, and an episode in which
    all choices are right returns `size`."""

    def __init__(self, kind: str, size: float) -> None:
        self._num_steps, self._is_late = NUM_STEPS[kind], "end" in kind
        self._reward = size / self._num_steps
        self._step = 0
        self._owed = torch.zeros(NUM_ENVS)
        self.symbol = torch.randint(NUM_SYMBOLS, (NUM_ENVS,))
        self.share_right = torch.zeros(())  # of the last step

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """action: [N]. Returns the rewards [N], and whether the episodes are over."""
        is_right = (action == self.symbol).float()
        self._owed += self._reward * is_right
        self._step += 1
        is_over = self._step % self._num_steps == 0
        paid = torch.zeros(NUM_ENVS) if self._is_late and not is_over else self._owed.clone()
        self._owed -= paid
        self.symbol = torch.randint(NUM_SYMBOLS, (NUM_ENVS,))
        self.share_right = is_right.mean()
        return paid, is_over


def collect(updater: Updater, envs: Guess) -> tuple[Batch, float]:
    """A rollout by the present policy, and the share of right choices in it."""
    fields: dict[str, list[torch.Tensor]] = {name: [] for name in ("obs", "discrete", "log_prob", "value", "reward")}
    ends: list[bool] = []
    right: list[torch.Tensor] = []
    none = torch.zeros(NUM_ENVS, 0)
    with torch.no_grad():
        for _ in range(ROLLOUT):
            obs = torch.nn.functional.one_hot(envs.symbol, NUM_SYMBOLS).float()
            out = updater.model.step({"obs": obs}, none, torch.ones(NUM_ENVS, dtype=torch.bool))
            policy = ActionDistribution(ACTION, out.params)
            discrete, _ = policy.sample_by(*ActionDistribution.noise(ACTION, (NUM_ENVS,), torch.device("cpu")))
            reward, is_over = envs.step(discrete[:, 0])
            for name, value in zip(
                fields, (obs, discrete, policy.log_prob(discrete, none), out.value, reward), strict=True
            ):
                fields[name].append(value)
            ends.append(is_over)
            right.append(envs.share_right)
    obs = torch.nn.functional.one_hot(envs.symbol, NUM_SYMBOLS).float()
    stacked = {name: torch.stack(values) for name, values in fields.items() if name != "obs"}
    over = torch.tensor(ends)
    batch = Batch(
        obs={"obs": torch.stack([*fields["obs"], obs])},
        first=torch.cat((torch.ones(1, dtype=torch.bool), over))[:, None].expand(-1, NUM_ENVS),
        state=none,
        continuous=torch.zeros(ROLLOUT, NUM_ENVS, 0),
        policy_version=torch.full((ROLLOUT, NUM_ENVS), updater.version, dtype=torch.int32),
        terminated=over[:, None].expand(-1, NUM_ENVS),
        valid=torch.ones(ROLLOUT, NUM_ENVS, dtype=torch.bool),
        **stacked,
    )
    return batch, float(torch.stack(right).mean())


def curve(kind: str, size: float, critic: dict[str, Any], num_iterations: int) -> list[float]:
    """The return as a share of the best, in each iteration."""
    torch.manual_seed(1)
    config = Config().replace(
        rollout=ROLLOUT,
        batch_size=ROLLOUT * NUM_ENVS // 4,
        num_batches_per_epoch=4,
        num_epochs=2,
        shuffle_steps=True,
        encoder_mlp_layers=(32, 32),
        nonlinearity="tanh",
        learning_rate=1e-3,
        **critic,
    )
    updater = Updater(config, SPACE, ACTION, bfloat16=False, device=torch.device("cpu"))
    envs = Guess(kind, size)
    shares = []
    for _ in range(num_iterations):
        batch, share = collect(updater, envs)
        updater.train_iteration(batch, 0.0)
        shares.append(share)
    return shares


def main() -> None:
    flags = cli.parse_flags(Flags, "reward_sizes.py", "Train with rewards of seven sizes, and draw what is learned.")
    with cli.exit_status():
        require_format(flags.out)
    torch.set_num_threads(1)
    figure = Figure(figsize=(9, 7), layout="constrained")
    panels = figure.subplots(len(CRITICS), len(NUM_STEPS), sharex=True, sharey=True, squeeze=False)
    env_steps = [ROLLOUT * NUM_ENVS * (iteration + 1) for iteration in range(flags.iterations)]
    for row, (name, critic) in zip(panels, CRITICS.items(), strict=True):
        for panel, kind in zip(row, NUM_STEPS, strict=True):
            for idx, size in enumerate(SIZES):
                shares = curve(kind, size, critic, flags.iterations)
                color, width = colormaps["viridis"](idx / len(SIZES)), len(SIZES) - idx  # all of one place stay visible
                panel.plot(env_steps, shares, color=color, linewidth=width, linestyle="-", label=f"{size:g}")
                print(f"{name}, {kind}, {size:g}: {shares[flags.iterations // 2]:.2f}, {shares[-1]:.2f}", flush=True)
            panel.set_title(f"{kind}\n{name}")
            panel.set_xticks([0, 5_000, 10_000, 15_000])
    panels[-1][1].set_xlabel("env steps")
    panels[1][0].set_ylabel("return, as a share of the best")
    figure.legend(*panels[0][0].get_legend_handles_labels(), title="best return", loc="outside right center")
    save(figure, flags.out)
    print(flags.out)


if __name__ == "__main__":
    main()
