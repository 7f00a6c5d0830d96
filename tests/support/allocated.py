"""The memory of a run and the arguments of its learners, for tests that start no process."""

import dataclasses

from sf.run.children.roles.learner import LEARNER
from sf.run.children.roles.role import Start
from sf.run.children.roles.table import counts
from sf.run.learner_orders import Links
from sf.run.memory import RunMemory
from sf.run.planning import make_plan
from sf.storage.run_dir import RunDir


def allocate(config, path):
    plan = make_plan(config)
    return RunMemory.allocate(plan, RunDir(path), counts(plan))


def learner_args(memory, policy_id=0, resumed_steps=None, **replaced):
    """replaced: fields of the arguments that are to be others."""
    steps = resumed_steps or [0] * memory.plan.num_policies
    start = Start(policy_id, 0, memory, Links(), steps, lambda policy_id: {})
    return dataclasses.replace(LEARNER.arguments(start), **replaced)
