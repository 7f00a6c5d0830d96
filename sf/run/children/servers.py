"""The fork servers of a run, with the modules that each imports for the roles that name it.

They start before the parent imports torch, which the roles need: so this module imports no role.
"""

from __future__ import annotations

from sf.system.processes.fork_servers import ForkServer, allow_many_descriptors

# The optimizer imports torch._dynamo when it is first used, which takes a second.
NETWORKS = ForkServer(
    ["torch._dynamo", "sf.learner.worker", "sf.policy.worker", "sf.league.players.worker", "sf.evaluation.evaluator"]
)
SIMULATORS = ForkServer(["sf.rollout.worker"])


def start_fork_servers() -> None:
    """Start both, the slowest first."""
    allow_many_descriptors()
    NETWORKS.ensure_running()
    SIMULATORS.ensure_running()
