"""`sf-record`: episodes of any player as a data set to learn from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro

from sf.envs import EnvSpec, describe
from sf.envs.errors import UsageError
from sf.metrics.readable import number
from sf.tools.commands import cli
from sf.tools.commands.policy_flags import ManyEpisodesFlags

if TYPE_CHECKING:
    from sf.evaluation.recording import Finished
    from sf.evaluation.task import EvaluationTask

_WHO = ("player", "env", "against", "policy", "checkpoint", "deterministic", "override")  # of the flags


@dataclass(frozen=True)
class RecordFlags(ManyEpisodesFlags):
    """Choose who plays, and where the data set goes."""

    player: tyro.conf.Positional[str]
    """A run, a checkpoint, the folder of a policy, hf:USER/NAME or zoo/NAME, or a player of --env: random,
    search:N:RUN, openspiel:mcts:N, gtp:COMMAND, bot:NAME, or module:Name."""

    to: str
    """Name of the Minari data set: (GROUP/)NAME-vNUMBER, for example connect-four/mcts-v0. It is kept where Minari
    keeps them: ~/.minari/datasets, or MINARI_DATASETS_PATH."""

    env: str | None = None
    """The environment, where the player is no trained policy."""

    against: tuple[str, ...] = ()
    """Others who play in a match, and are not recorded, as in sf-eval. Default: the player against itself."""


def main() -> None:
    """Record; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        RecordFlags,
        "sf-record",
        "Record episodes of a player as a Minari data set. Example: sf-record train_dir/doom_basic --to doom/basic-v0",
    )
    with cli.exit_status():
        _run(flags)


def _run(flags: RecordFlags) -> None:
    from sf.evaluation.recording import Recording  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.evaluation.task import RecordedTo, evaluate  # noqa: PLC0415

    task, num_own = _task(flags)
    spec = describe(task.env, dataclasses.replace(task.options, advice=()))  # what a policy sees
    recording = Recording(flags.to, task.env, spec, {name: getattr(flags, name) for name in _WHO})
    done = recording.count()
    print(f"{size_text(_bytes_per_step(spec))} a step{_at_most(spec, flags.episodes)}", flush=True)
    if done:
        print(f"goes on after {done:,} recorded episodes", flush=True)
    if done < flags.episodes:
        to = RecordedTo(recording.directory, num_own, prefix=f"{done:08d}")
        more = dataclasses.replace(task, num_episodes=flags.episodes - done, seed=flags.seed + done, recorded=to)
        for sentence in evaluate(more, cli.EpisodeProgress(lambda: spec.time_limit)).remarks.values():
            print(sentence)
    say_finished(flags.to, recording.finish(flags.player, "sf-record"))
    print(f"train: sf-train --env {task.env} --demonstrations {flags.to} --bc_steps 5000")


def say_finished(dataset_id: str, made: Finished) -> None:
    print(
        f"{dataset_id}: {made.num_episodes:,} episodes, {made.num_steps:,} steps, mean return "
        f"{number(made.mean_return)}, {size_text(made.num_bytes)}\n{made.path}"
    )


def _task(flags: RecordFlags) -> tuple[EvaluationTask, int]:
    """Returns what to play, and how many of the players, the first ones, are recorded."""
    from sf.evaluation.play import opponents  # noqa: PLC0415
    from sf.evaluation.play.contestants import contest_in, find_contest  # noqa: PLC0415
    from sf.evaluation.play.opponents import Opponent  # noqa: PLC0415
    from sf.evaluation.task import EvaluationTask  # noqa: PLC0415

    if opponents.is_name(flags.player):
        if flags.env is None:
            raise UsageError(f"player is {flags.player}, which plays what you name: add --env NAME")
        contest = contest_in(flags.env, (flags.player, *flags.against), flags.overrides, flags.trust)
        num_own = 1
    else:
        if flags.env is not None:
            raise UsageError("env is for players that are no trained policy: leave it out, or use --override")
        named = Path(flags.player)
        contest = find_contest(named, flags.against, flags.checkpoint, flags.policy, flags.overrides, flags.trust)
        contest = contest.searching(flags.asked_search)
        num_own = contest.num_own
    env = contest.config.run.env
    options = opponents.with_advice((flags.player,), contest.options)  # what a bot does is what it says
    unheard = [name for name in options.advice if name not in describe(env, contest.options).advisers]
    if unheard:
        raise UsageError(f"player is {flags.player}, which acts inside of {env} and does not say how: record another")
    players = {
        name: dataclasses.replace(each, options=options) if isinstance(each, Opponent) else each
        for name, each in contest.players.items()
    }
    task = EvaluationTask(
        env=env,
        options=options,
        players=players,
        num_episodes=flags.episodes,
        seed=flags.seed,
        deterministic=flags.deterministic,
        num_workers=flags.num_workers,
        num_envs_per_worker=flags.num_envs_per_worker,
        roles=contest.roles(describe(env, contest.options)),
    )
    return task, num_own


def _bytes_per_step(spec: EnvSpec) -> int:
    boxes: list[Any] = list(spec.actor_obs_space.values())
    return sum(box.dtype.itemsize * int(np.prod(box.shape or ())) for box in boxes) + 16


def _at_most(spec: EnvSpec, num_episodes: int) -> str:
    if spec.time_limit is None:
        return ""
    most = size_text(spec.time_limit * num_episodes * _bytes_per_step(spec))
    return f", at most {most} for {num_episodes:,} episodes of {spec.time_limit:,} steps"


def size_text(num: int) -> str:
    """Returns a size for people, such as 3.4 MiB."""
    size = float(num)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
