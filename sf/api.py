"""Training from Python, in a script or a notebook."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from sf.config import Config
from sf.run.startup.starting_flags import make_config
from sf.storage.run_dir import RunDir
from sf.storage.text_files import printable
from sf.system.processes.main_module import end_if_imported_again, hidden_unless_a_file


def train(
    config: Config | None = None, /, *, on_record: Callable[[dict[str, Any]], object] | None = None, **flags: Any
) -> dict[str, Any]:
    """Train until the configured end, or until Ctrl-C (in a notebook: until the kernel is interrupted).

        train(env="CartPole-v1", num_workers=2, train_for_env_steps=100_000)

    config: a whole configuration, taken as it is. flags: those of `sf-train` (`config` among them names a preset); the
    preset of the environment applies to the rest, and a run that is there already goes on. One or the other.
    `env` among them may be a class, or a function that makes an environment: it is sent to the processes, and kept in
    no file.
    on_record: called here with each record of metrics.jsonl, every `summaries_every_sec`; a truthy answer ends the run,
    which saves. Nobody watches over the run until it returns.

    Returns the record that is also in summary.json, with the run directory as `run_dir`. Its `stopped_by` is what
    ended the run early, "SIGINT" or another signal, "on_record" or "stop_at_return", or None.

    A run that is complete already is left as it is: its summary is returned, and one sentence printed.

    Raises ValueError for what the caller can mend, such as a complete run whose summary is missing or damaged,
    RuntimeError, with the traceback of the child, where a process fails for good, and what `on_record` raises, once the
    run has saved and ended.
    """
    end_if_imported_again()
    if isinstance(flags.get("config"), Config):
        config = flags.pop("config")
    if config is not None and not isinstance(config, Config):
        shown = getattr(config, "__name__", repr(config))
        raise ValueError(f"config is {config!r}: it must be a Config; name flags instead, as env={shown}")
    if config is not None and flags:
        raise ValueError("train takes a config or flags: change a config with config.replace(name=value)")
    if on_record is not None and not callable(on_record):
        raise ValueError(f"on_record is {on_record!r}: it must be a function that takes a record")
    if threading.current_thread() is not threading.main_thread():
        raise ValueError("train waits for signals, which reach the main thread only: call it there, or in a process")
    config = config or make_config(**flags)

    from sf.run import trainer  # noqa: PLC0415  torch is slow to import: not for what is wrong with the flags
    from sf.run.startup import initial_weights  # noqa: PLC0415

    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    try:
        with hidden_unless_a_file():
            summary = trainer.train(config, on_record)
    except initial_weights.CompleteRunError as complete:
        saved = run_dir.saved_summary()
        if saved is None:
            sentence = f"{_in_python(str(complete))} ({run_dir.summary.name} is missing or damaged)"
            raise initial_weights.CompleteRunError(sentence) from None
        summary = saved
        print(printable(f"{_in_python(str(complete))}; this is its summary, and nothing was trained"))
    return {**summary, "run_dir": str(run_dir.path)}


def _in_python(sentence: str) -> str:
    """With arguments in place of the flags of a command."""
    return re.sub(r"--(\w+)", r"\1", sentence.replace("--restart_behavior restart", "restart_behavior='restart'"))
