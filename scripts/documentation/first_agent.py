"""The time to the first trained agent: from a fresh clone of this repository to the end of `make train`.

    python scripts/documentation/first_agent.py

clones the latest commit into a temporary folder, and prints one line. pip takes packages from its cache;
`PIP_NO_CACHE_DIR=1 python scripts/documentation/first_agent.py` downloads all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = Path("train_dir", "doom_basic")


def measure(clone: Path) -> str:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    started = time.monotonic()
    subprocess.run(["make", "train"], cwd=clone, check=True)
    seconds = time.monotonic() - started
    summary = json.loads((clone / RUN / "summary.json").read_text())
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=clone, check=True, capture_output=True, text=True
    ).stdout.strip()
    return (
        f"make train at commit {commit}: {seconds:.0f} s, of which {summary['seconds']:.0f} s are training; "
        f"mean return {summary['mean_return']:.1f} after {summary['env_frames']:,} frames"
    )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(measure(Path(folder, "sf-appo")))
