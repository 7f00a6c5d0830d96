"""How fast is it? Layers, both precisions, Sample Factory beside it, and the numbers of workers that still gain."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from functools import partial
from typing import Any

from gpu.running import REPOSITORY
from gpu.step import Context, Findings, Lines
from gpu.training import train

from sf import envs
from sf.tools.commands import cli

_GAIN = 1.05  # less than that is none

# As in the paper, but for the number of workers, which is that of the cores. Where the maps of doom_battle are missing,
# another scenario on the same network.
_SETTINGS: dict[str, dict[str, Any]] = {
    "doom_battle": {"env": "doom_battle", "num_envs_per_worker": 20, "rollout": 32, "batch_size": 2048},
    "doom_health_gathering": {
        **{"env": "doom_health_gathering", "config": "doom_battle"},
        **{"num_envs_per_worker": 20, "rollout": 32, "batch_size": 2048},
    },
    "atari_breakout": {
        **{"env": "atari_breakout", "num_envs_per_worker": 32, "rollout": 32, "batch_size": 2048},
        **{"num_batches_per_epoch": 2, "num_epochs": 1},
    },
}
_TINY = {"num_envs_per_worker": 2, "rollout": 8, "batch_size": 64, "learner_threads": 1}


def measure(env: str, context: Context) -> Findings:
    """Layers by sf-bench, then a run in each precision."""
    flags, lines, data = _flags(env, context), Lines(), {}
    path = context.folder / "layers.json"
    words = ["--layers", "simulation", "sampler", "inference", "--rounds", "1", "--seconds", str(context.seconds(20))]
    words += ["--json", str(path), "--device", context.device, *cli.arguments(flags)]
    command = [sys.executable, "-c", "from sf.tools.commands.entry_points import sf_bench; sf_bench()", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    layers: dict[str, float] = {}
    if done.returncode == 0:
        layers = {layer: rounds[0]["fps"] for layer, rounds in json.loads(path.read_text())["results"].items()}
        bare = layers["simulation"]
        lines.add("; ".join(f"{layer} {fps:,.0f} frames/s ({100 * fps / bare:.0f} %)" for layer, fps in layers.items()))
    else:
        lines.add(f"sf-bench ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    for precision in ("bfloat16", "float32"):
        asked = {**flags, "precision": precision, "restart_behavior": "overwrite"}
        run = train(context, precision, context.seconds(75), asked)
        data[precision] = run.as_data()
        share = f" ({100 * run.frames_per_second / layers['simulation']:.0f} % of the simulation)" if layers else ""
        lines.add(f"training in {precision}{share}: {run.as_text()}")
    is_ok = bool(layers) and all(run["status"] == 0 for run in data.values())
    return Findings(is_ok, lines.lines, {"layers": layers, **data})


doom = partial(measure, "doom_battle")
atari = partial(measure, "atari_breakout")


def peers(context: Context) -> Findings:
    """Sample Factory in turn, only where its virtual environment is there already."""
    if not list((REPOSITORY / ".peers").glob("sample-factory-*/bin/python")):
        return Findings(True, ["Sample Factory is not installed (scripts/bench_peers.py would do it from PyPI)"])
    path = context.folder / "peers.json"
    words = ["--env", "doom_battle", "--seconds", "120", "--rounds", "1", "--num_workers", str(context.num_cores)]
    words += ["--num_envs_per_worker", "20", "--batch_size", "2048", "--device", context.device, "--json", str(path)]
    words += ["--warm_up_seconds", "0"]  # the steps before have trained with the same network
    command = [sys.executable, str(REPOSITORY / "scripts" / "bench_peers.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    data = json.loads(path.read_text()) if path.exists() else None
    return Findings(done.returncode == 0, (done.stdout + done.stderr).strip().splitlines()[-8:], data)


def limits(context: Context) -> Findings:
    """More environments, then more workers, as long as it gains."""
    flags, lines, data = _flags("doom_battle", context), Lines(), []

    def measured(sizes: dict[str, int]) -> float:
        run = train(context, "limits", context.seconds(30), {**flags, **sizes, "restart_behavior": "overwrite"})
        data.append({**sizes, **run.as_data()})
        lines.add(f"{sizes['num_workers']} workers of {sizes['num_envs_per_worker']}: {run.as_text()}")
        return run.frames_per_second if run.is_ok else 0.0

    best = {"num_workers": context.num_cores, "num_envs_per_worker": 8}
    fastest = measured(best)
    for name in ("num_envs_per_worker", "num_workers"):
        while fastest > 0.0:
            larger = {**best, name: 2 * best[name]}
            speed = measured(larger)
            if speed < _GAIN * fastest:
                break
            best, fastest = larger, speed
            if context.is_rehearsal:
                break
    lines.add(f"the most that gained: {shlex.join(cli.arguments(best))}, {fastest:,.0f} frames/s")
    return Findings(fastest > 0, lines.lines, {"best": best, "runs": data})


def _flags(env: str, context: Context) -> dict[str, Any]:
    try:
        envs.describe(env, envs.EnvOptions())
    except ValueError:
        env = "doom_health_gathering"
    return {**_SETTINGS[env], **(_TINY if context.is_rehearsal else {}), "num_workers": context.num_cores}
