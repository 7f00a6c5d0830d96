"""Frames per second, or the time to a return, of this project and of its peers, on the same machine, in turn.

    python scripts/bench_peers.py --env doom_battle --seconds 120 --rounds 3 --json benchmarks/NAME.json
    python scripts/bench_peers.py --env Hopper-v5 --to_return 1000 --seconds 900 --peers stable_baselines3
    python scripts/bench_peers.py --env CartPole-v1 --peers pufferlib --num_envs_per_worker 1024 --rollout 64 \
        --batch_size 8192 --own_flags="--core lstm --rnn_size 128 --encoder_mlp_layers 128 --share_critic true \
        --num_epochs 1 --num_batches_per_epoch 1"

Each peer is installed from PyPI into a virtual environment in --peers_dir, which later calls reuse. A round is one run
of each. The ratio is taken within each round, whose runs follow one another, since a shared machine drifts.

Sample Factory 2.1.1 gets the same environment, number of environments, rollout and batch size as this project; the rest
are each one's defaults for that environment. The map of doom_battle is one file: battle.wad there is D3_battle.wad
here, byte for byte. Its MuJoCo tasks are always Gymnasium's v4. On Atari and MuJoCo its defaults are synchronous, and
`--peer_flags="--async_rl True"` changes it. It computes in float32, one thread a process;
`--own_flags="--precision float32 --learner_threads 1"` makes this project do so too. On games of several
players, such as pettingzoo:atari/pong_v3, Sample Factory steps the environments of this project, with its own defaults
for Atari.

Stable-Baselines3's PPO gets the settings that its zoo publishes for the environment, and none of the flags above. It
has no Doom.

PufferLib 3.0 gets the same rollout and batch size, and has the environment, the number of copies and the network of its
own. It computes in float32. torch gives it all cores, and OMP_NUM_THREADS, which goes for all trainers, as many as it
names.

A frame is one tic of the simulator that was trained on: decisions x frameskip, which is 4 on Atari. On MuJoCo it is a
step. Where several agents act, the decisions of each count. The steady rate is without start-up, from the first
optimiser step on; that of the whole run is from the launch.
This project trains once before, so that its compiled programs are on the disk, as they are for every run but the first.

With --to_return, each trains until the mean return of the last 100 training episodes reaches it, and the seconds from
the launch count. Returns are the environment's own: whole games, before clipping. Sample Factory and this project look
each 5 s, Stable-Baselines3 after each episode. The modules in scripts/peers say where each figure comes from.
"""

from __future__ import annotations

import math
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median, median_high, median_low
from typing import Any

from peers.options import Options
from peers.own import ThisProject
from peers.puffer import PufferLib
from peers.sample_factory import SampleFactory
from peers.sb3 import StableBaselines3
from peers.trainer import Peer, Result
from recording import json_file
from recording import machine as machine_of
from recording.markdown_table import markdown_table

from sf.tools.commands import cli

PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (SampleFactory, StableBaselines3, PufferLib)}

_NOT_REACHED = (
    "A ratio is 0 where only this project did not reach the return, inf where only the peer did not. It is - where "
    "neither did, and the median is without it."
)

Round = Mapping[str, Result]
"""By the name of the trainer. This project is the last."""


def main() -> None:
    # A shell without job control starts background jobs with SIGINT ignored, which trainers would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the trainers are ended on the way out
    options = cli.parse_flags(Options, "bench_peers.py", str(__doc__))
    json_file.require_writable(options.json)
    trainers: dict[str, Peer | ThisProject] = {name: PEERS[name](options.peers_dir) for name in options.peers}
    trainers["own"] = ThisProject()
    for trainer in reversed(trainers.values()):
        if why := trainer.refusal(options.env):
            raise SystemExit(why)
    try:
        for trainer in trainers.values():
            trainer.install(options.kind)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    machine = machine_of.describe(options.device)
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="bench_peers_") as folder:
        train_dir = Path(folder)
        if options.warm_up_seconds:
            warm_up = replace(options, seconds=options.warm_up_seconds, to_return=None)
            trainers["own"].measure_speed(warm_up, train_dir, "warm_up")
        for idx in range(options.rounds):
            rounds.append({})
            for name, trainer in trainers.items():
                result = trainer.measure_speed(options, train_dir, f"{name}_{idx}")
                rounds[-1] = {**rounds[-1], name: result}
                print(f"round {idx}: {name}: {result}", file=sys.stderr)
            settings = {name: trainer.settings_in(train_dir / f"{name}_0") for name, trainer in trainers.items()}
            ratios = ratios_of(rounds, options.to_return is not None)
            record = {
                "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
                "machine": machine,
                "versions": {name: trainer.versions() for name, trainer in trainers.items()},
                "settings": settings,
                "rounds": [{name: asdict(result) for name, result in each.items()} for each in rounds],
                "ratios": {peer: [as_json(value) for value in values] for peer, values in ratios.items()},
                "median_ratios": {peer: as_json(median_of(values)) for peer, values in ratios.items()},
            }
            json_file.write(options.json, record, indent=2)
    print(as_text(options, machine, settings, rounds))


def ratios_of(rounds: Sequence[Round], is_to_return: bool) -> dict[str, list[float | None]]:
    """How many times as fast as each peer this project was, round by round."""
    return {
        peer: [ratio(each[peer], each["own"], is_to_return) for each in rounds] for peer in rounds[0] if peer != "own"
    }


def ratio(peer: Result, own: Result, is_to_return: bool) -> float | None:
    """0 where this project alone did not reach the return, infinite where the peer alone did not, None where neither
    did, or one of the two has no rate."""
    if not is_to_return:
        rate, rate_of_peer = own.steady_frames_per_second, peer.steady_frames_per_second
        return rate / rate_of_peer if rate and rate_of_peer else None
    if own.seconds_to_return is None:
        return None if peer.seconds_to_return is None else 0.0
    return math.inf if peer.seconds_to_return is None else peer.seconds_to_return / own.seconds_to_return


def median_of(values: Sequence[float | None]) -> float | None:
    """Of those that are not None. There is no mean of the middle two where one is 0 or infinite: then the lower one."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    low, high = median_low(there), median_high(there)
    return low if low == 0.0 or high == math.inf else median(there)


def as_json(value: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "inf" if value == math.inf else value


def as_text(
    options: Options, machine: Mapping[str, Any], settings: Mapping[str, dict[str, Any]], rounds: Sequence[Round]
) -> str:
    """The settings of the peers, and a table with a row for each round."""
    is_to_return = options.to_return is not None
    what = "frames/s: steady (whole run)"
    if is_to_return:
        what = f"to a mean return of {options.to_return:g}: seconds from the launch, frames (steady frames/s)"
    lines = [f"{options.env} on {machine['cores']} cores of {machine['cpu']}, {what}"]
    for name in options.peers:
        shown = PEERS[name].shown_settings or settings[name]
        described = ", ".join(f"{key}={settings[name][key]}" for key in shown if key in settings[name])
        lines.append(f"{PEERS[name].title}, float32: {described}")
    ratios = ratios_of(rounds, is_to_return)
    titles = [PEERS[name].title if name in PEERS else "this project" for name in rounds[0]]
    header = ["round", *titles, *(f"ratio to {PEERS[peer].title}" for peer in ratios)]
    rows = []
    for idx, each in enumerate(rounds):
        cells = [cell(result, is_to_return) for result in each.values()]
        rows.append([str(idx), *cells, *(number(of[idx]) for of in ratios.values())])
    rows.append(["median", *("" for _ in titles), *(number(median_of(of)) for of in ratios.values())])
    table = [markdown_table(header, rows)]
    if is_to_return and any(value in (None, 0.0, math.inf) for of in ratios.values() for value in of):
        table += ["", _NOT_REACHED]
    return "\n".join([*lines, "", *table])


def cell(result: Result, is_to_return: bool) -> str:
    steady = "-" if result.steady_frames_per_second is None else f"{result.steady_frames_per_second:,.0f}"
    if not is_to_return:
        return f"{steady} ({result.whole_run_frames_per_second:,.0f})"
    if result.seconds_to_return is None:
        last = "fewer than 100 episodes" if result.mean_return is None else f"{result.mean_return:.1f}"
        return f"not reached: {last} in {result.seconds:.0f} s, {result.env_frames:,} ({steady})"
    return f"{result.seconds_to_return:.1f} s, {result.frames_to_return:,} ({steady})"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
