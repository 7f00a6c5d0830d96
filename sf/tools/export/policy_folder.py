"""A trained policy as a folder for others: its weights, its configuration, and a card with its score."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sf import envs
from sf.envs import EnvSpec
from sf.evaluation.play.named_checkpoint import config_of, find_checkpoint
from sf.evaluation.play.opponents import RANDOM, Opponent
from sf.evaluation.results import Result
from sf.evaluation.statistics import Statistics
from sf.evaluation.task import EvaluationTask, evaluate
from sf.metrics.system_info import read_starts
from sf.storage import checkpoint, output_file
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.storage.zoo import CARD, CONFIG, WEIGHTS
from sf.storage.zoo.folder import Precision, contents, without_training_state
from sf.system.machine.cores import num_usable_cores
from sf.tools.export.card import FRONT_MATTER, Score, Subject, card

INSTEAD_OF_CARD = "--out FOLDER without --card"
"""What to name where the run takes no card."""

_DEPTH = 4  # folders around a checkpoint, among which is its run


@dataclass(frozen=True)
class ScoredPolicy:
    """A policy without what only training needs, and what its episodes have shown.

    run: that the policy comes from; None if its files are not around it. against_random: results against random moves;
    none in an environment of one agent, or if every match is a draw, as where agents share their rewards. settings: of
    the evaluation, as flags of `sf-eval`.
    """

    policy: Checkpoint
    precision: Precision
    run: RunDir | None
    statistics: dict[str, Statistics]
    against_random: list[Result]
    spec: EnvSpec
    deterministic: bool
    settings: tuple[str, ...]

    @classmethod
    def of(
        cls,
        saved: Checkpoint,
        file: Path,
        precision: Precision,
        num_episodes: int,
        deterministic: bool,
        on_progress: Callable[[int, int], None],
    ) -> ScoredPolicy:
        """Play the episodes with the weights as they will be shipped. file: of the checkpoint.

        Raises ValueError where the policy is of another version or has no episode, RuntimeError where a worker fails.
        """
        policy = without_training_state(saved, precision)
        config = config_of(saved, file)
        spec = envs.describe(config.run.env, config.environment)
        if config.population.policy_of is not None:
            raise ValueError(
                f"{file} is a policy for a role (policy_of), which a card with the score of one policy cannot show: "
                "write an .onnx or a .pt2 file"
            )
        num_workers = num_usable_cores()
        task = EvaluationTask(
            env=config.run.env,
            options=config.evaluated_environment,
            players={str(file): policy},
            num_episodes=num_episodes,
            objective=config.population.pbt_target_objective,
            deterministic=deterministic,
            num_workers=num_workers,
        )
        statistics = evaluate(task, on_progress).statistics(0)
        if not statistics:
            raise ValueError(f"{file} was not evaluated, because its agents joined no match: the card needs a score")
        results = _against_random(task, spec, on_progress) if spec.num_agents > 1 else []
        settings = ("--episodes", str(num_episodes), "--num_workers", str(num_workers))
        return cls(
            policy=policy,
            precision=precision,
            run=next((RunDir(parent) for parent in list(file.parents)[:_DEPTH] if _is_run(RunDir(parent))), None),
            statistics=statistics,
            against_random=results,
            spec=spec,
            deterministic=deterministic,
            settings=(*settings, *(("--deterministic", "true") if deterministic else ())),
        )

    def card(self, address: str, license: str | None) -> str:
        """address: what a user names to play it. license: of the weights, None where the user states none."""
        num_bytes = len(checkpoint.encode(self.policy))
        subject = Subject(
            address=address,
            state=self.policy.state,
            frameskip=self.spec.frameskip,
            starts=[] if self.run is None else read_starts(self.run),
            as_named={} if self.run is None else _flags_of(self.run),
            weights=f"{num_bytes / 1e6:.2f} MB, {self.precision}",
            license=license,
        )
        command = shlex.join(["sf-eval", address, *self.settings])
        score = Score(self.statistics, self.deterministic, self.spec.num_agents, command, self.against_random)
        return card(subject, score)

    def files(self, address: str, license: str | None) -> dict[str, bytes]:
        """The folder, by name."""
        return contents(self.policy, self.card(address, license))


def _against_random(task: EvaluationTask, spec: EnvSpec, on_progress: Callable[[int, int], None]) -> list[Result]:
    """Plays what `sf-eval --against random` plays. Returns nothing where nobody wins, as among agents that help each
    other."""
    opponent = Opponent(RANDOM, task.env, task.options, spec.native_obs_space, spec.action_space)
    evaluation = evaluate(replace(task, players={**task.players, RANDOM: opponent}), on_progress)
    return evaluation.results_against(0, 1) if evaluation.has_winners else []


def require_folder(folder: Path) -> None:
    """Raises ValueError before the work if `folder` cannot be written, or holds links, a README of the user's own
    or something else than a policy."""
    for name in (CARD, WEIGHTS, CONFIG):
        output_file.require_writable("out", folder / name, is_named=False)
    if any(folder.iterdir()) and not _is_policy(folder / WEIGHTS):
        raise ValueError(f"{folder} exists and is not an exported policy: name another --out")
    _require_own_card(folder / CARD, "another --out")


def _is_policy(weights: Path) -> bool:
    """Other programs call their weights the same."""
    try:
        find_checkpoint(weights)
    except ValueError:
        return False
    return True


def card_of_run(run: Path, has_folder: bool = False) -> Path:
    """Returns the path of the card of a run. has_folder: whether a folder with a card is written, too.

    Raises ValueError where `run` is none, or has a README of the user's own, or a link in its place.
    """
    if not RunDir(run).config.is_file() or (run / WEIGHTS).is_file():
        instead = "leave --card out, as the folder has a card" if has_folder else "name --out FOLDER, which has a card"
        raise ValueError(f"card is true, but {run} is not a run directory: {instead}")
    path = run / CARD
    output_file.require_writable("card", path, is_named=False, instead=INSTEAD_OF_CARD)
    _require_own_card(path, INSTEAD_OF_CARD)
    return path


def _require_own_card(path: Path, instead: str) -> None:
    if path.exists() and not path.read_bytes().startswith(FRONT_MATTER.encode()):
        raise ValueError(f"{path} was not written by sf-export, and would be overwritten: move it, or name {instead}")


def _is_run(run: RunDir) -> bool:
    return run.system.is_file() or run.config.is_file()


def _flags_of(run: RunDir) -> Mapping[str, Any]:
    """Returns the flags of config.yaml; none if it is broken, as the checkpoint has all flags, too."""
    try:
        return run.saved_flags() or {}
    except ValueError:
        return {}
