"""Best responses: policies that are trained against players with fixed weights, by an ordinary run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sf.config import Config
from sf.envs import UsageError
from sf.evaluation.play.named_checkpoint import find_checkpoint, find_trusted
from sf.run.startup.initial_weights import CompleteRunError
from sf.run.trainer import train
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.system.messages import said_to

_SAME_SHARE = 1e-6  # shares that differ by less are the same


class Share(NamedTuple):
    """Says how often a response meets a player, as `--players` names it.

    agents: those that the player has, as in `--player_roles`; empty: half of the sides.
    """

    player: str
    share: float
    agents: str = ""


def train_best_responses(
    config: Config,
    against: Sequence[Share],
    say: Callable[[str], None],
    on_complete: Callable[[RunDir, Config], None] = lambda run_dir, config: None,
) -> list[Checkpoint]:
    """Train the policies of a run, or go on with it, and return the latest weights of each.

    say: is told what a user should know. on_complete: is called if the run was trained to its end before. Raises
    SystemExit with 128 + the signal that ends the training, what `train` raises, and UsageError if the run that is
    there was trained against others, or does not say against whom.
    """
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    saved_flags = run_dir.saved_flags()
    if saved_flags is not None:
        _require_same_opponents(run_dir, saved_flags, against)
    elif any(run_dir.path.glob("[!.]*")):  # but for what a killed start has left
        raise UsageError(
            f"{run_dir.path} has no config.yaml, which says how this response was trained: put that file back, or move "
            "the folder away, and the same command trains the response anew"
        )
    config = config.replace(
        restart_behavior="resume",
        past_share=1.0,
        players=tuple(met.player for met in against),
        opponent_weights=tuple(met.share for met in against),
        player_roles=tuple(met.agents for met in against if met.agents),
        snapshot_every_env_steps=0,
    )
    try:
        stopped_by = train(config)["stopped_by"]
    except CompleteRunError:
        on_complete(run_dir, config)
        say(f"{run_dir.path} was trained before")
    else:
        if stopped_by in signal.Signals.__members__:
            raise SystemExit(128 + signal.Signals[stopped_by])
    with said_to(say):
        return [
            find_trusted(run_dir.path, policy_id=policy_id, is_trusted=config.run.trust)[1]
            for policy_id in range(config.population.num_policies)
        ]


def read_policy(path: Path, whose: str) -> Checkpoint:
    """Returns a policy that an earlier start has written. Raises UsageError if the file is gone or damaged.

    whose: says for the message which policy it is.
    """
    try:
        _, saved = find_checkpoint(path)
    except ValueError as error:
        raise UsageError(
            f"{path}, the policy {whose}, cannot be read ({error}): put it back, or name another --experiment"
        ) from None
    return saved


def _require_same_opponents(run_dir: RunDir, saved_flags: Mapping[str, Any], against: Sequence[Share]) -> None:
    players, weights, roles = (saved_flags.get(name) or () for name in ("players", "opponent_weights", "player_roles"))
    there, here = (
        {(Path(player).name, agents): share for player, share, agents in each}  # by its name, if it was moved, too
        for each in (zip(players, weights, roles or [""] * len(players), strict=False), against)
    )
    if there.keys() != here.keys() or any(abs(there[name] - share) > _SAME_SHARE for name, share in here.items()):
        shares, others = (
            ", ".join(f"{name} {share:.3f}" for (name, _), share in each.items()) for each in (there, here)
        )
        raise UsageError(
            f"{run_dir.path} was trained against {shares or 'nobody'}, not against {others}: move it away, or name "
            "another --experiment"
        )
