"""`sf-surgery`: a run goes on with other observations, actions or layers, and forgets nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from sf.config import Config
from sf.config.trust import named_code, remember_code
from sf.envs.field_types import require
from sf.storage.run_dir import NOT_SAVED, RunDir
from sf.tools.commands import cli

_DESCRIPTION = """\
Write the run OUT, which goes on where RUN is, with another network. Flags of sf-train say what is different; all others
stay as they are in RUN, which is not changed. See docs/surgery.md.

  sf-surgery train_dir/cartpole --out train_dir/cartpole_wider --encoder_mlp_layers 512 512
  sf-train --experiment cartpole_wider
"""
_NOT_NAMED = "--out"  # in the place of a directory that the command line has yet to name
_OF_THIS_COMMAND = ("surgery", "inexact", "new_choice_probability")  # flags that an earlier surgery has left in a run


@dataclass(frozen=True)
class SurgeryFlags:
    """Which run, and where to."""

    run: tyro.conf.Positional[Path]
    """A run directory, such as train_dir/doom_basic."""

    out: Path
    """The directory of the new run."""

    dry_run: bool = False
    """Show what would become of each tensor, and write nothing."""

    config: Config = field(default_factory=Config)

    def __post_init__(self) -> None:
        require(self.out.name != "", f"out is {self.out}: name a new directory")


def main() -> None:
    """Operate, print a table; end with 0, 1 after a failure, 2 after a user's mistake."""
    args = sys.argv[1:]
    if not args or args[0].startswith("-"):
        defaults = None
    else:
        defaults = SurgeryFlags(run=Path(args[0]), out=Path(_NOT_NAMED), config=_starting_config(args))
    flags = cli.parse_flags(SurgeryFlags, "sf-surgery", _DESCRIPTION, args, defaults)
    if defaults is None:
        cli.fail(f"{flags.run} comes behind flags: name it first, since it says what applies where no flag is named")
    with cli.exit_status():
        require(str(flags.out) != _NOT_NAMED, "out is not named: name the directory of the new run with --out")
        _run(flags)


def _starting_config(args: Sequence[str]) -> Config:
    """Returns the configuration of the run. Ends the process with status 2 for one that cannot be read."""
    from sf.run.startup.starting_flags import make_config  # noqa: PLC0415

    path = Path(args[0])
    early = cli.early_flags(args)
    try:
        if RunDir(path).saved_flags() is None:
            raise ValueError(f"{path} is not the directory of a run, such as train_dir/doom_basic: name one")
        saved = make_config(train_dir=str(path.parent), experiment=path.name, trust=early.get("trust", False))
    except ValueError as error:
        cli.fail(str(error))
    fresh = Config().run
    return saved.replace(**{name: getattr(fresh, name) for name in (*_OF_THIS_COMMAND, *NOT_SAVED)})


def _run(flags: SurgeryFlags) -> None:
    from sf.run.networks import describe_networks  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.surgery import new_run  # noqa: PLC0415
    from sf.surgery.operated import Request  # noqa: PLC0415
    from sf.surgery.subject import Subject  # noqa: PLC0415

    source = RunDir(flags.run)
    num_policies = (source.saved_flags() or {}).get("num_policies", 1)
    require(
        flags.config.population.num_policies == num_policies,
        f"num_policies is {flags.config.population.num_policies}, but {flags.run} has {num_policies}: keep that number",
    )
    config, _, teams, networks = describe_networks(flags.config)
    run = config.run
    requests = [
        Request(
            Subject.of_spec(config.model, network.spec, teams),
            config,
            policy_id,
            run.new_choice_probability,
            run.inexact,
        )
        for policy_id, network in enumerate(networks)
    ]
    new_run.write(source, flags.out, requests, print, flags.dry_run)
    if not flags.dry_run:
        remember_code(named_code(config.flat()))  # sf-train goes on with what this command was told to run
        print(f"run:    {flags.out}")


if __name__ == "__main__":
    main()
