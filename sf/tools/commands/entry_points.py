"""The commands of the package, as they are installed.

Nothing slow is imported here. A command is imported inside the guard, so Ctrl-C ends it quietly from its start on.
"""

from __future__ import annotations

from importlib import import_module

from sf.tools.commands.ends import quiet_end


def sf_eval() -> None:
    _run("sf.tools.commands.evaluate")


def sf_league() -> None:
    _run("sf.tools.report.league.command")


def sf_psro() -> None:
    _run("sf.tools.psro.command")


def sf_exploit() -> None:
    _run("sf.tools.psro.exploit_command")


def sf_sweep() -> None:
    _run("sf.tools.sweep.command")


def sf_tune() -> None:
    _run("sf.tools.tune.command")


def sf_bench() -> None:
    _run("sf.tools.bench.command")


def sf_plot() -> None:
    _run("sf.tools.report.plot")


def sf_report() -> None:
    _run("sf.tools.report.page")


def sf_export() -> None:
    _run("sf.tools.commands.export")


def sf_enjoy() -> None:
    _run("sf.tools.commands.enjoy")


def sf_play() -> None:
    _run("sf.tools.commands.play.command")


def sf_envs() -> None:
    _run("sf.tools.commands.envs.command")


def _run(module: str) -> None:
    with quiet_end():
        import_module(module).main()
