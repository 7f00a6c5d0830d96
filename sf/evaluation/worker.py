"""The evaluation worker: plays its share of the matches, with a copy of every player of its own.

Consumes   nothing but its arguments.
Produces   reports.
Waits for  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from sf import envs
from sf.arrays import SharedArrays
from sf.envs import EnvGroup, EnvOptions
from sf.envs.custom.given import GivenEnv
from sf.envs.guard import GuardedGroup
from sf.envs.remarks import handed_to
from sf.envs.seeding import env_seed, seed_process
from sf.play.episodes import Play
from sf.play.opponents import Opponent
from sf.play.player import Player
from sf.play.torch_policy import TorchPolicy
from sf.processes.reports import BegunAnew, EnvFault, EpisodesPlayed, Finished, Ready, Reports
from sf.processes.torch_runtime import configure
from sf.storage import checkpoint


@dataclass(frozen=True)
class EvaluationWorkerArgs:
    """Everything an evaluation worker needs to know."""

    env: str
    given_env: GivenEnv | None  # where `env` is the name of one that was given as an object
    options: EnvOptions
    players: Mapping[str, SharedArrays | Opponent]  # by name; of a policy `data`, the content of its checkpoint
    lineups: np.ndarray  # [M, A] of all matches, of all workers
    env_idxs: range  # its environments
    num_envs: int  # of all workers
    seed: int
    deterministic: bool
    device: str
    core: int | None  # that it is pinned to


def evaluation_worker(reports: Reports, args: EvaluationWorkerArgs) -> None:
    """Body of the process."""
    configure(args.device, num_threads=1, deterministic=True)
    players = [
        each.player()
        if isinstance(each, Opponent)
        else TorchPolicy(checkpoint.decode(each["data"].tobytes()), name, args.device)
        for name, each in args.players.items()
    ]
    seed_process(args.seed, args.env_idxs.start)
    with handed_to(reports.remark):
        _play(reports, args, players)
    reports.send(Finished())


def _play(reports: Reports, args: EvaluationWorkerArgs, players: Sequence[Player]) -> None:
    group = guarded_group(args.env, args.options, args.seed, args.env_idxs, args.core)
    try:
        play = Play(group, players, args.lineups, args.env_idxs, args.num_envs, args.seed, args.deterministic)
        reports.send(Ready())
        while not play.is_done:
            played = play.step()
            for match_idx in play.pop_begun_anew():
                reports.send(BegunAnew(match_idx))
            if played:
                reports.send(EpisodesPlayed([asdict(episode) for episode in played]))
            for fault in group.pop_faults():
                reports.send(EnvFault(**asdict(fault)))
    finally:
        group.close()


def guarded_group(env: str, options: EnvOptions, seed: int, env_idxs: range, core: int | None) -> GuardedGroup:
    """The environments with these positions, rebuilt where they fail. core: that the caller is pinned to."""

    def make(attempt: int) -> EnvGroup:
        own_seed = env_seed(seed, attempt) if attempt else seed
        return envs.make_group(env, len(env_idxs), options, seed=own_seed, first_env_idx=env_idxs.start, core=core)

    return GuardedGroup(make, env_id=env)
