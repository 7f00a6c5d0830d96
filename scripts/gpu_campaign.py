"""The first hour on a machine with a GPU: does it run, does it survive, how fast is it, does it learn?

    python scripts/gpu_campaign.py --out gpu_results
    python scripts/gpu_campaign.py --out gpu_results --steps check runs survival
    python scripts/gpu_campaign.py --out gpu_results --summary
    python scripts/gpu_campaign.py --out gpu_results --steps check weights runs survival --side_by_side
    python scripts/gpu_campaign.py --out gpu_results --steps speed_doom --share_of_time 0.4
    python scripts/gpu_campaign.py --rehearse

Each step runs unattended in a process of its own, in under ten minutes, and writes STEP.json and STEP.txt; one that
fails, or hangs and is killed, does not stop the next. A step that is there already is skipped, unless --again names it
anew; one that did not come to its end goes on. At the end there is a table of what was learned. --rehearse does all of
it on the CPU, as small as it can be, in some minutes. Where the machine is lent for minutes only, steps that measure
no speed can be done side by side, and those that do can take a share of their time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.step import Context, Findings, Step
from process_session import run_bounded, sigterm_raises
from recording import json_file
from rich import box
from rich.console import Console
from rich.table import Table

from sf.metrics.system_info import system_info

STEPS = (  # in their order: what decides most comes first
    Step("check", "gpu.running:check", "does the machine have what training relies on"),
    Step("tests", "gpu.running:tests", "the tests marked gpu"),
    Step("weights", "gpu.weights:run", "weights read are the weights published"),
    Step("runs", "gpu.running:runs", "a run of each kind"),
    Step("survival", "gpu.survival:run", "kill -9 of each process"),
    Step("learn_pong", "gpu.running:pong", "atari_pong to 18, by the clock"),
    Step("speed_doom", "gpu.speed:doom", "doom_battle: layers and precisions"),
    Step("speed_atari", "gpu.speed:atari", "atari_breakout: layers and precisions"),
    Step("profile", "gpu.profiles:run", "a learner iteration and a policy step"),
    Step("learn_doom", "gpu.running:doom", "doom_basic to 75"),
    Step("learn_hopper", "gpu.running:hopper", "Hopper-v5 to 2000"),
    Step("peers", "gpu.speed:peers", "Sample Factory in turn, where it is installed"),
    Step("limits", "gpu.speed:limits", "workers and environments that still gain"),
)


def main() -> None:
    names = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--steps", nargs="+", default=names, choices=names, metavar="STEP", help=", ".join(names))
    parser.add_argument("--again", action="store_true", help="do steps anew whose results are there")
    parser.add_argument("--summary", action="store_true", help="only print the table of what is there")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, as small as it can be")
    parser.add_argument("--device", choices=["cuda", "cpu"], help="cuda, and cpu in a rehearsal")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no step after this many")
    parser.add_argument("--side_by_side", action="store_true", help="all at once, where they measure no speed")
    parser.add_argument("--share_of_time", type=float, default=1.0, help="of the seconds that something is run for")
    parser.add_argument("--in_process", choices=names, help=argparse.SUPPRESS)
    parser.add_argument("--beside_others", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.out is None and not args.rehearse:
        parser.error("--out: name a folder for the results")
    with tempfile.TemporaryDirectory() as temporary:
        out = (args.out or Path(temporary)).resolve()
        device = args.device or ("cpu" if args.rehearse else "cuda")
        steps = [step for step in STEPS if step.name in args.steps]
        if args.in_process:
            (step,) = (step for step in STEPS if step.name == args.in_process)
            context = Context(out / step.name, device, args.rehearse, args.share_of_time, not args.beside_others)
            perform(step, context)
        elif not args.summary:
            out.mkdir(parents=True, exist_ok=True)
            begin_until = time.monotonic() + 60 * args.minutes
            steps = [step for step in steps if args.again or not is_finished(out, step)]
            if args.side_by_side and not args.beside_others:
                do_side_by_side(steps, out)
                steps = []
            for step in steps:
                if time.monotonic() < begin_until:
                    supervise(step, out, anew=args.again)
        if not args.in_process:
            print_summary(out)
            found = results(out)
            missing = [] if args.summary else [name for name in args.steps if name not in found]
            if missing:
                print(f"not done: {', '.join(missing)}; the same command goes on with them")
            sys.exit(not found or bool(missing) or not all(result["is_ok"] for result in found.values()))


def supervise(step: Step, out: Path, anew: bool) -> None:
    """Perform a step in a process of its own, and end that with all that it started when its time is up."""
    folder = out / step.name
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    _result(out, step).unlink(missing_ok=True)
    print(f"{step.name}: {step.what} ...", flush=True)
    log = folder / "log.txt"
    ran = run_bounded([*_this_command(out), "--in_process", step.name], log, step.limit_s)
    if not _result(out, step).exists():
        tail = log.read_text(errors="replace").strip().splitlines()[-12:]
        why = "its time was up" if ran.stopped - ran.started >= step.limit_s else "its process died"
        write(out, step, Findings(False, [f"no result: {why}", *tail], is_finished=False), ran.stopped - ran.started)
    if ran.left_behind:
        print(f"{step.name}: {ran.left_behind} processes were left, and killed", flush=True)
    print(_result(out, step).with_suffix(".txt").read_text(), flush=True)


def _this_command(out: Path) -> list[str]:
    """The command line of this campaign, to which the process of a step, or the campaign of one, has a flag more."""
    return [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--out", str(out)]


@sigterm_raises()
def do_side_by_side(steps: Sequence[Step], out: Path) -> None:
    """A campaign of each, since one ends all processes below it when its step is done."""
    command = [*_this_command(out), "--beside_others", "--steps"]
    for step in steps:
        _result(out, step).unlink(missing_ok=True)
    began = time.monotonic()
    campaigns = {step: subprocess.Popen([*command, step.name], stdout=subprocess.DEVNULL) for step in steps}
    try:
        for step, campaign in campaigns.items():
            status = campaign.wait()
            if not _result(out, step).exists():
                why = f"no result: its campaign ended with status {status}"
                write(out, step, Findings(False, [why], is_finished=False), time.monotonic() - began)
    finally:
        for campaign in campaigns.values():  # they end what they have started
            campaign.terminate()
        for campaign in campaigns.values():
            campaign.wait()


def perform(step: Step, context: Context) -> None:
    out, began = context.folder.parent, time.monotonic()
    json_file.write(out / "machine.json", system_info(), indent=2)
    try:
        findings = step.run(context)
    except Exception as error:
        traceback.print_exc()
        findings = Findings(False, [f"{type(error).__name__}: {error}"], traceback.format_exc())
    write(out, step, findings, time.monotonic() - began)


def write(out: Path, step: Step, findings: Findings, seconds: float) -> None:
    """Another process may read the result at any moment."""
    record = {"step": step.name, "seconds": round(seconds, 1), **dataclasses.asdict(findings)}
    path = _result(out, step)
    path.with_suffix(".txt").write_text("".join(f"  {line}\n" for line in findings.lines))
    json_file.write(path, json.loads(json.dumps(record, default=str)))


def is_finished(out: Path, step: Step) -> bool:
    return results(out).get(step.name, {"is_finished": False})["is_finished"]


def results(out: Path) -> dict[str, dict[str, Any]]:
    """By step, of those that are there."""
    paths = {step.name: _result(out, step) for step in STEPS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def print_summary(out: Path) -> None:
    table = Table("step", "", "s", "what was found", box=box.MARKDOWN, show_lines=True)
    for name, result in results(out).items():
        state = "ok" if result["is_ok"] else "FAILS" if result["is_finished"] else "goes on"
        table.add_row(name, state, f"{result['seconds']:.0f}", "\n".join(result["lines"]))
    console = Console(width=160, soft_wrap=False)
    machine = out / "machine.json"
    if machine.exists():
        facts = json.loads(machine.read_text())
        console.print(
            f"{facts['gpus'] or 'no GPU'}, {facts['usable_cores']} cores of {facts['cpu']}, {facts['versions']}"
        )
        console.print(f"commit {facts['commit']}")
    console.print(table, highlight=False, markup=False)


def _result(out: Path, step: Step) -> Path:
    return out / f"{step.name}.json"


if __name__ == "__main__":
    main()
