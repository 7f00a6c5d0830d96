"""The player worker as a child of a run, if fixed opponents play."""

from __future__ import annotations

from sf.evaluation.play.opponents import Opponent
from sf.league.players.snapshots import DIRECTORY
from sf.league.players.worker import PlayerWorkerArgs, player_worker
from sf.run.children.roles.role import Role, Start
from sf.run.children.servers import NETWORKS


def _player_arguments(start: Start) -> PlayerWorkerArgs:
    memory, plan = start.memory, start.memory.plan
    assert memory.seats is not None
    return PlayerWorkerArgs(
        directory=memory.run_dir.path / DIRECTORY,
        trusts=plan.config.run.trust,
        opponents={name: entrant for name, entrant in plan.entrants.items() if isinstance(entrant, Opponent)},
        spec=plan.spec,
        model=plan.config.model,
        bfloat16=plan.bfloat16,
        device=plan.device_of(0),
        num_threads=plan.policy_threads,
        seed=plan.config.run.seed,
        seed_key=(sum(start.resumed_steps), start.num_before),  # what is drawn must not repeat
        num_actors=plan.num_actors,
        seats=memory.seats,
        rows=memory.pool.arrays,
        channel=memory.channels.of_policy_worker(memory.channels.player_worker_idx),
        counters=memory.counter_row("player", start.idx),
    )


PLAYER = Role(
    name="player",
    server=NETWORKS,
    body=player_worker,
    count=lambda plan: int(plan.config.players.with_players),
    arguments=_player_arguments,
    queue=lambda memory, idx: memory.channels.requests[memory.channels.player_worker_idx],
    owes=lambda memory, idx: memory.channels.has_open_requests(memory.channels.player_worker_idx),
    recover=lambda memory, idx: memory.channels.recover_policy_worker(memory.channels.player_worker_idx),
)
