"""What a run starts from where its flags say nothing: the configuration of the run that is resumed, or a preset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from sf import presets
from sf.config import Config
from sf.describing import describe
from sf.envs import EnvError, EnvOptions
from sf.envs.field_types import checked
from sf.run_dir import RunDir


class StartingPoint(NamedTuple):
    """What applies where a flag is not named."""

    flags: Mapping[str, Any]
    source: str  # where they come from, for messages


def make_config(**flags: Any) -> Config:
    """The configuration that `sf-train` would take from these flags: `make_config(env="doom_basic", num_workers=8)`.

    env_kwargs may be a dictionary. Raises ValueError for a flag that is unknown, or has a value that it cannot have.
    """
    flags = checked(Config, flags)
    start = starting_point(flags)
    try:
        return Config().replace(**{**start.flags, **flags})
    except ValueError as error:
        name = str(error).split(" ", maxsplit=1)[0]  # each rule's sentence begins with it
        if name in start.flags and name not in flags:
            raise ValueError(f"{start.source}: {error}") from None
        raise


def starting_point(flags: Mapping[str, Any]) -> StartingPoint:
    """The flags that apply where `flags` name none; `config` among them is the preset that they are of, if any.

    An environment that has no preset of its name is made once, for its spaces. Raises ValueError where the flags do
    not go with the run or preset, or the file of one has a value that cannot be.
    """
    run = Config().run
    flags = {name: value for name, value in flags.items() if value is not None}
    chosen = presets.load(flags["config"]) if "config" in flags else {}
    env = flags.get("env", chosen.get("env", run.env))
    experiment = flags.get("experiment") or env.replace("/", "_").replace(":", "_")
    if flags.get("restart_behavior", run.restart_behavior) == "resume":
        run_dir = RunDir.at(flags.get("train_dir", run.train_dir), experiment)
        saved = run_dir.saved_flags()
        if saved is not None:
            saved = checked(Config, saved, str(run_dir.config))
            _check_is_the_same(flags, saved, experiment)
            return StartingPoint(saved, str(run_dir.config))
    name = flags.get("config") or presets.name_for_env(env) or _preset_of_kind(env, flags)
    preset = chosen or (presets.load(name) if name else {})
    return StartingPoint({**preset, "env": env, "config": name}, str(name))


def _preset_of_kind(env: str, flags: Mapping[str, Any]) -> str | None:
    options = {field.name: flags[field.name] for field in dataclasses.fields(EnvOptions) if field.name in flags}
    try:
        return presets.name_for_spec(describe(env, EnvOptions(**options)))
    except (ValueError, EnvError):
        return None  # sf.plan describes it again, and says what is wrong


def _check_is_the_same(flags: Mapping[str, Any], saved: Mapping[str, Any], experiment: str) -> None:
    """Raises ValueError where a run that is there is not what the flags ask for."""
    if flags.get("env", saved["env"]) != saved["env"]:
        raise ValueError(
            f"env is {flags['env']!r}, but the run {experiment!r} was trained on {saved['env']!r}: "
            "name another --experiment, or --restart_behavior restart"
        )
    if flags.get("config", saved.get("config")) != saved.get("config"):
        raise ValueError(
            f"config is {flags['config']!r}, but the run {experiment!r} goes on with the settings that it was started "
            "with: name another --experiment, or --restart_behavior restart"
        )
