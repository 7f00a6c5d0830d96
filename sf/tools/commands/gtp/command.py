"""`sf-gtp`: a policy plays Go with another program, by the Go Text Protocol."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from sf.envs.errors import UsageError
from sf.tools.commands import cli
from sf.tools.commands.policy_flags import SearchFlags


@dataclass(frozen=True)
class GtpFlags(SearchFlags):
    """Choose which policy plays, and how."""

    run: tyro.conf.Positional[Path]
    """A run directory of openspiel:go, a checkpoint, the folder of a policy, hf:USER/NAME, or zoo/NAME."""

    policy: int | None = None
    """Number of the policy that plays, in a run with several. Default: the first."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Device of the network."""


def main() -> None:
    """Play until quit; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        GtpFlags,
        "sf-gtp",
        "Play Go with any program or window that speaks the Go Text Protocol, through standard input and output. "
        "Example: sf-gtp train_dir/openspiel_go --search 200",
    )
    with cli.exit_status():
        _run(flags)


def _run(flags: GtpFlags) -> None:
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # the other program would take all that is printed for answers
        from sf.envs import describe  # noqa: PLC0415  torch is slow to import: not for --help
        from sf.evaluation.play.contestants import find_contest, require_spaces  # noqa: PLC0415
        from sf.evaluation.play.games.gtp import GO  # noqa: PLC0415
        from sf.evaluation.play.opponents import Opponent  # noqa: PLC0415
        from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
        from sf.system.processes.torch_runtime import configure, resolve_device  # noqa: PLC0415

        device = resolve_device(flags.device)
        found = find_contest(flags.run, (), flags.checkpoint, flags.policy, flags.overrides, flags.trust)
        env, options = found.config.run.env, found.options
        if env != GO:
            raise UsageError(f"{flags.run} was trained on {env}, and sf-gtp plays {GO}: name a policy of that")
        require_spaces(found.players, env, describe(env, options), options)
        name, each = next(iter(found.searching(flags.asked_search).players.items()))

        from sf.tools.commands.gtp.server import Game, serve  # noqa: PLC0415  OpenSpiel is an extra

        configure(device, num_threads=1, deterministic=True)
        player = each.player() if isinstance(each, Opponent) else TorchPolicy(each, name, device)
        serve(Game(env, options, player, flags.seed, flags.deterministic), name, sys.stdin, out)
