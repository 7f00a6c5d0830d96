"""What a run starts from where its flags say nothing: the configuration of the run that is resumed, or a preset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from sf import envs
from sf.config import Config, RunConfig, presets
from sf.config.older import BEFORE_THE_FLAG, env_before
from sf.config.trust import TRUST, require_trusted
from sf.envs import EnvError, EnvOptions
from sf.envs.custom.given import named_wrappers
from sf.envs.entries import is_env
from sf.envs.field_types import checked
from sf.envs.registry import name_of
from sf.run.startup.describing import describe
from sf.storage.run_dir import NOT_SAVED, RunDir
from sf.system.messages import nobody, said_to

_RESTART = "restart_behavior"
_OF_A_NETWORK = (
    "encoder_mlp_layers",
    "encoder_conv_mlp_layers",
    "encoder_mlp_residual",
    "encoder_conv_mlp_residual",
    "pad_images",
    "any_planes",
    "float_planes",
    "core",
    "rnn_size",
    "core_skip",
    "critic_clock_residual",
    "nonlinearity",
    "layer_norm",
    "share_critic",
    "normalize_input",
    "normalize_returns",
    "normalize_returns_by",
    "show_task",
    "value_scale",
)


class StartingFlags(NamedTuple):
    """What applies where a flag is not named."""

    flags: Mapping[str, Any]
    source: str  # where they come from, for messages


def make_config(**flags: Any) -> Config:
    """The configuration that `sf-train` would take from these flags: `make_config(env="doom_basic", num_workers=8)`.

    env may be a class, or a function that makes an environment, env_kwargs a dictionary, and env_wrappers a list with
    classes that other processes can import. Raises ValueError for a flag that is unknown, or has a value that it cannot
    have.
    """
    env = flags.get("env")
    if callable(env) or is_env(type(env)):  # a class, a function, or an environment that is made already: no name
        flags["env"] = name_of(env)
    if flags.get("env_wrappers") is not None:
        flags["env_wrappers"] = named_wrappers(flags["env_wrappers"])
    flags = checked(Config, flags)
    start = starting_flags(flags)
    try:
        return Config().replace(**{**start.flags, **flags})
    except ValueError as error:
        name = str(error).split(" ", maxsplit=1)[0]  # each rule's sentence begins with it
        if name in start.flags and name not in flags:
            raise ValueError(f"{start.source}: {error}") from None
        raise


def starting_flags(flags: Mapping[str, Any]) -> StartingFlags:
    """The flags that apply where `flags` name none; `config` among them is the preset that they are of, if any.

    An environment that has no preset of its name is made once, for its spaces. Raises ValueError where the flags do
    not go with the run or preset, or the file of one has a value that cannot be.
    """
    flags = {name: value for name, value in flags.items() if value is not None}
    chosen = _of_file(presets.load(flags["config"]), flags["config"], flags) if "config" in flags else {}
    if chosen.get(_RESTART, RunConfig.restart_behavior) != RunConfig.restart_behavior:
        raise ValueError(f"{flags['config']} sets {_RESTART}, which only the command line can: take it out")
    where = {name: chosen[name] for name in NOT_SAVED if name in chosen}
    given = {**where, **{name: flags[name] for name in NOT_SAVED if name in flags}}
    run = RunConfig(**{**given, "env": flags.get("env", chosen.get("env", RunConfig.env))})
    envs.require_name(run.env)
    # Whoever names a file of tasks on the command line has not named the code in it.
    require_trusted({"env": run.env}, run.env, flags.get(TRUST, False), named_by_user=("env",))
    if run.restart_behavior == "resume":
        run_dir = RunDir.at(run.train_dir, run.experiment_name)
        saved = run_dir.saved_flags()
        if saved is not None:
            saved = _of_file(saved, str(run_dir.config), flags)
            _check_is_the_same(flags, saved, run.experiment_name)
            # Where a run is, and what becomes of one that is there, is not for its own file to say.
            start = {k: v for k, v in {**BEFORE_THE_FLAG, **env_before(saved), **saved}.items() if k not in NOT_SAVED}
            return StartingFlags(_with_the_end_of(flags, {**start, **where}), str(run_dir.config))
    elif "env" not in {**chosen, **flags}:
        _require_no_other_env(run)
    name = flags.get("config") or _preset_of(run.env, flags)
    preset = chosen or (presets.load(name) if name else {})
    preset = _with_the_end_of(flags, preset)
    network = _network_of(flags.get("init_from", preset.get("init_from")))
    return StartingFlags({**preset, **network, "env": run.env, "config": name}, str(name))


def _with_the_end_of(flags: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """The starting flags without an end in env steps or frames, where `flags` name one in either."""
    names = {"train_for_env_steps", "train_for_env_frames"}
    return {name: value for name, value in start.items() if name not in names or not names & flags.keys()}


def _of_file(file_flags: Mapping[str, Any], source: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags in a file. Raises ValueError where one is of the wrong kind, or names code that nobody vouches for."""
    found = checked(Config, file_flags, source)
    if found.get(TRUST):
        raise ValueError(f"{source} sets {TRUST}, which only the command line can: take it out")
    require_trusted(found, source, flags.get(TRUST, False), named_by_user=flags)
    return found


def _preset_of(env: str, flags: Mapping[str, Any]) -> str | None:
    named = {field.name: flags[field.name] for field in dataclasses.fields(EnvOptions) if field.name in flags}
    try:
        options = EnvOptions(**named)
        return presets.name_for_env(env, options) or presets.name_for_spec(describe(env, options))
    except (ValueError, EnvError):
        return None  # sf.run.planning describes it again, and says what is wrong


def _network_of(init_from: str | None) -> dict[str, Any]:
    """The flags of the network that a run begins from, but for names of code; none if it cannot be read: said later."""
    if init_from is None:
        return {}
    from sf.evaluation.play.named_checkpoint import find_checkpoint  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.storage.zoo.places import located  # noqa: PLC0415

    try:
        with said_to(nobody):
            file, saved = find_checkpoint(located(init_from), policy_id=0)
    except (OSError, ValueError, FloatingPointError):
        return {}
    theirs = {**BEFORE_THE_FLAG, **saved.state["config"]}
    network = {name: theirs[name] for name in _OF_A_NETWORK if name in theirs}
    if ":" not in str(theirs.get("encoder", ":")):  # else it names code
        network["encoder"] = theirs["encoder"]
    return checked(Config, {**network, "critic_clock": theirs["critic_clock"] is True}, str(file))


def _require_no_other_env(run: RunConfig) -> None:
    """Raises ValueError where the default environment would take the place of that of a run which is started over."""
    saved = None
    with suppress(ValueError):  # a broken file is no reason to keep the run
        saved = RunDir.at(run.train_dir, run.experiment_name).saved_flags()
    if saved is not None and saved["env"] != run.env:
        raise ValueError(
            f"env is not named, and the run {run.experiment_name!r}, which is to be started over, was trained on "
            f"{saved['env']!r}: name --env"
        )


def _check_is_the_same(flags: Mapping[str, Any], saved: Mapping[str, Any], experiment: str) -> None:
    """Raises ValueError where a run that is there is not what the flags ask for."""
    if flags.get("env", saved["env"]) != saved["env"]:
        raise ValueError(
            f"env is {flags['env']!r}, but the run {experiment!r} was trained on {saved['env']!r}: "
            "name another --experiment, or --restart_behavior restart"
        )
    if flags.get("config", saved.get("config")) != saved.get("config"):
        raise ValueError(
            f"config is {flags['config']!r}, but the run {experiment!r} keeps the settings that it was started "
            "with: name another --experiment, or --restart_behavior restart"
        )
