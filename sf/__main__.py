"""`sf-train`, `python -m sf`: the command. Imports are inside `main`: every child process imports this module too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from sf import commands


def main(**defaults: Any) -> None:
    """Parse flags, train, and end with 0, 130 or 143 after a signal, 1 after a failure, 2 after a user's mistake.

    With `--check` the machine is tested instead, and the end is 1 where something fails.
    defaults: flags that the command line need not name, for a script that trains an environment of its own.
    """
    with commands.quiet_end():
        _train(defaults)


def _train(defaults: Mapping[str, Any]) -> None:
    from sf.main_module import end_if_imported_again  # noqa: PLC0415

    end_if_imported_again()
    if "--check" in sys.argv:
        from sf.check.command import main as check  # noqa: PLC0415

        check(defaults)

    from sf import cli  # noqa: PLC0415

    config = cli.parse(defaults=defaults)

    from sf import fork_servers  # noqa: PLC0415

    fork_servers.start_for_training()  # they import torch while this process does

    from sf.supervisor import ChildError  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.trainer import train  # noqa: PLC0415

    try:
        summary = train(config)
    except ValueError as error:
        commands.fail(str(error))
    except ChildError as error:
        commands.end(str(error), commands.FAILURE)
    cli.report(config, summary)


if __name__ == "__main__":
    main()
