"""The study of a search: its file, how it samples and prunes, and what may not change while it goes on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from sf.envs.errors import UsageError
from sf.storage import text_files
from sf.tools.tune.search import Search

FILE = "study.journal"
_FINGERPRINT = "search"
_UNFIT = "unfit"  # of a trial whose flags do not go together
_NUM_RUNGS = 20
_RUNGS_BEFORE_PRUNING = 4
_TRIALS_BEFORE_PRUNING = 5
_TRIALS_BEFORE_IMPORTANCE = 5  # of two, every flag in which they differ would be the reason


def rungs(end: int) -> list[int]:
    """Env steps at which trials are compared, for runs that end at `end`."""
    return [end * k // _NUM_RUNGS for k in range(1, _NUM_RUNGS)]


def open_study(search: Search, directory: Path, end: int, seed: int, parallel: int) -> optuna.Study:
    """The study in `directory`, begun if there is none. Raises UsageError where it is one of another search, or its
    file cannot be read, or is damaged.

    end: env steps of a run. seed: of the sampler, with the number of trials that are there. parallel: trials at once.
    """
    path = directory / FILE
    try:
        storage = JournalStorage(_Journal(path))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}): restore it from a copy, or move {directory} away to start a new search"
        ) from None
    # Optuna tells its users what is experimental in it, and every trial.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    study = optuna.create_study(
        storage=storage,
        study_name=directory.name,
        direction=search.direction,
        pruner=_pruner(search, end),
        load_if_exists=True,
    )
    # A search that goes on draws other numbers than those that it has drawn already.
    seeds = np.random.SeedSequence((seed, len(study.get_trials(deepcopy=False))))
    study.sampler = _sampler(search, int(seeds.generate_state(1)[0]), parallel)
    before = study.user_attrs.get(_FINGERPRINT)
    if before is None:
        study.set_user_attr(_FINGERPRINT, search.fingerprint())
    elif before != search.fingerprint():
        raise UsageError(
            f"{path} belongs to a study with other flags, values, seeds or another objective: rename the file of the "
            "search to start a new study, or move that directory away"
        )
    return study


def completed(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))


def importances(study: optuna.Study) -> dict[str, float]:
    """Share of each flag in what tells the better trials from the rest (PED-ANOVA, Watanabe et al. 2023).

    Empty where there are too few trials to say, or all are as good.
    """
    values = [trial.value for trial in completed(study)]
    if len(values) < _TRIALS_BEFORE_IMPORTANCE or len(set(values)) == 1:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of trials that are hardly better than others
        try:
            return optuna.importance.get_param_importances(
                study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
            )
        except (ValueError, RuntimeError):
            return {}


def tell_unfit(study: optuna.Study, trial: optuna.Trial, why: str) -> None:
    """The flags of this trial do not go together. It does not count."""
    trial.set_user_attr("failure", why)
    trial.set_user_attr(_UNFIT, True)
    study.tell(trial, state=optuna.trial.TrialState.FAIL)


def is_unfit(trial: optuna.trial.FrozenTrial) -> bool:
    return _UNFIT in trial.user_attrs


def num_asked(study: optuna.Study) -> int:
    """Trials that count, those under way included."""
    waiting = optuna.trial.TrialState.WAITING  # chosen, and not asked for yet
    return sum(trial.state != waiting and not is_unfit(trial) for trial in study.get_trials(deepcopy=False))


def unfinished(study: optuna.Study) -> Sequence[optuna.Trial]:
    """Trials that an earlier start of the search has left: their runs go on."""
    left = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
    return [optuna.Trial(study, trial._trial_id) for trial in left]  # there is no public way back to a trial


class _Journal(JournalFileBackend):
    """The file of a study, one JSON object a line.

    It is made if it is missing. The part of a last line that a kill or a full disk left is removed.
    """

    def __init__(self, path: Path) -> None:
        text_files.append(path, b"")
        super().__init__(str(path))
        self._path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Raises UsageError where the file cannot be written."""
        try:
            super().append_logs(logs)
        except OSError as error:
            raise UsageError(
                f"{self._path} cannot be written ({error.strerror}): the search ends, and the same command goes on "
                "when there is room again"
            ) from None


def _sampler(search: Search, seed: int, parallel: int) -> optuna.samplers.BaseSampler:
    if search.sampler == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    if search.sampler == "gp":
        return optuna.samplers.GPSampler(seed=seed)
    # Trials at once shall not all try the same.
    return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=parallel > 1)


def _pruner(search: Search, end: int) -> optuna.pruners.BasePruner:
    steps = rungs(end)
    if search.pruner == "none":
        return optuna.pruners.NopPruner()
    if search.pruner == "hyperband":
        return optuna.pruners.HyperbandPruner(min_resource=steps[_RUNGS_BEFORE_PRUNING - 1], max_resource=end)
    return optuna.pruners.MedianPruner(
        n_startup_trials=_TRIALS_BEFORE_PRUNING, n_warmup_steps=steps[_RUNGS_BEFORE_PRUNING - 1]
    )
