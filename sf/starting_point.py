"""What a run starts from where its flags say nothing: the configuration of the run that is resumed, or a preset."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from sf import presets
from sf.config import Config
from sf.describing import describe
from sf.envs import EnvOptions
from sf.run_dir import RunDir


def make_config(**flags: Any) -> Config:
    """The configuration that `sf-train` would take from these flags: `make_config(env="doom_basic", num_workers=8)`.

    env_kwargs may be a dictionary. Raises ValueError for a flag that is unknown, or has a value that it cannot have.
    """
    if isinstance(flags.get("env_kwargs"), Mapping):
        flags["env_kwargs"] = json.dumps(flags["env_kwargs"])
    return Config().replace(**{**starting_point(flags), **flags})


def starting_point(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that apply where `flags` name none; `config` among them is the preset that they are of, if any.

    An environment that has no preset of its name is made once, for its spaces. Raises ValueError where the flags do
    not go with the run or preset.
    """
    run = Config().run
    chosen = presets.load(flags["config"]) if "config" in flags else {}
    env = flags.get("env", chosen.get("env", run.env))
    experiment = flags.get("experiment") or env.replace("/", "_").replace(":", "_")
    if flags.get("restart_behavior", run.restart_behavior) == "resume":
        saved = RunDir.at(flags.get("train_dir", run.train_dir), experiment).saved_flags()
        if saved is not None:
            _check_is_the_same(flags, saved, experiment)
            return saved
    name = flags.get("config") or presets.name_for_env(env) or _preset_of_kind(env, flags)
    preset = chosen or (presets.load(name) if name else {})
    return {**preset, "env": env, "config": name}


def _preset_of_kind(env: str, flags: Mapping[str, Any]) -> str | None:
    options = {field.name: flags[field.name] for field in dataclasses.fields(EnvOptions) if field.name in flags}
    try:
        return presets.name_for_spec(describe(env, EnvOptions(**options)))
    except ValueError:
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
