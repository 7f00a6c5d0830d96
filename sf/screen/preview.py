"""A small GIF of a video, for TensorBoard, which shows no other moving pictures."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

MAX_BYTES = 400_000
_MAX_PICTURES = 160
_MAX_FPS = 10.0
_PALETTE = "split[a][b];[a]palettegen=max_colors=64:stats_mode=diff[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
_SMALLER = 0.75  # width and height of the next attempt
_SMALLEST = 48  # pixels of width


class Preview(NamedTuple):
    """gif: a whole file, which plays as fast as the video."""

    gif: bytes
    width: int
    height: int


def preview(video: Path, seconds: float, width: int) -> Preview:
    """Of a video of this length and width, as large as fits into `MAX_BYTES`. Raises ValueError where ffmpeg fails."""
    fps = min(_MAX_FPS, _MAX_PICTURES / max(seconds, 1e-3))
    width = min(width, 400)
    gif = _gif(video, fps, width)
    while len(gif) > MAX_BYTES and width > _SMALLEST:
        width = int(width * _SMALLER)
        gif = _gif(video, fps, width)
    return Preview(gif, *size_of(gif))


def size_of(gif: bytes) -> tuple[int, int]:
    """Width and height."""
    return struct.unpack("<HH", gif[6:10])


def _gif(video: Path, fps: float, width: int) -> bytes:
    import imageio_ffmpeg  # noqa: PLC0415  an extra

    done = subprocess.run(
        [
            *(imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-threads", "1", "-i", f"file:{video}"),
            *("-filter_complex", f"fps={fps:.4f},scale={width}:-2:flags=area,{_PALETTE}"),
            *("-threads", "1", "-loop", "0", "-f", "gif", "-"),
        ],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(f"{video} has no preview: {said[-1] if said else f'ffmpeg ended with {done.returncode}'}")
    return done.stdout
