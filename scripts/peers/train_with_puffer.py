"""Trains with PufferLib until it is interrupted.

It reports in lines of JSON after each iteration. `puffer.py` runs it in the virtual environment of the peer, with one
argument, as JSON: "env", "flags" for PufferLib's own parser, and "settings", the file to write all its settings to.
--rnn-name=None takes the LSTM away. It imports nothing of this project.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

_which = shutil.which
# PufferLib takes a compiler for CUDA on the machine for a sign that it was built with one.
shutil.which = lambda name, *args, **kwargs: None if name == "nvcc" else _which(name, *args, **kwargs)

import torch  # noqa: E402
from pufferlib import pufferl  # noqa: E402


def main() -> None:
    task = json.loads(sys.argv[1])
    sys.argv = ["puffer", *task["flags"]]
    args = pufferl.load_config(task["env"])
    if args["rnn_name"] in ("None", ""):
        args["rnn_name"] = None
    args["train"]["use_rnn"] = args["rnn_name"] is not None
    env = pufferl.load_env(task["env"], args)
    pufferl.PuffeRL.print_dashboard = lambda *_, **__: None  # it clears the screen, many times a second
    trainer = pufferl.PuffeRL({**args["train"], "env": task["env"]}, env, pufferl.load_policy(args, env))
    found = {
        **args["train"],
        **{name: args[name] for name in ("rnn_name", "vec", "env", "policy", "rnn")},
        "agents": trainer.total_agents,
        "torch_threads": torch.get_num_threads(),
    }
    Path(task["settings"]).write_text(json.dumps(found))
    while True:
        trainer.evaluate()
        trainer.train()
        report = {"at": time.time(), "steps": trainer.global_step, "are_trained_on": True, "mean_return": None}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
