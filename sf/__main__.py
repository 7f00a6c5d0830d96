"""`sf-train`, `python -m sf`: the command. Imports are inside `main`: every child process imports this module too."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from sf.tools.commands import ends

if TYPE_CHECKING:
    from sf.config import Config


def main(**defaults: Any) -> None:
    """Parse flags, train, and end with 0, 130 or 143 after a signal, 1 after a failure, 2 after a user's mistake.

    With `--check` the machine is tested instead, and the end is 1 where something fails.
    defaults: flags that the command line need not name, for a script that trains an environment of its own.
    """
    with ends.quiet_end():
        from sf.system.processes.main_module import end_if_imported_again  # noqa: PLC0415

        end_if_imported_again()
        from sf.ranks.agent import end_with_agent  # noqa: PLC0415

        end_with_agent()
        if "--check" in sys.argv:
            from sf.tools.check.command import main as check  # noqa: PLC0415

            check(defaults)

        from sf.system.processes.main_module import leaves_threads_behind  # noqa: PLC0415

        with leaves_threads_behind():
            _train(defaults)


def _train(defaults: dict[str, Any]) -> NoReturn:
    from sf.system.processes.stopping import ended_by_ctrl_c  # noqa: PLC0415
    from sf.tools.commands import cli  # noqa: PLC0415

    with ended_by_ctrl_c():
        config = cli.parse(defaults=defaults)
        from sf.ranks.place import FINAL_FAILURE, Place  # noqa: PLC0415

        with ends.exit_status():
            place = Place.from_environment()
        if not place.is_by_torchrun and config.ranks.num_learners > 1:
            _launch(config)
        place.settle()

        if not config.run.serial:
            from sf.run.children.servers import start_fork_servers  # noqa: PLC0415

            with ends.exit_status():
                start_fork_servers()  # they import torch while this process does

        gc.disable()  # imports leave nothing to collect, and looking for it takes a fifth of their time
        from sf.run.children.verdict import ChildError  # noqa: PLC0415
        from sf.run.planning import make_plan  # noqa: PLC0415  torch is slow to import: not for --help
        from sf.run.trainer import train  # noqa: PLC0415

        gc.freeze()
        gc.enable()
        with ends.exit_status():
            plan = make_plan(config, place)
    try:
        summary = train(config, plan=plan)
    except ValueError as error:
        ends.fail(str(error))
    except ChildError as error:
        ends.end(str(error), FINAL_FAILURE if error.is_final and place.is_by_torchrun else ends.FAILURE)
    cli.report(config, summary)


def _launch(config: Config) -> NoReturn:
    from sf.ranks.launcher import launch, require_memory  # noqa: PLC0415
    from sf.run.children.verdict import RestartBudget  # noqa: PLC0415
    from sf.system.arrays import available_memory  # noqa: PLC0415

    with ends.exit_status():
        require_memory(config.ranks.num_learners, available_memory())
    supervision = config.supervision
    budget = RestartBudget(supervision.max_restarts, supervision.restart_window_s)
    raise SystemExit(launch(config.ranks.num_learners, lambda: budget.spend("ranks", time.monotonic())))


if __name__ == "__main__":
    main()
