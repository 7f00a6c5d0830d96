"""Finds the teachers that `--teacher` names, and keeps them with the run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.envs.errors import UsageError
from sf.envs.group import ADVICE
from sf.evaluation.play import opponents
from sf.evaluation.play.named_checkpoint import find_trusted
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.player import PlayerInGroup
from sf.evaluation.play.teachers import Adviser, Teachers
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.shared.teaching import PARAMS
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.zoo.places import located

SELF = "self"
Taught = Checkpoint | Opponent | Adviser
_DIRECTORY = "teachers"  # in that of the run


def kept_at(run_dir: Path, source: str) -> Path:
    """Returns where the weights of a teacher are, for as long as the run is there. source: as `--teacher` names it."""
    return run_dir / _DIRECTORY / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.safetensors"


def with_teacher_rows(config: Config, spec: EnvSpec) -> EnvSpec:
    """Returns the spec with room for what teachers say, where there are any."""
    return replace(spec, optional_fields=(*spec.optional_fields, PARAMS)) if config.learner.teacher else spec


def with_advice(config: Config) -> Config:
    """Returns the configuration with which the bots among the teachers say what they would do, to nobody else."""
    if not any(source.startswith(opponents.BOT) for source in config.learner.teacher):
        return config
    advice = opponents.with_advice(config.learner.teacher, config.environment).advice
    hidden = tuple(dict.fromkeys((*config.model.teacher_obs, f"{ADVICE}*")))
    return config.replace(advice=advice, teacher_obs=hidden)


def find_teachers(config: Config, specs: Sequence[EnvSpec], run_dir: Path) -> list[Taught]:
    """Finds teachers in their order. A run that goes on takes its own copies. specs: of the policies, [P].

    Raises UsageError where one cannot be found, names code that nobody vouches for, sees what the environment does not
    show, or has other actions.
    """
    found: list[Taught] = []
    for source in config.learner.teacher:
        if source.startswith(opponents.BOT):
            found.append(Adviser(source.removeprefix(opponents.BOT)))
            continue
        if opponents.is_name(source):
            found.append(_opponent(source, config, specs[0]))
            continue
        copy, named = kept_at(run_dir, source), source
        if source == SELF:
            if config.run.init_from is None:
                raise UsageError("teacher is self, the policy that the run begins from: name that with --init_from")
            named = str(config.run.init_from)
        goes_on = config.run.restart_behavior == "resume" and copy.is_file()
        try:
            file, saved = find_trusted(copy if goes_on else located(Path(named)), is_trusted=config.run.trust)
            policy = TorchPolicy(saved, str(file))
        except ValueError as error:
            raise UsageError(f"teacher names {source!r}: {error}") from None
        for spec in specs:
            _require_fits(policy, source, config.run.env, spec)
        found.append(saved)
    return found


def keep(sources: Sequence[str], found: Sequence[Taught], run_dir: Path) -> Teachers:
    """Writes the weights of policies into the directory of the run, where they are not yet. Returns all teachers as the
    policy workers load them. sources: as `--teacher` names them."""
    each: list[Path | Opponent | Adviser] = []
    for source, teacher in zip(sources, found, strict=True):
        if isinstance(teacher, Opponent | Adviser):
            each.append(teacher)
            continue
        path = kept_at(run_dir, source)
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(path, teacher)
        each.append(path)
    return Teachers(each)


def _opponent(source: str, config: Config, spec: EnvSpec) -> Opponent:
    spaces = spec.native_obs_space, spec.action_space
    opponent = Opponent.named(source, config.run.env, config.environment, *spaces, config.run.trust)
    player = opponent.player()
    if isinstance(player, PlayerInGroup):
        player.actors(1, seed=0)  # one that needs the environments is refused now, and not in a policy worker
    if ActionSpec.of(spec.action_space).num_continuous:
        raise UsageError(
            f"teacher names {source!r}, a player without probabilities, and {config.run.env} has continuous actions: "
            "name a trained policy"
        )
    return opponent


def _require_fits(policy: TorchPolicy, source: str, env: str, spec: EnvSpec) -> None:
    if policy.action_space != spec.action_space:
        raise UsageError(
            f"teacher names {source!r}, whose actions are {policy.action_space}, and those of {env} are "
            f"{spec.action_space}: name one with the same"
        )
    for key, box in policy.flat_obs_space.items():
        if spec.obs_space.spaces.get(key) != box:
            raise UsageError(
                f"teacher names {source!r}, which sees {key!r} as {box}, and {env} does not show it so: name one that "
                "was trained on this environment"
            )
