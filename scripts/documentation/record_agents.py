"""The animation of trained agents in the README and on the first page of the site: docs/images/agents.webp.

    python scripts/documentation/record_agents.py zoo/doom_health_gathering zoo/atari_pong zoo/connect_four

plays one episode of each policy, as sf-enjoy does, and puts the videos side by side. Needs the extra video.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import imageio_ffmpeg

ANIMATION = Path(__file__).resolve().parent.parent.parent / "docs" / "images" / "agents.webp"
SECONDS = 6
_FPS = 12
_HEIGHT = 240  # pixels of each video
_QUALITY = 50  # of 100


def record(policies: list[str], animation: Path = ANIMATION) -> None:
    with tempfile.TemporaryDirectory() as folder:
        videos = [str(Path(folder, f"{i}.mp4")) for i in range(len(policies))]
        for policy, video in zip(policies, videos, strict=True):
            flags = ["--episodes", "1", "--speed", "2", "--fps", str(_FPS), "--max_seconds", str(SECONDS)]
            enjoy = [sys.executable, "-m", "sf.tools.commands.enjoy", policy, *flags, "--video", video]
            subprocess.run(enjoy, check=True)
        # One that ends early stays on its last picture.
        parts = [
            f"[{i}]scale=-2:{_HEIGHT},tpad=stop_mode=clone:stop_duration={SECONDS}[{i}s]" for i in range(len(videos))
        ]
        beside = "".join(f"[{i}s]" for i in range(len(videos))) + f"hstack=inputs={len(videos)}"
        inputs = [word for video in videos for word in ("-i", video)]
        output = ["-t", str(SECONDS), "-loop", "0", "-c:v", "libwebp_anim", "-quality", str(_QUALITY), str(animation)]
        filters = ["-filter_complex", ";".join([*parts, beside])]
        subprocess.run(
            [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", *inputs, *filters, *output], check=True
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="+", metavar="RUN", help="what sf-enjoy takes: a run or a checkpoint")
    record(parser.parse_args().policies)
