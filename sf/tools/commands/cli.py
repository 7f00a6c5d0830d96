"""From the command line to a `Config`: preset or saved configuration first, flags over it.

The parser and its help are made by tyro from the dataclasses of `sf.config`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, cast
from unittest import mock

import docstring_parser  # by which tyro reads docstrings
import tyro

from sf.config import Config, RunConfig, flag_mistakes, presets
from sf.config.flag_mistakes import parse_bool
from sf.envs.custom.given import given_env
from sf.envs.field_types import as_type
from sf.evaluation.endless import EndlessWatch
from sf.metrics.readable import outcome
from sf.run.startup.starting_flags import make_config
from sf.storage.run_dir import RunDir
from sf.tools.commands.ends import exit_status, fail, quiet_end  # noqa: F401  commands use all three as cli.exit_status ...

Flags = TypeVar("Flags")


def parse(
    argv: Sequence[str] | None = None, prog: str = "sf-train", defaults: Mapping[str, Any] | None = None
) -> Config:
    """Parse flags. Ends the process with status 2 and one sentence where they are wrong.

    defaults: flags that go before those of the command line.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    description = (
        "Train an agent with asynchronous PPO. Example: sf-train --env doom_basic --num_workers 8. "
        "To test this machine first: sf-train --check"
    )
    config = parse_flags(Config, prog, description, args, starting_config(args, defaults))
    _require_env({**(defaults or {}), **early_flags(args)}, config.run)
    return config


def _require_env(early: Mapping[str, Any], run: RunConfig) -> None:
    """Ends the process where neither the flags, nor a preset, nor the run that is resumed says what to train on."""
    is_named = "env" in {**early, **(presets.load(early["config"]) if "config" in early else {})}
    if not is_named and RunDir.at(run.train_dir, run.experiment_name).saved_flags() is None:
        fail(
            "env is not named: for example --env CartPole-v1, --env doom_basic, or --env my_module:MyEnv for one of "
            "your own; sf-envs lists all"
        )


def starting_config(args: Sequence[str], defaults: Mapping[str, Any] | None = None) -> Config:
    """What applies where `args` name nothing: the run that is resumed, or a preset.

    Ends the process with status 2 where they do not go with it.
    """
    try:
        return make_config(**{**(defaults or {}), **early_flags(args)})
    except ValueError as error:
        fail(str(error))


def parse_flags(
    kind: type[Flags], prog: str, description: str, argv: Sequence[str] | None = None, defaults: Flags | None = None
) -> Flags:
    """The flags of a command: the fields of the dataclass `kind`. Ends the process with status 2 where they are wrong.

    defaults: for what the command line does not name; else those of `kind`.
    """
    registry = tyro.constructors.ConstructorRegistry()
    for rule in (_lowercase_booleans, _numbers):
        registry.primitive_rule(rule)
    args = list(sys.argv[1:] if argv is None else argv)
    empty = flag_mistakes.empty_path(kind, args)
    if empty is not None:
        fail(empty)
    box = StringIO()
    with quiet_end():
        try:
            with redirect_stderr(box), _unwrapped(args), _joined_docstrings():
                return tyro.cli(
                    kind,
                    prog=prog,
                    args=args,
                    default=tyro.MISSING_NONPROP if defaults is None else defaults,
                    description=description,
                    config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff),
                    use_underscores=True,
                    registry=registry,
                )
        except SystemExit as end:
            if end.code:
                fail(flag_mistakes.sentence(kind, prog, args, box.getvalue()))
            raise
        except ValueError as error:  # tyro before 1.0.16 reports a rule of a part of `kind`, but not one of `kind`
            fail(str(error))


def _boolean(nargs: int | tuple[int, ...], metavar: str) -> tyro.constructors.PrimitiveConstructorSpec:
    """true or false; true where the flag may stand alone and does."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=nargs,
        metavar=metavar,
        instance_from_str=lambda args: parse_bool(args[0]) if args else True,
        is_instance=lambda value: isinstance(value, bool),
        str_from_instance=lambda value: [str(value).lower()],
    )


Switch = Annotated[bool, _boolean((0, 1), "[{true,false}]")]
"""A flag that is true where it is named without a value."""


def arguments(flags: Mapping[str, Any]) -> list[str]:
    """Flags by name, as the words of a command line."""
    return [word for name, value in flags.items() for word in (f"--{name}", *words(value))]


def words(value: Any) -> list[str]:
    """A value as one types it behind its flag."""
    if isinstance(value, Mapping):
        return [json.dumps(value, default=str)]
    if isinstance(value, list | tuple):
        return [word for item in value for word in words(item)]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


class EpisodeProgress:
    """What is said of an evaluation that goes on: its episodes, on a terminal; once, that none comes to its end."""

    def __init__(self, time_limit: Callable[[], int | None] = lambda: None) -> None:
        """time_limit: see `EndlessWatch`."""
        self._endless = EndlessWatch(say_below_progress, time_limit=time_limit)
        self._is_over = False

    def __call__(self, done: int, total: int) -> None:
        if sys.stderr.isatty() and not (self._is_over and done == total):
            print(f"\r{done} of {total} episodes", end="\n" if done == total else "", file=sys.stderr, flush=True)
        self._is_over = done == total
        self._endless(done, total)


def say_below_progress(sentence: str) -> None:
    """To standard error, whose last line may be that of an evaluation that goes on."""
    print("\n" * sys.stderr.isatty() + sentence, file=sys.stderr, flush=True)


def report(config: Config, summary: dict[str, Any]) -> NoReturn:
    """Say how the run went, where it lies, and what to type next; end with 0, or 128 + the signal that ended it."""
    run = config.run
    path = RunDir.at(run.train_dir, run.experiment_name).path
    stopped_by = summary["stopped_by"]
    resume = [*_command(), "--train_dir", run.train_dir, "--experiment", run.experiment_name, *_later_end(run, summary)]
    play = (
        f"score:  {shlex.join(['sf-eval', str(path)])}\n"
        f"watch:  {shlex.join(['sf-enjoy', str(path), '--video', str(path / 'play.mp4')])}\n"
    )
    if given_env(run.env) is not None:  # no command can make it
        play = ""
    try:
        print(
            f"{outcome(summary)}\n"
            f"run:    {path}\n"
            f"{play}"
            f"page:   {shlex.join(['sf-report', str(path)])}\n"
            f"curves: {shlex.join(['tensorboard', '--logdir', str(path)])}\n"
            f"log:    {path / 'run.log'}\n"
            f"resume: {shlex.join(resume)}",
            flush=True,
        )
    except OSError:  # the terminal is gone, or the disk full: no reason for Python to end with another status
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    is_signal = stopped_by in signal.Signals.__members__
    raise SystemExit(128 + signal.Signals[stopped_by] if is_signal else 0)


def _later_end(run: RunConfig, summary: Mapping[str, Any]) -> list[str]:
    """What a run must be told to go on: twice as much of each limit that it has come to, none where it was stopped."""
    limits = {
        "train_for_env_steps": (run.train_for_env_steps, summary["env_steps"]),
        "train_for_env_frames": (run.train_for_env_frames, summary["env_frames"]),
        "train_for_seconds": (run.train_for_seconds, summary["seconds"]),
    }
    flags = [
        word
        for name, (limit, done) in limits.items()
        if limit is not None and done >= limit
        for word in (f"--{name}", f"{2 * limit:g}" if isinstance(limit, float) else str(2 * limit))
    ]
    return [*flags, "--stop_at_return", "None"] if summary["stopped_by"] == "stop_at_return" else flags


def _command() -> list[str]:
    """What to type for the command that runs: a script that trains has names that sf-train does not know."""
    script = Path(sys.argv[0])
    return ["python", str(script)] if script.suffix == ".py" and script.stem != "__main__" else ["sf-train"]


def early_flags(args: Sequence[str]) -> dict[str, Any]:
    """The flags of the command line that say what a run starts from, ahead of the real parser."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name, reading in _EARLY.items():
        early.add_argument(f"--{name}", f"--{name.replace('_', '-')}", dest=name, **reading)
    try:
        return {k: v for k, v in vars(early.parse_known_args(list(args))[0]).items() if v is not None}
    except argparse.ArgumentError:
        return {}  # a flag without its value, or with a wrong one: the real parser says so


def _whole_number_or_none(word: str) -> int | None:
    """Raises ValueError for anything else."""
    return None if word == "None" else as_type("a number", word, int)


_EARLY: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("env", "env_kwargs", "encoder", "model", "experiment", "train_dir", "config")},
    **{name: {} for name in ("restart_behavior", "init_from")},
    **{name: {"type": _whole_number_or_none} for name in ("train_for_env_steps", "train_for_env_frames")},
    **{name: {"nargs": "*"} for name in ("env_wrappers", "players")},
    "past_share": {"type": float},  # players without it are a mistake
    "trust": {"type": parse_bool},
}
"""How the flags are read that say what a run starts from."""


def _unwrapped(args: Sequence[str]) -> AbstractContextManager[object]:
    """tyro breaks what it says into lines of the terminal: of its help that is wanted."""
    is_help = "--help" in args or "-h" in args
    return mock.patch.dict(os.environ, {} if is_help else {"COLUMNS": "100000"})


@contextmanager
def _joined_docstrings() -> Iterator[None]:
    """The help of a flag as one paragraph: tyro keeps the line breaks of the source, and adds those of the terminal."""
    parse = docstring_parser.parse_from_object

    def joined(kind: Any) -> docstring_parser.Docstring:
        docstring = parse(kind)
        for param in docstring.params:
            param.description = " ".join((param.description or "").split())
        return docstring

    with mock.patch.object(docstring_parser, "parse_from_object", joined):
        yield


def _lowercase_booleans(
    info: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec | None:
    """`--async_rl false`."""
    return _boolean(1, "{true,false}") if info.type is bool else None


def _numbers(info: tyro.constructors.PrimitiveTypeInfo) -> tyro.constructors.PrimitiveConstructorSpec | None:
    """`--train_for_env_steps 1e6`; no number that is not finite."""
    if info.type not in (int, float):
        return None
    kind = cast("type[int] | type[float]", info.type)
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=lambda args: as_type("a number", args[0], kind),
        is_instance=lambda value: isinstance(value, kind),
        str_from_instance=lambda value: [str(value)],
    )
