"""The commands of the package, as they are installed.

Nothing slow is imported here. A command is imported inside the guard, so Ctrl-C ends it quietly from its start on.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

from sf.tools.commands.ends import quiet_end


def _run(module: str) -> None:
    with quiet_end():
        import_module(module).main()


sf_bench = partial(_run, "sf.tools.bench.command")
sf_enjoy = partial(_run, "sf.tools.commands.enjoy")
sf_envs = partial(_run, "sf.tools.commands.envs.command")
sf_eval = partial(_run, "sf.tools.commands.evaluate")
sf_exploit = partial(_run, "sf.tools.psro.exploit_command")
sf_export = partial(_run, "sf.tools.commands.export")
sf_gtp = partial(_run, "sf.tools.commands.gtp.command")
sf_league = partial(_run, "sf.tools.report.league.command")
sf_play = partial(_run, "sf.tools.commands.play.command")
sf_plot = partial(_run, "sf.tools.report.plot")
sf_psro = partial(_run, "sf.tools.psro.command")
sf_record = partial(_run, "sf.tools.commands.record")
sf_report = partial(_run, "sf.tools.report.page")
sf_surgery = partial(_run, "sf.tools.commands.surgery")
sf_sweep = partial(_run, "sf.tools.sweep.command")
sf_tune = partial(_run, "sf.tools.tune.command")
