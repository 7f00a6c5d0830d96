"""`sf-train`, `python -m sf`: the command. Imports are inside `main`: every child process imports this module too."""

from __future__ import annotations

from typing import Any, NoReturn


def main(**defaults: Any) -> None:
    """Parse flags, train, and end with 0, 130 or 143 after a signal, 1 after a failure, 2 after a user's mistake.

    defaults: flags that the command line need not name, for a script that trains an environment of its own.
    """
    from sf.main_module import end_if_imported_again  # noqa: PLC0415

    end_if_imported_again()

    from sf.leaving import leaves_threads_behind  # noqa: PLC0415

    with leaves_threads_behind():
        _train(defaults)


def _train(defaults: dict[str, Any]) -> NoReturn:
    from sf import cli  # noqa: PLC0415
    from sf.stopping import ended_by_ctrl_c  # noqa: PLC0415

    with ended_by_ctrl_c():
        config = cli.parse(defaults=defaults)

        from sf import fork_servers  # noqa: PLC0415

        fork_servers.start_for_training()  # they import torch while this process does

        from sf.plan import make_plan  # noqa: PLC0415  torch is slow to import: not for --help
        from sf.supervisor import ChildError  # noqa: PLC0415
        from sf.trainer import train  # noqa: PLC0415

        with cli.exit_status():
            plan = make_plan(config)
    try:
        summary = train(config, plan=plan)
    except ValueError as error:
        cli.fail(str(error))
    except ChildError as error:
        raise SystemExit(f"error: {error}") from None
    cli.report(config, summary)


if __name__ == "__main__":
    main()
