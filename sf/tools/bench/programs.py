"""The programs of a run, made before it is measured: a run of some seconds would be over before it had them."""

from __future__ import annotations

import time
from typing import Literal

import torch

from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.compiled import compiled_step
from sf.learner.compiled.compiled_step import CompiledStep
from sf.learner.update import Updater
from sf.model.compiled_acting import CompiledActing, acting_of
from sf.model.inference import inference_model
from sf.run.plan import Plan
from sf.system import gpu
from sf.system.messages import say
from sf.system.native import kernels

_LOOKS_EVERY_S = 0.1


def are_made(plan: Plan) -> bool:
    """Returns whether a run has programs: an asynchronous one on a CPU that has a compiler."""
    is_compiled = plan.device == gpu.HOST and plan.config.sampler.async_rl and plan.config.model.compile is not False
    return is_compiled and kernels.why_not() is None


def make_programs(plan: Plan) -> bool:
    """Make those that are not there yet, which takes half a minute of a core each. Returns whether all are there then.

    Tells the user before that takes its time, and when a program is there or cannot be made.
    """
    if not are_made(plan):
        return True
    beside = [each for each in (_policys_step(plan), _learners_step(plan)) if each is not None]
    try:
        if not all(each.is_settled for each in beside):
            say("networks are compiled first, once for each: half a minute of a core or more")
        while not all(each.is_settled for each in beside):
            time.sleep(_LOOKS_EVERY_S)
            for each in beside:
                each.look()
        return all(each.has_program for each in beside)
    finally:
        for each in beside:
            each.close()


def _policys_step(plan: Plan) -> CompiledActing | None:
    model, spec = plan.config.model, plan.networks[0].spec
    action_spec = ActionSpec.of(spec.action_space)
    precision: Literal["bfloat16", "float32"] = "bfloat16" if plan.bfloat16 else "float32"
    network = inference_model(model, spec.obs_space, action_spec, precision, plan.device)
    acting = acting_of(network, model, spec, plan.bfloat16, plan.device, begins_after_s=0.0)
    return acting if isinstance(acting, CompiledActing) else None


def _learners_step(plan: Plan) -> CompiledStep | None:
    config, spec = plan.config, plan.networks[0].spec
    if not compiled_step.is_for(config.learner, has_memory=plan.state_size > 0):
        return None
    obs_space, action_spec = spec.obs_space, ActionSpec.of(spec.action_space)
    example = Batch.example(spec)
    step = CompiledStep(config, obs_space, action_spec, plan.bfloat16, example, begins_after_s=0.0)
    Updater(config, obs_space, action_spec, plan.bfloat16, torch.device(plan.device), faster_step=step)
    return step
