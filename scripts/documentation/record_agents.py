"""The animations of trained agents in the README and on the first page of the site: docs/images/NAME.webp.

    python scripts/documentation/record_agents.py zoo/doom_health_gathering zoo/connect_four

plays one episode of each policy, as sf-enjoy does, and leaves out the caption above the picture, which would be too
small to read. NAME is the last part of what names the policy. Needs the extra video.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import imageio_ffmpeg

from sf.evaluation.pictures.overlay import CAPTION_HEIGHT

IMAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "images"
SECONDS = 6
_FPS = 12
_HEIGHT = 300  # pixels
_QUALITY = 50  # of 100


def record(policy: str, images: Path = IMAGES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        video = str(Path(folder, "video.mp4"))
        flags = ["--episodes", "1", "--speed", "2", "--fps", str(_FPS), "--max_seconds", str(SECONDS)]
        enjoy = "from sf.tools.commands.entry_points import sf_enjoy; sf_enjoy()"
        subprocess.run([sys.executable, "-c", enjoy, policy, *flags, "--video", video], check=True)
        # An episode that ends early stays on its last picture.
        filters = f"crop=iw:ih-{CAPTION_HEIGHT}:0:{CAPTION_HEIGHT},scale=-2:{_HEIGHT},"
        filters += f"tpad=stop_mode=clone:stop_duration={SECONDS}"
        output = ["-t", str(SECONDS), "-loop", "0", "-c:v", "libwebp_anim", "-quality", str(_QUALITY)]
        animation = images / f"{Path(policy).name}.webp"
        ffmpeg = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", "-i", video]
        subprocess.run([*ffmpeg, "-vf", filters, *output, str(animation)], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="+", metavar="RUN", help="what sf-enjoy takes: a run or a checkpoint")
    for name in parser.parse_args().policies:
        record(name)
