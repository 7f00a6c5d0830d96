"""Reads the YAML file of a search, from which Optuna chooses.

flags:                      # of every run
  env: CartPole-v1
  num_workers: 1
  train_for_env_steps: 50000
search:                     # what is chosen
  learning_rate: {low: 0.0001, high: 0.01, log: true}
  num_epochs: {low: 1, high: 8}
  rollout: [16, 32, 64]
trials: 30
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sf.config import Config
from sf.envs.errors import UsageError
from sf.envs.field_types import checked
from sf.storage.run_records import is_number
from sf.tools.sweep.grid import SweepRun, mapping, read_yaml, require_free_flag, require_values, seeds_of

if TYPE_CHECKING:
    import optuna

_KEYS = ("flags", "search", "trials", "seeds", "objective", "direction", "sampler", "pruner")
_RANGE_KEYS = ("low", "high", "log", "step")
_MOST_TRIALS = 100_000

Sampler = Literal["tpe", "random", "gp"]
Pruner = Literal["median", "hyperband", "none"]


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included. step: None for any number between them."""

    low: float
    high: float
    log: bool
    step: float | None
    is_whole: bool

    def suggest(self, trial: optuna.trial.BaseTrial, name: str) -> Any:
        if self.is_whole:
            return trial.suggest_int(name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(name, self.low, self.high, step=self.step, log=self.log)

    @property
    def examples(self) -> list[Any]:
        """Values that the flag has to take."""
        return [int(self.low), int(self.high)] if self.is_whole else [self.low, self.high]


@dataclass(frozen=True)
class Choices:
    """Values of which one is chosen."""

    values: tuple[Any, ...]

    def suggest(self, trial: optuna.trial.BaseTrial, name: str) -> Any:
        """A study holds numbers and words only, so that lists have the names of their JSON there."""
        by_name = {_storable(value): value for value in self.values}
        return by_name[trial.suggest_categorical(name, list(by_name))]

    @property
    def examples(self) -> list[Any]:
        return list(self.values)


@dataclass(frozen=True)
class Search:
    """flags: of every run. space: what is chosen, by flag. objective: a number of a run's records.

    seeds: of each trial, whose value is the mean over them. added: flags that the command gives to every run, beside
    those of the file.
    """

    flags: Mapping[str, Any]
    space: Mapping[str, Range | Choices]
    num_trials: int
    seeds: tuple[int, ...]
    objective: str
    direction: Literal["maximize", "minimize"]
    sampler: Sampler
    pruner: Pruner
    added: Mapping[str, Any] = field(default_factory=dict)

    def suggest(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        """The flags that this trial chooses."""
        return {name: values.suggest(trial, name) for name, values in self.space.items()}

    def runs(self, number: int, chosen: Mapping[str, Any]) -> list[SweepRun]:
        """The runs of trial `number`."""
        return [
            SweepRun(
                f"trial_{number:05d}" + (f"_seed={seed}" if len(self.seeds) > 1 else ""),
                chosen,
                seed,
                {**self.flags, **self.added, **chosen, "seed": seed},
            )
            for seed in self.seeds
        ]

    def examples(self) -> list[SweepRun]:
        """Runs that between them have every bound and every choice."""
        most = max(len(values.examples) for values in self.space.values())
        return [
            self.runs(0, {n: values.examples[min(i, len(values.examples) - 1)] for n, values in self.space.items()})[0]
            for i in range(most)
        ]

    def fingerprint(self) -> str:
        """Returns a text of what may not change while a study goes on."""
        kept = {name: value for name, value in self.flags.items() if name != "num_workers"}
        space = {name: vars(values) for name, values in self.space.items()}
        return json.dumps([kept, space, self.seeds, self.objective, self.direction], default=str, sort_keys=True)


def read_search(path: Path) -> Search:
    """Raises ValueError for what is no search, and for an unknown flag or a value that it cannot have."""
    found = read_yaml(path, _KEYS)
    flags, space = (mapping(path, found, key) for key in ("flags", "search"))
    if not isinstance(flags.get("env"), str):
        raise UsageError(f"{path}: name an environment under flags, for example env: CartPole-v1")
    if not space:
        raise UsageError(f"{path}: search names nothing: for example learning_rate: {{low: 0.0001, high: 0.01}}")
    for name in (*flags, *space):
        require_free_flag(path, name)
        if name in flags and name in space:
            raise UsageError(f"{path}: {name} is under flags and under search: leave it out of one of them")
    require_values(path, flags)
    num_trials, objective = found.get("trials", 30), found.get("objective", "mean_return")
    if type(num_trials) is not int or not 1 <= num_trials <= _MOST_TRIALS:
        raise UsageError(
            f"{path}: trials is {reprlib.repr(num_trials)}: it must be a number from 1 to {_MOST_TRIALS:,}"
        )
    if not isinstance(objective, str):
        raise UsageError(f"{path}: objective is {reprlib.repr(objective)}: it must be the name of a recorded number")
    return Search(
        flags=checked(Config, flags, str(path)),
        space={name: _values(path, name, values) for name, values in space.items()},
        num_trials=num_trials,
        seeds=tuple(seeds_of(path, found.get("seeds", 1))),
        objective=objective,
        direction=_one_of(path, found, "direction", ("maximize", "minimize")),
        sampler=_one_of(path, found, "sampler", ("tpe", "random", "gp")),
        pruner=_one_of(path, found, "pruner", ("median", "hyperband", "none")),
    )


def _values(path: Path, name: str, found: Any) -> Range | Choices:
    if isinstance(found, list) and found:
        values = tuple(checked(Config, {name: value}, str(path))[name] for value in found)
        for value in values:
            require_values(path, {name: value})
        if len({_storable(value) for value in values}) < len(values):
            raise UsageError(f"{path}: {name} under search has a value twice: name each once")
        return Choices(values)
    if isinstance(found, dict) and {"low", "high"} <= set(found) <= set(_RANGE_KEYS):
        return _range(path, name, found)
    raise UsageError(
        f"{path}: {name} under search is {reprlib.repr(found)}: it must be a list of values, or low and high, for "
        "example {low: 0.0001, high: 0.01, log: true}"
    )


def _range(path: Path, name: str, found: Mapping[str, Any]) -> Range:
    def wrong(rule: str) -> UsageError:
        return UsageError(f"{path}: {name} under search is {reprlib.repr(dict(found))}: {rule}")

    bounds = [checked(Config, {name: found[key]}, str(path))[name] for key in ("low", "high")]
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in bounds):
        raise wrong("low and high must be numbers")
    low, high = bounds
    is_log, step = found.get("log", False), found.get("step")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise wrong("low must be less than high")
    if not isinstance(is_log, bool):
        raise wrong("log must be true or false")
    if is_log and low <= 0:
        raise wrong("with log, low must be greater than 0")
    if step is not None and (not is_number(step) or step <= 0 or is_log):
        raise wrong("step must be a number greater than 0, and cannot go with log")
    default = Config().flat()[name]
    is_whole = all(isinstance(bound, int) for bound in bounds) and not isinstance(default, float)
    if is_whole and step is not None and step != int(step):
        raise wrong("the step of whole numbers must be whole")
    return Range(low, high, is_log, step, is_whole)


def _storable(value: Any) -> str | int | float | bool | None:
    return value if isinstance(value, str | int | float | bool | None) else json.dumps(value, default=str)


def _one_of(path: Path, found: Mapping[str, Any], key: str, words: Sequence[Any]) -> Any:
    word = found.get(key, words[0])
    if word not in words:
        raise UsageError(f"{path}: {key} is {reprlib.repr(word)}: it must be {', '.join(words[:-1])} or {words[-1]}")
    return word
