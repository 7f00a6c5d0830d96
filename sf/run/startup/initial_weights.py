"""What the policies of a run begin with: their own last checkpoints where it is resumed, else fresh weights, or those
of another run (`--init_from`).

Those of another run the parent writes as the first checkpoint of each policy, with a fresh optimiser and all counters
at 0, before any process starts. So a learner goes on from them however it comes to begin: first of all, in the place of
one that died before it had trained, after a rollback, or when the run is resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import torch

from sf.config import Config
from sf.envs import ActionSpec
from sf.evaluation.play.named_checkpoint import find_checkpoint, num_policies, require_whole_state
from sf.league.players.snapshots import beginning_of
from sf.learner.checkpoints.content import make_checkpoint
from sf.learner.checkpoints.tensors import RNG
from sf.learner.update import Updater
from sf.run.plan import Plan
from sf.run.startup.compatibility import require_fits
from sf.storage import checkpoint, checkpoint_names
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.storage.zoo.places import located
from sf.surgery.operated import Operated, Request
from sf.surgery.subject import Subject
from sf.surgery.table import report
from sf.system.messages import nobody, said_to, say

_GO_ON = "leave flags and spaces as they were, name another --experiment, or start over with --restart_behavior restart"
_OF_THE_UPDATER = ("version", "learning_rate", "max_learning_rate", "skipped_updates")


class CompleteRunError(ValueError):
    """The run has all that it was to have, so there is nothing to go on with."""


def saved_env_steps(plan: Plan, run_dir: RunDir) -> list[int | None]:
    """Of each policy, None where it has no checkpoint. Raises ValueError where what is saved cannot be gone on with."""
    saved_flags = run_dir.saved_flags() or {}
    num_policies = saved_flags.get("num_policies", 1)
    if saved_flags and num_policies != plan.num_policies:
        raise ValueError(
            f"num_policies is {plan.num_policies}, but the run {run_dir.path} has {num_policies}: keep that number, "
            "name another --experiment, or start over with --restart_behavior restart"
        )
    env_steps: list[int | None] = []
    seconds, is_cloned = 0.0, not plan.config.learner.bc_steps
    for policy_id in range(plan.num_policies):
        file = checkpoint.latest(run_dir.checkpoints_of(policy_id, plan.num_policies))
        if file is None:
            env_steps.append(None)
            continue
        saved = checkpoint.load(file)
        _require_all_parts(saved, file)
        require_fits(saved, file, plan, _GO_ON, policy_id)
        _require_same_optimizer(saved, file, plan)
        env_steps.append(checkpoint_names.env_steps(file))
        seconds = max(seconds, saved.state["seconds"])
        is_cloned |= saved.state.get("cloning", {}).get("is_over", False)
    taken = sum(steps or 0 for steps in env_steps)
    if taken or is_cloned:
        _require_time_left(plan, run_dir, taken, seconds)
    return env_steps


def initial_checkpoints(plan: Plan, policy_ids: Collection[int]) -> dict[int, Checkpoint]:
    """What these policies begin with, by policy id; nothing where `init_from` names nothing. Only reads.

    Of a run with S policies, policy i takes that with number i modulo S. Raises ValueError where there is no whole
    checkpoint, or its observations, actions or network are not those of `plan`.
    """
    source, place = plan.config.run.init_from, plan.place
    if source is None or (
        plan.config.run.surgery and not place.saves
    ):  # one rank operates, and the others get the result
        return {}
    try:
        return {policy_id: _begun_from(source, policy_id, plan) for policy_id in policy_ids}
    except (OSError, FloatingPointError) as error:
        raise ValueError(f"init_from is {source}, which cannot be used ({error}): name another") from None


def write(plan: Plan, run_dir: RunDir, initial: Mapping[int, Checkpoint]) -> None:
    """Make each the first checkpoint of its policy. Raises ValueError where it cannot be written."""
    for policy_id, saved in initial.items():
        directory = run_dir.checkpoints_of(policy_id, plan.num_policies)
        with run_dir.refused_if_unwritable():
            checkpoint.save(directory, saved, at_env_steps=0, keep=plan.config.run.keep_checkpoints)


def write_beginnings(plan: Plan, run_dir: RunDir) -> None:
    """Write the checkpoints from which exploiters begin anew, unless they are there. Raises ValueError if it fails."""
    for policy_id in plan.targets:
        path = beginning_of(run_dir.path, policy_id)
        if path.exists():
            continue
        source = plan.config.run.init_from
        with said_to(nobody):
            saved = _fresh(plan, policy_id) if source is None else _begun_from(source, policy_id, plan)
        with run_dir.refused_if_unwritable():
            path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(path, saved)


def of_resumed(config: Config, run_dir: RunDir) -> Config:
    """The configuration of a run that has checkpoints of its own: `init_from` stays what it began with."""
    if config.run.init_from is not None:
        say(f"init_from is ignored: {run_dir.path} resumes from its own checkpoints")
    return config.replace(init_from=(run_dir.saved_flags() or {}).get("init_from"))


def _require_all_parts(saved: Checkpoint, file: Path) -> None:
    """Raises ValueError where the learner would miss something."""
    require_whole_state(saved, file)
    updater = saved.state.get("updater")
    numbers = [saved.state.get(name) for name in ("trained_steps", "seconds")]
    numbers += [updater.get(name) if isinstance(updater, dict) else None for name in _OF_THE_UPDATER]
    if not _has_random_numbers(saved) or not all(isinstance(number, int | float) for number in numbers):
        raise ValueError(
            f"{file} cannot be resumed, because a part of the learner's state is missing: remove it to resume from the "
            "checkpoint before it, or start a new run from its weights (--init_from)"
        )


def _has_random_numbers(saved: Checkpoint) -> bool:
    """Whether it has their state, and one that PyTorch can go on from."""
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_rng_state(saved.tensors[RNG])
        except (KeyError, RuntimeError, TypeError):
            return False
    return True


def _require_same_optimizer(saved: Checkpoint, file: Path, plan: Plan) -> None:
    """Raises ValueError where the moments in the checkpoint are those of another optimiser."""
    theirs, own = saved.state["config"].get("optimizer", "adam"), plan.config.learner.optimizer
    if own != theirs:
        raise ValueError(
            f"optimizer is {own}, but {file} was trained with {theirs}: keep {theirs}, or start another --experiment "
            "from these weights (--init_from)"
        )


def _require_time_left(plan: Plan, run_dir: RunDir, env_steps: int, seconds: float) -> None:
    run = plan.config.run
    if env_steps >= plan.target_env_steps:
        flag = "train_for_env_steps" if plan.target_env_steps == run.train_for_env_steps else "train_for_env_frames"
        raise CompleteRunError(
            f"the run {run_dir.path} is finished ({env_steps} env steps): raise --{flag} to continue it, name another "
            "--experiment, or start over with --restart_behavior restart"
        )
    if seconds >= run.most_seconds:
        raise CompleteRunError(
            f"the run {run_dir.path} is finished ({seconds:.0f} seconds): raise --train_for_seconds (or None: "
            "no limit) to continue it, name another --experiment, or start over with --restart_behavior restart"
        )


def _begun_from(source: str, policy_id: int, plan: Plan) -> Checkpoint:
    try:
        path = located(source)
        file, saved = find_checkpoint(path, policy_id=policy_id % num_policies(path))
        if plan.config.run.surgery:
            return _operated_on(saved, file, plan, policy_id)
        remedy = (
            "take a run on the same environment, and give the flags of the model that its run had, or add --surgery "
            "true, which moves what it has learned into another network"
        )
        require_fits(saved, file, plan, remedy, policy_id)
    except ValueError as error:
        raise ValueError(f"init_from: {error}") from None
    initial = _fresh(plan, policy_id, saved.weights)
    say(f"policy {policy_id} starts from the weights of {file}")
    return initial


def _operated_on(saved: Checkpoint, file: Path, plan: Plan, policy_id: int) -> Checkpoint:
    network, run = plan.networks[policy_id], plan.config.run
    subject = Subject.of_spec(plan.config.model, network.spec, plan.teams)
    request = Request(subject, plan.config, policy_id, run.new_choice_probability, run.inexact)
    operated = Operated(saved, str(file), request)
    say(report(file, operated))
    made = operated.checkpoint()
    return _fresh(plan, policy_id, made.weights, made)


def _fresh(
    plan: Plan, policy_id: int, weights: dict[str, torch.Tensor] | None = None, moments: Checkpoint | None = None
) -> Checkpoint:
    """With all counters at 0. weights: None: untrained ones. moments: has those of the optimiser; None: a fresh one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.config.run.seed + policy_id)  # as its learner does where it begins from nothing
        spec = plan.networks[policy_id].spec
        action_spec = ActionSpec.of(spec.action_space)
        updater = Updater(plan.config, spec.obs_space, action_spec, bfloat16=False, device=torch.device("cpu"))
        if weights is not None:
            updater.model.load_state_dict(weights)
        if moments is not None:
            steps = moments.state.get("updater", {}).get("steps_since_surgery")
            tensors = {**moments.tensors, RNG: torch.get_rng_state()}
            updater.load(tensors, {**updater.state(), "steps_since_surgery": steps})
        return make_checkpoint(updater, plan.config, spec)
