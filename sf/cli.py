"""From the command line to a `Config`: preset or saved configuration first, flags over it.

The parser and its help are made by tyro from the dataclasses of `sf.config`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import tyro
from rich.console import Console

from sf.config import Config
from sf.run_dir import RunDir
from sf.starting_point import make_config

USER_ERROR = 2  # exit status of everything that the user can mend

Flags = TypeVar("Flags")


def parse(
    argv: Sequence[str] | None = None, prog: str = "sf-train", defaults: Mapping[str, Any] | None = None
) -> Config:
    """Parse flags. Ends the process with status 2 and one sentence where they are wrong.

    defaults: flags that go before those of the command line.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        starting_point = make_config(**{**(defaults or {}), **_early(args)})
    except ValueError as error:
        fail(str(error))
    description = "Train an agent with asynchronous PPO. Example: sf-train --env doom_basic --num_workers 8"
    return parse_flags(Config, prog, description, args, starting_point)


def parse_flags(
    kind: type[Flags], prog: str, description: str, argv: Sequence[str] | None = None, defaults: Flags | None = None
) -> Flags:
    """The flags of a command: the fields of the dataclass `kind`. Ends the process with status 2 where they are wrong.

    defaults: for what the command line does not name; else those of `kind`.
    """
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_lowercase_booleans)
    try:
        return tyro.cli(
            kind,
            prog=prog,
            args=list(sys.argv[1:] if argv is None else argv),
            default=tyro.MISSING_NONPROP if defaults is None else defaults,
            description=description,
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff),
            use_underscores=True,
            registry=registry,
        )
    except ValueError as error:  # tyro before 1.0.16 reports a rule of a part of `kind`, but not one of `kind` itself
        fail(str(error))


def fail(message: str) -> NoReturn:
    """Print one sentence and end with status 2."""
    Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {_escape(message)}", highlight=False)
    raise SystemExit(USER_ERROR)


@contextmanager
def exit_status() -> Iterator[None]:
    """What is raised inside ends the process: a ValueError, which the user can mend, with its sentence and status 2, a
    RuntimeError with 1, Ctrl-C with 130."""
    try:
        yield
    except ValueError as error:
        fail(str(error))
    except RuntimeError as error:
        raise SystemExit(f"error: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def report(config: Config, summary: dict[str, Any]) -> NoReturn:
    """Say how the run went, where it lies, and what to type next; end with 0, or 128 + the signal that ended it."""
    run = config.run
    path = RunDir.at(run.train_dir, run.experiment_name).path
    returns = summary["mean_return"]
    mean_return = "no finished episode" if returns is None else f"mean return {returns:.2f}"
    try:
        print(
            f"{summary['env_frames']:,} frames in {summary['seconds']:.0f} s "
            f"({summary['env_frames_per_second']:,.0f} frames/s), {mean_return} over the last episodes\n"
            f"run:    {path}\n"
            f"score:  sf-eval {path}\n"
            f"watch:  sf-enjoy {path} --video {path}/play.mp4\n"
            f"page:   sf-report {path}\n"
            f"curves: tensorboard --logdir {path}\n"
            f"resume: {_command()} --train_dir {run.train_dir} --experiment {run.experiment_name} "
            f"--train_for_env_steps {2 * max(summary['env_steps'], 1)}",
            flush=True,
        )
    except OSError:  # the terminal is gone, or the disk full: no reason for Python to end with another status
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(128 + summary["stopped_by"] if summary["stopped_by"] else 0)


def _command() -> str:
    """What to type for the command that runs: a script that trains has names that sf-train does not know."""
    script = Path(sys.argv[0])
    return f"python {script}" if script.suffix == ".py" and script.stem != "__main__" else "sf-train"


def _early(args: list[str]) -> dict[str, str]:
    """The flags of the command line that say what a run starts from, ahead of the real parser."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("env", "env_kwargs", "experiment", "train_dir", "config", "restart_behavior"):
        early.add_argument(f"--{flag}", f"--{flag.replace('_', '-')}", dest=flag)
    try:
        return {k: v for k, v in vars(early.parse_known_args(args)[0]).items() if v is not None}
    except argparse.ArgumentError:
        return {}  # a flag without its value: the real parser says so


def _lowercase_booleans(
    info: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec | None:
    """`--async_rl false`, also written False, 0, no."""
    if info.type is not bool:
        return None
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

    def parse_one(args: list[str]) -> bool:
        if args[0].lower() not in values:
            raise ValueError(f"{args[0]!r} is neither true nor false")
        return values[args[0].lower()]

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="{true,false}",
        instance_from_str=parse_one,
        is_instance=lambda value: isinstance(value, bool),
        str_from_instance=lambda value: [str(value).lower()],
    )


def _escape(text: str) -> str:
    return text.replace("[", "\\[")
