"""The peers as far as scripts/bench_peers.py knows them: their command lines, their output, their files.

They train nothing, report 1,000 frames a second, and end by themselves.
"""

import json
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

FRAMES_PER_SECOND = 1000
FRAMES = (0, 5_000, 10_000, 15_000)
"""Of its reports, which come every 5 s."""


def main() -> None:
    if sys.argv[1] == "-m":
        sample_factory()
    else:
        stable_baselines3()


def stable_baselines3() -> None:
    task = json.loads(sys.argv[2])  # behind the program
    assert task["kind"] == "atari"
    start = time.time() - FRAMES[-1] / FRAMES_PER_SECOND
    for frames in FRAMES[1:]:
        line = {"at": start + frames / FRAMES_PER_SECOND, "steps": frames // 4}
        print(json.dumps({**line, "are_trained_on": True, "mean_return": None}))


def sample_factory() -> None:
    flags = dict(word[2:].split("=", 1) for word in sys.argv[3:])  # behind -m and the module
    folder = Path(flags["train_dir"]) / flags["experiment"]
    folder.mkdir()
    own = {"env_frameskip": 4, "command_line": "", "cli_args": {}}
    (folder / "config.json").write_text(json.dumps(flags | own))
    start = datetime.now() - timedelta(seconds=FRAMES[-1] / FRAMES_PER_SECOND)
    for frames in FRAMES:
        at = f"{start + timedelta(seconds=frames / FRAMES_PER_SECOND):%Y-%m-%d %H:%M:%S,%f}"[:-3]
        print(f"\x1b[36m[{at}][00042] Fps is (10 sec: 999.9). Total num frames: {frames}. Throughput: 0: 999.9.\x1b[0m")


if __name__ == "__main__":
    main()
